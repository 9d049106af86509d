"""Times blocks of steps: the monotonic clock everywhere, CUDA events as well where there is a GPU."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import torch

from harness.model import Sample


@dataclass(slots=True)
class BlockClock:
    """Times one block of steps after the other; raw samples, nothing averaged.

    CUDA is asynchronous, so a block ends with one synchronisation, and the time between two events is what the GPU
    took. ``keep`` is False on the stub, whose kernels do nothing: there is nothing to time.
    """

    cuda: bool
    keep: bool
    warmup_epochs: int
    samples: list[Sample] = field(default_factory=list)
    _began: float = 0.0
    _first: torch.cuda.Event | None = None

    def start(self) -> None:
        """A block begins here. Work that was queued before it is waited for, so that it is not counted."""
        if not self.keep:
            return
        if self.cuda:
            torch.cuda.synchronize()
            self._first = torch.cuda.Event(enable_timing=True)
            self._first.record()
        self._began = time.perf_counter()

    def stop(self, epoch: int, steps: int) -> None:
        """The block of ``steps`` steps in ``epoch`` (from 1) ends here."""
        if not self.keep or steps == 0:
            return
        device_s = None
        if self._first is not None:
            last = torch.cuda.Event(enable_timing=True)
            last.record()
            torch.cuda.synchronize()
            device_s = self._first.elapsed_time(last) / 1000
        wall_s = time.perf_counter() - self._began
        self.samples.append(Sample(epoch, steps, wall_s, device_s, warmup=epoch <= self.warmup_epochs))
