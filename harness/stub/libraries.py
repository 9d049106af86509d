"""The three libraries that the stub consists of, compiled from ``csrc/`` and from what is generated.

=============================  =========================================================================
``libharness_stub.so``         in front of PyTorch's CUDA libraries, by LD_PRELOAD
``driver/libcuda.so.1``        the CUDA driver, which PyTorch and Triton open by name
``driver/libnvidia-ml.so.1``   NVML, which PyTorch asks for the number of devices
=============================  =========================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.stub import elf
from harness.stub.compiler import Compiler
from harness.stub.generate import driver_functions, generated_source
from harness.stub.policy import DRIVER, Decision, decide
from harness.stub.torch_install import TorchInstall

PRELOAD = "libharness_stub.so"
DRIVER_FOLDER = "driver"
CSRC = Path(__file__).parent / "csrc"
_CUDA = "libcuda.so.1"
_NVML = "libnvidia-ml.so.1"

# Where memory is cleared (csrc/preload/zeroing.c), if this torch calls it.
_HOOK = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"


@dataclass(frozen=True)
class Libraries:
    """What was compiled, and what was decided about every CUDA function that this torch needs."""

    decisions: tuple[Decision, ...]
    zeroes_memory: bool


def compile_libraries(install: TorchInstall, compiler: Compiler, work: Path) -> Libraries:
    """Compile what is written by hand, see what is still missing, generate that, and link."""
    options = _options(install)
    needed = frozenset[str]().union(*(elf.symbols(library).needed for library in install.libraries))
    shared = compiler.compile_all(_sources("shared"), work, options)
    (work / DRIVER_FOLDER).mkdir()

    front = [*shared, *compiler.compile_all(_sources("preload"), work, options)]
    decisions = decide(needed, _defined(front))
    front += compiler.compile_all([_generate(work, "generated", decisions)], work, options)
    compiler.link(front, work / PRELOAD, PRELOAD)

    driver = [*shared, *compiler.compile_all(_sources("libcuda"), work, options)]
    refusals = decide(driver_functions(install.header("cuda.h")), _defined(driver), (DRIVER,))
    driver += compiler.compile_all([_generate(work, "generated_driver", refusals)], work, options)
    compiler.link(driver, work / DRIVER_FOLDER / _CUDA, _CUDA)

    nvml = [*shared, *compiler.compile_all(_sources("libnvidia-ml"), work, options)]
    compiler.link(nvml, work / DRIVER_FOLDER / _NVML, _NVML)
    return Libraries(tuple(decisions), _HOOK in needed)


def _sources(folder: str) -> list[Path]:
    return sorted((CSRC / folder).glob("*.c"))


def _options(install: TorchInstall) -> list[str]:
    wanted = elf.needed_libraries(install.folder / "lib" / "libtorch_cuda.so")
    cudnn = next((name for name in wanted if name.startswith("libcudnn.so")), "libcudnn.so.9")
    ours = [f"-I{CSRC}", f"-I{CSRC / 'headers'}"]
    theirs = [f"-isystem{folder}" for folder in install.includes]
    return [*ours, *theirs, f'-DSTUB_CUDNN_LIBRARY="{cudnn}"', f'-DSTUB_TORCH_BUILD_ID="{install.build_id}"']


def _defined(objects: Sequence[Path]) -> frozenset[str]:
    return frozenset[str]().union(*(elf.symbols(path, ".symtab").defined for path in objects))


def _generate(work: Path, name: str, decisions: Sequence[Decision]) -> Path:
    path = work / f"{name}.c"
    path.write_text(generated_source(decisions), encoding="utf-8")
    return path
