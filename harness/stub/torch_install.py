"""Find an installed PyTorch and what its wheels brought along, without importing it."""

from __future__ import annotations

import importlib.util
import platform
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from harness.errors import StubUnavailableError
from harness.stub import elf

CPU_STILL_WORKS = "Use `--device cpu`, which needs no CUDA build of PyTorch."


@dataclass(frozen=True)
class TorchInstall:
    """One installed CUDA build of PyTorch."""

    folder: Path
    version: str
    cuda: str
    build_id: str
    includes: tuple[Path, ...]

    @property
    def libraries(self) -> tuple[Path, ...]:
        """Its shared libraries, in a stable order."""
        return tuple(sorted((self.folder / "lib").glob("lib*.so")))

    def header(self, name: str) -> Path:
        """Return the path of one of NVIDIA's headers."""
        return next(folder / name for folder in self.includes if (folder / name).exists())


def current_torch_folder() -> Path:
    """Return the folder of the torch that this interpreter would import."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise StubUnavailableError("The stub device needs PyTorch, and none is installed here.", CPU_STILL_WORKS)
    return Path(spec.origin).parent


def read_torch_install(folder: Path) -> TorchInstall:
    """Read what the stub must know about the torch in this folder."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise StubUnavailableError(
            f"The stub device works on Linux on x86-64 only; this is {sys.platform} on {platform.machine()}.",
            "Use `--device cpu` here, or a Linux machine or container for the stub.",
        )
    version, cuda = _versions(folder)
    library = folder / "lib" / "libtorch_cuda.so"
    if cuda is None or not library.exists():
        raise StubUnavailableError(
            f"The stub device needs a CUDA build of PyTorch; torch {version} is a CPU-only build.",
            "Install the default Linux wheel of torch (no GPU is needed for it), or use `--device cpu`.",
        )
    return TorchInstall(folder, version, cuda, elf.build_id(library), _includes(folder.parent, version))


def _versions(folder: Path) -> tuple[str, str | None]:
    path = folder / "version.py"
    if not path.exists():
        raise StubUnavailableError(f"There is no PyTorch in {folder}.", CPU_STILL_WORKS)
    text = path.read_text(encoding="utf-8")
    version = re.search(r"^__version__\s*=\s*'([^']+)'", text, re.MULTILINE)
    cuda = re.search(r"^cuda\b[^=\n]*=\s*'([^']+)'", text, re.MULTILINE)
    return (version.group(1) if version else "unknown", cuda.group(1) if cuda else None)


def _includes(site: Path, version: str) -> tuple[Path, ...]:
    """Return the header folders of NVIDIA's wheels: one for all in CUDA 13, one for each library in CUDA 12."""
    found = tuple(sorted((site / "nvidia").glob("*/include")))
    for header in ("cuda_runtime_api.h", "cuda.h", "cublas_v2.h", "cudnn.h"):
        if not any((folder / header).exists() for folder in found):
            raise StubUnavailableError(
                f"The CUDA headers that torch {version} was installed with lack {header}.",
                "Install torch with pip from PyPI: its CUDA wheels bring the headers. Or use `--device cpu`.",
            )
    return found
