"""Which device a script is run on, and the environment for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness import stub
from harness.errors import DeviceUnavailableError, StubUnavailableError
from harness.model import Device

_NODES = ("/dev/nvidiactl", "/dev/dxg", "/dev/kfd")
_HIDDEN = dict.fromkeys(("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"), "")
_PATIENCE_S = 120


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
            return Place(Device.CPU, dict(base) | _HIDDEN)
        case Device.STUB:
            return Place(Device.STUB, stub.ensure().environment(base))
        case Device.CUDA:
            if not _sees_gpu(base):
                raise DeviceUnavailableError(
                    "PyTorch sees no GPU here.", "Use --device stub or cpu; `nvidia-smi` says what the driver sees."
                )
            return Place(Device.CUDA, dict(base))
    if any(Path(node).exists() for node in _NODES) and _sees_gpu(base):
        return Place(Device.CUDA, dict(base))
    try:
        return Place(Device.STUB, stub.ensure().environment(base))
    except StubUnavailableError as error:
        reason = f"There is no GPU, and no stub device ({error} {error.advice}), so this was seen on the CPU."
        return Place(Device.CPU, dict(base) | _HIDDEN, (reason,))


def _sees_gpu(base: Mapping[str, str]) -> bool:
    question = "import sys, torch; sys.exit(0 if torch.cuda.is_available() else 9)"
    try:
        answer = subprocess.run(
            [sys.executable, "-I", "-c", question],
            env=dict(base),
            capture_output=True,
            check=False,
            timeout=_PATIENCE_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0
