"""What a reader of a row must know besides its columns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from harness.model import Record
from harness.results import WORST_FIRST, Result


def note_of(result: Result) -> str:
    """The note of one row; empty where there is nothing to say."""
    return "; ".join(_notes(result))


def _notes(result: Result) -> Iterator[str]:
    yield from _disagreements(result.records)
    if 0 < len(result.records) < result.replicates:
        yield f"{len(result.records)} of {result.replicates} replicates recorded"
    if result.device.computes:
        yield from _odd_losses(result.records)


def _disagreements(records: Sequence[Record]) -> Iterator[str]:
    outcomes = Counter(record.outcome for record in records)
    if len(outcomes) > 1:
        counts = ", ".join(f"{outcomes[o]} {o}" for o in WORST_FIRST if o in outcomes)
        yield f"replicates disagree: {counts}"
    elif len({(r.phase, r.epoch, r.step, r.fingerprint, r.path) for r in records}) > 1:
        yield "replicates agree on the outcome, but not on where or why"


def _odd_losses(records: Sequence[Record]) -> Iterator[str]:
    for name in ("first_loss", "last_loss"):
        values = (getattr(record, name) for record in records)
        odd = sorted({str(value) for value in values if value is not None and not math.isfinite(value)})
        if odd:
            yield f"{name.replace('_', ' ')} is {' and '.join(odd)}"
