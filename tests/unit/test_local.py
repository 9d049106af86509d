"""The supervisor against a scripted zygote: events that arrive together, late, or never."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from harness.errors import LaunchError
from harness.launch import local
from harness.launch import ward as ward_module
from harness.launch.local import LocalExecutor
from harness.launch.site import Site
from harness.launch.stop import StopRequest
from harness.launch.ward import Stage, Ward
from harness.launch.zygote import ZygoteDiedError
from harness.matrix.axes import make_variant
from harness.model import Device, Order, Outcome, Record, Settings
from harness.wire import dump

NO_SUCH_PID = 2**22 + 1  # above the largest pid that Linux gives out, so that no signal reaches anybody
Script = Callable[["ScriptedZygote", Mapping[str, Any], list[int]], None]


class ScriptedZygote:
    """Answers each request as its script says; ``batches`` are what successive reads of the socket return."""

    script: Script
    started = 0

    def __init__(self, _environment: Mapping[str, str]) -> None:
        type(self).started += 1
        self.socket, self._far = socket.socketpair()
        self.batches: list[list[dict[str, Any]]] = []
        self.dying = False

    def arrive(self, *events: dict[str, Any]) -> None:
        self.batches.append(list(events))
        self._far.send(b"x")

    def wait_ready(self) -> None:
        return None

    def send(self, request: Mapping[str, Any], descriptors: list[int]) -> None:
        type(self).script(self, request, descriptors)

    def events(self, _seconds: float) -> list[dict[str, Any]]:
        return self.read_events() if self.batches else []

    def read_events(self) -> list[dict[str, Any]]:
        if self.dying and not self.batches:
            killed()
        self.socket.recv(1)
        return self.batches.pop(0)

    def close(self) -> None:
        self.socket.close()
        self._far.close()


@pytest.fixture
def zygote(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[ScriptedZygote]]:
    fresh = type("Fresh", (ScriptedZygote,), {})
    monkeypatch.setattr(local, "ZygoteProcess", fresh)
    monkeypatch.setattr(local, "TICK_SECONDS", 0.01)
    yield fresh


def order(deadline: float = 60.0) -> Order:
    return Order("run", make_variant({}), Device.CPU, Settings(deadline=deadline))


def record_of(order: Order) -> bytes:
    record = Record(order.run, order.variant.key, order.variant.label, order.device, Outcome.OK, order.replicate)
    return dump(record).encode() + b"\n"


def started(request: Mapping[str, Any]) -> dict[str, Any]:
    return {"event": "started", "name": request["name"], "pid": NO_SUCH_PID}


def exited(request: Mapping[str, Any], status: int = 0) -> dict[str, Any]:
    return {"event": "exited", "name": request["name"], "pid": NO_SUCH_PID, "status": status, "cpu_s": 0.1}


def run_one(deadline: float = 60.0) -> list[Record]:
    executor = LocalExecutor({})
    try:
        return list(executor.run([order(deadline)], 1, StopRequest()))
    finally:
        executor.close()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("together", [True, False], ids=["in one read", "one after the other"])
def test_an_attempt_that_ends_while_its_start_is_awaited(zygote: type[ScriptedZygote], together: bool) -> None:
    """Under load the coordinator may first look when start and end have both been told."""

    def script(self: ScriptedZygote, request: Mapping[str, Any], descriptors: list[int]) -> None:
        os.write(descriptors[0], record_of(order()))
        if together:
            self.arrive(started(request), exited(request))
        else:
            self.arrive(started(request))
            self.arrive(exited(request))

    zygote.script = script
    assert [record.outcome for record in run_one()] == [Outcome.OK]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "SILENCE_SECONDS", 0.05)
    monkeypatch.setattr(ward_module, "GRACE_SECONDS", 0.02)
    monkeypatch.setattr(ward_module, "DUMP_SECONDS", 0.02)


@pytest.mark.timeout(20)
def test_an_end_that_is_never_told_does_not_hang_the_run(
    zygote: type[ScriptedZygote], impatient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ward_module, "has_ended", lambda _: False)
    zygote.script = lambda self, request, _: self.arrive(started(request))
    (record,) = run_one(deadline=0.05)
    assert record.outcome is Outcome.TIMEOUT
    assert zygote.started == 1


@pytest.mark.timeout(20)
def test_what_ended_under_a_zygote_that_never_says_so_runs_again(zygote: type[ScriptedZygote], impatient: None) -> None:
    """The zygote was suspended: its attempt, a process that no longer is, has not overrun its deadline."""

    def script(self: ScriptedZygote, request: Mapping[str, Any], descriptors: list[int]) -> None:
        self.arrive(started(request))
        if zygote.started == 2:
            os.write(descriptors[0], record_of(order(0.05)))
            self.arrive(exited(request))

    zygote.script = script
    assert [record.outcome for record in run_one(deadline=0.05)] == [Outcome.OK]
    assert zygote.started == 2


@pytest.mark.timeout(20)
def test_zygotes_that_never_report_an_end_do_not_hang_the_run(zygote: type[ScriptedZygote], impatient: None) -> None:
    zygote.script = lambda self, request, _: self.arrive(started(request))
    (record,) = run_one(deadline=0.05)
    assert record.outcome is Outcome.CRASH
    assert "each of the 3 times" in str(record.reason)
    assert zygote.started == 3


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("status", "outcome"), [(0, Outcome.OK), (signal.SIGSEGV, Outcome.CRASH)])
def test_what_has_arrived_counts_before_what_is_overdue(
    zygote: type[ScriptedZygote], monkeypatch: pytest.MonkeyPatch, status: int, outcome: Outcome
) -> None:
    """A coordinator that was suspended finds an expired deadline and the news of an end at the same time."""
    wards: list[Ward] = []

    def started_long_ago(self: Ward, pid: int) -> None:
        really_started(self, pid)
        self.next_stage_at -= 3600.0
        wards.append(self)

    def script(self: ScriptedZygote, request: Mapping[str, Any], descriptors: list[int]) -> None:
        if status == 0:
            os.write(descriptors[0], record_of(order()))
        self.arrive(started(request))
        self.arrive(exited(request, status))

    really_started = Ward.started
    monkeypatch.setattr(Ward, "started", started_long_ago)
    # Nothing is read before the deadline is looked at, as after a stop that used up all of the tick.
    really_wait = LocalExecutor._wait
    monkeypatch.setattr(
        LocalExecutor,
        "_wait",
        lambda self, selector, seconds=None: really_wait(self, selector, 0) if seconds == 0 else None,
    )
    zygote.script = script
    assert [record.outcome for record in run_one()] == [outcome]
    assert [ward.stage for ward in wards] == [Stage.RUNNING]


def test_a_worker_that_takes_no_order_is_replaced(
    zygote: type[ScriptedZygote], monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(self: ScriptedZygote, request: Mapping[str, Any], descriptors: list[int]) -> None:
        if zygote.started == 1:
            return  # suspended: the request lies in its socket
        os.write(descriptors[0], record_of(order()))
        self.arrive(started(request), exited(request))

    zygote.script = script
    monkeypatch.setattr(local, "START_SECONDS", 0.05)
    assert [record.outcome for record in run_one()] == [Outcome.OK]
    assert zygote.started == 2


def test_workers_that_take_no_order_end_the_run(zygote: type[ScriptedZygote], monkeypatch: pytest.MonkeyPatch) -> None:
    zygote.script = lambda *_: None
    monkeypatch.setattr(local, "START_SECONDS", 0.05)
    with pytest.raises(LaunchError, match="does not start cell=lstm"):
        run_one()


PROBED = b'{"cuda": false, "cuda_build": null, "facts": {"threads": 1}}\n'


def refuses_at_first(times: int, how: Script) -> Script:
    """A script whose first zygotes do as ``how`` says, and the later ones as they should."""

    def script(self: ScriptedZygote, request: Mapping[str, Any], descriptors: list[int]) -> None:
        if type(self).started <= times:
            return how(self, request, descriptors)
        os.write(descriptors[0], PROBED if request["do"] == "probe" else record_of(order()))
        return self.arrive(started(request), exited(request))

    return script


def killed(*_: object) -> None:
    raise ZygoteDiedError("the worker process ended (exit status -9)", killed=True)


def its_child_is_killed(self: ScriptedZygote, request: Mapping[str, Any], _: list[int]) -> None:
    self.arrive(started(request), exited(request, signal.SIGKILL))


def killed_under_its_child(self: ScriptedZygote, request: Mapping[str, Any], _: list[int]) -> None:
    """The child has started, and then nothing more comes from the zygote."""
    self.arrive({**started(request), "pid": NO_SUCH_PID + self.started})  # not the pid of whoever is asked next
    self._far.send(b"x")
    self.dying = True


def died(*_: object) -> None:
    raise ZygoteDiedError("the worker process ended (exit status 1): no module named torch")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("how", [killed, its_child_is_killed, killed_under_its_child])
@pytest.mark.parametrize("times", [1, 2])
def test_whoever_is_killed_while_the_machine_is_asked_is_asked_again(
    zygote: type[ScriptedZygote], how: Script, times: int
) -> None:
    zygote.script = refuses_at_first(times, how)
    executor = LocalExecutor({})
    try:
        assert executor.probe().facts == {"threads": 1}
        assert not executor._wards, "a run would wait for an attempt that is none"
        assert [record.outcome for record in executor.run([order()], 1, StopRequest())] == [Outcome.OK]
    finally:
        executor.close()
    assert zygote.started == times + 1


@pytest.mark.parametrize(
    ("how", "lives"), [(killed, 3), (its_child_is_killed, 3), (killed_under_its_child, 3), (died, 1)]
)
def test_a_machine_that_cannot_be_asked_is_given_up(zygote: type[ScriptedZygote], how: Script, lives: int) -> None:
    """One that dies by itself would only do so again."""
    zygote.script = refuses_at_first(9, how)
    executor = LocalExecutor({})
    try:
        with pytest.raises(LaunchError):
            executor.probe()
    finally:
        executor.close()
    assert zygote.started == lives


def test_zygotes_that_are_killed_now_and_then_do_not_end_the_run(zygote: type[ScriptedZygote]) -> None:
    """Only deaths in a row mean that none can live here."""

    def script(self: ScriptedZygote, request: Mapping[str, Any], descriptors: list[int]) -> None:
        asked.append(request["name"])
        if len(asked) % 2:
            raise ZygoteDiedError("the worker process ended (exit status -9)", killed=True)
        os.write(descriptors[0], record_of(orders[len(asked) // 2 - 1]))
        self.arrive(started(request), exited(request))

    asked: list[str] = []
    orders = [replace(order(), replicate=number) for number in range(6)]
    zygote.script = script
    executor = LocalExecutor({})
    try:
        records = list(executor.run(orders, 1, StopRequest()))
    finally:
        executor.close()
    assert [(record.replicate, record.outcome) for record in records] == [(n, Outcome.OK) for n in range(6)]
    assert zygote.started == 7


def test_no_more_attempts_at_once_than_cores_that_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 5, 6}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert {device: Site().slots(device) for device in Device} == {Device.STUB: 3, Device.CPU: 1, Device.CUDA: 1}
