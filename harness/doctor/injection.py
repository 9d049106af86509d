"""Injects faults into real attempts, through the very executor of a run, and compares what comes of them."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from harness.doctor.known import PATIENCE_S, PLAIN, PROGRAM, Fault, differences
from harness.launch.local import Executor
from harness.launch.stop import StopRequest
from harness.matrix.axes import make_variant
from harness.model import Device, Order, Outcome, Record, Settings, Variant

RUN = "doctor"
STALL_S, STALL_FACTOR, LONGEST_STALL_S = 2.0, 10.0, 10.0
"""The deadline of what stalls: this long, and this often the time of an attempt that does nothing, on this machine."""
SECOND_FACTOR = 4.0

END_S = 10.0
"""How long after its attempt a process that was left behind may still be seen."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one fault on one device; ``differs`` has a sentence for each thing that is not as it has to be."""

    fault: Fault
    device: Device
    record: Record
    differs: tuple[str, ...] = ()


@dataclass(slots=True)
class Injector:
    """Injects faults on one device. What it found stands in ``findings`` also where the executor itself failed.

    ``say`` is told which fault is next.
    """

    executor: Executor
    device: Device
    say: Callable[[str], None] = lambda _: None
    findings: list[Finding] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)
    _zygote: object = None

    def inject(self, quick: Sequence[Fault], stalled: Sequence[Fault] = ()) -> bool:
        """Inject all that apply to the device; False, and none injected, if an attempt without a fault fails already.

        Raises:
            LaunchError: the worker process cannot be started.
            OSError: there are no descriptors, no memory or no processes left.
        """
        self.say(f"an attempt on {self.device}")
        (plain,) = self._carry_out([PLAIN], slots=1)
        self._zygote = plain.results.get("zygote")
        self.findings.append(Finding(PLAIN, self.device, plain, tuple(map(str, differences(PLAIN, plain)))))
        if self.findings[-1].differs:
            return False
        for fault in quick:
            if self.device in fault.devices:
                self._inject_alone(fault)
        if stalled:
            self._inject_together(stalled, min(STALL_S + STALL_FACTOR * (plain.wall_s or 0.0), LONGEST_STALL_S))
        return True

    def _inject_alone(self, fault: Fault) -> None:
        self.say(f"{fault.name} on {self.device}")
        with tempfile.TemporaryDirectory(prefix="harness-doctor-", ignore_cleanup_errors=True) as folder:
            note = Path(folder) / "pid"
            record, after = self._carry_out([fault, PLAIN], slots=1, note=note)
            differs = [*map(str, differences(fault, record)), *self._suffering(after)]
            if fault.leaves:
                differs += _still_there(note)
        self.findings.append(Finding(fault, self.device, record, tuple(differs)))

    def _inject_together(self, faults: Sequence[Fault], deadline_s: float) -> None:
        """All at once, each with its deadline to itself, and one beside them that does nothing wrong.

        What seems wrong with a short deadline may only be a busy machine: it is tried again with a longer one. What the
        attempts beside and after them suffer counts each time.
        """
        self.say(f"{', '.join(fault.name for fault in faults)} on {self.device}")
        suffered: list[str] = []
        for deadline in (deadline_s, SECOND_FACTOR * deadline_s):
            *records, beside = self._carry_out([*faults, PLAIN], slots=len(faults) + 1, stall_s=deadline)
            (after,) = self._carry_out([PLAIN], slots=1)
            suffered += [*self._suffering(beside, "beside"), *self._suffering(after)]
            own = [differences(fault, record) for fault, record in zip(faults, records, strict=True)]
            if not any(own):
                break
        for fault, record, found in zip(faults, records, own, strict=True):
            self.findings.append(Finding(fault, self.device, record, (*map(str, found), *suffered)))

    def _suffering(self, record: Record, where: str = "after") -> Iterator[str]:
        """What the attempt after or beside a fault shows of it."""
        for difference in differences(PLAIN, record):
            yield f"of the attempt {where} it, {difference}"
        zygote = record.results.get("zygote")
        if zygote is not None and zygote != self._zygote:
            yield "the worker process that starts the attempts did not survive it"
            self._zygote = zygote

    def _carry_out(
        self, faults: Sequence[Fault], *, slots: int, stall_s: float = PATIENCE_S, note: Path | None = None
    ) -> list[Record]:
        """The records of attempts with ``faults``, in that order."""
        orders = [self._order(fault, stall_s, note) for fault in faults]
        found: dict[int, list[Record]] = {order.replicate: [] for order in orders}
        for record in self.executor.run(orders, slots, StopRequest()):
            found.setdefault(record.replicate, []).append(record)
        return [_the_one(order, found[order.replicate]) for order in orders]

    def _order(self, fault: Fault, stall_s: float, note: Path | None) -> Order:
        deadline, number = (stall_s if fault.stalls else PATIENCE_S), next(self._numbers)
        if fault.axes is not None:
            settings = Settings(epochs=1, steps=2, evaluation_steps=1, warmup_epochs=0, deadline=deadline)
            return Order(RUN, make_variant(fault.axes), self.device, settings, number)
        arguments = ("--note", str(note)) if fault.leaves else ()
        return program_order(fault.act, self.device, deadline, number, arguments)


def _the_one(order: Order, records: Sequence[Record]) -> Record:
    """The record of an attempt, of which there has to be exactly one."""
    if len(records) == 1:
        return records[0]
    reason = f"{len(records)} records of one attempt" if records else "no record of the attempt"
    blank = Record(order.run, order.variant.key, order.variant.label, order.device, Outcome.NOT_RUN)
    return replace(blank, replicate=order.replicate, reason=reason)


def program_order(
    act: str, device: Device, deadline_s: float, number: int = 0, arguments: tuple[str, ...] = ()
) -> Order:
    """The order for one act of the doctor's program."""
    variant = Variant({"program": RUN, "act": act}, f"act={act}")
    settings = Settings(deadline=deadline_s)
    return Order(RUN, variant, device, settings, number, program=str(PROGRAM), arguments=(act, *arguments))


def _still_there(note: Path) -> list[str]:
    """Whether the process whose id is in ``note`` outlives its attempt."""
    try:
        pid = int(note.read_text())
    except (OSError, ValueError):
        return ["it left no process behind, so nothing is known about one"]
    deadline = time.monotonic() + END_S
    while _alive(pid):
        if time.monotonic() > deadline:
            return [f"the process that it left behind ({pid}) still runs"]
        time.sleep(0.02)
    return []


def _alive(pid: int) -> bool:
    """Whether it runs; what is dead and only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        pass
    if Path("/proc/self/stat").exists():
        return False
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
