"""Medians, their intervals, and whether times have settled."""

import math
import random
import statistics as stdlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from harness.statistics import Interval, Steadiness, median, median_interval, steadiness

times = st.lists(st.floats(1e-6, 1e3), max_size=40)


@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), max_size=9))
def test_the_median_is_of_what_is_there(values: list[float | None]) -> None:
    present = [value for value in values if value is not None]
    assert median(values) == (stdlib.median(present) if present else None)


@pytest.mark.parametrize(("count", "left_out"), [(6, 0), (8, 0), (9, 1), (12, 2), (20, 5), (100, 39)])
def test_an_interval_is_the_tabulated_pair_of_order_statistics(count: int, left_out: int) -> None:
    """The ranks of the sign test, as textbooks list them."""
    found = median_interval([float(i) for i in range(count)])
    assert found is not None
    assert (found.low, found.high) == (left_out, count - 1 - left_out)
    assert found.confidence == pytest.approx(1 - 2 * stats.binom.cdf(left_out, count, 0.5))
    assert found.confidence >= 0.95


def test_fewer_than_six_have_no_interval() -> None:
    for count in range(6):
        assert median_interval([1.0] * count) is None
    assert median_interval([1.0] * 6) == Interval(1.0, 1.0, 1 - 2 / 64)
    assert median_interval([1.0] * 5, 0.9) is not None


@given(times, st.randoms())
def test_an_interval_holds_the_median_and_no_order_matters(values: list[float], rng: random.Random) -> None:
    found = median_interval(values)
    shuffled = values[:]
    rng.shuffle(shuffled)
    assert median_interval(shuffled) == found
    if found is not None:
        assert found.low <= stdlib.median(values) <= found.high


def test_an_interval_holds_the_true_median_as_often_as_it_says() -> None:
    rng = random.Random(1)
    for draw in (lambda: rng.gauss(0, 1), lambda: rng.expovariate(1) - math.log(2), lambda: rng.choice([-1, 1]) * 1.0):
        held = 0
        for _ in range(2000):
            found = median_interval([draw() for _ in range(11)])
            assert found is not None
            held += found.low <= 0 <= found.high
        assert held / 2000 > 0.94


def noisy(count: int, *, drift: float = 0.0, noise: float = 0.002, seed: int = 0) -> list[float]:
    rng = random.Random(seed)
    return [0.01 * (1 + drift * i / (count - 1)) * (1 + rng.gauss(0, noise)) for i in range(count)]


@pytest.mark.parametrize("count", [6, 9, 12, 30])
def test_times_that_stay_are_steady_and_times_that_move_are_not(count: int) -> None:
    for seed in range(20):
        assert steadiness(noisy(count, seed=seed)) is Steadiness.STEADY
        assert steadiness(noisy(count, drift=0.1, seed=seed)) is Steadiness.DRIFTS
        assert steadiness(noisy(count, drift=-0.1, seed=seed)) is Steadiness.DRIFTS


def test_a_drift_too_small_to_matter_is_none() -> None:
    assert steadiness([0.01 * (1 + 0.0001 * i) for i in range(30)]) is Steadiness.STEADY


def test_a_jump_in_the_last_third_is_seen_and_one_outlier_is_not() -> None:
    flat = [0.01] * 12
    assert steadiness([*flat[:8], *[0.0103] * 4]) is Steadiness.DRIFTS
    assert steadiness([*flat[:11], 0.05]) is Steadiness.STEADY
    assert steadiness([0.05, *flat]) is Steadiness.STEADY


@given(times)
def test_five_blocks_are_too_few_and_no_times_are_refused(values: list[float]) -> None:
    assert (steadiness(values) is Steadiness.TOO_FEW) == (len(values) < 6)


@given(st.lists(st.floats(1e-3, 1e3), min_size=6, max_size=20), st.floats(0.01, 100))
def test_the_unit_of_the_times_does_not_matter(values: list[float], unit: float) -> None:
    scaled: Sequence[float] = [value * 2.0 ** round(math.log2(unit)) for value in values]
    assert steadiness(scaled) is steadiness(values)
