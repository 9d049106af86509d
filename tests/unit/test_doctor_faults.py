"""The doctor holds every record against what its fault has to come to, with an executor that can be made to err."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_executor import FAULTS, TOLD, ZYGOTE, FakeExecutor, Spoil, on

from harness.console import examined
from harness.console.examined import show_examination
from harness.doctor import bench, examination, injection
from harness.doctor.asking import Question
from harness.doctor.examination import Examination, examine
from harness.doctor.facts import Fact, absent, warning
from harness.doctor.faults import program
from harness.doctor.injection import Injector
from harness.doctor.known import BACKWARD, PLAIN, PROGRAM, QUICK, REAL, STALLED, Fault, differences
from harness.errors import CheckFailedError, LaunchError
from harness.model import Device, Outcome, Record
from harness.store.layout import Store

GPU_SEEN: dict[str, dict[str, Any]] = {
    **TOLD,
    "tells_about_the_gpu": {"available": True, "name": "NVIDIA H200", "capability": "9.0", "count": 1, "said": []},
}
STUB_THERE = Fact("stub", "built")


def injected(executor: FakeExecutor, device: Device = Device.CPU) -> Injector:
    injector = Injector(executor, device)
    injector.inject((*QUICK, *REAL), STALLED)
    return injector


def differing(injector: Injector) -> dict[str, tuple[str, ...]]:
    return {finding.fault.name: finding.differs for finding in injector.findings if finding.differs}


def wrong_outcomes() -> list[tuple[str, Device, Outcome]]:
    """Every fault with every outcome that it must not have, on a device where it is injected."""
    return [
        (fault.name, fault.devices[-1], outcome)
        for fault in FAULTS
        for outcome in Outcome
        if outcome is not fault.outcome
    ]


@pytest.mark.parametrize("device", Device)
def test_right_records_differ_in_nothing(device: Device) -> None:
    injector = injected(FakeExecutor(), device)
    assert differing(injector) == {}
    applying = [fault.name for fault in FAULTS if device in fault.devices]
    assert sorted(finding.fault.name for finding in injector.findings) == sorted(applying)


@pytest.mark.parametrize(("name", "device", "outcome"), wrong_outcomes())
def test_every_wrong_class_is_a_difference_of_its_fault(name: str, device: Device, outcome: Outcome) -> None:
    found = differing(injected(FakeExecutor(on(name, device, outcome=outcome)), device))
    assert found[name][0].startswith(f"outcome is '{outcome}', not '")
    if name != PLAIN.name:
        assert set(found) == {name}


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("segfault", {"signal": "SIGBUS"}, "signal is 'SIGBUS', not 'SIGSEGV'"),
        ("segfault", {"phase": None}, "phase is absent, not 'step'"),
        ("hard-exit-3", {"exit_code": 0}, "exit_code is 0, not 3"),
        ("half-record", {"reason": "it left no record"}, "reason is 'it left no record', not 'half a record'"),
        ("hang", {"silent_s": 0.1}, "stall is 'slow', not 'hung'"),
        ("hang", {"silent_s": None}, "stall is absent, not 'hung'"),
        ("slow", {"silent_s": 1.9}, "stall is 'hung', not 'slow'"),
        ("deaf-hang", {"signal": "SIGTERM"}, "signal is 'SIGTERM', not 'SIGKILL'"),
        ("flood", {"output_tail": None}, "output_tail is absent, not 'the end of the flood'"),
        ("python-error", {"error_type": "ValueError"}, "error_type is 'ValueError', not 'RuntimeError'"),
    ],
)
def test_two_faults_of_one_class_are_told_apart(name: str, changes: dict[str, Any], said: str) -> None:
    assert differing(injected(FakeExecutor(on(name, **changes)))) == {name: (said,)}


class Aftermath:
    """Spoils the attempt that comes after the fault ``name``, and no other."""

    def __init__(self, name: str, **changes: Any) -> None:
        self.name, self.changes, self.last = name, changes, ""

    def __call__(self, fault: Fault, record: Record) -> Record:
        before, self.last = self.last, fault.name
        return replace(record, **self.changes) if fault is PLAIN and before == self.name else record


@pytest.mark.parametrize("name", [fault.name for fault in QUICK if Device.CPU in fault.devices])
def test_an_attempt_that_suffers_from_the_fault_before_it_is_a_difference_of_that_fault(name: str) -> None:
    found = differing(injected(FakeExecutor(Aftermath(name, outcome=Outcome.CRASH))))
    assert found == {name: ("of the attempt after it, outcome is 'crash', not 'ok'",)}


def test_a_worker_process_that_was_replaced_is_a_difference() -> None:
    found = differing(injected(FakeExecutor(Aftermath("segfault", results={"zygote": ZYGOTE + 1}))))
    assert found["segfault"] == ("the worker process that starts the attempts did not survive it",)


def test_an_attempt_that_suffers_beside_those_that_stall_is_a_difference_of_all_of_them() -> None:
    found = differing(injected(FakeExecutor(Aftermath("slow", outcome=Outcome.TIMEOUT))))
    assert set(found) == {fault.name for fault in STALLED}
    assert {differs for (differs,) in found.values()} == {"of the attempt beside it, outcome is 'timeout', not 'ok'"}


def test_what_a_fault_leaves_running_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(injection, "END_S", 0.05)
    found = differing(injected(FakeExecutor(left_behind=os.getpid())))
    assert found == {"fork": (f"the process that it left behind ({os.getpid()}) still runs",)}


def test_a_record_that_never_comes_is_a_difference() -> None:
    def lose(fault: Fault, record: Record) -> Record | None:
        return None if fault.name == "abort" else record

    assert differing(injected(FakeExecutor(lose)))["abort"][0] == "outcome is 'not-run', not 'crash'"


def test_two_records_of_one_attempt_are_a_difference() -> None:
    class Twice(FakeExecutor):
        def run(self, orders: Any, slots: int, stop: Any) -> Any:
            for record in super().run(orders, slots, stop):
                yield record
                if record.label == "act=aborts":
                    yield record

    assert differing(injected(Twice()))["abort"][0] == "outcome is 'not-run', not 'crash'"


def test_where_an_attempt_without_a_fault_fails_none_is_injected() -> None:
    executor = FakeExecutor(on(PLAIN.name, outcome=Outcome.CRASH, phase=None))
    injector = Injector(executor, Device.STUB)
    assert not injector.inject(QUICK, STALLED)
    assert len(executor.orders) == 1
    assert set(differing(injector)) == {PLAIN.name}


def test_what_stalls_gets_a_deadline_that_grows_with_the_machines_slowness() -> None:
    slow = FakeExecutor(on(PLAIN.name, wall_s=0.5))
    injected(slow)
    deadlines = {order.arguments[0]: order.settings.deadline for order in slow.orders if order.arguments}
    assert deadlines["hangs"] == injection.STALL_S + injection.STALL_FACTOR * 0.5
    assert deadlines["hangs"] > injection.STALL_S
    assert deadlines["segfaults"] == deadlines["behaves"] >= 60


def test_what_seems_wrong_with_a_short_deadline_gets_a_longer_one() -> None:
    """A machine so busy that an attempt which hangs has hardly begun by its deadline."""
    deadlines: list[float] = []

    def hang_late(fault: Fault, record: Record) -> Record:
        if fault.name != "hang":
            return record
        deadlines.append(executor.orders[-1].settings.deadline)
        return record if len(deadlines) > 1 else replace(record, silent_s=0.1)

    executor = FakeExecutor(hang_late)
    injector = injected(executor)
    assert differing(injector) == {}
    assert deadlines[1] == injection.SECOND_FACTOR * deadlines[0]
    assert [finding.fault.name for finding in injector.findings].count("hang") == 1


def test_what_others_suffer_counts_also_where_the_second_try_is_well() -> None:
    class Once(Aftermath):
        def __call__(self, fault: Fault, record: Record) -> Record:
            changed = super().__call__(fault, record)
            self.name = "" if changed is not record else self.name
            return replace(record, silent_s=0.1) if fault.name == "hang" and self.name else changed

    found = differing(injected(FakeExecutor(Once("slow", outcome=Outcome.CRASH))))
    assert set(found) == {fault.name for fault in STALLED}
    assert found["hang"] == ("of the attempt beside it, outcome is 'crash', not 'ok'",)


def test_every_act_of_the_table_is_one_of_the_program() -> None:
    assert {fault.act for fault in FAULTS if fault.act} <= set(program.ACTS)
    assert set(TOLD) <= set(program.ACTS)
    assert Path(program.__file__) == PROGRAM


def test_a_fault_that_stands_for_itself_has_a_name_of_its_own_on_each_device() -> None:
    for device in Device:
        names = [fault.name for fault in FAULTS if device in fault.devices]
        assert len(set(names)) == len(names)


# The whole examination, without processes.


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[Fact, ...]]:
    """Facts in place of questions to this machine; the stub's are in ``["stub"]``."""
    facts: dict[str, tuple[Fact, ...]] = {"stub": (STUB_THERE,), "cores": (Fact("cores", "2"),)}

    def questions(_: Store) -> Mapping[str, tuple[Question, ...]]:
        return {
            "software": (Question("stub", lambda: facts["stub"]),),
            "machine": (Question("cores", lambda: facts["cores"]),),
        }

    monkeypatch.setattr(examination, "questions", questions)
    monkeypatch.setattr(examination, "has_gpu", lambda: False)
    built = SimpleNamespace(environment=lambda base: {**base, "HARNESS_STUB": "1"})
    monkeypatch.setattr(bench.stub, "ensure", lambda: built)
    return facts


def looked(
    device: str = "auto", *, spoil: Spoil = lambda _, r: r, faults: bool = True, told: Any = TOLD
) -> Examination:
    opened: list[FakeExecutor] = []

    def open_fake(environment: Mapping[str, str]) -> FakeExecutor:
        opened.append(FakeExecutor(spoil, told))
        return opened[-1]

    seen = examine(Store(Path("nowhere")), device, faults=faults, executor=open_fake)
    assert all(executor.closed for executor in opened)
    return seen


def injected_in(seen: Examination) -> dict[Device, set[str]]:
    found: dict[Device, set[str]] = {}
    for finding in seen.findings:
        found.setdefault(finding.device, set()).add(finding.fault.name)
    return found


def names(device: Device) -> set[str]:
    return {fault.name for fault in FAULTS if device in fault.devices}


@pytest.mark.usefixtures("quiet")
def test_without_a_gpu_the_faults_are_injected_on_stub_and_cpu() -> None:
    seen = looked()
    assert injected_in(seen) == {Device.STUB: names(Device.STUB), Device.CPU: names(Device.CPU)}
    assert (seen.differences, seen.untested) == ([], [])


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_with_a_gpu_they_are_injected_there_and_the_cpu_only_shows_that_it_does_not_raise(
    monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    monkeypatch.setattr(examination, "has_gpu", lambda: True)
    seen = looked(device, told=GPU_SEEN)
    assert injected_in(seen) == {Device.CUDA: names(Device.CUDA), Device.CPU: {PLAIN.name, BACKWARD}}
    assert seen.differences == []


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(("there", "told"), [(False, GPU_SEEN), (True, TOLD)], ids=["no device", "not seen"])
def test_auto_takes_the_stub_wherever_a_run_would(
    monkeypatch: pytest.MonkeyPatch, there: bool, told: Mapping[str, Any]
) -> None:
    monkeypatch.setattr(examination, "has_gpu", lambda: there)
    assert set(injected_in(looked(told=told))) == {Device.STUB, Device.CPU}


@pytest.mark.usefixtures("quiet")
def test_on_a_cpu_alone_the_error_is_not_tested_and_that_is_said() -> None:
    seen = looked("cpu")
    assert set(injected_in(seen)) == {Device.CPU}
    assert [one.what for one in seen.untested] == [BACKWARD]
    assert seen.differences == []


@pytest.mark.usefixtures("quiet")
def test_a_gpu_that_was_asked_for_and_is_not_seen_is_a_difference() -> None:
    seen = looked("cuda")
    assert seen.differences == ["every fault on cuda: not tested: PyTorch sees no GPU"]
    assert injected_in(seen) == {Device.CPU: {PLAIN.name, BACKWARD}}


@pytest.mark.parametrize("state", [absent("stub", "no compiler"), warning("stub", "not built within 60 s", "wait")])
@pytest.mark.parametrize(("device", "count"), [("auto", 0), ("stub", 1)])
def test_a_stub_that_is_not_there_is_a_difference_where_it_was_asked_for(
    quiet: dict[str, tuple[Fact, ...]], state: Fact, device: str, count: int
) -> None:
    quiet["stub"] = (state,)
    seen = looked(device)
    assert Device.STUB not in injected_in(seen)
    assert len(seen.differences) == count
    (untested,) = seen.untested
    assert state.text in untested.why


@pytest.mark.usefixtures("quiet")
def test_a_stub_seen_by_the_plain_environment_is_no_gpu() -> None:
    seen = looked("cuda", told={**GPU_SEEN, "tells_about_the_gpu": {**GPU_SEEN["tells_about_the_gpu"], "stub": True}})
    assert Device.CUDA not in injected_in(seen)
    assert len(seen.differences) == 1


@pytest.mark.usefixtures("quiet")
def test_without_faults_nothing_is_ordered_but_answers() -> None:
    seen = looked(faults=False)
    assert (seen.findings, seen.untested, seen.differences) == ([], [], [])
    assert "2.14.1+cu130, built for CUDA 13.0" in [fact.text for fact in seen.facts["software"]]


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("error", [LaunchError("it died", "look"), OSError(24, "Too many open files"), MemoryError()])
@pytest.mark.parametrize("where", ["opening", "asking", "injecting"])
def test_workers_that_cannot_be_had_are_a_difference_and_no_exception(error: Exception, where: str) -> None:
    class Broken(FakeExecutor):
        def run(self, orders: Any, slots: int, stop: Any) -> Any:
            orders = list(orders)
            if where == "asking" or orders[0].arguments[:1] == ("segfaults",):
                raise error
            return super().run(orders, slots, stop)

    def open_broken(environment: Mapping[str, str]) -> FakeExecutor:
        if where == "opening":
            raise error
        return Broken()

    seen = examine(Store(Path("nowhere")), "cpu", faults=True, executor=open_broken)
    (difference,) = seen.differences
    what = "the rest of the faults on cpu" if where == "injecting" else "every fault"
    words = {LaunchError: "it died", OSError: "too many open files", MemoryError: "MemoryError"}[type(error)]
    assert difference == f"{what}: not tested: {words}"
    (untested,) = [one for one in seen.untested if one.wanted]
    assert untested.advice == ("look" if isinstance(error, LaunchError) else LIMITS)


LIMITS = "See the limits of this process, under `machine`."


@pytest.mark.usefixtures("quiet")
def test_the_limits_are_looked_for_where_they_are_shown() -> None:
    assert LIMITS.split("`")[1] in looked(faults=False).facts


def test_a_journal_that_cannot_be_kept_is_a_difference(quiet: dict[str, tuple[Fact, ...]]) -> None:
    quiet["cores"] = (warning("journal", "none can be kept in /: read-only", "elsewhere"),)
    assert looked(faults=False).differences == ["journal: none can be kept in /: read-only"]


def test_another_warning_is_none(quiet: dict[str, tuple[Fact, ...]]) -> None:
    quiet["cores"] = (warning("memory", "little", "more"),)
    seen = looked()
    assert seen.differences == []
    assert [fact.name for fact in seen.warnings] == ["memory"]


# What a person, and a machine, sees of it.


def shown(seen: Examination, monkeypatch: pytest.MonkeyPatch, **options: bool) -> None:
    monkeypatch.setattr(examined, "examine", lambda *_, **__: seen)
    show_examination(Store(Path("nowhere")), "auto", **({"faults": True, "as_json": False} | options))


@pytest.mark.usefixtures("quiet")
def test_what_is_as_it_should_be_is_shown_with_its_devices(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = looked()
    shown(seen, monkeypatch)
    out = capsys.readouterr().out
    total = len(seen.findings)
    assert f"{total} of {total} came out as what they are, on stub (no GPU) and cpu" in out
    assert "WRONG" not in out
    assert "\x1b" not in out
    rows = {line.split()[0]: line for line in out.splitlines() if line.split()}
    assert rows["hang"].split()[-6:] == ["timeout", "hung", "SIGTERM", "timeout", "hung", "SIGTERM"]
    assert rows[BACKWARD].split()[-2:] == ["backward-error", "ok"]


@pytest.mark.usefixtures("quiet")
def test_differences_are_listed_and_end_in_a_failed_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CheckFailedError, match="1 thing is not as it has to be") as failed:
        shown(looked(spoil=on("segfault", Device.STUB, outcome=Outcome.OK)), monkeypatch)
    assert failed.value.exit_code == 1
    assert "do not trust the outcomes" in failed.value.advice
    out = capsys.readouterr().out
    assert "WRONG  segfault on stub: outcome is 'ok', not 'crash'" in out.splitlines()
    assert "36 of 37 came out" in out


@pytest.mark.parametrize(
    ("device", "core"),
    [("cuda", Fact("cores", "2")), ("cpu", warning("journal", "none can be kept in /: read-only", "elsewhere"))],
    ids=["no GPU", "no journal"],
)
def test_what_is_missing_casts_no_doubt_on_outcomes(
    quiet: dict[str, tuple[Fact, ...]], monkeypatch: pytest.MonkeyPatch, device: str, core: Fact
) -> None:
    quiet["cores"] = (core,)
    with pytest.raises(CheckFailedError, match="1 thing is not as it has to be") as failed:
        shown(looked(device), monkeypatch)
    assert failed.value.exit_code == 1
    assert failed.value.advice == "What is missing is said above."


@pytest.mark.usefixtures("quiet")
def test_json_says_the_same_to_a_machine(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    seen = looked(spoil=on("slow", Device.CPU, silent_s=1.9))
    with pytest.raises(CheckFailedError):
        shown(seen, monkeypatch, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert said["as_it_should_be"] is False
    assert said["differences"] == ["slow on cpu: stall is 'hung', not 'slow'"]
    (slow,) = [fault for fault in said["faults"] if fault["differences"]]
    assert (slow["fault"], slow["device"], slow["expected"], slow["stall"]) == ("slow", "cpu", "timeout", "hung")
    assert {"group": "machine", "name": "cores", "state": "ok", "text": "2"} in said["facts"]


def test_text_of_others_cannot_act_on_the_terminal(
    quiet: dict[str, tuple[Fact, ...]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quiet["cores"] = (warning("cores", "\x1b[2J[red]two[/red]", "\x07ring"),)
    shown(looked(faults=False), monkeypatch, faults=False)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "[red]two[/red]" in out


@pytest.mark.parametrize("columns", ["20", "40", "80", "200"])
@pytest.mark.usefixtures("quiet")
def test_a_terminal_may_be_narrow(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    shown(looked(), monkeypatch)
    assert max(len(line) for line in capsys.readouterr().out.splitlines()) <= int(columns)


def test_a_difference_names_the_field_and_both_values() -> None:
    fault = Fault("x", "x", Outcome.CRASH, {"exit_code": 3, "signal": None})
    record = Record("r", "k", "l", Device.CPU, Outcome.CRASH, signal="SIGBUS")
    assert [str(one) for one in differences(fault, record)] == [
        "exit_code is absent, not 3",
        "signal is 'SIGBUS', not absent",
    ]
