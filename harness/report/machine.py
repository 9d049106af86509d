"""What the machine was doing while steps were timed, and what of it a reader of the times must know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from harness.measured import MachineState
from harness.model import Device, Record
from harness.report.text import count, number
from harness.statistics import AGREEMENT, Steadiness, median

MOVED = 1.05
"""A clock that moves by more than this factor explains a difference that size."""

States = Sequence[MachineState]


def states_of(records: Iterable[Record]) -> list[MachineState]:
    """What was read after every timed block but the warm-up's."""
    blocks = (sample for record in records for sample in record.samples)
    return [block.machine for block in blocks if block.machine is not None and not block.warmup]


def _middle(read: Callable[[MachineState], float | None]) -> Callable[[States], str]:
    return lambda states: number(median(map(read, states)))


def throttling(states: States) -> str:
    """What held the clocks down, and in which share of the blocks; ``nothing``, or empty where nobody could tell."""
    told = [state.throttled for state in states if state.throttled is not None]
    reasons = Counter(reason for each in told for reason in each)
    if not told:
        return ""
    return ", ".join(f"{reason} in {share / len(told):.0%}" for reason, share in reasons.most_common()) or "nothing"


def _most_foreign(states: States) -> int | None:
    return max((s.foreign_processes for s in states if s.foreign_processes is not None), default=None)


ROWS: dict[str, Callable[[States], str]] = {
    "GPU clock, MHz": _middle(lambda state: state.sm_mhz),
    "GPU temperature, °C": _middle(lambda state: state.temperature_c),
    "GPU power, W": _middle(lambda state: state.power_w),
    "GPU held down by, share of blocks": throttling,
    "most other processes on the GPU": lambda states: number(_most_foreign(states)),
    "CPU clock, MHz": _middle(lambda state: state.cpu_mhz),
    "load of the host": _middle(lambda state: state.load),
}
"""Medians over blocks, where nothing else is said."""


def machine_caveats(device: Device, records: Iterable[Record], cores: object) -> list[str]:
    """Sentences about a machine that was not quiet while steps were timed on ``device``; ``cores`` as a plan knows."""
    return list(_caveats(device, states_of(records), cores))


def _caveats(device: Device, states: States, cores: object) -> Iterator[str]:
    load = median(state.load for state in states)
    if device is Device.CPU and load is not None and isinstance(cores, int) and load > cores:
        yield (
            f"While steps were timed on `{device}`, the load of the host was {load:.1f} (median over blocks) with "
            f"{count(cores, 'core')}: other programs competed for the processor."
        )
    held = throttling(states)
    if held not in ("", "nothing"):
        yield f"The GPU was held down while steps were timed on `{device}`: {held} of the blocks."
    foreign = _most_foreign(states)
    if foreign:
        sharing = sum(bool(state.foreign_processes) for state in states)
        others = count(foreign, "other process", "other processes")
        yield f"Up to {others} computed on the GPU while steps were timed, in {sharing:,} of {len(states):,} blocks."
    clock = ("GPU", [s.sm_mhz for s in states]) if device is Device.CUDA else ("CPU", [s.cpu_mhz for s in states])
    yield from _clock(device, *clock)


def _clock(device: Device, which: str, read: Sequence[float | None]) -> Iterator[str]:
    """Whether the clock moved; one block in twenty at either end does not count."""
    clocks = sorted(clock for clock in read if clock)
    if len(clocks) < 2:
        return
    ends = len(clocks) // 20
    low, high = clocks[ends], clocks[-1 - ends]
    if high > MOVED * low:
        yield f"The {which}'s clock moved between {low:,.0f} and {high:,.0f} MHz while steps were timed on `{device}`."


def unsettled(device: Device, found: Sequence[Steadiness | None]) -> str:
    """How many of the timed variants of ``device`` had times that had not settled; empty where all had."""
    timed = [each for each in found if each is not None]
    drifting, few = timed.count(Steadiness.DRIFTS), timed.count(Steadiness.TOO_FEW)
    said = []
    if drifting:
        said.append(
            f"The times of {drifting:,} of {count(len(timed), 'variant')} on `{device}` had not settled: they moved by "
            f"more than {AGREEMENT:.0%} over the blocks of an attempt, which is also what a noisy machine looks like"
        )
    if few:
        said.append(f"{count(few, 'variant')} on `{device}` had too few blocks to say whether their times had settled")
    return f"{'; '.join(said)} (`steadiness` in results.csv)." if said else ""
