"""What the machine was doing while the steps of two runs were timed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from harness.measured import MachineState
from harness.model import Device
from harness.report.compare.sides import Side
from harness.report.compare.timings import wander
from harness.report.text import number
from harness.statistics import median


@dataclass(frozen=True, slots=True)
class MachineRow:
    """One thing about the machine under a device, in both runs; empty is what could not be read."""

    name: str
    device: Device
    a: str
    b: str


def _middle(read: Callable[[MachineState], float | None]) -> Callable[[Sequence[MachineState]], str]:
    return lambda states: number(median(map(read, states)))


def _throttled(states: Sequence[MachineState]) -> str:
    told = [state.throttled for state in states if state.throttled is not None]
    reasons = Counter(reason for each in told for reason in each)
    if not told:
        return ""
    return ", ".join(f"{reason} in {share / len(told):.0%}" for reason, share in reasons.most_common()) or "nothing"


def _foreign(states: Sequence[MachineState]) -> str:
    return number(max((s.foreign_processes for s in states if s.foreign_processes is not None), default=None))


_ROWS: dict[str, Callable[[Sequence[MachineState]], str]] = {
    "GPU clock, MHz": _middle(lambda state: state.sm_mhz),
    "GPU temperature, °C": _middle(lambda state: state.temperature_c),
    "GPU power, W": _middle(lambda state: state.power_w),
    "GPU held down by, share of blocks": _throttled,
    "most other processes on the GPU": _foreign,
    "CPU clock, MHz": _middle(lambda state: state.cpu_mhz),
    "load of the host": _middle(lambda state: state.load),
}
"""Medians over blocks, where nothing else is said."""


def machine_rows(a: Side, b: Side) -> list[MachineRow]:
    """What either run knows about the machine, for every device that both ran on and that computes."""
    devices = [device for device in a.plan.devices if device in b.plan.devices and device.computes]
    return [row for device in devices for row in _rows(a, b, device) if row.a or row.b]


def _rows(a: Side, b: Side, device: Device) -> Iterator[MachineRow]:
    states = [_states(side, device) for side in (a, b)]
    for name, read in _ROWS.items():
        yield MachineRow(name, device, read(states[0]), read(states[1]))
    moved = [wander(side, device) for side in (a, b)]
    first, second = ("" if factor is None else f"{factor:.3f}" for factor in moved)
    yield MachineRow("step time, later replicates / earlier", device, first, second)


def _states(side: Side, device: Device) -> list[MachineState]:
    return [
        sample.machine
        for record in side.records_on(device)
        for sample in record.samples
        if sample.machine is not None and not sample.warmup
    ]
