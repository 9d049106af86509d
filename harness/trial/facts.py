"""Facts about the machine under an attempt, as the attempt itself sees them."""

from __future__ import annotations

import os
import platform
from functools import cache

import torch

from harness.environment import processor
from harness.model import Device
from harness.trial.machine import driver_version

Facts = dict[str, str | int | float | bool | None]


@cache
def host_facts() -> Facts:
    """What is the same for every attempt of one worker; asks nothing of CUDA, so a zygote may call it."""
    return {"python": platform.python_version(), "torch": str(torch.__version__), "cpu": processor()}


def device_facts(device: Device) -> Facts:
    """What the attempt's own device and switches are. Absent where the device has no such thing."""
    facts: Facts = {**host_facts(), "threads": torch.get_num_threads()}
    if device is Device.CPU:
        return facts | {"device_name": facts["cpu"]}
    capability = torch.cuda.get_device_capability()
    driver = driver_version() if device is Device.CUDA else None
    return (
        facts
        | ({} if driver is None else {"driver": driver})
        | {
            "device_name": torch.cuda.get_device_name(),
            "stub": is_stub(),
            "capability": f"{capability[0]}.{capability[1]}",
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),
            "tf32": torch.backends.cudnn.allow_tf32,
            "deterministic": torch.backends.cudnn.deterministic,
            "benchmark": torch.backends.cudnn.benchmark,
        }
    )


def is_stub() -> bool:
    """Whether the CUDA device of this process is the stub. Both its environment and its device name say so."""
    return "HARNESS_STUB" in os.environ or "stub" in torch.cuda.get_device_name().lower()
