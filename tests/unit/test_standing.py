"""How runs stand, as people and programs are told; and the command lines of status and resume."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from builders import die, make_plan, make_records

from harness import campaign, cli
from harness.campaign import Policy, Resumption, State, look_ahead, standing
from harness.errors import HarnessError
from harness.model import Device, Outcome, Plan, Record, Settings
from harness.sittings import Sitting
from harness.store.journal import Journal
from harness.store.layout import RunFolder, Store
from harness.store.sittings import append_sitting

PLAN = replace(
    make_plan(placements=("train-each-epoch", "eval-always"), cells=("lstm",), directions=(False,)),
    settings=Settings(replicates=2),
)
RECORDS = sorted(make_records(PLAN), key=lambda record: record.device is Device.CPU)
LATER = "20260401-101500-later"


def kept(root: Path, records: list[Record], plan: Plan = PLAN, *, reported: bool = True) -> RunFolder:
    folder = Store(root).folder(plan.run)
    with Journal.create(folder, plan) as journal:
        for record in records:
            journal.append(replace(record, run=plan.run))
    if reported:
        folder.report.write_text("# Report\n")
    return folder


@dataclass
class Ended:
    code: int
    out: str
    err: str


@pytest.fixture
def main(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """The entry point as the shell calls it, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    for name in ("HARNESS_STORE", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)

    def call(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["harness", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as leaving:
            cli.main()
        captured = capsys.readouterr()
        return Ended(int(leaving.value.code or 0), captured.out, captured.err)

    return call


def test_planned_recorded_and_missing_add_up_per_device(tmp_path: Path) -> None:
    crashed = die(RECORDS[0], Outcome.CRASH, "ended by SIGSEGV")
    again = replace(RECORDS[1], attempt=2)
    found = standing(kept(tmp_path, [crashed, *RECORDS[1:-3], again]))
    assert found.state is State.UNFINISHED
    assert (found.planned, found.recorded, found.again) == (PLAN.attempts, PLAN.attempts - 3, 1)
    stub, cpu = found.devices
    assert (stub.device, stub.planned, stub.planned - stub.recorded, stub.missing) == (Device.STUB, 4, 0, 0)
    assert (cpu.planned, cpu.recorded, cpu.missing) == (8, 5, 3)
    assert stub.superseded + cpu.superseded == 1
    assert stub.outcomes[Outcome.CRASH] == 1
    assert sum(each.outcomes.total() for each in found.devices) == found.recorded


@pytest.mark.parametrize(("count", "state"), [(0, State.UNFINISHED), (11, State.UNFINISHED), (12, State.COMPLETE)])
def test_a_run_is_complete_when_every_planned_attempt_has_a_record(tmp_path: Path, count: int, state: State) -> None:
    folder = kept(tmp_path, RECORDS[:count])
    assert standing(folder).state is state
    with Journal.resume(folder):
        assert standing(folder).state is State.RUNNING


@pytest.mark.parametrize(
    ("extra", "again", "strays"),
    [
        (1, "1 earlier attempt was made again", "1 record belongs to nothing"),
        (2, "2 earlier attempts were made again", "2 records belong to nothing"),
    ],
)
def test_one_is_counted_in_the_singular(tmp_path: Path, main: Any, extra: int, again: str, strays: str) -> None:
    repeated = [replace(record, attempt=2) for record in RECORDS[:extra]]
    foreign = [replace(record, key="0" * 12) for record in RECORDS[:extra]]
    kept(tmp_path, [*RECORDS, *repeated, *foreign])
    told = main("status").out
    assert f"{again};" in told
    assert f"{strays} that was planned" in told


@pytest.mark.parametrize(("lost", "missing"), [(1, "1 of 12 attempts is missing"), (2, "2 of 12 attempts are missing")])
def test_one_is_missing_in_the_singular(tmp_path: Path, main: Any, lost: int, missing: str) -> None:
    kept(tmp_path, RECORDS[:-lost])
    assert missing in main("status").out


@pytest.mark.parametrize(("crashed", "again"), [(1, "makes 1 attempt again"), (2, "makes 2 attempts again")])
def test_one_is_made_again_in_the_singular(tmp_path: Path, main: Any, crashed: int, again: str) -> None:
    died = [die(record, Outcome.CRASH, "ended by SIGSEGV") for record in RECORDS[:crashed]]
    kept(tmp_path, [*died, *RECORDS[crashed:]])
    assert again in main("status").out


@pytest.mark.parametrize("stale", [False, True], ids=["none", "of an earlier sitting"])
def test_a_complete_run_whose_report_was_never_written_says_so_and_goes_first(
    tmp_path: Path, main: Any, stale: bool
) -> None:
    folder = kept(tmp_path, RECORDS, reported=stale)
    if stale:
        os.utime(folder.report, (1.7e9, 1.7e9))
        append_sitting(folder, Sitting(2, "2026-03-02T10:00:00+00:00", ("harness", "x"), {}, {}))
    kept(tmp_path, RECORDS, replace(PLAN, run=LATER))
    told = main("status", PLAN.run).out
    assert "12 of 12 attempts are recorded, but nobody came to write its report" in told
    assert f"`harness run matrix --resume {PLAN.run}` writes its report" in told
    assert "complete, no report" in main("status", "--all").out.splitlines()[1]
    plan, todo = look_ahead(Store(tmp_path), Resumption())
    assert (plan.run, todo) == (PLAN.run, [])
    folder.report.write_text("# Report\n")
    assert "nobody came" not in main("status", PLAN.run).out
    assert look_ahead(Store(tmp_path), Resumption())[0].run == LATER


def test_an_unfinished_run_says_what_is_missing_and_what_to_do(tmp_path: Path, main: Any) -> None:
    folder = kept(tmp_path, RECORDS[:-3])
    append_sitting(folder, Sitting(2, "2026-03-02T10:00:00+00:00", ("harness", "x"), {}, {}, ("torch 1, now 2",)))
    told = main("status")
    assert (told.code, told.err) == (0, "")
    assert f"run {PLAN.run}: matrix, planned {PLAN.created}; unfinished, 3 of 12 attempts are missing" in told.out
    table = {line.split()[0]: line.split()[1:4] for line in told.out.splitlines() if line.startswith(("stub", "cpu"))}
    assert table == {"stub": ["4", "4", "0"], "cpu": ["8", "5", "3"]}
    assert (
        f"sitting 1, {PLAN.created}: harness run matrix\n"
        "  made with harness 0.1.0, system Linux x86_64, commit 0123abc\n" in told.out
    )
    assert "sitting 2, 2026-03-02T10:00:00+00:00: harness x\n  other than in sitting 1: torch 1, now 2\n" in told.out
    assert f"`harness run matrix --resume {PLAN.run}` finishes it" in told.out


def test_a_complete_run_asks_for_nothing_unless_something_is_worth_another_try(tmp_path: Path, main: Any) -> None:
    kept(tmp_path, RECORDS)
    assert "--resume" not in main("status").out
    crashed = [die(record, Outcome.OOM, "why") if n < 2 else record for n, record in enumerate(RECORDS)]
    kept(tmp_path, crashed, replace(PLAN, run=LATER))
    assert f"`harness run matrix --resume {LATER}` makes 2 attempts again" in main("status").out
    assert "--resume" not in main("status", PLAN.run).out


def test_a_seed_run_is_not_said_to_go_on(tmp_path: Path, main: Any) -> None:
    kept(tmp_path, [], replace(PLAN, matrix="seed simple-rnn"))
    told = main("status")
    assert "unfinished" in told.out
    assert "--resume" not in told.out


def test_all_runs_are_a_line_each_and_one_that_cannot_be_read_hides_no_other(tmp_path: Path, main: Any) -> None:
    kept(tmp_path, RECORDS)
    damaged = kept(tmp_path, [], replace(PLAN, run="20260302-101500-broke"))
    damaged.plan.write_text("{}")
    kept(tmp_path, RECORDS[:2], replace(PLAN, run=LATER))
    told = main("status", "--all")
    assert told.code == 0
    head, *lines = told.out.splitlines()
    assert head.split() == ["run", "what", "devices", "recorded", "planned", "state"]
    assert [line.split()[0] for line in lines] == [PLAN.run, "20260302-101500-broke", LATER]
    assert lines[0].split()[1:] == ["matrix", "stub+cpu", "12", "12", "complete"]
    assert "unreadable: " in lines[1]
    assert lines[2].split()[1:] == ["matrix", "stub+cpu", "2", "12", "unfinished"]
    documents = json.loads(main("status", "--all", "--json").out)
    assert [(each["run"], each["state"]) for each in documents] == [
        (PLAN.run, "complete"),
        ("20260302-101500-broke", "unreadable"),
        (LATER, "unfinished"),
    ]


@pytest.mark.parametrize("records", [0, 3])
def test_records_that_have_lost_their_plan_are_listed_as_unreadable(tmp_path: Path, main: Any, records: int) -> None:
    kept(tmp_path, RECORDS)
    lost = kept(tmp_path, RECORDS[:records], replace(PLAN, run=LATER))
    lost.plan.unlink()
    never = Store(tmp_path).folder("20260501-101500-never")  # killed before its plan was there
    never.path.mkdir()
    never.lock.touch()
    listed = main("status", "--all")
    assert (listed.code, listed.err) == (0, "")
    assert [line.split()[0] for line in listed.out.splitlines()[1:]] == [PLAN.run, LATER]
    assert f"unreadable: run {LATER} has records, but its plan.json is missing" in listed.out.splitlines()[-1]
    documents = json.loads(main("status", "--all", "--json").out)
    assert [(each["run"], each["state"]) for each in documents] == [(PLAN.run, "complete"), (LATER, "unreadable")]
    for words in (("status", LATER), ("status",), ("status", LATER, "--json"), ("report", LATER), ("sync", LATER)):
        told = main(*words)
        assert (told.code, told.out) == (4, "")
        assert told.err.splitlines()[0] == f"harness: run {LATER} has records, but its plan.json is missing"
        assert len(told.err.splitlines()) == 2, "a sentence and an advice"
    assert main("status", never.run).code == 2


def test_json_has_the_same_numbers(tmp_path: Path, main: Any) -> None:
    kept(tmp_path, RECORDS[:-3])
    document = json.loads(main("status", "--json").out)
    assert (document["run"], document["state"]) == (PLAN.run, "unfinished")
    assert (document["planned"], document["recorded"], document["missing"]) == (12, 9, 3)
    assert document["devices"]["cpu"]["missing"] == 3
    assert sum(document["devices"]["stub"]["outcomes"].values()) == 4
    assert [each["sitting"] for each in document["sittings"]] == [1]
    assert document["sittings"][0]["environment"] == dict(PLAN.environment)


def test_an_empty_store(tmp_path: Path, main: Any) -> None:
    assert main("status").code == 2
    told = main("status", "--all")
    assert (told.code, told.out) == (0, f"there are no runs in {tmp_path}\n")
    assert json.loads(main("status", "--all", "--json").out) == []


def test_all_and_a_run_contradict_each_other(tmp_path: Path, main: Any) -> None:
    kept(tmp_path, [])
    assert main("status", PLAN.run, "--all").code == 2


def test_what_others_wrote_steers_no_terminal(tmp_path: Path, main: Any) -> None:
    hostile = replace(PLAN, matrix="evil\x1b[31m\nname")
    folder = kept(tmp_path, [], hostile)
    append_sitting(folder, Sitting(2, "now", ("a\x1b[31m", "b\nc"), {}, {}, ("torch \x1b[2J, now\n2",)))
    shown = {
        (): ("evil\\x1b[31m name, planned", "sitting 2, now: a\\x1b[31m b c\n", "sitting 1: torch \\x1b[2J, now 2\n"),
        ("--all",): ("  evil\\x1b[31m name  ",),
    }
    for words, texts in shown.items():
        told = main("status", *words)
        assert (told.code, told.err) == (0, "")
        assert "\x1b" not in told.out
        for text in texts:
            assert text in told.out


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        (("--resume",), Resumption()),
        (("--resume", "-q"), Resumption()),
        (("--resume", "20260301"), Resumption("20260301")),
        (("-q", "--resume=latest", "--retry", "oom"), Resumption("latest", Policy.parse("oom"))),
        (("--retry", "none", "--resume", "--no-tracking"), Resumption("latest", Policy.parse("none"))),
        (("--only-failed", "--retry", "all", "--resume"), Resumption("latest", Policy.parse("all", only_failed=True))),
    ],
)
def test_what_a_command_line_asks_for(
    main: Any, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], asked: Resumption
) -> None:
    def note(found: Resumption, *_: object) -> None:
        heard.append(found)
        raise HarnessError("enough is known")

    heard: list[Resumption] = []
    monkeypatch.setattr(campaign, "resume_matrix", note)
    assert main("run", "matrix", *words).code == 4
    assert heard == [asked]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("quick", "--resume"), "NAME"),
        (("matrix", "--resume"), "NAME"),
        (
            ("--resume", "-a", "cell=lstm", "-k", "*", "--device", "auto", "--replicates", "2"),
            "-a, -k, --device, --rep",
        ),
        (("--retry", "crash"), "--retry says what a resume does"),
        (("--only-failed",), "--only-failed says what a resume does"),
        (("--resume", "--retry", "ok"), "none that can be tried again"),
        (("--resume", "--dry-run", "--retry", "ok"), "none that can be tried again"),
        (("--resume", "../../etc"), "no run"),
        (("--resume", "quick"), "--resume takes a run, and 'quick' is a matrix"),
        (("--dry-run", "--resume", "nothing"), "no run"),
        (("--resume", "--only-failed", "--retry", "none"), "leaves nothing to be run"),
    ],
)
def test_contradictions_are_one_sentence(tmp_path: Path, main: Any, words: tuple[str, ...], hint: str) -> None:
    kept(tmp_path, RECORDS[:-3])
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    refused = main("run", "matrix", *words)
    assert (refused.code, refused.out) == (2, "")
    sentence, _advice = refused.err.splitlines()
    assert sentence.startswith("harness: ")
    assert hint in sentence
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_dry_run_lists_what_a_resume_would_make_and_why(tmp_path: Path, main: Any) -> None:
    crashed = die(RECORDS[0], Outcome.CRASH, "ended by SIGSEGV")
    kept(tmp_path, [crashed, *RECORDS[1:-3]])
    told = main("run", "matrix", "--resume", "--dry-run")
    assert told.code == 0
    assert told.out.splitlines()[0] == f"{crashed.key}  stub  {crashed.label}  (attempt 2, after crash)"
    assert len(told.out.splitlines()) == 4
    assert all(line.endswith("(missing)") and "  cpu replicate " in line for line in told.out.splitlines()[1:])
    assert f"run {PLAN.run}: 4 of 12 attempts would be made: 3 missing, 1 again" in told.err
