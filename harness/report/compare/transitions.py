"""What became of each variant's outcome from one run to the other."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from harness.expectations.words import seen_words
from harness.model import Device, Outcome, Record
from harness.report.compare.sides import Side
from harness.results import NO_PROCESS, Result


class Change(StrEnum):
    """How the second run's outcome relates to the first's; what most needs a look comes first."""

    NEW = "new error"
    GONE = "error gone"
    CHANGED = "changed"
    MOVED = "moved"
    NOT_RUN = "not-run"
    ONLY_A = "only in A"
    ONLY_B = "only in B"
    SAME = "same"


SERIOUS = (Change.NEW, Change.GONE, Change.CHANGED, Change.MOVED, Change.NOT_RUN)
"""What is no longer as it was, or is not known to be. A variant that one plan never had is not among them."""


@dataclass(frozen=True, slots=True)
class Transition:
    """One variant on one device: what happened in either run, in words; None where that run did not plan it."""

    change: Change
    key: str
    label: str
    device: Device
    a: str | None
    b: str | None


def transitions(a: Side, b: Side) -> list[Transition]:
    """Every variant and device that either run planned, in the order of the plans."""
    return [_transition(a.cells.get(place), b.cells.get(place)) for place in dict.fromkeys((*a.cells, *b.cells))]


def _transition(a: Result | None, b: Result | None) -> Transition:
    either = a or b
    assert either is not None
    label, device = either.variant.label, either.device
    words = [None if result is None else _words(result) for result in (a, b)]
    return Transition(change_of(a, b), either.key, label, device, words[0], words[1])


def change_of(a: Result | None, b: Result | None) -> Change:
    """How two results relate; None is a run that did not plan it."""
    if a is None or b is None:
        return Change.ONLY_B if a is None else Change.ONLY_A
    if a.outcome in NO_PROCESS or b.outcome in NO_PROCESS:
        return Change.NOT_RUN
    if Outcome.OK in (a.outcome, b.outcome):
        if a.outcome is b.outcome:
            return Change.SAME
        return Change.NEW if a.outcome is Outcome.OK else Change.GONE
    if _kind(a.decisive) != _kind(b.decisive):
        return Change.CHANGED
    return Change.SAME if _where(a.decisive) == _where(b.decisive) else Change.MOVED


def _kind(record: Record | None) -> tuple[object, ...]:
    """What makes two failures the same: numbers in their messages do not count, nor does how long a timeout took."""
    return (record.outcome, record.error_type, record.fingerprint, record.signal) if record else ()


def _where(record: Record | None) -> tuple[object, ...]:
    return (record.phase, record.epoch, record.step) if record else ()


def _words(result: Result) -> str:
    """What the decisive attempt did, and how many did not do the same."""
    said = seen_words(result.decisive)
    outcomes = Counter(record.outcome for record in result.records)
    if len(outcomes) < 2:
        return said
    return f"{said} ({outcomes[result.outcome]} of {outcomes.total()} attempts)"
