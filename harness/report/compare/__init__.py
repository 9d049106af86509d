"""Two runs side by side: what differs around them, what became of the outcomes, and only then the times of a step."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import UsageError
from harness.model import Plan, Record
from harness.report.compare.facts import Difference, differences
from harness.report.compare.machine import MachineRow, machine_rows
from harness.report.compare.sides import Side
from harness.report.compare.timings import Cell, Timings, timings
from harness.report.compare.transitions import SERIOUS, Transition, transitions
from harness.report.compare.verdicts import Rules, Verdict

__all__ = ["Comparison", "Rules", "Verdict", "compare", "parse_threshold"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Run B held against run A."""

    a: Side
    b: Side
    rules: Rules
    differences: tuple[Difference, ...]
    transitions: tuple[Transition, ...]
    machine: tuple[MachineRow, ...]
    timings: Timings

    @property
    def shared(self) -> int:
        """How many cells (a variant on a device) both runs planned."""
        return len(self.a.cells.keys() & self.b.cells.keys())

    @property
    def serious(self) -> list[Transition]:
        """Outcomes that are not as they were, or are not known to be."""
        return [transition for transition in self.transitions if transition.change in SERIOUS]

    @property
    def slower(self) -> list[Cell]:
        """Cells that got slower, with evidence."""
        return self.timings.with_verdict(Verdict.WORSE)


def compare(a: tuple[Plan, Sequence[Record]], b: tuple[Plan, Sequence[Record]], rules: Rules) -> Comparison:
    """Hold run ``b`` against run ``a``.

    Raises:
        UsageError: they are the same run.
    """
    if a[0].run == b[0].run:
        raise UsageError(
            f"run {a[0].run} cannot be compared with itself: nothing could differ",
            "To see how much times differ where nothing changed, run the same command again and compare the two.",
        )
    first, second = Side.of(*a), Side.of(*b)
    around = differences(first, second)
    return Comparison(
        first,
        second,
        rules,
        tuple(around),
        tuple(transitions(first, second)),
        tuple(machine_rows(first, second)),
        timings(first, second, around, rules),
    )


def parse_threshold(text: str) -> Rules:
    """``2%`` -> rules.

    Raises:
        UsageError: it is no percentage, or one that makes no sense.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*%\s*", text)
    share = float(found[1]) / 100 if found else 0.0
    if not 0 < share < 1:
        raise UsageError(f"{text[:40]!r} is no threshold", "Write a percentage above 0 and below 100, like 2% or 0.5%.")
    return Rules(share)
