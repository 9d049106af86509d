"""What the supervisor makes of an ended attempt, with real pipes and no process."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace

import pytest

from harness.launch import verdict as verdict_module
from harness.launch import ward as ward_module
from harness.launch.verdict import not_run, verdict, went_down
from harness.launch.ward import GRACE_SECONDS, RESULT_LIMIT, TAIL_BYTES, Stage, Ward
from harness.matrix.axes import make_variant
from harness.model import Device, Order, Outcome, Phase, Record, Settings
from harness.wire import RECORD_SCHEMA, Breadcrumb, dump

ORDER = Order("run", make_variant({}), Device.CPU, Settings(deadline=3.0), replicate=1, attempt=2)
OWN = Record("run", ORDER.variant.key, ORDER.variant.label, Device.CPU, Outcome.OK, 1, 2, last_loss=0.5)


def exited(code: int) -> int:
    return code << 8


@pytest.fixture
def ward() -> Iterator[Ward]:
    ward = Ward.prepare(ORDER)
    yield ward
    ward.close()


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """The signals that would be sent: how, to whom, which."""
    sent: list[tuple[str, int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append(("kill", pid, number)))
    monkeypatch.setattr(os, "killpg", lambda pid, number: sent.append(("killpg", pid, number)))
    return sent


def write(ward: Ward, result: bytes = b"", output: bytes = b"") -> None:
    for descriptor, data in zip(ward.remote, (result, output), strict=False):
        for start in range(0, len(data), 4096):
            os.write(descriptor, data[start : start + 4096])
            ward.drain()


def place(ward: Ward) -> None:
    Breadcrumb(ward.crumb.memory).drop(Phase.BACKWARD, 2, 7)


def line(record: Record) -> bytes:
    return dump(record).encode() + b"\n"


def test_a_healthy_end_with_its_own_record_is_believed(ward: Ward) -> None:
    write(ward, line(OWN), b"some words")
    assert verdict(ward, exited(0)) == replace(OWN, output_tail="some words")


@pytest.mark.parametrize("outcome", Outcome)
def test_what_the_record_says_is_not_judged(ward: Ward, outcome: Outcome) -> None:
    own = replace(OWN, outcome=outcome, error_message="x")
    write(ward, line(own))
    assert verdict(ward, exited(0)) == own


@pytest.mark.parametrize(
    ("status", "code", "name", "reason"),
    [
        (exited(0), 0, None, "ended with exit code 0"),
        (exited(1), 1, None, "ended with exit code 1"),
        (exited(255), 255, None, "ended with exit code 255"),
        (signal.SIGKILL, None, "SIGKILL", "ended by SIGKILL, which the harness did not send"),
        (signal.SIGSEGV | 0x80, None, "SIGSEGV", "ended by SIGSEGV"),
        (signal.SIGTERM, None, "SIGTERM", "ended by SIGTERM"),
        (40, None, "signal 40", "ended by signal 40"),
        (-1, None, None, "ended with exit code unknown"),
    ],
)
def test_an_end_without_a_record_is_a_crash_at_its_breadcrumb(
    ward: Ward, status: int, code: int | None, name: str | None, reason: str
) -> None:
    place(ward)
    record = verdict(ward, status)
    assert (record.outcome, record.exit_code, record.signal) == (Outcome.CRASH, code, name)
    assert record.reason == f"{reason}; it left no record"
    assert (record.phase, record.epoch, record.step) == (Phase.BACKWARD, 2, 7)
    assert (record.run, record.key, record.replicate, record.attempt) == ("run", ORDER.variant.key, 1, 2)
    assert record.error_type is record.last_loss is None


@pytest.mark.parametrize("signum", sorted(set(range(1, signal.NSIG)) - {signal.SIGSTOP, 32, 33}))
def test_every_signal_has_some_name(ward: Ward, signum: int) -> None:
    record = verdict(ward, signum)
    assert record.outcome is Outcome.CRASH
    assert record.signal


@pytest.mark.parametrize(
    ("result", "complaint"),
    [
        (b"", "left no record"),
        (line(OWN)[:-1], "half a record"),
        (line(OWN)[:40], "half a record"),
        (line(OWN) * 2, "more than one record"),
        (line(OWN) + b"x", "more than one record"),
        (b"\n", "cannot be read"),
        (b"\xff\xfe\n", "cannot be read"),
        (b"{}\n", "cannot be read"),
        (line(replace(OWN, schema=RECORD_SCHEMA + 1)), f"schema {RECORD_SCHEMA + 1}"),
        (line(replace(OWN, run="other")), "another attempt"),
        (line(replace(OWN, key="other")), "another attempt"),
        (line(replace(OWN, device=Device.CUDA)), "another attempt"),
        (line(replace(OWN, replicate=0)), "another attempt"),
        (line(replace(OWN, attempt=1)), "another attempt"),
        (line(replace(OWN, sitting=2)), "another attempt"),
    ],
)
def test_any_other_record_is_not_believed(ward: Ward, result: bytes, complaint: str) -> None:
    place(ward)
    write(ward, result)
    record = verdict(ward, exited(0))
    assert (record.outcome, record.phase) == (Outcome.CRASH, Phase.BACKWARD)
    assert complaint in str(record.reason)
    assert record.last_loss is None


@pytest.mark.parametrize("status", [exited(1), signal.SIGKILL])
def test_its_record_is_not_believed_if_it_then_died(ward: Ward, status: int) -> None:
    write(ward, line(OWN))
    record = verdict(ward, status)
    assert record.outcome is Outcome.CRASH
    assert str(record.reason).endswith("it wrote a record, but did not end as a healthy attempt does")


def test_more_than_a_record_can_be_is_not_kept(ward: Ward) -> None:
    write(ward, b"x" * (RESULT_LIMIT + 5000))
    assert len(ward.result_bytes) <= RESULT_LIMIT
    assert "more than a record can be" in str(verdict(ward, exited(0)).reason)


@pytest.mark.parametrize("stage", [Stage.DUMPING, Stage.TERMINATING, Stage.KILLED])
def test_what_was_ended_after_its_deadline_timed_out(ward: Ward, stage: Stage) -> None:
    place(ward)
    ward.stage = stage
    for status in (signal.SIGTERM, signal.SIGKILL, exited(0), exited(1)):
        record = verdict(ward, status)
        assert (record.outcome, record.phase) == (Outcome.TIMEOUT, Phase.BACKWARD)
        assert record.reason == "still running after its deadline of 3 s; whether it still moved is not known"
        assert (record.deadline_s, record.silent_s, record.stall) == (3.0, None, None)


@pytest.mark.parametrize(("silent_s", "stall"), [(0.0, "slow"), (1.49, "slow"), (1.5, "hung"), (3.2, "hung")])
def test_a_timeout_hung_if_it_stood_still_for_half_its_deadline(ward: Ward, silent_s: float, stall: str) -> None:
    ward.stage, ward.silent_s = Stage.TERMINATING, silent_s
    record = verdict(ward, signal.SIGTERM)
    assert (record.deadline_s, record.silent_s, record.stall) == (3.0, silent_s, stall)
    assert f"; {stall}: " in str(record.reason)
    assert replace(record, outcome=Outcome.CRASH).stall is None


def test_whether_it_moves_is_seen_in_its_breadcrumb(
    ward: Ward, signals: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ward_module, "has_ended", lambda _: False)
    crumb = Breadcrumb(ward.crumb.memory)
    ward.started(4_000_000)
    crumb.drop(Phase.FORWARD, 1, 1)
    ward.escalate(ward.began + 0.5)
    crumb.drop(Phase.BACKWARD, 1, 1)
    for at in (1.0, 1.2, 2.9):
        ward.escalate(ward.began + at)
        assert ward.silent_s is None
    ward.escalate(ward.began + 3.0)
    assert ward.silent_s == pytest.approx(2.0)
    crumb.drop(Phase.STEP, 1, 1)
    ward.escalate(ward.began + 3.4)
    assert ward.silent_s == pytest.approx(2.0), "what it does while it is being ended does not count"
    assert signals


def test_what_moved_while_nobody_watched_is_not_called_silent(
    ward: Ward, signals: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A coordinator that was suspended looks only after the deadline."""
    monkeypatch.setattr(ward_module, "has_ended", lambda _: False)
    ward.started(4_000_000)
    Breadcrumb(ward.crumb.memory).drop(Phase.FORWARD, 1, 1)
    ward.escalate(ward.began + 60.0)
    assert (ward.stage, ward.silent_s) == (Stage.DUMPING, 0.0)
    assert signals


def test_what_has_ended_by_its_deadline_is_left_alone(
    ward: Ward, signals: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its zygote was suspended and has not reaped it: no fault of the attempt's."""
    monkeypatch.setattr(ward_module, "has_ended", lambda _: True)
    ward.started(4_000_000)
    for at in (2.9, 3.0, 4.0, 9.0):
        ward.escalate(ward.began + at)
    assert (ward.stage, ward.silent_s, signals) == (Stage.RUNNING, None, [])
    assert ward.unreported_at == ward.began + 3.0


ABORT = signal.SIGABRT
UNCAUGHT = "terminate called after throwing an instance of '{}'\n  what():  {}\n"


@pytest.mark.parametrize(
    ("kind", "what", "outcome"),
    [
        ("std::bad_alloc", "std::bad_alloc", Outcome.OOM),
        ("c10::OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB.", Outcome.OOM),
        ("c10::Error", "CUDA error: out of memory", Outcome.OOM),
        ("std::runtime_error", "no memory of it", Outcome.CRASH),
    ],
)
def test_an_abort_over_an_allocation_is_out_of_memory(ward: Ward, kind: str, what: str, outcome: Outcome) -> None:
    write(ward, output=("some words\n" + UNCAUGHT.format(kind, what) + "Fatal Python error: Aborted").encode())
    record = verdict(ward, ABORT)
    assert (record.outcome, record.signal) == (outcome, "SIGABRT")
    assert (kind in str(record.reason)) is (outcome is Outcome.OOM)
    assert verdict(ward, signal.SIGSEGV).outcome is Outcome.CRASH, "it died of something else"


def test_an_abort_over_a_sticky_error_says_that_the_process_was_poisoned(ward: Ward) -> None:
    what = "CUDA error: an illegal memory access was encountered"
    write(ward, output=UNCAUGHT.format("c10::AcceleratorError", what).encode())
    record = verdict(ward, ABORT)
    assert (record.outcome, dict(record.facts)) == (Outcome.CRASH, {"process_poisoned": True})
    assert "sticky CUDA error" in str(record.reason)


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [(3, 4, Outcome.OOM), (3, 3, Outcome.CRASH), (None, 4, Outcome.CRASH), (3, None, Outcome.CRASH)],
)
def test_a_sigkill_is_the_kernels_if_its_count_rose(
    ward: Ward, monkeypatch: pytest.MonkeyPatch, before: int | None, after: int | None, outcome: Outcome
) -> None:
    counts = iter([before, after])
    for module in (ward_module, verdict_module):
        monkeypatch.setattr(module, "oom_kills", lambda: next(counts))
    ward.started(0)
    record = verdict(ward, signal.SIGKILL)
    assert (record.outcome, record.signal) == (outcome, "SIGKILL")
    assert ("want of memory" in str(record.reason)) is (outcome is Outcome.OOM)


def test_our_own_sigkill_is_never_the_kernels(
    ward: Ward, signals: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdict_module, "oom_kills", lambda: 10**9)
    ward.started(4_000_000)
    ward.oom_kills = 0
    ward.kill()
    assert verdict(ward, signal.SIGKILL).outcome is Outcome.CRASH
    assert signals


def test_what_went_down_with_its_zygote_again_and_again_says_so(ward: Ward) -> None:
    place(ward)
    record = went_down(ward, 3)
    assert (record.outcome, record.phase) == (Outcome.CRASH, Phase.BACKWARD)
    assert record.signal is record.exit_code is None, "nobody has seen how it ended"
    assert "each of the 3 times" in str(record.reason)


def test_what_was_done_in_time_after_all_is_believed(ward: Ward) -> None:
    write(ward, line(OWN))
    for ward.stage in Stage:
        assert verdict(ward, exited(0)) == OWN


@pytest.mark.parametrize("outcome", [Outcome.ERROR, Outcome.OOM, Outcome.BACKWARD_ERROR])
def test_an_error_after_sigterm_is_its_echo(ward: Ward, outcome: Outcome) -> None:
    write(ward, line(replace(OWN, outcome=outcome)))
    for stage in (Stage.TERMINATING, Stage.KILLED):
        ward.stage = stage
        assert verdict(ward, exited(0)).outcome is Outcome.TIMEOUT
    ward.stage = Stage.DUMPING  # it has only been asked for its stack
    assert verdict(ward, exited(0)).outcome is outcome


def test_what_was_given_up_is_not_run(ward: Ward) -> None:
    place(ward)
    record = not_run(ward, "because")
    assert (record.outcome, record.reason) == (Outcome.NOT_RUN, "because")
    assert (record.phase, record.epoch, record.step) == (Phase.BACKWARD, 2, 7)


def test_the_end_of_the_output_is_kept(ward: Ward) -> None:
    write(ward, output=b"".join(b"%d\n" % number for number in range(100_000)))
    tail = str(ward.tail)
    assert tail.endswith("99998\n99999")
    assert TAIL_BYTES - 10 < len(tail) <= TAIL_BYTES


@pytest.mark.parametrize("output", [b"", b" \n\n\t"])
def test_silence_is_none(ward: Ward, output: bytes) -> None:
    write(ward, output=output)
    assert ward.tail is None


def test_output_that_is_no_text_is_kept_as_far_as_it_goes(ward: Ward) -> None:
    write(ward, output=b"a\xff\xfeb")
    assert ward.tail == "a\ufffd\ufffdb"


def test_a_closed_pipe_is_its_end(ward: Ward) -> None:
    assert ward.read(ward.result), "nothing there yet"
    ward.pid = 0
    write(ward, b"x")
    ward.started(0)
    assert not ward.read(ward.result)
    assert bytes(ward.result_bytes) == b"x"


def test_past_its_deadline_a_ward_is_asked_told_and_killed(
    ward: Ward, signals: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ward_module, "has_ended", lambda _: False)
    ward.started(4_000_000)
    begin = ward.began
    seen = []
    for now in (begin, begin + 2.9, begin + 3.0, begin + 3.1, begin + 3.4, begin + 5.0, begin + 5.5):
        ward.escalate(now)
        seen.append((round(now - begin, 1), ward.stage, [(how, number) for how, _, number in signals]))
        assert {pid for _, pid, _ in signals} <= {4_000_000}
        signals.clear()
    assert [(at, stage, sent) for at, stage, sent in seen if sent] == [
        (3.0, Stage.DUMPING, [("kill", signal.SIGUSR1)]),
        (3.4, Stage.TERMINATING, [("killpg", signal.SIGTERM)]),
        (5.5, Stage.KILLED, [("killpg", signal.SIGKILL), ("kill", signal.SIGKILL)]),
    ]
    ward.escalate(ward.next_stage_at + GRACE_SECONDS)
    assert ("killpg", 4_000_000, signal.SIGKILL) in signals, "again, for what has come since"


def test_a_ward_that_was_never_started_signals_nobody(ward: Ward, signals: list[tuple[str, int, int]]) -> None:
    """A process id of 0 means one's own group."""
    ward.kill()
    ward.kill_group()
    ward.escalate(float("inf"))
    assert signals == []


def test_a_ward_that_is_gone_already_is_no_error(ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: int) -> None:
        raise ProcessLookupError

    monkeypatch.setattr(ward_module.os, "kill", gone)
    monkeypatch.setattr(ward_module.os, "killpg", gone)
    ward.started(4_000_000)
    ward.kill()
    assert verdict(ward, signal.SIGKILL).outcome is Outcome.CRASH
