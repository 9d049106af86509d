"""What the supervisor makes of an ended attempt, with real pipes and no process."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace

import pytest

from harness.launch import ward as ward_module
from harness.launch.verdict import not_run, verdict
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
        (signal.SIGKILL, None, "SIGKILL", "ended by SIGKILL"),
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
        assert record.reason == "still running after its deadline of 3 s"


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


def test_past_its_deadline_a_ward_is_asked_told_and_killed(ward: Ward, signals: list[tuple[str, int, int]]) -> None:
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
