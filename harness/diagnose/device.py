"""Which device a script is run on, and the environment for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from harness import stub
from harness.errors import DeviceUnavailableError, StubUnavailableError
from harness.gpus import has_gpu
from harness.model import Device
from harness.stub.environment import MARKER

_HIDDEN = dict.fromkeys(("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"), "")
_PATIENCE_S = 120

# The stub would pass for a GPU: as everywhere, its environment and its device's name tell it.
_SEES_GPU = f"""
import os, sys, torch
cuda = torch.cuda
real = {MARKER!r} not in os.environ and cuda.is_available() and "stub" not in cuda.get_device_name().lower()
sys.exit(0 if real else 9)
"""


@dataclass(frozen=True, slots=True)
class Place:
    """A device, the environment of a process that is to use it, and what to say about the choice."""

    device: Device
    environment: dict[str, str]
    notes: tuple[str, ...] = ()


def choose(choice: str, base: Mapping[str, str]) -> Place:
    """The device for ``--device choice``; ``auto`` takes a GPU, else the stub, else the CPU.

    Raises:
        DeviceUnavailableError: the device asked for is not to be had here.
    """
    match choice:
        case Device.CPU:
            return _cpu(base)
        case Device.STUB:
            return Place(Device.STUB, stub.ensure().environment(base))
        case Device.CUDA:
            if MARKER in base:
                raise _behind_the_stub("what PyTorch sees here is the stub, not a GPU")
            if not _sees_gpu(base):
                raise DeviceUnavailableError(
                    "PyTorch sees no GPU here.", "Use --device stub or cpu; `nvidia-smi` says what the driver sees."
                )
            return Place(Device.CUDA, dict(base))
    if has_gpu() and _sees_gpu(base):
        return Place(Device.CUDA, dict(base))
    try:
        return Place(Device.STUB, stub.ensure().environment(base))
    except StubUnavailableError as error:
        reason = f"There is no GPU, and no stub device ({error} {error.advice}), so this was seen on the CPU."
        return _cpu(base, reason)


def _cpu(base: Mapping[str, str], *notes: str) -> Place:
    if MARKER in base:
        raise _behind_the_stub("the stub stands in front of PyTorch here, so this would be no plain run on the CPU")
    return Place(Device.CPU, dict(base) | _HIDDEN, notes)


def _behind_the_stub(sentence: str) -> DeviceUnavailableError:
    return DeviceUnavailableError(sentence, "Run it without `harness stub run`, or with --device stub.")


def _sees_gpu(base: Mapping[str, str]) -> bool:
    if MARKER in base:
        return False
    try:
        answer = subprocess.run(
            [sys.executable, "-I", "-c", _SEES_GPU],
            env=dict(base),
            capture_output=True,
            check=False,
            timeout=_PATIENCE_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0
