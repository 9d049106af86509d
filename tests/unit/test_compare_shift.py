"""Test, estimate and interval of a shift, held against scipy and against what they promise."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from harness.report.compare.shift import adjusted, shift_between, smallest_p, spread_within

values = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12)


@given(values, values)
def test_p_is_the_exact_one(a: list[float], b: list[float]) -> None:
    assume(len({*a, *b}) == len(a) + len(b))
    expected = stats.mannwhitneyu(a, b, method="exact").pvalue
    assert shift_between(a, b).p == pytest.approx(float(expected))


ranks = st.lists(st.integers(0, 3), min_size=2, max_size=8)


@given(ranks, ranks, st.randoms())
def test_ties_never_make_it_surer(a: list[int], b: list[int], chance: random.Random) -> None:
    """Whichever way they are broken, the p-value is no larger than with them."""
    broken = [[value + chance.uniform(-0.1, 0.1) for value in side] for side in (a, b)]
    assert shift_between(a, b).p >= shift_between(*broken).p


def test_ties_raise_no_more_false_alarms() -> None:
    chance = random.Random(2)
    sides = [[[float(chance.randrange(4)) for _ in range(8)] for _ in "ab"] for _ in range(2000)]
    assert sum(shift_between(*both).p <= 0.05 for both in sides) / 2000 <= 0.05


def test_many_are_approximated_closely() -> None:
    chance = random.Random(3)
    a, b = ([chance.gauss(shift, 1) for _ in range(120)] for shift in (0, 0.3))
    expected = stats.mannwhitneyu(a, b, method="asymptotic").pvalue
    assert shift_between(a, b).p == pytest.approx(float(expected), rel=0.01)
    assert smallest_p(1000, 1000) < 1e-100


def test_equal_values_are_no_shift() -> None:
    found = shift_between([2.0] * 8, [2.0] * 8)
    assert (found.estimate, found.low, found.high, found.p) == (0, 0, 0, 1)


@pytest.mark.parametrize(("n", "left_out"), [(4, 0), (5, 2), (6, 5), (8, 13), (10, 23), (15, 64), (20, 127)])
def test_an_interval_leaves_out_what_the_tables_say(n: int, left_out: int) -> None:
    """The critical values of Mann-Whitney's U at 5 %, two-sided, as textbooks list them."""
    a = [float(i) for i in range(n)]
    b = [1000.0 + n * i for i in range(n)]
    ordered = sorted(y - x for x in a for y in b)
    found = shift_between(a, b)
    assert (found.low, found.high) == (ordered[left_out], ordered[-1 - left_out])


def test_three_have_no_interval_and_no_small_p() -> None:
    found = shift_between([1.0, 2.0, 3.0], [101.0, 102.0, 103.0])
    assert (found.low, found.high) == (None, None)
    assert found.p == pytest.approx(0.1)
    assert shift_between([1.0], [2.0]).p == 1.0


@pytest.mark.parametrize("n", [6, 15])
def test_an_interval_holds_the_true_shift_as_often_as_it_says(n: int) -> None:
    chance = random.Random(n)
    for draw in (lambda: chance.gauss(0, 1), lambda: chance.expovariate(1)):
        held = 0
        for _ in range(1000):
            found = shift_between([draw() for _ in range(n)], [draw() + 0.5 for _ in range(n)])
            assert found.low is not None
            assert found.high is not None
            held += found.low <= 0.5 <= found.high
        assert held / 1000 > 0.94


@given(values, values)
def test_the_other_way_round_is_the_opposite(a: list[float], b: list[float]) -> None:
    there, back = shift_between(a, b), shift_between(b, a)
    assert there.estimate == pytest.approx(-back.estimate)
    assert there.p == back.p
    if there.low is not None and back.high is not None:
        assert there.low == pytest.approx(-back.high)


@given(st.lists(st.floats(0, 1), max_size=30))
def test_false_discoveries_are_controlled_as_benjamini_and_hochberg_do(ps: list[float]) -> None:
    expected = stats.false_discovery_control(ps).tolist() if ps else []
    assert adjusted(ps) == pytest.approx(expected)


def test_a_spread_ignores_outliers_and_is_that_of_a_normal_distribution() -> None:
    chance = random.Random(5)
    for n in (6, 15, 40):
        found = [
            spread_within([chance.gauss(0, 1) for _ in range(n)], [chance.gauss(9, 1) for _ in range(n)])
            for _ in range(500)
        ]
        assert statistics.mean(value for value in found if value is not None) == pytest.approx(1, abs=0.1)
    wild = spread_within([0.0, 1.0, 2.0, 3.0, 4.0, 1e9])
    assert wild is not None
    assert wild < 5
    assert spread_within([1.0, 2.0], [3.0]) is None
    assert spread_within([1.0] * 6) == 0


def test_nothing_is_said_with_numbers_that_are_none() -> None:
    assert math.isfinite(shift_between([1e-9], [1e9]).estimate)
