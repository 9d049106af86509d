"""What became of an attempt whose process has ended: its own record if it can be believed, else one written for it."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

from harness.errors import JournalError
from harness.launch.memory import oom_kills
from harness.launch.ward import Stage, Ward
from harness.model import HUNG_SHARE, Outcome, Record, Stall
from harness.symptoms import OUT_OF_MEMORY, POISONED, POISONED_REASON, STICKY, uncaught
from harness.wire import load


def verdict(ward: Ward, status: int) -> Record:
    """The record of an attempt that ended with wait status ``status``.

    A child's record is believed only if it is whole, is about the attempt that was ordered, and the process then
    ended as a healthy one does.
    """
    own, complaint = _own_record(ward)
    # A program that turns SIGTERM into an exception leaves a record of that; what happened is that its time was up.
    told_to_end = ward.stage in {Stage.TERMINATING, Stage.KILLED}
    if own is not None and status == 0 and (own.outcome is Outcome.OK or not told_to_end):
        return replace(own, output_tail=ward.tail)
    if own is not None:
        complaint = "it wrote a record, but did not end as a healthy attempt does"
    return _for_the_dead(ward, status, complaint)


def not_run(ward: Ward, reason: str) -> Record:
    """The record of an attempt that was given up for no fault of its own."""
    return replace(_blank(ward, Outcome.NOT_RUN), reason=reason)


def went_down(ward: Ward, times: int) -> Record:
    """The record of an attempt whose zygote died under it again and again; how it ended itself nobody has seen."""
    reason = f"its worker process was killed or died each of the {times} times that it ran"
    return replace(_blank(ward, Outcome.CRASH), reason=reason, output_tail=ward.tail)


def _own_record(ward: Ward) -> tuple[Record | None, str | None]:
    if ward.overflow:
        return None, "it wrote more than a record can be"
    if not ward.result_bytes:
        return None, "it left no record"
    lines = bytes(ward.result_bytes).split(b"\n")
    if len(lines) != 2 or lines[1]:
        return None, "it left half a record" if len(lines) == 1 else "it wrote more than one record"
    try:
        record = load(Record, lines[0])
    except JournalError as error:
        return None, f"its record cannot be read: {error}"
    order = ward.order
    told = (order.run, order.variant.key, order.device, order.replicate, order.attempt, order.sitting)
    if (record.run, record.key, record.device, record.replicate, record.attempt, record.sitting) != told:
        return None, "its record is about another attempt"
    return record, None


def _for_the_dead(ward: Ward, status: int, complaint: str | None) -> Record:
    code = os.waitstatus_to_exitcode(status) if status >= 0 else None
    name = _signal_name(-code) if code is not None and code < 0 else None
    record = replace(
        _blank(ward, Outcome.CRASH),
        exit_code=code if code is not None and code >= 0 else None,
        signal=name,
        output_tail=ward.tail,
    )
    if ward.stage is not Stage.RUNNING:
        return _overdue(record, ward)
    reason = f"ended by {name}" if name else f"ended with exit code {'unknown' if code is None else code}"
    record = _explained(replace(record, reason=reason), ward)
    return replace(record, reason=f"{record.reason}; {complaint}") if complaint else record


def _overdue(record: Record, ward: Ward) -> Record:
    """``record`` of what was ended after its deadline. The reason has no measured number: equal ones are one group."""
    deadline_s = ward.order.settings.deadline
    record = replace(record, outcome=Outcome.TIMEOUT, deadline_s=deadline_s, silent_s=ward.silent_s)
    how = {
        Stall.HUNG: f"hung: it had stood still for {HUNG_SHARE:.0%} of that or longer",
        Stall.SLOW: "slow: it still moved",
        None: "whether it still moved is not known",
    }
    return replace(record, reason=f"still running after its deadline of {deadline_s:g} s; {how[record.stall]}")


def _explained(record: Record, ward: Ward) -> Record:
    """``record`` of a process that died, with what its last words and the kernel say about why."""
    last_words = uncaught(ward.tail) if record.signal == "SIGABRT" else ""
    if OUT_OF_MEMORY.search(last_words):
        return replace(record, outcome=Outcome.OOM, reason=f"{record.reason}, out of memory: {last_words}")
    if STICKY.search(last_words):
        return replace(record, reason=f"{record.reason}, {POISONED_REASON}", facts={POISONED: True})
    if record.signal == "SIGKILL" and not ward.killed_at:
        before, after = ward.oom_kills, oom_kills()
        if before is not None and after is not None and after > before:
            why = "the kernel kills for want of memory, and its count of that rose while this ran"
            return replace(record, outcome=Outcome.OOM, reason=f"{record.reason}: {why}")
        return replace(record, reason=f"{record.reason}, which the harness did not send")
    return record


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # most real-time signals have no name in Python
        return f"signal {number}"


def _blank(ward: Ward, outcome: Outcome) -> Record:
    order = ward.order
    _, phase, epoch, step = ward.crumb.read()
    return Record(
        order.run,
        order.variant.key,
        order.variant.label,
        order.device,
        outcome,
        replicate=order.replicate,
        attempt=order.attempt,
        sitting=order.sitting,
        phase=phase,
        epoch=epoch,
        step=step,
        wall_s=time.monotonic() - ward.began if ward.began else None,
    )
