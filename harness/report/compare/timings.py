"""The step times of two runs, cell by cell, where anything may be said about them at all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from harness.blocks import counted, settled, step_seconds
from harness.model import Device, Outcome
from harness.report.compare.facts import Difference, barrier
from harness.report.compare.shift import moved_within
from harness.report.compare.sides import Side
from harness.report.compare.verdicts import FEWEST, CommonShift, Judged, Pair, Rules, Verdict, common_shift, judge
from harness.results import NO_PROCESS, Result
from harness.statistics import Steadiness


@dataclass(frozen=True, slots=True)
class Cell:
    """One variant on one device that both runs planned; ``judged`` is None where nothing was to be judged.

    ``a`` and ``b`` are seconds per step, one per process: the median of its blocks without warm-up.
    """

    key: str
    label: str
    device: Device
    verdict: Verdict
    reason: str
    a: tuple[float, ...] = ()
    b: tuple[float, ...] = ()
    judged: Judged | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Timings:
    """Every cell on a device that computes, and what the cells of each device have in common."""

    cells: tuple[Cell, ...]
    common: dict[Device, CommonShift]

    def with_verdict(self, *verdicts: Verdict) -> list[Cell]:
        """The cells with one of ``verdicts``."""
        return [cell for cell in self.cells if cell.verdict in verdicts]

    @property
    def judged(self) -> list[Cell]:
        """The cells that have a ratio."""
        return [cell for cell in self.cells if cell.judged]


def timings(a: Side, b: Side, around: Sequence[Difference], rules: Rules) -> Timings:
    """Judge every cell of both plans. False discoveries are controlled over the cells of each device."""
    cells: list[Cell] = []
    common: dict[Device, CommonShift] = {}
    for device in (device for device in a.plan.devices if device.computes):
        both = [(a.cells[place], b.cells[place]) for place in a.cells if place[1] is device and place in b.cells]
        looked_at = [_look(first, second, around) for first, second in both]
        pairs = [Pair.of(cell.a, cell.b) for cell in looked_at if cell.a]
        shared = common_shift(pairs, rules)
        if shared is not None:
            common[device] = shared
        said = iter(judge(pairs, rules, shared, _wandered(a, b, device)))
        cells += [_judged(cell, next(said)) if cell.a else cell for cell in looked_at]
    return Timings(tuple(cells), common)


def _judged(cell: Cell, judged: Judged) -> Cell:
    return replace(cell, verdict=judged.verdict, reason=judged.reason, judged=judged)


def _look(a: Result, b: Result, around: Iterable[Difference]) -> Cell:
    """The times of both sides, or why they are not looked at."""
    verdict, reason = Verdict.NOT_COMPARABLE, _no_ratio(a, b) or barrier_of(a, b, around)
    if a.outcome is not b.outcome and not {a.outcome, b.outcome} & set(NO_PROCESS):
        verdict, reason = Verdict.OUTCOME_CHANGED, f"{a.outcome} in A, {b.outcome} in B"
    if reason is not None:
        return Cell(a.key, a.variant.label, a.device, verdict, reason)
    first, second = _times(a), _times(b)
    if not first or not second:
        return Cell(a.key, a.variant.label, a.device, verdict, "no time was taken")
    return Cell(a.key, a.variant.label, a.device, verdict, "", first, second, notes=tuple(_notes(a, b)))


def _times(result: Result) -> tuple[float, ...]:
    """Seconds per step, one per process that has them, in the order of the replicates."""
    return tuple(seconds for record in result.records if (seconds := step_seconds(record)) is not None)


def _no_ratio(a: Result, b: Result) -> str | None:
    if {a.outcome, b.outcome} & set(NO_PROCESS):
        return "no attempt ran on a side"
    return None if a.outcome is b.outcome is Outcome.OK else "not ok in either run"


def barrier_of(a: Result, b: Result, around: Iterable[Difference]) -> str | None:
    """Why two results that are both ok have no ratio; None where they have one."""
    clocks = {sample.device_s is None for side in (a, b) for record in side.records for sample in counted(record)}
    kinds = {sample.steady for side in (a, b) for record in side.records for sample in counted(record)}
    alike = len(clocks) < 2 and len(kinds) < 2
    return barrier(a, b, around) or (None if alike else "timed by another clock, or in blocks of another kind")


def _notes(a: Result, b: Result) -> list[str]:
    notes = []
    paths = [" and ".join(sorted({str(record.path) for record in side.records})) for side in (a, b)]
    if paths[0] != paths[1]:
        notes.append(f"path {paths[0]} in A, {paths[1]} in B")
    for name, side in (("A", a), ("B", b)):
        drifting = sum(settled(record) is Steadiness.DRIFTS for record in side.records)
        if drifting:
            notes.append(f"{drifting} of {len(side.records)} attempts in {name} not steady")
    return notes


def _wandered(a: Side, b: Side, device: Device) -> float:
    """The larger of the two runs' own movements, in logarithms; 0 where neither can be told."""
    factors = (wander(side, device) for side in (a, b))
    return max((abs(math.log(factor)) for factor in factors if factor is not None), default=0.0)


def wander(side: Side, device: Device) -> float | None:
    """By which factor the later half of the replicates is slower than the earlier; the median over the cells.

    It is how far a machine moves while nothing changes; None where no cell has enough replicates.
    """
    every = [_times(result) for result in side.results if result.device is device and result.timed]
    moved = moved_within([times for times in every if len(times) >= FEWEST])
    return None if moved is None else math.exp(moved)
