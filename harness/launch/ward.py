"""One running attempt in the supervisor's care: its pipes, its breadcrumb, its deadline."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from mmap import mmap
from typing import IO

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
    _memory_file: IO[bytes]
    pid: int = 0
    began: float = 0.0
    stage: Stage = Stage.RUNNING
    next_stage_at: float = 0.0
    cancelled: bool = False
    killed_at: float = 0.0
    result_bytes: bytearray = field(default_factory=bytearray)
    overflow: bool = False
    _tail: deque[bytes] = field(default_factory=deque)
    _tail_size: int = 0

    @classmethod
    def prepare(cls, order: Order) -> Ward:
        """Pipes and shared memory for an attempt that is about to be asked for."""
        memory_file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by ``close``
        memory_file.truncate(BREADCRUMB_SIZE)
        crumb = Breadcrumb(mmap(memory_file.fileno(), BREADCRUMB_SIZE))
        result, result_remote = os.pipe()
        output, output_remote = os.pipe()
        os.set_blocking(result, False)
        os.set_blocking(output, False)
        return cls(order, crumb, result, output, [result_remote, output_remote, memory_file.fileno()], memory_file)

    def started(self, pid: int) -> None:
        """The zygote has forked it."""
        self.pid = pid
        self.began = time.monotonic()
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
        """Past the deadline: ask for a stack dump, then SIGTERM, then SIGKILL, each after its own pause."""
        if now < self.next_stage_at:
            return
        match self.stage:
            case Stage.RUNNING:
                self._signal(signal.SIGUSR1, group=False)
                self.stage, self.next_stage_at = Stage.DUMPING, now + DUMP_SECONDS
            case Stage.DUMPING:
                self._signal(signal.SIGTERM)
                self.stage, self.next_stage_at = Stage.TERMINATING, now + GRACE_SECONDS
            case Stage.TERMINATING | Stage.KILLED:
                self.kill()
                self.stage = Stage.KILLED
                self.next_stage_at = now + GRACE_SECONDS

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
        self._memory_file.close()
