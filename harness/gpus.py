"""Whether the kernel has a GPU's device, whatever may be wrong with it. No driver is asked: one may hang."""

from __future__ import annotations

from pathlib import Path

NVIDIA = (Path("/dev/nvidiactl"), Path("/dev/dxg"))
"""The second is what Windows offers to a Linux inside it."""

AMD = (Path("/dev/kfd"),)


def has_nvidia() -> bool:
    """Whether there is a device of NVIDIA's."""
    return any(file.exists() for file in NVIDIA)


def has_amd() -> bool:
    """Whether there is a device of AMD's."""
    return any(file.exists() for file in AMD)


def has_gpu() -> bool:
    """Whether there is either: then ``--device auto`` asks PyTorch whether it sees a GPU."""
    return has_nvidia() or has_amd()
