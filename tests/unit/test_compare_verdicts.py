"""Verdicts on a machine with a fake clock: how often a false alarm, how often a slow-down is found.

Each simulation is a whole comparison; the seeds make them the same every time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from fake_machine import FakeMachine

from harness.report.compare.shift import moved_within
from harness.report.compare.verdicts import CommonShift, Judged, Pair, Rules, Verdict, common_shift, judge

RULES = Rules()
CHANGED = {Verdict.BETTER, Verdict.WORSE}
TIMES = 500


@dataclass
class Tally:
    """What came of many comparisons."""

    alarms: int = 0
    """Comparisons in which a cell that nobody touched was called better or worse."""
    found: int = 0
    """Comparisons in which the first cell was called worse."""
    common: int = 0
    verdicts: Counter[Verdict] = field(default_factory=Counter)

    def share(self, *verdicts: Verdict) -> float:
        return sum(self.verdicts[verdict] for verdict in verdicts) / self.verdicts.total()


def one(pairs: Sequence[Pair]) -> tuple[list[Judged], CommonShift | None]:
    shared = common_shift(pairs, RULES)
    return judge(pairs, RULES, shared), shared


def interleaved(machine: FakeMachine, n: int, seconds: Sequence[float]) -> list[list[float]]:
    """The step times of ``n`` processes of each cell, the replicates being the outer loop, as a run makes them."""
    rounds = [[machine.medians(1, each)[0] for each in seconds] for _ in range(n)]
    return [list(times) for times in zip(*rounds, strict=True)]


def simulate(
    *, cells: int, n: int, slow: float = 0.0, common: float = 0.0, times: int = TIMES, **faults: float
) -> Tally:
    """Compare two runs ``times`` times; the first cell takes ``slow`` longer in the second, every cell ``common``."""
    tally = Tally()
    for seed in range(times):
        machine = FakeMachine(seed, **faults)  # type: ignore[arg-type]
        a = interleaved(machine, n, [0.005] * cells)
        b = interleaved(machine, n, [0.005 * (1 + common) * (1 + slow * (i == 0)) for i in range(cells)])
        pairs = [Pair.of(*both) for both in zip(a, b, strict=True)]
        shared = common_shift(pairs, RULES)
        judged = judge(pairs, RULES, shared, max(abs(moved_within(side) or 0.0) for side in (a, b)))
        untouched = judged[1:] if slow else judged
        tally.alarms += any(each.verdict in CHANGED for each in untouched)
        tally.found += judged[0].verdict is Verdict.WORSE
        tally.common += shared is not None and shared.found
        tally.verdicts.update(each.verdict for each in untouched)
    return tally


@pytest.mark.parametrize(("cells", "n"), [(1, 6), (12, 6), (1, 15), (12, 15)])
@pytest.mark.parametrize("outliers", [0.0, 0.1])
def test_same_against_same_raises_no_false_alarms(cells: int, n: int, outliers: float) -> None:
    tally = simulate(cells=cells, n=n, outliers=outliers)
    assert tally.alarms <= 0.01 * TIMES, "5 % is what the test allows; the size that matters makes it far fewer"
    assert tally.common <= 0.01 * TIMES
    assert tally.share(Verdict.SAME, Verdict.AMBIGUOUS) > 0.999


def test_same_against_same_is_mostly_the_same_with_enough_attempts() -> None:
    assert simulate(cells=1, n=15).share(Verdict.SAME) > 0.95
    assert simulate(cells=1, n=6).share(Verdict.SAME) > 0.5


def test_a_noisy_machine_is_ambiguous_and_neither_changed_nor_the_same() -> None:
    tally = simulate(cells=12, n=6, noise=0.05, times=200)
    assert tally.alarms <= 0.05 * 200
    assert tally.share(Verdict.AMBIGUOUS) > 0.95


@pytest.mark.parametrize("cells", [1, 12])
def test_a_slow_down_of_5_percent_is_found_with_15_attempts(cells: int) -> None:
    tally = simulate(cells=cells, n=15, slow=0.05)
    assert tally.found >= 0.95 * TIMES
    assert tally.alarms <= 0.01 * TIMES


def test_it_is_found_among_outliers_more_often_than_not() -> None:
    assert simulate(cells=12, n=15, slow=0.05, outliers=0.1, times=200).found > 0.5 * 200


def test_a_drift_between_the_runs_is_not_taken_for_the_code() -> None:
    """2 % over a run of 12 cells, so that the second is about 2 % slower than the first."""
    tally = simulate(cells=12, n=15, drift=0.02 / 1.8, times=200)
    assert tally.alarms <= 0.05 * 200
    assert tally.common >= 0.95 * 200


@pytest.mark.parametrize("n", [6, 15])
@pytest.mark.parametrize("common", [0.02, -0.02, 0.05, 0.3])
def test_a_common_shift_is_called_one(n: int, common: float) -> None:
    tally = simulate(cells=12, n=n, common=common, times=100)
    assert tally.common >= 95
    assert tally.alarms <= 5


@pytest.mark.parametrize("cells", [7, 12])
def test_what_changes_besides_a_common_shift_is_found(cells: int) -> None:
    tally = simulate(cells=cells, n=15, slow=0.05, common=0.05, times=100)
    assert tally.found >= 95
    assert tally.common >= 95
    assert tally.alarms <= 5


def test_what_stays_where_all_others_move_is_not_called_better() -> None:
    machine = FakeMachine(0, noise=0.002)
    pairs = [Pair.of(machine.medians(15), machine.medians(15, 0.005 * (1.1 if i else 1))) for i in range(12)]
    judged, shared = one(pairs)
    assert shared is not None
    assert shared.found
    assert judged[0].verdict is Verdict.AMBIGUOUS
    assert "did not move" in judged[0].reason
    assert {each.verdict for each in judged[1:]} == {Verdict.AMBIGUOUS}
    assert "moved with nearly all" in judged[1].reason


SLOWER_FOR_A_WHILE = (0.962, 0.933, 0.974, 0.932, 0.914, 0.914, 0.900, 0.932)
"""What a shared machine made of 8 cells of equal code, minutes later."""


@pytest.mark.parametrize("noise", [0.002, 0.01])
@pytest.mark.parametrize("way", [1, -1])
def test_a_machine_that_moves_its_cells_by_different_amounts_is_found_out(noise: float, way: int) -> None:
    machine = FakeMachine(0, noise=noise)
    factors = [factor**way for factor in SLOWER_FOR_A_WHILE]
    judged, shared = one([Pair.of(machine.medians(15), machine.medians(15, 0.005 * f)) for f in factors])
    assert shared is not None
    assert shared.found
    assert shared.moved_alike >= 7
    assert {each.verdict for each in judged} == {Verdict.AMBIGUOUS}


@pytest.mark.parametrize("common", [-0.01, -0.005, 0.0, 0.005, 0.01])
@pytest.mark.parametrize("cells", [6, 8, 12])
@pytest.mark.parametrize("slower", [1.037, 1.05])
def test_half_of_the_cells_are_not_nearly_all(cells: int, common: float, slower: float) -> None:
    machine = FakeMachine(1, noise=0.003)
    factors = [(1 + common) * (slower if i < cells // 2 else 1) for i in range(cells)]
    judged, shared = one([Pair.of(machine.medians(15), machine.medians(15, 0.005 * f)) for f in factors])
    assert shared is not None
    assert not shared.found
    assert {each.verdict for each in judged[: cells // 2]} == {Verdict.WORSE}
    assert not {each.verdict for each in judged[cells // 2 :]} & CHANGED


def test_a_cell_that_moved_less_than_all_others_is_told_so() -> None:
    machine = FakeMachine(0, noise=0.002)
    pairs = [Pair.of(machine.medians(15), machine.medians(15, 0.005 * (1.1 if i else 1.04))) for i in range(12)]
    judged, shared = one(pairs)
    assert shared is not None
    assert shared.found
    assert judged[0].verdict is Verdict.AMBIGUOUS
    assert judged[0].reason == f"moved less than nearly all others, which moved by {shared.factor:.3f}"


def test_the_reason_is_the_larger_of_both_bounds() -> None:
    machine = FakeMachine(3, noise=0.01)
    pair = Pair.of(machine.medians(30), machine.medians(30, 0.005 * 1.022))
    assert "attempts alike" in judge([pair], RULES, wandered=0.009)[0].reason
    assert "the machine moved" in judge([pair], RULES, wandered=0.02)[0].reason


def test_cells_that_moved_both_ways_about_nothing_share_nothing() -> None:
    pairs = [Pair((0.0,) * 6, (shift,) * 6) for shift in (-0.5, -0.4, -0.3, 0.0, 0.0, 0.3, 0.4, 0.5)]
    shared = common_shift(pairs, RULES)
    assert shared is not None
    assert not shared.found
    assert shared.factor == 1


@pytest.mark.parametrize("moved", [0.02, -0.02])
def test_a_change_must_be_larger_than_what_the_machine_does_by_itself(moved: float) -> None:
    machine = FakeMachine(3, noise=0.002)
    small = Pair.of(machine.medians(15), machine.medians(15, 0.005 * 1.05))
    large = Pair.of(machine.medians(15), machine.medians(15, 0.005 * 1.08))
    assert [each.verdict for each in judge([small, large], RULES)] == [Verdict.WORSE] * 2
    judged = judge([small, large], RULES, wandered=moved)
    assert [each.verdict for each in judged] == [Verdict.AMBIGUOUS, Verdict.WORSE]
    assert "the machine moved" in judged[0].reason
    assert {round(each.needs or 0, 3) for each in judged} == {round(math.exp(0.06), 3)}


def test_cells_that_change_each_by_itself_share_nothing() -> None:
    machine = FakeMachine(0, noise=0.002)
    factors = [1.3, 1.2, 0.8, 1.0, 1.1, 0.9, 1.25, 1.4]
    judged, shared = one([Pair.of(machine.medians(15), machine.medians(15, 0.005 * f)) for f in factors])
    assert shared is not None
    assert not shared.found
    expected = {f: Verdict.WORSE if f > 1 else Verdict.BETTER if f < 1 else Verdict.SAME for f in factors}
    assert [each.verdict for each in judged] == list(expected.values())


@pytest.mark.parametrize(("n", "m"), [(3, 3), (2, 30), (5, 5), (30, 5)])
def test_too_few_never_say_better_worse_or_same(n: int, m: int) -> None:
    for slower in (1.0, 1.5, 100.0):
        machine = FakeMachine(n, noise=0.0)
        judged, shared = one([Pair.of(machine.medians(n), machine.medians(m, 0.005 * slower))])
        assert shared is None
        assert judged[0].verdict is Verdict.AMBIGUOUS
        assert "fewer than 6" in judged[0].reason
        assert judged[0].low is judged[0].q is None


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 40), (40, 1)])
def test_a_single_attempt_says_single(n: int, m: int) -> None:
    machine = FakeMachine(n)
    judged, _ = one([Pair.of(machine.medians(n), machine.medians(m, 1.0))])
    assert judged[0].verdict is Verdict.SINGLE
    assert judged[0].ratio > 1


def test_noise_widens_what_a_change_needs_but_not_what_same_allows() -> None:
    """Without that a noisy cell would be the same by being noisy."""
    machine = FakeMachine(4, noise=0.03)
    judged, _ = one([Pair.of(machine.medians(300), machine.medians(300, 0.005 * 1.05))])
    assert judged[0].verdict is Verdict.AMBIGUOUS
    assert judged[0].q is not None
    assert judged[0].q < 1e-6
    assert judged[0].needs is not None
    assert judged[0].needs > 1.08
    assert "attempts alike" in judged[0].reason


def test_a_sure_difference_that_is_too_small_is_the_same() -> None:
    machine = FakeMachine(5, noise=0.002)
    judged, _ = one([Pair.of(machine.medians(30), machine.medians(30, 0.005 * 1.01))])
    assert judged[0].verdict is Verdict.SAME
    strict = judge([Pair.of(machine.medians(30), machine.medians(30, 0.005 * 1.01))], Rules(0.005))
    assert strict[0].verdict is Verdict.WORSE


def test_many_cells_with_few_attempts_claim_nothing_by_chance() -> None:
    tally = simulate(cells=200, n=6, noise=0.004, times=25)
    assert tally.alarms == 0
    pairs = [Pair.of(*(FakeMachine(i + side).medians(6) for side in (0, 1000))) for i in range(200)]
    plain = judge(pairs, RULES)
    assert any(each.p is not None and each.p < 0.05 for each in plain), "some of 200 look like evidence"
    assert all(each.q is not None and each.q > 0.05 for each in plain), "and none is, among 200"


def test_a_verdict_that_claims_has_what_it_takes() -> None:
    machine = FakeMachine(6, noise=0.01)
    pairs = [Pair.of(machine.medians(8), machine.medians(8, 0.005 * (0.9 + i / 100))) for i in range(20)]
    for each in judge(pairs, RULES):
        if each.verdict in CHANGED:
            assert None not in (each.q, each.low, each.high, each.needs)
            assert (each.q or 1) <= 0.05
            assert abs(math.log(each.ratio)) >= math.log(each.needs or math.inf)
            assert not (each.low or 0) <= 1 <= (each.high or 2)
        if each.verdict is Verdict.SAME:
            assert 1 / 1.02 < (each.low or 0) <= (each.high or 2) < 1.02
