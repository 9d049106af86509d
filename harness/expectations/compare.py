"""A run's records against the expectations, in both directions: what ought to fail and does not counts as well.

It fails closed: what was planned and has no record, never ran, or has no rule is a difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from harness.expectations.document import Expectations, Expected
from harness.model import Device, Outcome, Phase, Plan, Record, Settings, Variant
from harness.results import NO_PROCESS, Result, collect


class Kind(StrEnum):
    """How a record differs from what was expected of it."""

    GONE = "error gone"
    NEW = "new failure"
    CHANGED = "other failure"
    MOVED = "failure moved"
    MISSING = "planned but not run"
    UNKNOWN = "no expectation"


@dataclass(frozen=True, slots=True)
class Difference:
    """One record, or the lack of one, that is not as expected. ``rule`` is the position of the one that decides."""

    kind: Kind
    variant: Variant
    device: Device
    rule: int | None
    record: Record | None


@dataclass(frozen=True, slots=True)
class Check:
    """What came of holding a run against expectations."""

    differences: tuple[Difference, ...]
    held: dict[Device, int]
    """How many records were held against a rule, by device; a device of the plan without any has 0."""
    decided: dict[Device, frozenset[int]]
    """The rules that decided anything, by device."""
    strays: int
    """Records of the run that belong to nothing planned, and so to no expectation."""


def check(plan: Plan, records: Iterable[Record], expectations: Expectations) -> Check:
    """Hold every planned attempt of a run against ``expectations``."""
    collection = collect(plan, records)
    differences: list[Difference] = []
    held = dict.fromkeys(plan.devices, 0)
    decided: dict[Device, set[int]] = {device: set() for device in plan.devices}
    for result in collection.results:
        position = expectations.deciding(result.variant, result.device)
        expected = None if position is None else expectations.rules[position].expect
        differences += [
            Difference(kind, result.variant, result.device, position, record)
            for kind, record in _differences(result, expected, plan.settings)
        ]
        if position is not None:
            held[result.device] += sum(record.outcome not in NO_PROCESS for record in result.records)
            decided[result.device].add(position)
    return Check(tuple(differences), held, {d: frozenset(r) for d, r in decided.items()}, collection.strays)


def _differences(result: Result, expected: Expected | None, settings: Settings) -> Iterator[tuple[Kind, Record | None]]:
    recorded = {record.replicate for record in result.records}
    for _ in set(range(result.replicates)) - recorded:
        yield Kind.MISSING, None
    for record in result.records:
        if record.outcome in NO_PROCESS:
            yield Kind.MISSING, record
        elif expected is None:
            yield Kind.UNKNOWN, record
        elif kind := difference_of(record, expected, settings):
            yield kind, record


def difference_of(record: Record, expected: Expected, settings: Settings) -> Kind | None:
    """How ``record`` differs from what is expected; None where it does not."""
    if expected.outcome is Outcome.OK or not is_reached(expected, settings):
        return None if record.outcome is Outcome.OK else Kind.NEW
    if record.outcome is Outcome.OK:
        return Kind.GONE
    if record.outcome is not expected.outcome or not re.search(expected.error or "", error_line(record)):
        return Kind.CHANGED
    epoch, step = expected.place(settings)
    wanted = (expected.phase, epoch, step)
    seen = (record.phase, record.epoch, record.step)
    moved = any(want is not None and want != see for want, see in zip(wanted, seen, strict=True))
    return Kind.MOVED if moved else None


def is_reached(expected: Expected, settings: Settings) -> bool:
    """Whether a run with ``settings`` is long enough to come to where the failure is expected."""
    epoch, step = expected.place(settings)
    steps = max(settings.evaluation_steps, 1) if expected.phase is Phase.EVALUATE else settings.steps
    return (epoch is None or epoch <= settings.epochs) and (step is None or step <= steps)


def error_line(record: Record) -> str:
    """What an expectation's ``error`` is searched in: ``Type: message``, or the reason that the harness gave."""
    return f"{record.error_type}: {record.error_message or ''}" if record.error_type else record.reason or ""
