"""The sittings of a run that went on: when each was, what it made, and what was not the same any more."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from harness.model import Record
from harness.report import text
from harness.report.evidence import Evidence
from harness.sittings import MACHINE_FACTS, Sitting, changes, word

MOST_LABELS = 6
"""Variants that a caveat names; results.csv has the sitting of every one."""


def sittings_table(evidence: Evidence) -> str:
    """One row per sitting; nothing of a run that was made in one."""
    counted = _by_sitting(evidence)
    known = {sitting.number: sitting for sitting in evidence.sittings}
    numbers = sorted(known.keys() | counted.keys())
    if len(numbers) < 2:
        return ""
    rows = [
        {
            "sitting": str(number),
            "started": text.plain(known[number].started) if number in known else "unknown",
            "attempts that count": f"{len(counted.get(number, ())):,}",
            "command": text.code(" ".join(known[number].command)) if number in known and known[number].command else "",
        }
        for number in numbers
    ]
    return f"The run was made in {len(numbers)} sittings, each after the first by a resume:\n\n" + text.table(
        pd.DataFrame(rows)
    )


def changed_sittings(evidence: Evidence) -> Iterator[str]:
    """A sentence for each sitting whose attempts count, and were not made under the facts of the earliest such one."""
    counted = _by_sitting(evidence)
    if len(counted) < 2:
        return
    known = {sitting.number: sitting for sitting in evidence.sittings}
    first, *later = sorted(counted)
    for number in later:
        found = [*_environment(known.get(first), known.get(number)), *_facts(counted[first], counted[number])]
        if found:
            records = counted[number]
            yield (
                f"Sitting {number} made {len(records):,} of the {len(evidence.counted):,} attempts that count, and not "
                f"under the conditions of sitting {first}: {'; '.join(map(text.plain, found))}. It made "
                f"{_variants(records)}."
            )


def _by_sitting(evidence: Evidence) -> dict[int, list[Record]]:
    found: dict[int, list[Record]] = {}
    for record in evidence.counted:
        found.setdefault(record.sitting, []).append(record)
    return found


def _environment(first: Sitting | None, other: Sitting | None) -> tuple[str, ...]:
    if first is None or other is None:  # a run that was brought without its sittings
        return ()
    return changes(first.environment, other.environment)


def _facts(first: list[Record], other: list[Record]) -> Iterator[str]:
    """What the attempts themselves saw of the machine."""
    for device in dict.fromkeys(record.device for record in other):
        for fact, words in MACHINE_FACTS.items():
            before, now = (
                {word(r.facts[fact]) for r in records if r.device is device and r.facts.get(fact) is not None}
                for records in (first, other)
            )
            if before and now and before != now:
                yield f"{words} on {device} {' or '.join(sorted(before))}, now {' or '.join(sorted(now))}"


def _variants(records: list[Record]) -> str:
    labels = list(dict.fromkeys(f"{text.plain(record.label)} on `{record.device}`" for record in records))
    more = f", and {len(labels) - MOST_LABELS:,} more (`sitting` in results.csv)" if len(labels) > MOST_LABELS else ""
    return "; ".join(labels[:MOST_LABELS]) + more
