"""The sittings of a run: the original ``run`` is the first, every resume is one more. And what differs between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from harness.model import Device, Plan, Record

SCHEMA = 1
"""Version of a line in ``sittings.jsonl``."""

_NO_PART_OF_AN_ATTEMPT = frozenset(("mlflow", "pandas", "pydantic"))
"""Facts of the coordinating process that change nothing in what an attempt does."""

MACHINE_FACTS = {
    "device_name": "device",
    "capability": "compute capability",
    "driver": "driver",
    "cuda": "CUDA",
    "cudnn": "cuDNN",
    "cpu": "processor",
}
"""Facts of an attempt that can be known before one is made, with the words for them."""


@dataclass(frozen=True, slots=True)
class Sitting:
    """When, with which command and under what a run was begun or gone on with.

    ``environment`` is as in a plan; ``facts`` are what each device told of itself, as far as it was asked;
    ``differences`` from the first sitting in words, empty where there are none.
    """

    number: int
    started: str
    command: tuple[str, ...] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[Device, Mapping[str, Any]] = field(default_factory=dict)
    differences: tuple[str, ...] = ()
    schema: int = SCHEMA

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"ser_json_inf_nan": "strings"}


def first_sitting(plan: Plan) -> Sitting:
    """The sitting that made the plan."""
    return Sitting(1, plan.created, plan.command, plan.environment)


def next_number(sittings: Iterable[Sitting], records: Iterable[Record]) -> int:
    """The number of the sitting that comes after all that are known of."""
    known = {sitting.number for sitting in sittings} | {record.sitting for record in records}
    return max(known, default=0) + 1


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    """What differs between two environments, in words, as far as an attempt can notice."""
    names = [name for name in dict.fromkeys((*before, *now)) if name not in _NO_PART_OF_AN_ATTEMPT]
    return tuple(
        f"{name.replace('_', ' ')} {word(before.get(name))}, now {word(now.get(name))}"
        for name in names
        if word(before.get(name)) != word(now.get(name))
    )


def changed_facts(records: Iterable[Record], now: Mapping[Device, Mapping[str, Any]]) -> Iterator[str]:
    """What the devices tell of themselves now that the records made on them do not, in words."""
    records = tuple(records)
    for device, facts in now.items():
        for name, words in MACHINE_FACTS.items():
            seen = {word(record.facts[name]) for record in records if record.device is device and name in record.facts}
            # What a device was not asked is not known to have changed.
            if seen and facts.get(name) is not None and word(facts[name]) not in seen:
                yield f"{words} on {device} {' or '.join(sorted(seen))}, now {word(facts[name])}"


def word(value: object) -> str:
    """A fact in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "unknown" if value is None or value == "" else str(value)
