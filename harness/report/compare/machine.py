"""What the machine was doing while the steps of two runs were timed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.model import Device
from harness.report.compare.sides import Side
from harness.report.compare.timings import wander
from harness.report.machine import ROWS, states_of


@dataclass(frozen=True, slots=True)
class MachineRow:
    """One thing about the machine under a device, in both runs; empty is what could not be read."""

    name: str
    device: Device
    a: str
    b: str


def machine_rows(a: Side, b: Side) -> list[MachineRow]:
    """What either run knows about the machine, for every device that both ran on and that computes."""
    devices = [device for device in a.plan.devices if device in b.plan.devices and device.computes]
    return [row for device in devices for row in _rows(a, b, device) if row.a or row.b]


def _rows(a: Side, b: Side, device: Device) -> Iterator[MachineRow]:
    states = [states_of(side.records_on(device)) for side in (a, b)]
    for name, read in ROWS.items():
        yield MachineRow(name, device, read(states[0]), read(states[1]))
    moved = [wander(side, device) for side in (a, b)]
    first, second = ("" if factor is None else f"{factor:.3f}" for factor in moved)
    yield MachineRow("step time, later replicates / earlier", device, first, second)
