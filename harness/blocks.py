"""The timed blocks of an attempt: which of them count, and what a step takes by them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

from harness.measured import Sample
from harness.model import Record
from harness.statistics import Steadiness, median, steadiness

Part = Literal["forward", "backward", "optimizer"]


def counted(record: Record, *, warmup: bool = False) -> Iterator[Sample]:
    """The blocks that a step's time is read from, or the warm-up before them.

    Blocks that were timed after the epochs count alone where there are any: only they are long enough, and without
    the epochs' own hooks. Among them those count alone that were timed as a whole, with no clock inside.
    """
    found = [sample for sample in record.samples if sample.warmup is warmup and _is_time(sample)]
    best = max(map(_rank, found), default=0)
    return (sample for sample in found if warmup or _rank(sample) == best)


def in_parts(record: Record) -> Iterator[Sample]:
    """The blocks that the parts of a step are read from: after the epochs, where there are any."""
    found = [s for s in record.samples if not s.warmup and s.forward_s is not None and _is_time(s)]
    steady = any(sample.steady for sample in found)
    return (sample for sample in found if sample.steady is steady)


def _rank(sample: Sample) -> int:
    return 0 if not sample.steady else 1 if sample.forward_s is not None else 2


def _is_time(sample: Sample) -> bool:
    seconds = _seconds(sample)
    return math.isfinite(seconds) and seconds > 0


def block_seconds(record: Record, *, warmup: bool = False) -> Iterator[float]:
    """Seconds per step of each block that counts: device time where there is one, else wall time."""
    return map(_seconds, counted(record, warmup=warmup))


def step_seconds(record: Record) -> float | None:
    """The median time of a step over the blocks that count."""
    return median(block_seconds(record))


def part_seconds(record: Record, part: Part) -> float | None:
    """The median time of one part of a step; None where it was not measured."""
    return median(_part(sample, part) for sample in in_parts(record))


def settled(record: Record) -> Steadiness:
    """Whether the blocks that count have settled."""
    return steadiness(list(block_seconds(record)))


def _seconds(sample: Sample) -> float:
    """Per step; zero, which is no time, for a block without steps."""
    return (sample.wall_s if sample.device_s is None else sample.device_s) / sample.steps if sample.steps > 0 else 0.0


def _part(sample: Sample, part: Part) -> float | None:
    seconds: float | None = getattr(sample, f"{part}_s")
    return None if seconds is None else seconds / sample.steps
