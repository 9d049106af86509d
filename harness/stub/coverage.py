"""What the stub does and does not do, in sentences: for `harness stub info` and for whoever reads a stub record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DEVICE_NAME = "harness stub (no GPU)"

COVERS: tuple[str, ...] = (
    "Which of PyTorch's own checks fire: its real CUDA, autograd and cuDNN-wrapper code runs.",
    "RNN, LSTM and GRU of every shape, packed or not, in float16, bfloat16, float32, float64 and autocast.",
    "Convolutions, embeddings, attention, normalisation, losses, optimizers, GradScaler, clipping, checkpointing.",
    "Streams, events, graph capture, pinned memory, copies, allocator statistics, torch.OutOfMemoryError.",
    "DataParallel, DistributedDataParallel on gloo, torch.compile (its kernels are compiled and never run).",
)

DOES_NOT: tuple[str, ...] = (
    "No numbers: a kernel's result is zero, and what it should have changed stays as it was. Copies are real.",
    "So a loop that waits for a value on the device (a loss below a limit, all finite) sees zero or False for ever.",
    "No timing: an event's time is the host's.",
    "No memory of cuDNN's own (workspaces, reserve space): allocator statistics are accounting without it.",
    "No limits of cuDNN, no asynchronous errors, no checks inside kernels (an index out of range is not noticed).",
    "Refused, with `the harness stub does not do ...`: Fourier transforms (cuFFT), linear algebra (cuSOLVER), sparse "
    "matrices (cuSPARSE), cuDNN's graph API, NCCL between processes, CUDA memory shared between processes.",
    "One of these ends in PyTorch's own words first: torch.linalg.eig asks the device whether its input is finite, is "
    "told False, and says that it should not contain infs or NaNs.",
)


@dataclass(frozen=True)
class StubInfo:
    """What `harness stub info` shows."""

    facts: Mapping[str, str]
    covers: tuple[str, ...] = COVERS
    does_not: tuple[str, ...] = DOES_NOT
