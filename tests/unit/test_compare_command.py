"""``harness compare``: which runs it takes, what it prints, and its exit codes."""

from __future__ import annotations

import gzip
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import fail, make_plan
from fake_machine import FakeMachine, replicated

from harness import cli
from harness.errors import JournalError, RunNotFoundError, UsageError
from harness.model import Device, Outcome, Plan, Record
from harness.store.brought import read_run
from harness.store.journal import Journal
from harness.store.layout import Store
from harness.wire import dump

A, B, SLOW = "20260301-101500-aaaaa", "20260302-101500-bbbbb", "20260303-101500-ccccc"
PLAN = replicated(make_plan(devices=(Device.CPU,), placements=("train-always", "eval-no-grad"), cells=("lstm",)), 15)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A and B are alike, but for one more error in B; in SLOW one variant takes 10 % longer."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HARNESS_STORE", raising=False)
    made, machine, key = Store(Path()), FakeMachine(1, noise=0.002), PLAN.variants[0].key
    for run in (A, B, SLOW):
        plan = replace(PLAN, run=run)
        records = machine.run(plan, lambda v, slow=run == SLOW: 1.1 if slow and v.key == key else 1.0)  # type: ignore[misc]
        if run == B:
            records = [fail(r, Outcome.ERROR, "new") if r.key == PLAN.variants[1].key else r for r in records]
        keep(made, plan, records)
    return made


def keep(store: Store, plan: Plan, records: list[Record]) -> None:
    Journal.create(store.folder(plan.run), plan).close()
    lines = [f"{dump(record)}\n" for record in records]
    store.folder(plan.run).records.write_text("".join(lines), encoding="utf-8")


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], store: Store) -> Any:
    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["harness", "compare", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as leaving:
            cli.main()
        captured = capsys.readouterr()
        return int(leaving.value.code or 0), captured.out, captured.err

    return call


def reference(store: Store, run: str = A, name: str = "reference.jsonl.gz") -> Path:
    """As the help says: ``cat plan.json records.jsonl | gzip``."""
    folder, path = store.folder(run), Path(name)
    content = folder.plan.read_bytes() + folder.records.read_bytes()
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    return path


def test_whatever_it_finds_it_ends_well(command: Any) -> None:
    for other in (B, SLOW, "latest", "20260302"):
        code, out, err = command(A, other)
        assert (code, err) == (0, "")
        assert out.startswith(f"# Run {B if '0302' in other else SLOW} against {A}")
    assert json.loads(command(A, B, "--format", "json")[1])["transition_counts"] == {"new error": 1, "same": 7}


@pytest.mark.parametrize(
    ("runs", "fail_on", "hint"),
    [
        ((A, B), ("outcome",), "1 outcome is not the same"),
        ((B, A), ("outcome",), "1 outcome is not the same"),
        ((A, SLOW), ("slower",), "1 cell is slower"),
        ((B, SLOW), ("slower", "outcome"), "1 cell is slower and 1 outcome is not the same"),
        ((A, B), ("slower",), ""),
        ((A, SLOW), ("outcome",), ""),
        ((SLOW, A), ("slower",), ""),
    ],
)
def test_it_fails_on_what_it_is_told_to(
    command: Any, runs: tuple[str, str], fail_on: tuple[str, ...], hint: str
) -> None:
    code, out, err = command(*runs, *(word for what in fail_on for word in ("--fail-on", what)))
    assert out.startswith("# Run"), "the comparison is printed all the same"
    assert code == bool(hint)
    assert hint in err
    assert len(err.splitlines()) == (2 if hint else 0)


def test_nothing_in_common_and_no_times_are_no_success_in_silence(command: Any, store: Store) -> None:
    other = replace(make_plan(placements=("eval-always",), cells=("gru",)), run="20260304-101500-ddddd")
    keep(store, other, [])
    code, _, err = command(A, other.run, "--fail-on", "outcome")
    assert code == 1
    assert "no outcome in common" in err
    code, _, err = command(A, other.run, "--fail-on", "slower")
    assert code == 0
    assert "nothing was looked at" in err


MISTAKES = {
    "one run": ((A,), "Missing argument"),
    "three runs": ((A, B, SLOW), SLOW),
    "the same run": ((A, A), "run the same command again"),
    "the same run by two names": ((SLOW, "latest"), "run the same command again"),
    "no such run": ((A, "20260309"), "Known runs"),
    "ambiguous": ((A, "2026"), "Say which"),
    "no such path": ((A, "nowhere/run"), "nowhere/run"),
    "a folder that is no run": ((A, "."), "plan.json"),
    "a threshold that is none": ((A, B, "--threshold", "2"), "like 2%"),
    "a format that is none": ((A, B, "--format", "csv"), "csv"),
    "a check that is none": ((A, B, "--fail-on", "faster"), "slower"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_a_sentence_with_what_to_do(command: Any, case: str) -> None:
    words, hint = MISTAKES[case]
    code, out, err = command(*words)
    assert (code, out) == (2, "")
    assert hint in err
    assert "Traceback" not in err
    lines = [line for line in err.splitlines() if line]
    assert len(lines) == 2 or lines[0].startswith("Usage:")


# --- runs from elsewhere


@pytest.mark.parametrize("name", ["reference.jsonl", "reference.jsonl.gz", "reference"])
def test_a_reference_is_the_run_it_was_made_of(store: Store, name: str) -> None:
    assert read_run(store, str(reference(store, name=name))) == read_run(store, A)


def test_a_run_is_found_by_its_folder_or_a_file_in_it(store: Store, tmp_path: Path) -> None:
    for path in (store.folder(A).path, store.folder(A).plan, store.folder(A).records, tmp_path / store.folder(A).path):
        assert read_run(store, str(path)) == read_run(store, A)


def test_a_run_goes_before_a_file_of_the_same_name(store: Store) -> None:
    for name in (A, "latest"):
        Path(name).write_text("something else")
    assert read_run(store, A)[0].run == A
    assert read_run(store, "latest")[0].run == SLOW


def test_a_reference_of_the_same_run_is_the_same_run(command: Any, store: Store) -> None:
    code, _, err = command(str(reference(store)), A)
    assert code == 2
    assert "with itself" in err
    assert command(str(reference(store)), B)[0] == 0


def test_an_unfinished_last_line_is_left_out_as_the_journal_does(store: Store) -> None:
    path = reference(store, name="r.jsonl")
    whole = read_run(store, A)[1]
    path.write_bytes(path.read_bytes()[:-20])
    assert read_run(store, "r.jsonl")[1] == whole[:-1]
    path.write_bytes(reference(store, name="r.jsonl").read_bytes()[:-1])
    assert read_run(store, "r.jsonl")[1] == whole, "only the newline is missing"


DAMAGE = {
    "nothing": (b"", "it is empty"),
    "no JSON": (b"hello\n", "line 1 is not a plan"),
    "another JSON": (b'{"matrix": "full", "variants": []}\n', "line 1 is not a plan"),
    "half a gzip": (gzip.compress(b"x" * 1000)[:20], "damaged gzip"),
    "binary": (bytes(range(256)), "line 1 is not a plan"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_what_is_no_run_is_a_sentence(store: Store, case: str) -> None:
    content, hint = DAMAGE[case]
    Path("odd.jsonl").write_bytes(content)
    with pytest.raises(UsageError, match=hint) as error:
        read_run(store, "odd.jsonl")
    assert error.value.advice.endswith(".")


def test_a_damaged_line_is_named(store: Store) -> None:
    lines = reference(store, name="r.jsonl").read_bytes().split(b"\n")
    lines[2] = b"{}"
    Path("r.jsonl").write_bytes(b"\n".join(lines))
    with pytest.raises(UsageError, match="line 3 is not a record"):
        read_run(store, "r.jsonl")


def test_what_a_newer_harness_wrote_says_so(store: Store) -> None:
    plan = json.loads(dump(PLAN)) | {"schema": 99}
    Path("newer.jsonl").write_text(json.dumps(plan) + "\n")
    with pytest.raises(JournalError, match="newer"):
        read_run(store, "newer.jsonl")


def test_a_folder_without_a_plan_is_no_run(store: Store) -> None:
    Path("empty").mkdir()
    with pytest.raises(RunNotFoundError, match=r"no plan\.json"):
        read_run(store, "./empty")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(store: Store) -> None:
    os.mkfifo("pipe.jsonl")
    with pytest.raises(UsageError, match="is no file"):
        read_run(store, "./pipe.jsonl")
