"""What can be said about a handful of numbers: their median, how sure it is, and whether they have settled.

Pure functions over raw values. None stands for "there is too little to say", never for a zero.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

AGREEMENT = 0.02
"""Times that differ by less than this share are taken for the same: the threshold of a change that matters."""

CONFIDENCE = 0.95
FEWEST_BLOCKS = 6
"""With fewer blocks a trend cannot be told from noise, and thirds are single values."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of a median. ``confidence`` is what it really has: at least what was asked for."""

    low: float
    high: float
    confidence: float


class Steadiness(StrEnum):
    """Whether times have settled."""

    STEADY = "steady"
    DRIFTS = "drifts"
    TOO_FEW = "too few"


def median(values: Iterable[float | None]) -> float | None:
    """The median of the values that are there; None without any."""
    present = [value for value in values if value is not None]
    return statistics.median(present) if present else None


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """The narrowest pair of order statistics that holds the median of the distribution with ``confidence``.

    It assumes nothing about the distribution but independence, so ``values`` are one per process. None where even
    the smallest and the largest value do not reach ``confidence``: for 95 % that is below six.
    """
    ordered = sorted(values)
    found: Interval | None = None
    for left_out in range(len(ordered) // 2):
        held = _held_between(len(ordered), left_out)
        if held < confidence:
            break
        found = Interval(ordered[left_out], ordered[-1 - left_out], held)
    return found


def _held_between(count: int, left_out: int) -> float:
    """With which probability the median lies within the values, ``left_out`` of them taken away at either end."""
    below = sum(math.comb(count, k) for k in range(left_out + 1))
    return 1 - below * 2.0 ** (1 - count)


def steadiness(times: Sequence[float]) -> Steadiness:
    """Whether block times, in the order in which they were taken, have settled.

    The last two thirds must agree within 2 % (by their medians), and there must be no trend: one that is
    significant at 5 % (Mann-Kendall) and moves the times by 2 % from first to last (Theil-Sen).
    """
    if len(times) < FEWEST_BLOCKS:
        return Steadiness.TOO_FEW
    third = len(times) // 3
    middle, last = statistics.median(times[-2 * third : -third]), statistics.median(times[-third:])
    if abs(last - middle) > AGREEMENT * middle or _has_trend(times):
        return Steadiness.DRIFTS
    return Steadiness.STEADY


def _has_trend(times: Sequence[float]) -> bool:
    count = len(times)
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    balance = sum((times[j] > times[i]) - (times[j] < times[i]) for i, j in pairs)
    spread = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    significant = abs(balance) - 1 > statistics.NormalDist().inv_cdf(1 - (1 - CONFIDENCE) / 2) * spread
    slope = statistics.median((times[j] - times[i]) / (j - i) for i, j in pairs)
    return significant and abs(slope) * (count - 1) > AGREEMENT * statistics.median(times)
