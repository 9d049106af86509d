"""Going on with a run, with scripted records instead of processes: what is made, marked, said and refused."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_campaign import STUB_AND_CPU, VARIANTS, Script, make_plan, record_of

from harness.campaign import Conditions, Finished, Policy, Resumption, look_ahead, loop, resume, resume_matrix, sync_run
from harness.errors import (
    DeviceUnavailableError,
    HarnessError,
    InterruptedRunError,
    JournalError,
    RunBusyError,
    RunNotFoundError,
    UsageError,
)
from harness.launch.site import Site
from harness.launch.stop import StopRequest
from harness.model import Caveat, Device, Order, Outcome, Plan, Record, Variant
from harness.results import collect
from harness.sittings import Sitting
from harness.store.journal import Journal, read_records
from harness.store.layout import RunFolder, Store
from harness.store.sittings import read_sittings
from harness.store.tracking import Ending

ENVIRONMENT = {"python": "3.11.9", "torch": "2.14.1", "git_commit": "0123abc", "git_dirty": False, "mlflow": "3.5"}
DEFAULT = Policy()
RUNS = ("20260301-101500-aaaaa", "20260302-101500-bbbbb", "20260303-101500-ccccc")


def plan_of(run: str = RUNS[0], **changes: Any) -> Plan:
    return replace(make_plan(), run=run, environment=ENVIRONMENT, command=("harness", "run", "matrix"), **changes)


def first_records(plan: Plan) -> list[Record]:
    """All that a run of ``plan`` leaves."""
    return [
        replace(record_of(Order(plan.run, variant, device, plan.settings, replicate)), facts={"cpu": "old"})
        for device in plan.devices
        for replicate in range(plan.replicates_on(device))
        for variant in plan.variants
    ]


def kept(root: Path, plan: Plan, records: Iterable[Record]) -> RunFolder:
    folder = Store(root).folder(plan.run)
    with Journal.create(folder, plan) as journal:
        for record in records:
            journal.append(record)
    return folder


class Silent:
    """A tracking that notes what it is asked to show."""

    closed: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.shown: list[tuple[str, int]] = []
        self.endings: list[tuple[Ending, int]] = []

    def project(self, variant: Variant, records: Sequence[Record]) -> None:
        self.shown.append((variant.key, len(records)))

    def pause(self) -> bool:
        return True

    def resume(self) -> None:
        return None

    def finish(self, ending: Ending, records: Sequence[Record], _: Sequence[Path] = ()) -> None:
        self.endings.append((ending, len(records)))


class Ears:
    """A listener that notes what it hears."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.sitting: Sitting | None = None

    def preparing(self, what: str) -> None:
        self.log.append(what)

    def started(self, _: Plan) -> None:
        raise AssertionError("a run that goes on does not start")

    def resumed(self, plan: Plan, sitting: Sitting, attempts: int) -> None:
        self.sitting = sitting
        self.log.append(f"sitting {sitting.number}: {attempts} of {plan.attempts}")

    def recorded(self, record: Record) -> None:
        self.log.append(f"{record.device} {record.key} {record.attempt}")

    def finishing(self, _: str) -> None:
        return None

    def noted(self, sentence: str) -> None:
        self.log.append(sentence)


class Here:
    """This machine, and a way to go on with a run on it."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.store, self.tracking, self.ears = Store(root), Silent(), Ears()
        self.scripts = {device: Script(self._play) for device in Device}
        self.facts: dict[Device, Mapping[str, Any]] = {}
        self.environment = dict(ENVIRONMENT)
        self.opened: list[list[Device]] = []
        patch.setattr(resume, "reopen_site", self._site)
        patch.setattr(resume, "environment", lambda: self.environment)
        patch.setattr(resume, "processor", lambda: "old")
        patch.setattr(loop, "start_tracking", lambda *_, **__: self.tracking)
        patch.setattr("harness.report.draw", lambda _: {})

    def _play(self, order: Order, _: StopRequest) -> Record:
        return replace(record_of(order), attempt=order.attempt, sitting=order.sitting, facts={"cpu": "old"})

    def _site(self, devices: Iterable[Device]) -> Site:
        self.opened.append(list(devices))
        executors = {device: self.scripts[device] for device in self.opened[-1]}
        return Site(executors, self.facts)  # type: ignore[arg-type]

    def go_on(self, run: str = "latest", policy: Policy = DEFAULT, command: tuple[str, ...] = ("again",)) -> Finished:
        conditions = Conditions(self.store, tracked=False, command=command)
        return resume_matrix(Resumption(run, policy), replace(conditions, tracked=True), self.ears)

    @property
    def made(self) -> list[tuple[str, Device, int, int, int]]:
        orders = (order for script in self.scripts.values() for order in script.orders)
        return sorted((o.variant.key, o.device, o.replicate, o.attempt, o.sitting) for o in orders)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    yield Here(tmp_path, monkeypatch)


@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_exactly_the_missing_attempts_are_made(here: Here, count: int) -> None:
    plan = plan_of()
    whole = first_records(plan)
    folder = kept(here.store.root, plan, whole[:count])
    finished = here.go_on()
    assert here.made == sorted((r.key, r.device, r.replicate, 1, 2) for r in whole[count:])
    records = read_records(folder)
    assert len(records) == plan.attempts == 6
    assert [record.sitting for record in records] == [1] * count + [2] * (6 - count)
    assert sorted(finished.records, key=str) == sorted(records, key=str)
    assert here.ears.log[:2] == ["starting PyTorch", f"sitting 2: {6 - count} of 6"]
    assert here.tracking.endings == [(Ending.COMPLETE, 6)]
    assert str(Caveat.INCOMPLETE) not in folder.report.read_text()


def test_only_the_devices_that_are_still_needed_are_opened(here: Here) -> None:
    plan = plan_of()
    kept(here.store.root, plan, first_records(plan)[:4])
    here.go_on()
    assert here.opened == [[Device.CPU]]


def test_a_failed_attempt_is_made_again_and_the_new_one_counts(here: Here) -> None:
    plan = plan_of()
    whole = first_records(plan)
    crashed = replace(whole[0], outcome=Outcome.CRASH, reason="ended by SIGKILL")
    folder = kept(here.store.root, plan, [crashed, *whole[1:]])
    here.go_on()
    assert here.made == [(crashed.key, Device.STUB, 0, 2, 2)]
    results = collect(plan, read_records(folder)).results
    assert results[0].outcome is Outcome.BACKWARD_ERROR
    assert "1 earlier attempt was made again and does not count here" in folder.report.read_text()
    assert (crashed.key, 3) in here.tracking.shown, "both of its records are shown, and that of the other device"


def test_what_an_earlier_sitting_recorded_is_shown_in_mlflow_though_nothing_of_it_is_made(here: Here) -> None:
    """Its coordinator may have been killed between the journal and MLflow."""
    plan = plan_of(devices=(Device.STUB,))
    whole = first_records(plan)
    kept(here.store.root, plan, whole[:2])
    here.go_on()
    assert sorted(here.tracking.shown) == sorted((record.key, 1) for record in whole)


def test_of_a_complete_run_nothing_is_made_but_report_and_mlflow_are_brought_up_to_date(here: Here) -> None:
    plan = plan_of()
    folder = kept(here.store.root, plan, first_records(plan))
    finished = here.go_on()
    assert here.opened == []
    assert here.ears.log == [f"run {plan.run}: nothing is missing, all 6 planned attempts are recorded"]
    assert len(here.tracking.shown) == 3
    assert here.tracking.endings == [(Ending.COMPLETE, 6)]
    assert folder.report.is_file()
    assert not folder.sittings.exists(), "where nothing was made there was no sitting"
    assert len(finished.records) == 6


def test_only_failed_says_what_it_leaves_out(here: Here) -> None:
    plan = plan_of()
    kept(here.store.root, plan, first_records(plan)[:4])
    here.go_on(policy=Policy.parse(None, only_failed=True))
    assert here.ears.log == [f"run {plan.run}: nothing is to be made again; 2 missing attempts are left out"]
    assert here.tracking.endings == [(Ending.INTERRUPTED, 4)]


def test_latest_is_the_newest_matrix_run_that_is_unfinished(here: Here) -> None:
    plans = [plan_of(run) for run in RUNS]
    kept(here.store.root, plans[0], [])
    kept(here.store.root, plans[1], first_records(plans[1])[:1])
    kept(here.store.root, plans[2], first_records(plans[2]))
    seed = plan_of("20260304-101500-ddddd", matrix="seed simple-rnn")
    kept(here.store.root, seed, [])
    assert here.go_on().plan.run == RUNS[1]
    assert here.go_on().plan.run == RUNS[0]
    assert here.go_on().plan.run == RUNS[2], "when all are finished, the newest"


def test_a_beginning_of_an_id_names_a_run_also_one_that_is_complete(here: Here) -> None:
    for run in RUNS:
        kept(here.store.root, plan_of(run), first_records(plan_of(run)))
    assert here.go_on("20260302").plan.run == RUNS[1]


@pytest.mark.parametrize("runs", [0, 1])
def test_without_a_run_of_a_matrix_there_is_nothing_to_go_on_with(here: Here, runs: int) -> None:
    if runs:
        kept(here.store.root, plan_of(matrix="seed simple-rnn"), [])
    with pytest.raises(RunNotFoundError) as caught:
        here.go_on()
    assert "harness run matrix" in caught.value.advice


def test_a_seed_run_cannot_go_on(here: Here) -> None:
    plan = plan_of(matrix="seed simple-rnn")
    kept(here.store.root, plan, [])
    with pytest.raises(UsageError, match="only runs of a matrix can go on") as caught:
        here.go_on(plan.run)
    assert caught.value.exit_code == 2


def test_a_plan_of_other_axes_is_refused_before_anything_runs(here: Here) -> None:
    variants = tuple(replace(variant, axes={**variant.axes, "colour": "red"}) for variant in VARIANTS)
    kept(here.store.root, plan_of(variants=variants), [])
    with pytest.raises(UsageError, match="other axes than this harness has: colour"):
        here.go_on()


def test_a_run_that_is_being_run_is_refused(here: Here) -> None:
    plan = plan_of()
    folder = kept(here.store.root, plan, [])
    with Journal.resume(folder), pytest.raises(RunBusyError, match="another harness process is working") as caught:
        here.go_on()
    assert caught.value.exit_code == 2
    assert f"`harness --store {here.store.root} report {plan.run}`" in caught.value.advice
    assert here.opened == []
    with Journal.resume(folder), pytest.raises(RunBusyError) as caught:
        sync_run(here.store, None)
    assert f"`harness --store {here.store.root} report {plan.run}`" in caught.value.advice


def test_records_that_have_lost_their_plan_keep_no_other_run_from_going_on(here: Here) -> None:
    plan, lost = plan_of(), replace(plan_of(), run="20991231-235959-lost")
    kept(here.store.root, plan, first_records(plan)[:3])
    kept(here.store.root, lost, []).plan.unlink()
    assert here.go_on().plan.run == plan.run
    with pytest.raises(JournalError, match=r"run 20991231-235959-lost has records, but its plan\.json is missing"):
        here.go_on(lost.run)


def test_a_device_that_is_gone_is_refused_and_leaves_no_sitting(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: object) -> Site:
        raise DeviceUnavailableError("PyTorch, which was built for CUDA 13.0, sees no GPU", "Use --device cpu.")

    plan = plan_of(devices=(Device.CUDA,))
    folder = kept(here.store.root, plan, first_records(plan)[:1])
    before = folder.records.read_bytes()
    monkeypatch.setattr(resume, "reopen_site", gone)
    with pytest.raises(DeviceUnavailableError, match=r"planned on cuda: PyTorch, which .* sees no GPU") as caught:
        here.go_on()
    assert caught.value.exit_code == 2
    assert "--device" not in caught.value.advice
    assert folder.records.read_bytes() == before
    assert not folder.sittings.exists()
    with Journal.resume(folder):
        """The lock was given back."""


def test_a_damaged_journal_is_said_and_nothing_is_touched(here: Here) -> None:
    plan = plan_of()
    folder = kept(here.store.root, plan, first_records(plan)[:3])
    lines = folder.records.read_bytes().splitlines(keepends=True)
    folder.records.write_bytes(lines[0] + b"garbage\n" + lines[2])
    with pytest.raises(JournalError, match="line 2"):
        here.go_on(plan.run)
    assert folder.records.read_bytes() == lines[0] + b"garbage\n" + lines[2]


def test_half_a_last_line_is_made_again_as_the_same_attempt(here: Here) -> None:
    plan = plan_of()
    folder = kept(here.store.root, plan, first_records(plan))
    folder.records.write_bytes(folder.records.read_bytes()[:-20])
    lost = first_records(plan)[-1]
    here.go_on()
    assert here.made == [(lost.key, Device.CPU, 0, 1, 2)]
    assert len(read_records(folder)) == 6


def stop_at(number: int) -> Any:
    made: list[Order] = []

    def play(order: Order, _: StopRequest) -> Record:
        made.append(order)
        if len(made) == number:
            signal.raise_signal(signal.SIGINT)
        return replace(record_of(order), attempt=order.attempt, sitting=order.sitting)

    return play


def test_a_stopped_resume_names_the_command_that_goes_on_and_that_one_finishes(here: Here) -> None:
    plan = plan_of()
    kept(here.store.root, plan, first_records(plan)[:1])
    here.scripts[Device.STUB].play = stop_at(1)
    with pytest.raises(InterruptedRunError, match="2 of 6 attempts are recorded") as caught:
        here.go_on()
    assert f"`harness --store {here.store.root} run matrix --resume {plan.run}`" in caught.value.advice
    assert here.tracking.endings == [(Ending.INTERRUPTED, 2)]
    here.scripts[Device.STUB].play = here._play
    assert len(here.go_on().records) == 6
    assert here.ears.sitting is not None
    assert here.ears.sitting.number == 3


def test_a_stop_among_attempts_that_are_made_again_says_how_many_were_not(here: Here) -> None:
    plan = plan_of(devices=(Device.STUB,))
    kept(here.store.root, plan, [replace(record, outcome=Outcome.CRASH) for record in first_records(plan)])
    here.scripts[Device.STUB].play = stop_at(1)
    with pytest.raises(
        InterruptedRunError, match=r"3 of 3 attempts are recorded .* and 2 were not made again"
    ) as caught:
        here.go_on()
    assert f"--resume {plan.run}" in caught.value.advice
    assert here.tracking.endings == [(Ending.COMPLETE, 4)]


def test_each_sitting_is_kept_with_what_it_was_made_with(here: Here) -> None:
    plan = plan_of()
    folder = kept(here.store.root, plan, first_records(plan)[:1])
    here.scripts[Device.STUB].play = stop_at(1)
    with suppress(InterruptedRunError):
        here.go_on(command=("harness", "run", "matrix", "--resume"))
    here.scripts[Device.STUB].play = here._play
    here.environment |= {"torch": "2.15.0", "git_dirty": True, "mlflow": "4.0"}
    here.facts = {Device.STUB: {"cudnn": 1, "threads": 4}}
    here.go_on()
    first, second, third = read_sittings(folder, plan)
    assert (first.number, first.environment, first.command) == (1, ENVIRONMENT, plan.command)
    assert (second.number, second.command, second.differences) == (2, ("harness", "run", "matrix", "--resume"), ())
    assert third.differences == ("torch 2.14.1, now 2.15.0", "git dirty no, now yes")
    assert third.environment == here.environment
    assert third.facts[Device.STUB]["cudnn"] == 1
    assert len(folder.sittings.read_bytes().splitlines()) == 2
    assert here.ears.sitting == third, "who is told hears of it before the first attempt"


def test_what_a_device_was_not_asked_has_not_changed(here: Here) -> None:
    plan = plan_of(devices=(Device.CPU,))
    facts = {"cpu": "old", "device_name": "old", "threads": 1, "driver": "580.10"}
    kept(here.store.root, plan, [replace(record, facts=facts) for record in first_records(plan)[:1]])
    here.go_on()
    assert here.ears.sitting is not None
    assert here.ears.sitting.differences == ()


@pytest.mark.parametrize(
    ("device", "fact", "was", "now", "words"),
    [
        (Device.CUDA, "device_name", "NVIDIA H100", "NVIDIA H200", "device on cuda NVIDIA H100, now NVIDIA H200"),
        (Device.CUDA, "driver", "580.10", "590.01", "driver on cuda 580.10, now 590.01"),
        (Device.STUB, "cudnn", 91900, 92400, "cuDNN on stub 91900, now 92400"),
        (Device.CPU, "cpu", "an older one", "old", "processor on cpu an older one, now old"),
    ],
)
def test_what_the_devices_tell_of_themselves_is_held_against_the_records(
    here: Here, device: Device, fact: str, was: object, now: object, words: str
) -> None:
    plan = plan_of(devices=(device,))
    records = [replace(record, facts={fact: was}) for record in first_records(plan)[:1]]
    kept(here.store.root, plan, records)
    here.facts = {device: {fact: now, "threads": 99}}
    here.go_on()
    assert here.ears.sitting is not None
    assert here.ears.sitting.differences == (words,)


def test_the_report_names_what_changed_and_which_variants_were_made_under_it(here: Here) -> None:
    plan = plan_of()
    whole = first_records(plan)
    folder = kept(here.store.root, plan, whole[:-1])
    here.environment["git_commit"] = "4567def"
    here.go_on()
    report = folder.report.read_text()
    assert (
        "- Sitting 2 made 1 of the 6 attempts that count, and not under the conditions of sitting 1: "
        f"git commit 0123abc, now 4567def. It made {whole[-1].label} on `cpu`." in report
    )
    assert "The run was made in 2 sittings" in report
    rows = [line for line in folder.results.read_text().splitlines() if whole[-1].key in line]
    header = folder.results.read_text().splitlines()[0].split(",")
    assert len(rows) == 2
    assert "sitting" in header


def test_where_every_attempt_of_the_first_sitting_was_replaced_nothing_is_mixed(here: Here) -> None:
    plan = plan_of()
    crashed = [replace(record, outcome=Outcome.CRASH) for record in first_records(plan)]
    folder = kept(here.store.root, plan, crashed)
    here.environment["torch"] = "2.15.0"
    here.go_on()
    assert "not under the conditions of" not in folder.report.read_text()
    assert "6 earlier attempts were made again" in folder.report.read_text()


@pytest.mark.parametrize("option", [("--tracking-uri", "http://there"), ("--tracking-uri=http://there",)])
def test_a_run_that_was_begun_in_another_mlflow_says_that_it_goes_on_in_this_one(
    here: Here, option: tuple[str, ...]
) -> None:
    plan = replace(plan_of(), command=("harness", "run", "matrix", *option))
    kept(here.store.root, plan, [])
    here.store = Store(here.store.root, "http://there")
    here.scripts[Device.STUB].play = stop_at(1)
    with suppress(InterruptedRunError):
        here.go_on()
    assert "tracking" not in " ".join(here.ears.log)
    here.store = Store(here.store.root)
    here.scripts[Device.STUB].play = here._play
    here.go_on()
    assert "the run was begun with --tracking-uri" in " ".join(here.ears.log)


def test_a_look_ahead_lists_what_would_be_made_and_touches_nothing(here: Here) -> None:
    plan = plan_of()
    whole = first_records(plan)
    folder = kept(here.store.root, plan, [replace(whole[0], outcome=Outcome.OOM), *whole[1:4]])
    before = {path: path.read_bytes() for path in folder.path.iterdir()}
    found, todo = look_ahead(here.store, Resumption())
    assert found == plan
    assert [each.before for each in todo] == [Outcome.OOM, None, None]
    assert {path: path.read_bytes() for path in folder.path.iterdir()} == before


def test_drafts_of_a_killed_writer_are_removed(here: Here) -> None:
    plan = plan_of()
    folder = kept(here.store.root, plan, [])
    draft = folder.path / ".report.md.4711.part"
    draft.write_text("half")
    here.go_on()
    assert not draft.exists()


@pytest.mark.parametrize("line", [b"garbage\n", b'{"number": "x", "started": ""}\n', b'{"number": 2}\n'])
def test_damaged_sittings_are_one_sentence(here: Here, line: bytes) -> None:
    plan = plan_of()
    folder = kept(here.store.root, plan, [])
    folder.sittings.write_bytes(line)
    with pytest.raises(HarnessError, match=r"sittings.jsonl, line 1: not a sitting"):
        here.go_on()
    assert here.opened == []


def test_sittings_of_a_newer_harness_are_refused(here: Here) -> None:
    plan = plan_of()
    folder = kept(here.store.root, plan, [])
    folder.sittings.write_text(json.dumps({"number": 2, "started": "", "schema": 99}) + "\n")
    with pytest.raises(JournalError, match="schema 99"):
        here.go_on()


def test_the_devices_are_those_of_the_plan_whatever_else_is_there(here: Here) -> None:
    plan = plan_of(devices=STUB_AND_CPU)
    kept(here.store.root, plan, [])
    here.go_on()
    assert here.opened == [[Device.STUB, Device.CPU]]
    assert {device for _, device, *_ in here.made} == set(STUB_AND_CPU)
