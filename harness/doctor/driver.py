"""What NVIDIA's driver says of its GPUs, and the kernel of AMD's.

A driver that hangs takes the process that asks with it, SIGKILL or not; so the question is put by a process of its own
(``python -m harness.doctor.driver``), which prints what it finds as one JSON object.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.doctor.asking import ask_process
from harness.doctor.facts import Fact, absent, size_words, warning
from harness.gpus import has_amd, has_nvidia

LIMIT_S = 20.0
"""A driver that was not loaded yet takes some seconds for each GPU."""

AMD_VERSION = Path("/sys/module/amdgpu/version")


def driver_facts(limit_s: float = LIMIT_S) -> Iterator[Fact]:
    """The driver and every GPU that it lists."""
    if has_amd():
        with suppress(OSError):
            yield Fact("AMD driver", AMD_VERSION.read_text().strip())
    answer = ask_process([sys.executable, "-P", "-m", "harness.doctor.driver"], "", limit_s)
    if answer is None:
        advice = "The driver hangs: `nvidia-smi` and the kernel's log (`dmesg`) may say why; a restart often helps."
        yield warning("GPU driver", f"no answer within {limit_s:g} s", advice)
        return
    try:
        said = json.loads(answer)
    except ValueError:
        yield warning("GPU driver", "whoever asked it died", "`nvidia-smi` may say why.")
        return
    yield from facts_of(said, present=has_nvidia())


def facts_of(said: dict[str, Any], *, present: bool) -> Iterator[Fact]:
    """The facts in what ``main`` printed; ``present`` is whether the kernel has a device of NVIDIA's."""
    if "error" in said:
        if present:
            advice = "The kernel has its devices, so it is installed: `nvidia-smi` says more."
            yield warning("GPU driver", f"NVIDIA's driver was not heard: {said['error']}", advice)
        else:
            yield absent("GPU driver", f"no NVIDIA driver ({said['error']})")
        return
    cuda = said["cuda"]
    words = f"NVIDIA {said['driver']}, for CUDA up to {cuda // 1000}.{cuda % 1000 // 10}"
    yield Fact("GPU driver", words, value=said["driver"])
    if not said["gpus"]:
        yield absent("GPU", "the driver lists none")
    for number, gpu in enumerate(said["gpus"]):
        name = "GPU" if len(said["gpus"]) == 1 else f"GPU {number}"
        words = f"{gpu['name']}, {size_words(gpu['free'])} of {size_words(gpu['total'])} free"
        if gpu["mode"] == "prohibited":
            yield warning(name, f"{words}; nothing may compute on it", "`nvidia-smi -c 0` permits it.", gpu["name"])
        else:
            yield Fact(name, words, value=gpu["name"])


_MODES = {0: "default", 2: "prohibited", 3: "exclusive"}


def ask_nvml(nvml: Any) -> dict[str, Any]:
    """What NVML (the module ``pynvml``, or a fake of it) knows. Never raises."""
    try:
        nvml.nvmlInit()
        return {
            "driver": _text(nvml.nvmlSystemGetDriverVersion()),
            "cuda": nvml.nvmlSystemGetCudaDriverVersion_v2(),
            "gpus": [_gpu(nvml, number) for number in range(nvml.nvmlDeviceGetCount())],
        }
    except Exception as error:
        return {"error": str(error) or type(error).__name__}


def _gpu(nvml: Any, number: int) -> dict[str, Any]:
    handle = nvml.nvmlDeviceGetHandleByIndex(number)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    mode = _or_none(lambda: nvml.nvmlDeviceGetComputeMode(handle))
    return {
        "name": _text(nvml.nvmlDeviceGetName(handle)),
        "free": memory.free,
        "total": memory.total,
        "mode": _MODES.get(mode, str(mode)),
    }


def _or_none(read: Callable[[], Any]) -> Any:
    with suppress(Exception):
        return read()
    return None


def _text(value: str | bytes) -> str:
    """Older bindings give bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def main() -> None:
    """Print what NVML says."""
    try:
        import pynvml
    except ImportError:
        print(json.dumps({"error": "nvidia-ml-py is not installed"}))
    else:
        print(json.dumps(ask_nvml(pynvml)))


if __name__ == "__main__":
    main()
