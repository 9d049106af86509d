"""The environment of a process that runs with the stub in front of PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

MARKER = "HARNESS_STUB"

# Settings of the person's shell that would look past the stub at real devices, or at none.
_HIDES_THE_STUB = ("CUDA_VISIBLE_DEVICES", "PYTORCH_NVML_BASED_CUDA_CHECK", "CUDA_LAUNCH_BLOCKING")


def child_environment(
    base: Mapping[str, str], preload: Path, driver_folder: Path, *, zeroes_memory: bool
) -> dict[str, str]:
    """Return ``base`` with the stub in front of everything that was there."""
    environment = {name: value for name, value in base.items() if name not in _HIDES_THE_STUB}
    environment |= {
        MARKER: "1",
        "LD_PRELOAD": _in_front(str(preload), base.get("LD_PRELOAD", "")),
        "LD_LIBRARY_PATH": _in_front(str(driver_folder), base.get("LD_LIBRARY_PATH", "")),
        # Convolutions: the newer API of cuDNN looks for an engine, which takes a GPU; the older calls can be answered.
        "TORCH_CUDNN_V8_API_DISABLED": "1",
        # Attention: the same API again, which newer versions of PyTorch would choose first on this device.
        "TORCH_CUDNN_SDPA_DEPRIORITIZED": "1",
        # Autograd's threads are not woken to be ended at exit, where they would race with the interpreter's own end
        # (csrc/preload/exit.c); nor does the process wait ten seconds for one that hangs.
        "TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT": "0",
    }
    if not zeroes_memory:
        # This torch has no hook to clear memory at (csrc/preload/zeroing.c). Uncached memory is zero too, at the price
        # of the allocator's statistics.
        environment["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
    return environment


def _in_front(first: str, rest: str) -> str:
    parts = [part for part in rest.split(":") if part and part != first]
    return ":".join([first, *parts])
