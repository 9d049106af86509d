"""One running attempt in the supervisor's care: its pipes, its breadcrumb, its deadline."""

from __future__ import annotations

import os
import select
import signal
import time
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from mmap import mmap

from harness.launch.memory import oom_kills, shared_memory
from harness.model import Order
from harness.wire import BREADCRUMB_SIZE, Breadcrumb

TAIL_BYTES = 4096
RESULT_LIMIT = 4 << 20
"""No honest record comes near this; a child that writes more has lost its mind, and must not take our memory."""

GRACE_SECONDS = 2.0
"""Between SIGTERM and SIGKILL."""
DUMP_SECONDS = 0.3
"""For the stack dump that is asked for before SIGTERM."""


class Stage(Enum):
    """How far the supervisor has gone to end an attempt."""

    RUNNING = 0
    DUMPING = 1
    TERMINATING = 2
    KILLED = 3


@dataclass(slots=True)
class Ward:
    """The resources of one attempt. ``result`` and ``output`` are read ends; the write ends travel to the child."""

    order: Order
    crumb: Breadcrumb
    result: int
    output: int
    remote: list[int]
    _memory: int
    pid: int = 0
    began: float = 0.0
    stage: Stage = Stage.RUNNING
    next_stage_at: float = 0.0
    cancelled: bool = False
    killed_at: float = 0.0
    unreported_at: float = 0.0
    """When it was first seen to have ended although the zygote, which was suspended perhaps, has not said so."""
    silent_s: float | None = None
    """How long the breadcrumb had stood still when the deadline came; None before that."""
    oom_kills: int | None = None
    """The count of out-of-memory kills when it started."""
    _beats: int = 0
    _moved_at: float = 0.0
    result_bytes: bytearray = field(default_factory=bytearray)
    overflow: bool = False
    _tail: deque[bytes] = field(default_factory=deque)
    _tail_size: int = 0

    @classmethod
    def prepare(cls, order: Order) -> Ward:
        """Pipes and shared memory for an attempt that is about to be asked for."""
        memory = shared_memory("harness breadcrumb", BREADCRUMB_SIZE)
        crumb = Breadcrumb(mmap(memory, BREADCRUMB_SIZE))
        result, result_remote = os.pipe()
        output, output_remote = os.pipe()
        os.set_blocking(result, False)
        os.set_blocking(output, False)
        return cls(order, crumb, result, output, [result_remote, output_remote, memory], memory)

    def started(self, pid: int) -> None:
        """The zygote has forked it."""
        self.pid = pid
        self.began = self._moved_at = time.monotonic()
        self.oom_kills = oom_kills()
        self.next_stage_at = self.began + self.order.settings.deadline
        for descriptor in self.remote[:2]:
            os.close(descriptor)
        self.remote = []

    def read(self, descriptor: int) -> bool:
        """Take what has arrived on one of the pipes; False at its end."""
        try:
            data = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return True
        if not data:
            return False
        if descriptor == self.result:
            self.overflow = self.overflow or len(self.result_bytes) + len(data) > RESULT_LIMIT
            if not self.overflow:
                self.result_bytes += data
        else:
            self._tail.append(data)
            self._tail_size += len(data)
            while self._tail_size - len(self._tail[0]) > TAIL_BYTES:
                self._tail_size -= len(self._tail.popleft())
        return True

    def drain(self) -> None:
        """Take what is left in both pipes, without waiting for grandchildren that may hold them open."""
        for descriptor in (self.result, self.output):
            for _ in range(64):  # a pipe holds 64 KiB; whoever still refills it has outlived the attempt
                before = (len(self.result_bytes), self._tail_size)
                if not self.read(descriptor) or (len(self.result_bytes), self._tail_size) == before:
                    break

    def escalate(self, now: float) -> None:
        """Past the deadline: ask for a stack dump, then SIGTERM, then SIGKILL, each after its own pause.

        To be called often, also before the deadline: whether it still moves is seen only here. What has ended by
        its deadline is left alone, even if the zygote is late in saying so.
        """
        beats = self.crumb.read()[0]
        if beats != self._beats:
            self._beats, self._moved_at = beats, now
        if now < self.next_stage_at:
            return
        match self.stage:
            case Stage.RUNNING if has_ended(self.pid):
                self.unreported_at = self.unreported_at or now
            case Stage.RUNNING:
                self.silent_s = now - self._moved_at
                self._signal(signal.SIGUSR1, group=False)
                self.stage, self.next_stage_at = Stage.DUMPING, now + DUMP_SECONDS
            case Stage.DUMPING:
                self._signal(signal.SIGTERM)
                self.stage, self.next_stage_at = Stage.TERMINATING, now + GRACE_SECONDS
            case Stage.TERMINATING | Stage.KILLED:
                self.kill()
                self.stage = Stage.KILLED
                self.next_stage_at = now + GRACE_SECONDS

    def is_due(self, now: float) -> bool:
        """Whether something has to be done about it."""
        return now >= self.next_stage_at

    def kill(self) -> None:
        """SIGKILL to the attempt, which has not been reaped, and all that it started."""
        self.killed_at = self.killed_at or time.monotonic()
        self.kill_group()
        self._signal(signal.SIGKILL, group=False)  # in the instant before it has a group of its own

    def kill_group(self) -> None:
        """SIGKILL to what is left of the attempt's process group; the pid itself may belong to another by now."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals, *, group: bool = True) -> None:
        if not self.pid:
            return  # 0 would be the coordinator's own group
        try:
            (os.killpg if group else os.kill)(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return

    @property
    def tail(self) -> str | None:
        """The last few kilobytes of stdout and stderr, or None where it was silent."""
        text = b"".join(self._tail)[-TAIL_BYTES:].decode(errors="replace").strip()
        return text or None

    def close(self) -> None:
        """Give the descriptors back."""
        if isinstance(self.crumb.memory, mmap):
            self.crumb.memory.close()
        for descriptor in (self.result, self.output, *self.remote[:2]):
            os.close(descriptor)
        os.close(self._memory)


def has_ended(pid: int) -> bool:
    """Whether the process is over, whoever may have noticed; False also where the system cannot say."""
    if not pid or not hasattr(os, "pidfd_open"):
        return False
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    except OSError:  # a kernel without it
        return False
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))
    finally:
        os.close(descriptor)
