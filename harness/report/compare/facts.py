"""What differs around two runs, and what each difference means for their timings.

Timings are compared where the same work was done on the same hardware and timed in the same way. What a person changes
on purpose and wants to know the price of - versions, the code - is no barrier: it is what the comparison is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from enum import StrEnum

from harness.model import Device, Record, Settings, Value
from harness.report.compare.sides import Side
from harness.report.sections.environment import FACTS
from harness.results import Result

UNKNOWN = "not recorded"


class Effect(StrEnum):
    """What a difference means."""

    BARRIER = "timings are not comparable"
    CAUSE = "may be why a timing or an outcome changed"
    NUMBERS = "other numbers, the same work"
    PLANNED = "other variants or attempts were planned"
    NONE = "no part of an attempt"


BARRIERS = ("device_name", "capability", "cpu", "threads", "tf32", "deterministic", "benchmark")
"""Facts of a record that have to be the same on both sides: the hardware, and what it was told to compute and how."""

NEEDED = "device_name"
"""Without this nothing shows that two attempts ran on the same hardware."""

_ENVIRONMENT = {
    "system": Effect.BARRIER,
    "cores": Effect.BARRIER,
    "torchvision": Effect.NONE,
    "mlflow": Effect.NONE,
    "pandas": Effect.NONE,
    "numpy": Effect.NONE,
    "pydantic": Effect.NONE,
}
"""Facts of the coordinating process; what is not named here may be a cause."""

_SETTINGS = {
    "seed": Effect.NUMBERS,
    "learning_rate": Effect.NUMBERS,
    "evaluation_steps": Effect.CAUSE,
    "deadline": Effect.CAUSE,
    "replicates": Effect.PLANNED,
}
"""What is not named here decides which steps are timed, and how: a barrier."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact that is not the same in both runs, or not throughout one. ``device`` is None for the whole run."""

    name: str
    device: Device | None
    a: str
    b: str
    effect: Effect


def differences(a: Side, b: Side) -> list[Difference]:
    """All that differs, barriers first."""
    found = [*_of_records(a, b), *_of_environment(a, b), *_of_settings(a, b), *_of_plan(a, b)]
    return sorted(found, key=lambda difference: list(Effect).index(difference.effect))


def _of_records(a: Side, b: Side) -> Iterator[Difference]:
    for device in a.plan.devices:
        if device not in b.plan.devices:
            continue
        sides = [[r for r in side.records_on(device) if r.facts] for side in (a, b)]
        if not all(sides):
            continue
        for fact, words in FACTS.items():
            first, second = (_values(fact, records) for records in sides)
            if first != second or len(first) > 1:
                effect = Effect.BARRIER if fact in BARRIERS and device.computes else Effect.CAUSE
                yield Difference(words, device, _joined(first), _joined(second), effect)


def _values(fact: str, records: Iterable[Record]) -> list[str]:
    return sorted({_word(record.facts.get(fact)) for record in records})


def _joined(values: list[str]) -> str:
    return values[0] if len(values) == 1 else f"mixed: {', '.join(values)}"


def _of_environment(a: Side, b: Side) -> Iterator[Difference]:
    """What the coordinators recorded, but for what the attempts themselves tell, such as their PyTorch."""
    told = [{fact for result in side.results for record in result.records for fact in record.facts} for side in (a, b)]
    for name in dict.fromkeys((*a.plan.environment, *b.plan.environment)):
        first, second = (_word(side.plan.environment.get(name)) for side in (a, b))
        if first != second and name not in told[0] & told[1] & FACTS.keys():
            yield Difference(name.replace("_", " "), None, first, second, _ENVIRONMENT.get(name, Effect.CAUSE))


def _of_settings(a: Side, b: Side) -> Iterator[Difference]:
    for field in fields(Settings):
        first, second = (_word(getattr(side.plan.settings, field.name)) for side in (a, b))
        if first != second:
            effect = _SETTINGS.get(field.name, Effect.BARRIER)
            yield Difference(f"setting {field.name}", None, first, second, effect)


def _of_plan(a: Side, b: Side) -> Iterator[Difference]:
    for name in ("matrix", "selection"):
        first, second = (getattr(side.plan, name) or "everything" for side in (a, b))
        if first != second:
            yield Difference(name, None, first, second, Effect.PLANNED)
    first, second = (", ".join(side.plan.devices) for side in (a, b))
    if first != second:
        yield Difference("devices", None, first, second, Effect.PLANNED)


def _word(value: Value | None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return UNKNOWN if value is None or value == "" else str(value)


def barrier(a: Result, b: Result, around: Iterable[Difference]) -> str | None:
    """Why the timings of two results cannot be compared; None where they can.

    ``around`` are the differences of the two runs; what the records themselves say is looked at here, so that one run
    on two GPUs is comparable where it used the same one.
    """
    for difference in around:
        if difference.device is None and difference.effect is Effect.BARRIER:
            return f"other {difference.name}"
    records = (*a.records, *b.records)
    for fact in BARRIERS:
        if len(_values(fact, records)) > 1:
            return f"other {FACTS[fact]}"
    return None if NEEDED in records[0].facts else f"{FACTS[NEEDED]} {UNKNOWN}"
