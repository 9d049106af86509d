"""One of the two runs that are compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from harness.model import Device, Plan, Record
from harness.results import Result, collect

Place = tuple[str, Device]
"""A cell of a comparison: a variant's key, on a device."""


@dataclass(frozen=True)
class Side:
    """A plan and what its records say."""

    plan: Plan
    results: tuple[Result, ...]
    strays: int = 0

    @classmethod
    def of(cls, plan: Plan, records: Iterable[Record]) -> Side:
        """Gather ``records`` under ``plan``."""
        collection = collect(plan, records)
        return cls(plan, collection.results, collection.strays)

    @cached_property
    def cells(self) -> dict[Place, Result]:
        """Every planned variant on every planned device, in the plan's order."""
        return {(result.key, result.device): result for result in self.results}

    def records_on(self, device: Device) -> Iterator[Record]:
        """The records of ``device`` that count."""
        return (record for result in self.results if result.device is device for record in result.records)
