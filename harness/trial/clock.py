"""Times blocks of steps: the monotonic clock everywhere, CUDA events as well where there is a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

import torch

from harness.measured import MachineState, Sample


class Part(IntEnum):
    """What a step consists of, in the order in which it happens."""

    FORWARD = 0
    BACKWARD = 1
    OPTIMIZER = 2


@dataclass(slots=True)
class BlockClock:
    """Times one block of steps after the other; raw samples, nothing averaged.

    CUDA is asynchronous, so a block ends with one synchronisation, and the time between two events is what the GPU
    took, its waiting for the host included. Where the steps of a block are timed in parts, each part ends with an
    event (on a CPU: a look at the clock), so that the three add up to their block; a block without laps has two events
    and no parts. Events are used again in the next block: none is made in a steady state.

    ``keep`` is False on the stub, whose kernels do nothing: there is nothing to time. ``read`` tells what the machine
    is doing; it is asked when a block is over, never inside one.
    """

    cuda: bool
    keep: bool
    warmup_epochs: int
    read: Callable[[], MachineState | None] | None = None
    samples: list[Sample] = field(default_factory=list)
    _began: float = 0.0
    _lapped: float | None = None
    _spent: list[float] = field(default_factory=lambda: [0.0] * len(Part))
    _events: list[torch.cuda.Event] = field(default_factory=list)
    _parts: list[Part] = field(default_factory=list)

    def start(self) -> None:
        """A block begins here. Work that was queued before it is waited for, so that it is not counted."""
        if not self.keep:
            return
        self._spent = [0.0] * len(Part)
        self._parts.clear()
        if self.cuda:
            torch.cuda.synchronize()
            self._record(0)
        self._lapped = None
        self._began = time.perf_counter()

    def lap(self, part: Part) -> None:
        """``part`` of a step ends here; it began where the part before it ended."""
        if not self.keep:
            return
        if self.cuda:
            self._parts.append(part)
            self._record(len(self._parts))
            return
        now = time.perf_counter()
        self._spent[part] += now - (self._began if self._lapped is None else self._lapped)
        self._lapped = now

    def stop(self, epoch: int, steps: int, *, steady: bool = False) -> None:
        """The block of ``steps`` steps in ``epoch`` (from 1) ends here; with the last of its laps, if it has any."""
        if not self.keep or steps == 0:
            return
        wall_s, device_s = self._end_on_gpu() if self.cuda else (self._end_on_cpu(), None)
        parts = self._spent if self._parts or self._lapped is not None else [None] * len(Part)
        forward_s, backward_s, optimizer_s = parts
        self.samples.append(
            Sample(
                epoch,
                steps,
                wall_s,
                device_s,
                warmup=epoch <= self.warmup_epochs,
                steady=steady,
                forward_s=forward_s,
                backward_s=backward_s,
                optimizer_s=optimizer_s,
                machine=self.read() if self.read is not None else None,
            )
        )

    def _end_on_cpu(self) -> float:
        return (time.perf_counter() if self._lapped is None else self._lapped) - self._began

    def _end_on_gpu(self) -> tuple[float, float]:
        if not self._parts:
            self._record(1)
        torch.cuda.synchronize()
        wall_s = time.perf_counter() - self._began
        for index, part in enumerate(self._parts):
            self._spent[part] += self._events[index].elapsed_time(self._events[index + 1]) / 1000
        last = max(len(self._parts), 1)
        return wall_s, float(self._events[0].elapsed_time(self._events[last]) / 1000)

    def _record(self, index: int) -> None:
        if index == len(self._events):
            self._events.append(torch.cuda.Event(enable_timing=True))
        self._events[index].record()
