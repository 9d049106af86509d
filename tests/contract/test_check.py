"""``harness check`` and ``accept`` on real runs: as expected on the stub, and every kind of difference is found."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import Ended, assert_sentence_and_advice, harness, kept

from harness.model import Outcome, Phase, Record, Variant
from harness.store.layout import Store
from harness.wire import dump

SHIPPED = Path(__file__).parents[2] / "experiments" / "expected.yaml"
Doctor = Callable[[Record, Variant], Record | None]


@pytest.mark.parametrize("matrix", ["matrix", "full"])
def test_the_shipped_matrices_are_as_expected_on_the_stub(matrix: str, request: pytest.FixtureRequest) -> None:
    root: Path = request.getfixturevalue(f"{matrix}_on_stub")
    plan, _ = kept(root)
    ended = harness("check", cwd=root)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.count("\n") == 1
    assert f"run {plan.run} is as expected: {len(plan.variants):,} records on stub held against " in ended.out


@pytest.fixture
def doctored(matrix_on_stub: Path, tmp_path: Path) -> Callable[[Doctor], Ended]:
    """Checks a copy of the run whose records a doctor has changed, or, with None, taken away."""

    def doctor(change: Doctor) -> Ended:
        folder = tmp_path / "mlruns" / "runs"
        shutil.copytree(Store(matrix_on_stub).runs_folder, folder, dirs_exist_ok=True)
        plan, records = kept(tmp_path)
        variants = {variant.key: variant for variant in plan.variants}
        changed = [new for record in records if (new := change(record, variants[record.key]))]
        (folder / plan.run / "records.jsonl").write_text("".join(f"{dump(record)}\n" for record in changed))
        return harness("check", cwd=tmp_path)

    return doctor


def ok(record: Record) -> Record:
    return replace(record, outcome=Outcome.OK, error_type=None, error_message=None)


def failed(record: Record, message: str = "boom", **more: Any) -> Record:
    place: dict[str, Any] = {"phase": Phase.FORWARD, "epoch": 1, "step": 2} | more
    return replace(record, outcome=Outcome.ERROR, error_type="RuntimeError", error_message=message, **place)


def raised(record: Record) -> bool:
    return record.outcome is Outcome.BACKWARD_ERROR


def is_placement(name: str) -> Callable[[Variant], bool]:
    return lambda variant: variant["placement"] == name


AFTER_EPOCH, ALWAYS_TRAIN = is_placement("eval-after-epoch"), is_placement("train-always")

DOCTORED: dict[str, tuple[Doctor, str, int]] = {
    "error gone": (lambda r, v: ok(r) if raised(r) and AFTER_EPOCH(v) else r, "seen      ok", 8),
    "new failure": (lambda r, v: failed(r) if ALWAYS_TRAIN(v) else r, "error in forward, epoch 1, step 2", 16),
    "other failure": (
        lambda r, v: failed(r, "CUDNN_STATUS_X") if raised(r) and AFTER_EPOCH(v) else r,
        "CUDNN_STATUS_X",
        8,
    ),
    "failure moved": (
        lambda r, v: replace(r, step=3) if raised(r) and AFTER_EPOCH(v) else r,
        "backward-error in backward, epoch 2, step 3",
        8,
    ),
    "planned but not run": (lambda r, v: None if ALWAYS_TRAIN(v) else r, "no record", 16),
}


@pytest.mark.parametrize("kind", DOCTORED)
def test_every_kind_of_difference_is_found(kind: str, doctored: Callable[[Doctor], Ended]) -> None:
    change, seen, attempts = DOCTORED[kind]
    ended = doctored(change)
    assert ended.code == 1
    groups = [block for block in ended.out.split("\n\n") if block.strip()]
    assert all(block.startswith(f"{kind} on stub (no GPU): ") for block in groups)
    assert sum(int(block.split(": ")[1].split()[0]) for block in groups) == attempts
    assert all(seen in block for block in groups)
    assert_sentence_and_advice(ended.err, f"{attempts} of 384 planned attempts", "harness show KEY", "harness accept")


def test_a_run_that_was_cut_short_is_not_as_expected(doctored: Callable[[Doctor], Ended]) -> None:
    ended = doctored(lambda r, _: replace(r, outcome=Outcome.NOT_RUN, phase=None, reason="interrupted"))
    assert ended.code == 1
    assert "384 of 384" in ended.err


def test_a_device_without_expectations_fails(doctored: Callable[[Doctor], Ended], tmp_path: Path) -> None:
    doctored(lambda r, _: r)
    only_cpu = tmp_path / "mine.yaml"
    only_cpu.write_text("rules:\n  - devices: [cpu]\n    expect: {outcome: ok}\n    reason: it cannot raise here\n")
    ended = harness("check", "--expected", "mine.yaml", cwd=tmp_path)
    assert ended.code == 1
    assert "384 of 384" in ended.err
    assert "no expectation on stub (no GPU): 16 attempts\n  expected  nothing: no rule speaks of it" in ended.out


def test_accepting_makes_the_check_pass_and_taking_it_back_too(
    doctored: Callable[[Doctor], Ended], tmp_path: Path
) -> None:
    mine = tmp_path / "experiments" / "expected.yaml"
    mine.parent.mkdir()
    shutil.copy(SHIPPED, mine)
    gone: Doctor = lambda r, v: ok(r) if raised(r) and AFTER_EPOCH(v) else r  # noqa: E731
    assert doctored(gone).code == 1
    dry = harness("accept", "--reason", "cured: upstream", "--dry-run", cwd=tmp_path)
    assert (dry.code, mine.read_text()) == (0, SHIPPED.read_text())
    ended = harness("accept", "--reason", "cured: upstream", cwd=tmp_path)
    assert (ended.code, ended.out) == (0, dry.out)
    changes = [line[1:] for line in ended.out.splitlines() if line[:1] in "+-" and line[:3] not in {"+++", "---"}]
    assert [line.strip() for line in changes if line.strip()] == [
        "- devices: [stub]",
        "match: {placement: eval-after-epoch}",
        "expect: {outcome: ok}",
        "reason: 'cured: upstream'",
    ]
    assert harness("check", cwd=tmp_path).code == 0
    assert doctored(lambda r, _: r).code == 1
    assert harness("accept", "--reason", "it is back", cwd=tmp_path).code == 0
    assert harness("check", cwd=tmp_path).code == 0
    assert mine.read_text().count("devices: [stub]") == 1
    kept_comments = [line for line in SHIPPED.read_text().splitlines() if line.strip().startswith("#")]
    assert [line for line in mine.read_text().splitlines() if line.strip().startswith("#")] == kept_comments


@pytest.mark.parametrize("outcome", [Outcome.TIMEOUT, Outcome.CRASH, Outcome.OOM, Outcome.NOT_RUN, None])
def test_what_is_no_finding_is_never_accepted(
    outcome: Outcome | None, doctored: Callable[[Doctor], Ended], tmp_path: Path
) -> None:
    shutil.copy(SHIPPED, tmp_path / "mine.yaml")

    def change(record: Record, variant: Variant) -> Record | None:
        if AFTER_EPOCH(variant) and raised(record):
            return ok(record)
        if not ALWAYS_TRAIN(variant):
            return record
        return replace(record, outcome=outcome, reason="it ended badly") if outcome else None

    doctored(change)
    ended = harness("accept", "--expected", "mine.yaml", "--reason", "cured", cwd=tmp_path)
    assert ended.code == 1
    assert "16 differences cannot be accepted" in ended.err
    assert "8 differences are now expected in mine.yaml" in ended.err
    assert "train-always" not in ended.out
    check = harness("check", "--expected", "mine.yaml", cwd=tmp_path)
    assert "16 of 384" in check.err


def test_mistakes_are_met_with_a_sentence(doctored: Callable[[Doctor], Ended], tmp_path: Path) -> None:
    doctored(lambda r, _: r)
    (tmp_path / "typo.yaml").write_text("rules:\n  - devices: [stub]\n    expct: {outcome: ok}\n    reason: x\n")
    mistakes = {
        ("check", "nope"): "Known runs",
        ("check", "--expected", "nowhere.yaml"): "nowhere.yaml",
        ("check", "--expected", "nowhere"): "nowhere",
        ("check", "--expected", "typo.yaml"): "typo.yaml, line 3",
        ("accept", "--reason", " "): "--reason",
    }
    for words, hint in mistakes.items():
        ended = harness(*words, cwd=tmp_path)
        assert ended.code == 2, words
        assert_sentence_and_advice(ended.err, hint)
