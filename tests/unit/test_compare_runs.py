"""Two runs side by side, from their plans and records: environment, outcomes, and where no ratio may be."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from builders import HOSTILE, die, fail, make_plan
from fake_machine import FakeMachine, one_more, replicated, without
from two_runs import GPU, MIXED, alike, compared, kinds, with_facts

from harness.errors import UsageError
from harness.model import Device, KernelPath, Outcome, Record
from harness.report.compare import Rules, Verdict, compare, parse_threshold
from harness.report.compare.document import to_json
from harness.report.compare.markdown import to_markdown
from harness.report.compare.transitions import Change

CHANGED = (Verdict.BETTER, Verdict.WORSE)


def numbers_in(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [number for item in value.values() for number in numbers_in(item)]
    if isinstance(value, list):
        return [number for item in value for number in numbers_in(item)]
    return [float(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []


# --- same against same


def test_same_against_same_is_the_same_or_ambiguous() -> None:
    for seed in range(10):
        found = compared(*alike(GPU, seed), plan=GPU)
        assert {cell.verdict for cell in found.timings.cells} <= {Verdict.SAME, Verdict.AMBIGUOUS}
        assert kinds(found) == {Change.SAME: len(GPU.variants)}
        assert found.differences == ()
        assert not found.timings.common[Device.CUDA].found


def test_an_injected_slow_down_is_found_and_nothing_else() -> None:
    touched = GPU.variants[3].key
    for seed in range(10):
        machine = FakeMachine(seed)
        a, b = machine.run(GPU), machine.run(GPU, lambda variant: 1.05 if variant.key == touched else 1.0)
        found = compared(a, b, GPU)
        assert [cell.key for cell in found.slower] == [touched]
        assert not found.timings.with_verdict(Verdict.BETTER)
        assert abs((found.slower[0].judged or pytest.fail()).ratio - 1.05) < 0.015


@pytest.mark.parametrize("drift", [0.05, -0.05, 0.2, -0.2])
@pytest.mark.parametrize("cells", [("lstm",), ("lstm", "gru")])
def test_a_steady_drift_of_the_machine_is_not_taken_for_the_code(cells: tuple[str, ...], drift: float) -> None:
    """By ``drift`` per hundred attempts; a run's replicates are spread over all of it."""
    few = replicated(make_plan(devices=(Device.CUDA,), placements=("train-always",), cells=cells), 15)
    alarms = 0
    for seed in range(20):
        found = compared(*alike(few, seed, drift=drift, noise=0.005), plan=few)
        alarms += len(found.timings.with_verdict(*CHANGED))
    assert alarms <= 1


def test_a_common_shift_is_said_before_any_ratio() -> None:
    machine = FakeMachine(2)
    found = compared(machine.run(GPU), machine.run(GPU, lambda _: 1.02), GPU)
    assert found.timings.common[Device.CUDA].found
    assert not found.timings.with_verdict(*CHANGED)
    said = to_markdown(found)
    assert "the machine probably changed" in said
    assert said.index("probably changed") < said.index("## Time of a training step")


# --- outcomes


def test_every_transition_is_told() -> None:
    a, b = alike()
    stub = [r for r in a if r.device is Device.STUB]
    ok = [r.key for r in stub if r.outcome is Outcome.OK]
    raised = [r.key for r in stub if r.outcome is Outcome.BACKWARD_ERROR]

    changes: dict[str, Callable[[Record], Record]] = {
        ok[0]: lambda record: fail(record, Outcome.BACKWARD_ERROR, "cudnn"),
        ok[1]: lambda record: die(record, Outcome.NOT_RUN, "interrupted"),
        raised[0]: lambda record: replace(record, outcome=Outcome.OK),
        raised[1]: lambda record: fail(record, Outcome.ERROR, "something else"),
        raised[2]: lambda record: replace(record, epoch=7, step=4),
    }
    b = [changes[r.key](r) if r.key in changes and r.device is Device.STUB else r for r in b]
    found = compared(a, without(b, raised[3]))
    told = {t.key: t for t in found.transitions if t.device is Device.STUB and t.change is not Change.SAME}
    assert {key: t.change for key, t in told.items()} == {
        ok[0]: Change.NEW,
        ok[1]: Change.NOT_RUN,
        raised[0]: Change.GONE,
        raised[1]: Change.CHANGED,
        raised[2]: Change.MOVED,
        raised[3]: Change.NOT_RUN,
    }
    assert told[raised[2]].b is not None
    assert "epoch 7, step 4" in told[raised[2]].b
    assert told[raised[3]].b == "no record"
    assert len(found.serious) == len([t for t in found.transitions if t.change is not Change.SAME])
    said = to_markdown(found)
    assert said.index("## What differs") < said.index("**new error** on stub") < said.index("## Time of a training")


def test_variants_and_devices_of_one_plan_only_are_counted() -> None:
    a, b = alike()
    fewer = replace(MIXED, variants=MIXED.variants[4:], devices=(Device.CPU,))
    found = compared(a, b, variants=fewer.variants, devices=fewer.devices)
    counts = kinds(found)
    assert counts[Change.ONLY_A] == len(MIXED.variants) + 4
    assert counts[Change.SAME] == len(MIXED.variants) - 4
    back = compare((one_more(fewer), [replace(r, run=f"{MIXED.run}-again") for r in b]), (MIXED, a), Rules())
    assert kinds(back)[Change.ONLY_B] == counts[Change.ONLY_A]
    assert found.serious == back.serious == []


def test_replicates_that_disagree_are_counted() -> None:
    a, b = alike(GPU)
    key = GPU.variants[0].key
    b = [die(r, Outcome.CRASH, "ended by SIGSEGV") if (r.key, r.replicate) == (key, 3) else r for r in b]
    found = compared(a, b, GPU)
    (transition,) = found.serious
    assert (transition.change, transition.key) == (Change.NEW, key)
    assert "(1 of 15 attempts)" in (transition.b or "")
    (cell,) = [cell for cell in found.timings.cells if cell.key == key]
    assert (cell.verdict, cell.judged) == (Verdict.OUTCOME_CHANGED, None)


def test_long_lists_are_bounded_and_the_rest_is_counted() -> None:
    a, b = alike()
    broken = [fail(r, Outcome.ERROR, "no") if r.device is Device.CPU else r for r in b]
    said = to_markdown(compared(a, broken))
    assert "and 40 variants more" in said
    assert said.count("- cell=") < 100


def test_runs_without_anything_in_common_say_so() -> None:
    other = make_plan(placements=("train-each-epoch",), run="other")
    found = compare((MIXED, alike()[0]), (other, []), Rules())
    assert found.shared == 0
    assert "no variant in common" in to_markdown(found)
    assert found.timings.cells == ()


# --- where no ratio may be


def test_stub_records_never_get_a_ratio() -> None:
    """Not even where something put times into them."""
    a, b = alike()
    cpu = {r.key: r.samples for r in a if r.samples}
    a, b = ([r if r.samples else replace(r, samples=cpu.get(r.key, ())) for r in side] for side in (a, b))
    assert any(r.samples for r in a if r.device is Device.STUB)
    found = compared(a, b)
    assert {cell.device for cell in found.timings.cells} == {Device.CPU}
    assert "no times for `stub`" in to_markdown(found)


def test_only_what_is_ok_on_both_sides_has_a_ratio() -> None:
    a, b = alike()
    found = compared(a, b)
    failing = {r.key for r in a if r.device is Device.CPU and r.outcome is not Outcome.OK}
    assert failing
    assert {cell.key for cell in found.timings.cells if cell.judged is None} == failing
    assert {cell.reason for cell in found.timings.cells if cell.judged is None} == {"not ok in either run"}


def odd_times(records: list[Record], seconds: float) -> list[Record]:
    return [replace(r, samples=tuple(replace(s, wall_s=seconds, device_s=seconds) for s in r.samples)) for r in records]


@pytest.mark.parametrize("seconds", [math.nan, math.inf, 0.0, -1.0])
def test_what_is_no_time_never_becomes_a_number(seconds: float) -> None:
    a, b = alike(GPU)
    found = compared(a, odd_times(b, seconds), GPU)
    assert {(cell.verdict, cell.reason, cell.judged) for cell in found.timings.cells} == {
        (Verdict.NOT_COMPARABLE, "no time was taken", None)
    }
    document = json.loads(to_json(found))
    assert all(math.isfinite(number) for number in numbers_in(document))
    assert {cell["ratio"] for cell in document["timings"]} == {None}
    assert "nan" not in to_markdown(found).lower().split("## time")[1]
    nothing = compared(a, [replace(r, samples=()) for r in b], GPU)
    assert {cell.judged for cell in nothing.timings.cells} == {None}


def test_another_clock_or_other_blocks_are_not_comparable() -> None:
    a, b = alike(GPU)
    by_wall = [replace(r, samples=tuple(replace(s, device_s=None) for s in r.samples)) for r in b]
    in_epochs = [replace(r, samples=tuple(replace(s, steady=False) for s in r.samples)) for r in b]
    for other in (by_wall, in_epochs):
        cells = compared(a, other, GPU).timings.cells
        assert {cell.verdict for cell in cells} == {Verdict.NOT_COMPARABLE}
        assert "timed by another clock" in cells[0].reason


@pytest.mark.parametrize(("n", "verdict"), [(1, Verdict.SINGLE), (3, Verdict.AMBIGUOUS)])
def test_few_attempts_claim_nothing_and_say_what_to_do(n: int, verdict: Verdict) -> None:
    plan = replicated(GPU, n)
    machine = FakeMachine(1, noise=0.0)
    key = plan.variants[0].key
    found = compared(machine.run(plan), machine.run(plan, lambda v: 2.0 if v.key == key else 1.0), plan)
    assert {cell.verdict for cell in found.timings.cells} == {verdict}
    assert "`--replicates 6`" in to_markdown(found)


def test_what_cannot_be_found_for_want_of_attempts_is_said() -> None:
    plan = replicated(make_plan(devices=(Device.CPU,), placements=("train-always", "train-each-epoch")), 6)
    said = to_markdown(compared(*alike(plan), plan=plan))
    assert "7 on each side could show it" in said
    assert "cannot be told from chance" not in to_markdown(compared(*alike(GPU), plan=GPU))


def test_a_drift_is_never_excluded() -> None:
    assert "were not interleaved with each other" in to_markdown(compared(*alike(GPU), plan=GPU))
    said = to_markdown(compared(*alike(GPU, drift=0.05), plan=GPU))
    assert "later replicates on cuda took" in said


def test_another_path_is_noted() -> None:
    a, b = alike(GPU)
    found = compared(a, [replace(r, path=KernelPath.NATIVE) for r in b], GPU)
    assert "path cudnn in A, native in B" in {note for cell in found.timings.cells for note in cell.notes}


# --- the forms


def test_json_has_everything_and_markdown_every_word() -> None:
    a, b = alike()
    found = compared(a, b)
    document = json.loads(to_json(found))
    assert [*document] == [
        "a",
        "b",
        "threshold",
        "summary",
        "caveats",
        "differences",
        "machine",
        "transition_counts",
        "transitions",
        "common_shifts",
        "verdict_counts",
        "timings",
    ]
    assert len(document["transitions"]) == 2 * len(MIXED.variants)
    assert sum(document["verdict_counts"].values()) == len(document["timings"]) == len(MIXED.variants)
    for cell, shown in zip(found.timings.cells, document["timings"], strict=True):
        assert shown["ratio"] == (cell.judged.ratio if cell.judged else None)


def test_what_others_wrote_stays_text() -> None:
    from test_report_text import _safe

    a, b = alike()
    evil = [fail(r, Outcome.ERROR, HOSTILE, "evil|`E`") if r.device is Device.STUB else r for r in b]
    evil = with_facts(evil, torch=HOSTILE)
    found = compared(a, evil, matrix=HOSTILE, selection=HOSTILE, environment={"git_commit": HOSTILE, "x|`": 1})
    _safe(to_markdown(found))


def test_a_run_is_not_compared_with_itself() -> None:
    a, b = alike()
    with pytest.raises(UsageError, match="cannot be compared with itself"):
        compare((MIXED, a), (MIXED, b), Rules())


@pytest.mark.parametrize(("text", "share"), [("2%", 0.02), (" 0.5 % ", 0.005), (".5%", 0.005), ("99%", 0.99)])
def test_a_threshold_is_a_percentage(text: str, share: float) -> None:
    assert parse_threshold(text).threshold == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "2", "0.02", "0%", "100%", "-2%", "two%", "2%%", "nan%", "1e1%", "x" * 500])
def test_anything_else_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="no threshold") as error:
        parse_threshold(text)
    assert "like 2%" in error.value.advice
    assert len(str(error.value)) < 100


def test_a_threshold_is_obeyed() -> None:
    a, b = FakeMachine(1, noise=0.001), FakeMachine(2, noise=0.001)
    again = one_more(GPU)
    first = (GPU, a.run(GPU))
    key = GPU.variants[0].key
    second = (again, b.run(again, lambda variant: 1.05 if variant.key == key else 1.0))
    assert [cell.key for cell in compare(first, second, Rules(0.02)).slower] == [key]
    assert compare(first, second, Rules(0.10)).slower == []
