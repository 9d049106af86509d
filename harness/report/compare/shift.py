"""How far one handful of numbers lies from another, and how sure that is: exact, and free of any distribution.

Mann-Whitney's test, the Hodges-Lehmann estimate and the interval that belongs to both; Benjamini-Hochberg over many.
Pure, and without scipy, which takes seconds to import; the tests hold it against scipy.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from harness.statistics import CONFIDENCE

LARGEST_EXACT = 10_000
"""Product of the sizes beyond which the normal approximation is as good as exact, and much cheaper."""

NORMAL_MAD = statistics.NormalDist().inv_cdf(0.75)
"""The median absolute deviation of a normal distribution with spread 1."""


@dataclass(frozen=True, slots=True)
class Shift:
    """By how much ``b`` lies above ``a``: the median of all differences, its interval, and the two-sided p-value.

    The interval is None where even the widest one does not have the confidence that was asked for.
    """

    estimate: float
    low: float | None
    high: float | None
    p: float


def shift_between(a: Sequence[float], b: Sequence[float], confidence: float = CONFIDENCE) -> Shift:
    """How far ``b`` is shifted against ``a``; neither is empty. Ties count as no evidence."""
    differences = sorted(y - x for x in a for y in b)
    above, below = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    # Of all ways to break the ties, the one that makes the two sides most alike.
    smaller = len(differences) - max(above, below)
    p = min(1.0, 2 * _at_most(smaller, len(a), len(b)))
    left_out = _left_out(len(a), len(b), confidence)
    low, high = (None, None) if left_out is None else (differences[left_out], differences[-1 - left_out])
    return Shift(statistics.median(differences), low, high, p)


def smallest_p(n: int, m: int) -> float:
    """The smallest p-value that ``n`` against ``m`` can have, however far apart they are."""
    return min(1.0, 2 * _at_most(0, n, m))


@cache
def _left_out(n: int, m: int, confidence: float) -> int | None:
    """How many differences an interval of ``confidence`` may leave out at either end; None if it needs more than all.

    An interval that leaves out ``k`` misses if the statistic is at most ``k`` at one end or the other.
    """
    allowed = (1 - confidence) / 2
    if _at_most(0, n, m) > allowed:
        return None
    found = 0
    while found + 1 < n * m / 2 and _at_most(found + 1, n, m) <= allowed:
        found += 1
    return found


def _at_most(u: int, n: int, m: int) -> float:
    """With which probability Mann-Whitney's statistic of ``n`` against ``m`` alike values is at most ``u``."""
    if n * m > LARGEST_EXACT:
        spread = math.sqrt(n * m * (n + m + 1) / 12)
        return statistics.NormalDist(n * m / 2, spread).cdf(u + 0.5)
    cumulated = _cumulated(min(n, m), max(n, m))
    return 1.0 if u >= len(cumulated) else cumulated[u] / cumulated[-1]


@cache
def _cumulated(n: int, m: int) -> tuple[int, ...]:
    """How many of the arrangements of ``n`` among ``m`` have a statistic of at most 0, 1, 2, ...

    Their generating function is the Gaussian binomial: the product of ``(1 - x^(m+i)) / (1 - x^i)`` for i from 1 to n.
    """
    counts = [1] + [0] * (n * m)
    for i in range(1, n + 1):
        for u in range(n * m, m + i - 1, -1):
            counts[u] -= counts[u - m - i]
        for u in range(i, n * m + 1):
            counts[u] += counts[u - i]
    total = 0
    return tuple(total := total + count for count in counts)


def adjusted(ps: Sequence[float]) -> list[float]:
    """``ps`` after Benjamini-Hochberg: the false-discovery rate at which each would just count as found."""
    order = sorted(range(len(ps)), key=lambda i: ps[i], reverse=True)
    result, least = [1.0] * len(ps), 1.0
    for place, i in enumerate(order):
        least = min(least, ps[i] * len(ps) / (len(ps) - place))
        result[i] = least
    return result


def spread_within(*groups: Sequence[float]) -> float | None:
    """How far values of one group are typically apart from its middle, as a standard deviation that ignores outliers.

    The deviations of all groups are pooled, each from its own median. None where no group has three values.
    """
    large = [group for group in groups if len(group) > 2]
    away = [abs(value - statistics.median(group)) for group in large for value in group]
    if not away:
        return None
    # A median of few values lies nearer to them than the true middle does.
    return statistics.median(away) / NORMAL_MAD * len(away) / (len(away) - len(large))


def moved_within(groups: Sequence[Sequence[float]]) -> float | None:
    """By which logarithm the later half of a group lies above the earlier: the median over the groups.

    The values are positive and in the order in which they were taken, at least two of them; None without a group.
    """
    moved = []
    for values in groups:
        half = len(values) // 2
        moved.append(math.log(statistics.median(values[-half:]) / statistics.median(values[:half])))
    return statistics.median(moved) if moved else None
