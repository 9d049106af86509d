"""What ``harness check`` and ``accept`` say and write, over a store and without a process."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_plan, make_records

from harness.console import show_accept, show_check
from harness.errors import CheckFailedError, UsageError
from harness.model import Device, Outcome, Plan, Record, Variant
from harness.store.journal import Journal
from harness.store.layout import RunFolder, Store

SHIPPED = Path(__file__).parents[2] / "experiments" / "expected.yaml"
Change = Callable[[list[Record]], list[Record]]


@pytest.fixture
def plan() -> Plan:
    return make_plan(devices=[Device.STUB, Device.CPU], placements=["eval-always", "train-always"])


@pytest.fixture
def kept(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Change], RunFolder]:
    monkeypatch.chdir(tmp_path)

    def keep(change: Change) -> RunFolder:
        folder = Store(tmp_path).folder(plan.run)
        with Journal.create(folder, plan) as journal:
            for record in change(make_records(plan)):
                journal.append(record)
        return folder

    return keep


def cured(records: list[Record]) -> list[Record]:
    return [replace(r, outcome=Outcome.OK, error_type=None, error_message=None) for r in records]


def test_one_sentence_where_all_is_as_expected(
    plan: Plan, kept: Callable[[Change], RunFolder], capsys: pytest.CaptureFixture[str]
) -> None:
    show_check(kept(lambda records: records), None)
    assert capsys.readouterr().out == (
        f"run {plan.run} is as expected: 32 records on stub held against 3 rules, 32 records on cpu held against "
        f"1 rule of {SHIPPED}\n"
    )


def test_groups_with_their_rule_and_some_of_their_variants(
    kept: Callable[[Change], RunFolder], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CheckFailedError, match="8 of 64 planned attempts") as caught:
        show_check(kept(cured), None)
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "error gone on stub (no GPU): 8 attempts"
    assert said[1].startswith("  expected  backward-error in backward, epoch 1, step 1: ^RuntimeError")
    assert said[2] == "  seen      ok"
    assert said[3].startswith("  rule      line ")
    assert len([line for line in said if "placement=eval-always" in line]) == 8
    assert "--reason" in caught.value.advice


def test_a_dry_run_writes_nothing_and_shows_the_same(
    kept: Callable[[Change], RunFolder], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, mine = kept(cured), tmp_path / "mine.yaml"
    shutil.copy(SHIPPED, mine)
    show_accept(folder, "mine.yaml", "cured\n  upstream", dry_run=True)
    dry = capsys.readouterr()
    assert mine.read_text() == SHIPPED.read_text()
    show_accept(folder, "mine.yaml", "cured\n  upstream", dry_run=False)
    done = capsys.readouterr()
    assert dry.out == done.out
    assert "+    reason: cured upstream\n" in done.out
    assert (dry.err, done.err) == (
        "8 differences would be expected in mine.yaml\n",
        "8 differences are now expected in mine.yaml\n",
    )
    show_check(folder, "mine.yaml")
    show_accept(folder, "mine.yaml", "again", dry_run=False)
    assert capsys.readouterr().err == "nothing was changed in mine.yaml\n"


def test_a_program_is_not_held_against_a_matrix(plan: Plan, tmp_path: Path) -> None:
    program = Variant({"program": "simple-rnn", "form": "fixed"}, "program=simple-rnn,form=fixed")
    folder = Store(tmp_path).folder(plan.run)
    with Journal.create(folder, replace(plan, matrix="seed simple-rnn", variants=(program,))):
        pass
    with pytest.raises(UsageError, match="is not of a matrix"):
        show_check(folder, None)


@pytest.mark.parametrize("place", ["_experiments/expected.yaml", "locked/expected.yaml"])
def test_what_is_not_a_persons_to_change_is_left_alone(
    place: str, kept: Callable[[Change], RunFolder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, file = kept(cured), tmp_path / place
    file.parent.mkdir()
    shutil.copy(SHIPPED, file)

    def refuse(*_: object) -> None:
        from harness.errors import StoreError

        raise StoreError(f"cannot write {file}: permission denied")

    monkeypatch.setattr("harness.console.checked.write_whole", refuse)
    with pytest.raises(UsageError, match=r"belongs to the installed package|permission denied") as caught:
        show_accept(folder, str(file), "cured", dry_run=False)
    assert "opy it to" in caught.value.advice
    assert file.read_text() == SHIPPED.read_text()


def test_strays_are_mentioned(kept: Callable[[Change], RunFolder], capsys: pytest.CaptureFixture[str]) -> None:
    show_check(kept(lambda records: [*records, replace(records[0], key="0" * 12)]), None)
    assert "note: 1 record of run" in capsys.readouterr().err
