"""When attempts started and ended, in MLflow's unit."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from harness.model import Record


def span_ms(records: Iterable[Record], otherwise: str) -> tuple[int, int]:
    """Milliseconds since 1970 at which the first of ``records`` started and the last ended.

    ``otherwise`` is the time (ISO 8601) that stands in where no record has one.
    """
    begun = _moment(otherwise) or datetime.fromtimestamp(0, UTC)
    spans = [
        (start, start + timedelta(seconds=_finite(record.wall_s)))
        for record in records
        if (start := _moment(record.started)) is not None
    ] or [(begun, begun)]
    return _ms(min(start for start, _ in spans)), _ms(max(end for _, end in spans))


def _moment(text: str | None) -> datetime | None:
    """``text`` in ISO 8601 as a time (UTC where it names no zone); None where there is none to be read."""
    try:
        read = datetime.fromisoformat(text or "")
        return read if read.tzinfo else read.replace(tzinfo=UTC)
    except ValueError:
        return None


def _finite(seconds: float | None) -> float:
    return seconds if seconds is not None and 0 <= seconds < 1e8 else 0.0


def _ms(when: datetime) -> int:
    return int(when.timestamp() * 1000)
