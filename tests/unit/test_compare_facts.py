"""What differs around two runs, and which of it makes their timings not comparable."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from two_runs import GPU, alike, compared, kinds, with_facts

from harness.report.compare.facts import Effect
from harness.report.compare.markdown import to_markdown
from harness.report.compare.transitions import Change
from harness.report.compare.verdicts import Verdict

BARRIERS: dict[str, tuple[Any, str]] = {
    "device_name": ("NVIDIA A100", "device"),
    "cpu": ("Another CPU", "processor"),
    "threads": (8, "threads"),
    "tf32": (False, "TF32"),
    "deterministic": (True, "deterministic algorithms"),
    "benchmark": (True, "cuDNN benchmark mode"),
}


@pytest.mark.parametrize("fact", BARRIERS)
def test_another_machine_or_other_arithmetic_is_not_comparable(fact: str) -> None:
    value, words = BARRIERS[fact]
    a, b = alike(GPU)
    found = compared(a, with_facts(b, **{fact: value}), GPU)
    assert {cell.verdict for cell in found.timings.cells} == {Verdict.NOT_COMPARABLE}
    assert {cell.judged for cell in found.timings.cells} == {None}
    assert {cell.reason for cell in found.timings.cells} == {f"other {words}"}
    assert [d.effect for d in found.differences] == [Effect.BARRIER]
    assert f"Timings are not comparable where these differ: {words}" in to_markdown(found)
    assert kinds(found) == {Change.SAME: len(GPU.variants)}, "outcomes are compared all the same"


CAUSES = {"torch": "2.15.0", "cuda": "13.1", "cudnn": 91000, "driver": "590.1", "python": "3.12.1"}


@pytest.mark.parametrize("fact", CAUSES)
def test_another_version_is_what_is_compared(fact: str) -> None:
    a, b = alike(GPU)
    found = compared(a, with_facts(b, **{fact: CAUSES[fact]}), GPU)
    assert {cell.verdict for cell in found.timings.cells} <= {Verdict.SAME, Verdict.AMBIGUOUS}
    (difference,) = found.differences
    assert (difference.effect, difference.b) == (Effect.CAUSE, str(CAUSES[fact]))


def test_facts_that_one_side_lacks_are_not_taken_for_the_same() -> None:
    a, b = alike(GPU)
    for fact in ("device_name", "threads"):
        lacking = [replace(r, facts={k: v for k, v in r.facts.items() if k != fact}) for r in b]
        found = compared(a, lacking, GPU)
        assert {cell.verdict for cell in found.timings.cells} == {Verdict.NOT_COMPARABLE}
        assert found.differences[0].b == "not recorded"
    nothing = [[replace(record, facts={}) for record in side] for side in (a, b)]
    assert {cell.verdict for cell in compared(nothing[0], nothing[1], GPU).timings.cells} == {Verdict.NOT_COMPARABLE}


def test_one_run_on_two_gpus_is_comparable_where_it_used_the_same_one() -> None:
    a, b = alike(GPU)
    other = GPU.variants[0].key
    b = [r if r.key != other else replace(r, facts={**r.facts, "device_name": "NVIDIA A100"}) for r in b]
    mixed = [r if r.replicate else replace(r, facts={**r.facts, "threads": 3}) for r in b]
    found = compared(a, b, GPU)
    assert [cell.key for cell in found.timings.with_verdict(Verdict.NOT_COMPARABLE)] == [other]
    assert found.differences[0].b == "mixed: NVIDIA A100, NVIDIA H200"
    assert len(compared(a, mixed, GPU).timings.with_verdict(Verdict.NOT_COMPARABLE)) == len(GPU.variants)


SETTINGS = {
    "epochs": (9, Effect.BARRIER),
    "steps": (9, Effect.BARRIER),
    "timed_blocks": (9, Effect.BARRIER),
    "block_ms": (9.0, Effect.BARRIER),
    "threads": (9, Effect.BARRIER),
    "warmup_epochs": (0, Effect.BARRIER),
    "seed": (9, Effect.NUMBERS),
    "learning_rate": (9.0, Effect.NUMBERS),
    "deadline": (9.0, Effect.CAUSE),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_is_a_barrier_where_it_decides_what_is_timed(name: str) -> None:
    value, effect = SETTINGS[name]
    settings = replace(GPU.settings, **{name: value})
    found = compared(*alike(GPU), plan=GPU, settings=settings)
    assert [(d.name, d.b, d.effect) for d in found.differences] == [
        (f"setting {name}", f"{value}".replace("True", "yes"), effect)
    ]
    comparable = {cell.verdict for cell in found.timings.cells} != {Verdict.NOT_COMPARABLE}
    assert comparable is (effect is not Effect.BARRIER)


def test_commit_and_dirty_tree_and_devices_are_told() -> None:
    environment = {**GPU.environment, "git_commit": "fedcba9", "git_dirty": True, "cores": 64, "torch": "9"}
    found = compared(*alike(GPU), plan=GPU, environment=environment, selection="-k cell=lstm", matrix="mine")
    effects = {difference.name: difference.effect for difference in found.differences}
    assert effects == {
        "cores": Effect.BARRIER,
        "git commit": Effect.CAUSE,
        "git dirty": Effect.CAUSE,
        "matrix": Effect.PLANNED,
        "selection": Effect.PLANNED,
    }
    assert "B was made with uncommitted changes" in to_markdown(found)


def test_a_run_that_was_made_in_several_sittings_says_so() -> None:
    first, second = alike(GPU)
    assert "sittings" not in to_markdown(compared(first, second, plan=GPU))
    second = [replace(record, sitting=1 + number % 2) for number, record in enumerate(second)]
    assert "B was made in 2 sittings" in to_markdown(compared(first, second, plan=GPU))
    replaced = [replace(record, sitting=1, attempt=1) for record in first]
    again = [replace(record, sitting=2, attempt=2) for record in first]
    found = compared([*replaced, *again], second, plan=GPU)
    assert "A was made in" not in to_markdown(found), "all of the first were replaced"
