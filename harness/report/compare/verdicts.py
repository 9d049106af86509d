"""What may be said about two sides of a cell, and the judge who says it.

Times enter as one number per process, in logarithms, so that a shift is a factor. A change needs evidence (after
false-discovery control) and a size that matters; ``same`` needs an interval that has no room for such a size. What has
neither is ``ambiguous``.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from harness.report.compare.shift import Shift, adjusted, shift_between, spread_within
from harness.statistics import AGREEMENT, CONFIDENCE, Interval, median_interval

FEWEST = 6
"""Processes on each side below which nothing but ``ambiguous`` (or ``single``) is said."""

SPREADS = 3
"""A change must be this many times as large as the processes of one side are apart by themselves."""

DRIFTS = 3
"""A change must be this many times as large as what one run's later attempts are apart from its earlier ones.

Two runs are twice as far apart in time as a run's halves, so a steady drift makes 2 of it.
"""

FALSE_DISCOVERIES = 1 - CONFIDENCE
"""The share of claimed changes that may be false alarms."""

FEWEST_CELLS = 6
"""Cells below which a shift that they share cannot be told from a change of each."""

EXCEPTIONS = 0.1
"""The share of cells, but at least one, that may have moved otherwise where a factor is a common one."""


ALIKE = 2.5
"""By which factor cells that move together may have moved farther or less far than the middle one.

What wants memory is slowed down more than what fits into a cache.
"""


class Verdict(StrEnum):
    """All that is ever said about the speed of a cell."""

    WORSE = "worse"
    BETTER = "better"
    SAME = "same"
    AMBIGUOUS = "ambiguous"
    SINGLE = "single"
    NOT_COMPARABLE = "not comparable"
    OUTCOME_CHANGED = "outcome changed"


@dataclass(frozen=True, slots=True)
class Rules:
    """What the person asked for: the change that matters, as a share."""

    threshold: float = AGREEMENT

    @property
    def matters(self) -> float:
        """The threshold as a shift of logarithms."""
        return math.log1p(self.threshold)


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of two sides. ``ratio`` is time of b over time of a: above 1, b is slower.

    ``q`` is the p-value after false-discovery control, ``needs`` the factor that a change has to reach here.
    """

    verdict: Verdict
    reason: str
    ratio: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    q: float | None = None
    needs: float | None = None


@dataclass(frozen=True, slots=True)
class CommonShift:
    """Whether nearly all cells of a device moved together: the machine's doing, rather than the code's.

    ``moved_alike`` counts the cells that moved as far as the middle one, within a factor of ``ALIKE``, or differ from
    it by no more than noise explains.
    ``spread`` is how far the movements of cells are typically apart, in logarithms.
    """

    cells: int
    factor: float
    interval: Interval
    moved_alike: int
    spread: float
    found: bool


@dataclass(frozen=True, slots=True)
class Pair:
    """The logarithms of the process medians of one cell on both sides; neither is empty."""

    a: tuple[float, ...]
    b: tuple[float, ...]

    @classmethod
    def of(cls, a: Iterable[float], b: Iterable[float]) -> Pair:
        """From seconds, all of them positive."""
        return cls(tuple(map(math.log, a)), tuple(map(math.log, b)))

    @property
    def fewest(self) -> int:
        """The size of the smaller side."""
        return min(len(self.a), len(self.b))

    @property
    def spread(self) -> float:
        """How far the processes of one side are apart; 0 where there are too few to tell."""
        return spread_within(self.a, self.b) or 0.0

    @property
    def shift(self) -> Shift:
        """How far b lies from a."""
        return shift_between(self.a, self.b)

    def without(self, shift: float) -> Pair:
        """With ``shift`` taken away from b."""
        return Pair(self.a, tuple(value - shift for value in self.b))


def judge(
    pairs: Sequence[Pair], rules: Rules, common: CommonShift | None = None, wandered: float = 0.0
) -> list[Judged]:
    """A verdict on every pair; false discoveries are controlled over all of them.

    With a common shift, a cell is better or worse only if, with the common factor taken away, it still is and stands
    out among the cells. ``wandered`` is the logarithm by which the machine moved within a run, either way.
    """
    plain = _judge_as_they_are(pairs, rules, DRIFTS * abs(wandered))
    if common is None or not common.found:
        return plain
    apart = [pair.without(math.log(common.factor)) for pair in pairs]
    apart_judged = _judge_as_they_are(apart, rules, SPREADS * common.spread)
    return [_with_common(*both, common.factor) for both in zip(plain, apart_judged, strict=True)]


def _judge_as_they_are(pairs: Sequence[Pair], rules: Rules, least: float = 0.0) -> list[Judged]:
    shifts = [pair.shift for pair in pairs]
    testable = [i for i, pair in enumerate(pairs) if pair.fewest >= FEWEST]
    qs = dict(zip(testable, adjusted([shifts[i].p for i in testable]), strict=True))
    return [_judge(pair, shifts[i], qs.get(i), rules, least) for i, pair in enumerate(pairs)]


def _judge(pair: Pair, shift: Shift, q: float | None, rules: Rules, least: float) -> Judged:
    ratio = math.exp(shift.estimate)
    if pair.fewest == 1:
        return Judged(Verdict.SINGLE, "one attempt on a side: a direction, no evidence", ratio)
    if q is None or shift.low is None or shift.high is None:
        return Judged(Verdict.AMBIGUOUS, f"fewer than {FEWEST} attempts on a side", ratio)
    needs = max(rules.matters, SPREADS * pair.spread, least)
    judged = Judged(
        Verdict.AMBIGUOUS,
        "",
        ratio,
        low=math.exp(shift.low),
        high=math.exp(shift.high),
        p=shift.p,
        q=q,
        needs=math.exp(needs),
    )
    evident = q <= FALSE_DISCOVERIES and (shift.low > 0 or shift.high < 0)
    if evident and abs(shift.estimate) >= needs:
        return replace(judged, verdict=Verdict.WORSE if shift.estimate > 0 else Verdict.BETTER)
    if -rules.matters < shift.low and shift.high < rules.matters:
        return replace(judged, verdict=Verdict.SAME)
    why = _why_ambiguous(abs(shift.estimate), pair, rules, least) if evident else "too noisy to tell"
    return replace(judged, reason=why)


def _why_ambiguous(size: float, pair: Pair, rules: Rules, least: float) -> str:
    if size < rules.matters:
        return "a difference, but too small to matter for sure"
    if SPREADS * pair.spread >= least:
        return f"a difference, but within {SPREADS} times what attempts alike differ by"
    return f"a difference, but within {DRIFTS} times what the machine moved by within a run"


def _with_common(plain: Judged, apart: Judged, factor: float) -> Judged:
    """The verdict where the machine seems to have moved: what both ways of looking agree on."""
    changed = (Verdict.BETTER, Verdict.WORSE)
    if plain.verdict is apart.verdict or Verdict.SINGLE in (plain.verdict, apart.verdict):
        return plain
    if plain.verdict not in changed and apart.verdict not in changed:
        return plain
    reason = "did not move with nearly all others, by"
    if plain.verdict in changed:
        both = apart.verdict in changed
        reason = "moved less than nearly all others, which moved by" if both else "moved with nearly all others, by"
    return replace(plain, verdict=Verdict.AMBIGUOUS, reason=f"{reason} {factor:.3f}")


def common_shift(pairs: Sequence[Pair], rules: Rules) -> CommonShift | None:
    """Whether the cells of one device moved together; None where they are too few to tell.

    It takes a factor that is sure (the interval of the median over cells leaves 1 out), of at least half the size that
    matters, and nearly all cells moved alike.
    """
    moved = [pair.shift.estimate for pair in pairs]
    interval = median_interval(moved) if len(moved) >= FEWEST_CELLS else None
    if interval is None:
        return None
    middle = statistics.median(moved)
    alike = sum(_is_alike(pair, shift, middle) for pair, shift in zip(pairs, moved, strict=True))
    sure = interval.low > 0 or interval.high < 0
    found = sure and abs(middle) >= rules.matters / 2 and len(moved) - alike <= max(1, EXCEPTIONS * len(moved))
    bounds = replace(interval, low=math.exp(interval.low), high=math.exp(interval.high))
    return CommonShift(len(moved), math.exp(middle), bounds, alike, spread_within(moved) or 0.0, found)


def _is_alike(pair: Pair, shift: float, middle: float) -> bool:
    """Whether a cell moved as the others did: that way and about as far, or no farther off than its noise explains."""
    slack = SPREADS * pair.spread * math.sqrt(1 / len(pair.a) + 1 / len(pair.b))
    return abs(shift - middle) <= slack or (middle != 0 and 1 / ALIKE <= shift / middle <= ALIKE)
