"""Reads what a watched process left behind, however it ended."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from harness.diagnose.facts import COUNTS, MOST_FACTS, NOTES, Count, Fact

_FACT: TypeAdapter[Fact] = TypeAdapter(Fact)
_WORD = 8


@dataclass(slots=True)
class Collected:
    """The facts by their number, the counters, and how the program ended, as far as it could be seen."""

    facts: dict[int, Fact] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    exception: str | None = None
    message: str = ""
    failed: str | None = None

    def count(self, which: Count) -> int:
        """One of the counters."""
        return self.counts[which]

    @property
    def times(self) -> dict[int, int]:
        """How often each fact happened."""
        return {number: self.counts[Count.TIMES + number] for number in self.facts}


def prepare(folder: Path) -> None:
    """Make the files that a process leaves its notes in."""
    (folder / NOTES).touch()
    (folder / COUNTS).write_bytes(bytes(_WORD * (Count.TIMES + MOST_FACTS)))


def collect(folder: Path) -> Collected:
    """What is in ``folder``; a line that a dying process did not finish counts as none."""
    try:
        words = memoryview((folder / COUNTS).read_bytes()).cast("Q")
        lines = (folder / NOTES).read_bytes().splitlines()
    except OSError as error:
        none = dict.fromkeys(range(Count.TIMES + MOST_FACTS), 0)
        return Collected(counts=none, failed=f"the notes are gone, as if the script had removed them ({error})")
    found = Collected(counts=dict(enumerate(words)))
    for line in lines:
        try:
            content = json.loads(line)
        except ValueError:
            continue
        _take(found, content)
    return found


def _take(found: Collected, content: dict[str, Any]) -> None:
    if "fact" in content:
        fact = _FACT.validate_python(content["fact"])
        found.facts[fact.number] = fact
    elif "withdrawn" in content:
        found.facts.pop(content["withdrawn"], None)
    elif "exception" in content:
        found.exception, found.message = content["exception"], content["message"]
    elif "failed" in content:
        found.failed = content["failed"]
