"""Compile the stub for one PyTorch, once, and keep it in the user's cache."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock

from harness.errors import StubUnavailableError
from harness.stub.compiler import CompileError, Compiler, find_compiler
from harness.stub.coverage import DEVICE_NAME, StubInfo
from harness.stub.environment import child_environment
from harness.stub.libraries import DRIVER_FOLDER, PRELOAD, Libraries, compile_libraries
from harness.stub.policy import Treatment
from harness.stub.torch_install import TorchInstall, current_torch_folder, read_torch_install

MANIFEST = "build.json"
_HERE = Path(__file__).parent


@dataclass(frozen=True)
class StubBuild:
    """A compiled stub, and what it was compiled for."""

    folder: Path
    preload: Path
    driver_folder: Path
    torch_version: str
    cuda_version: str
    torch_build_id: str
    symbols: Mapping[str, int]
    """How many of the functions that this torch needs have a body, succeed, are refused, or stay NVIDIA's."""
    refused: tuple[str, ...]
    zeroes_memory: bool
    compiler: str
    built_at: str
    build_seconds: float

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return ``base`` with the stub in front: for a child process, never for this one."""
        return child_environment(base, self.preload, self.driver_folder, zeroes_memory=self.zeroes_memory)


def info(torch_folder: Path | None = None) -> StubInfo:
    """Say what was built, for which torch, and what it covers."""
    build = ensure(torch_folder)
    functions = ", ".join(f"{count} {treatment}" for treatment, count in build.symbols.items())
    return StubInfo(
        {
            "device": DEVICE_NAME,
            "torch": f"{build.torch_version} (CUDA {build.cuda_version}, build {build.torch_build_id})",
            "library": str(build.preload),
            "CUDA functions": functions,
            "memory": "cleared when handed out" if build.zeroes_memory else "uncached, without statistics",
            "compiled": f"{build.built_at} with {build.compiler} in {build.build_seconds} s",
        }
    )


def ensure(torch_folder: Path | None = None) -> StubBuild:
    """Return the stub for the torch in this folder (by default the one installed here), compiling it if need be."""
    install = read_torch_install(torch_folder or current_torch_folder())
    cache = _cache_folder(os.environ)
    folder = cache / _key(install)
    if build := _load(folder):
        return build
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / f"{folder.name}.lock"):
            return _load(folder) or _build(install, folder)
    except OSError as error:
        raise StubUnavailableError(
            f"The stub cannot be kept in {cache}: {error}.",
            "Make that folder writable, or point XDG_CACHE_HOME at one that is.",
        ) from error


def _cache_folder(environment: Mapping[str, str]) -> Path:
    base = Path(environment.get("XDG_CACHE_HOME", ""))
    # A relative XDG_CACHE_HOME is to be ignored, says its specification.
    try:
        folder = (base if base.is_absolute() else Path.home() / ".cache") / "harness" / "stub"
    except RuntimeError as error:
        raise StubUnavailableError(
            "The stub has to be kept somewhere, and this user has no home folder.",
            "Point XDG_CACHE_HOME at a folder that you may write to.",
        ) from error
    if any(character in str(folder) for character in " :"):
        raise StubUnavailableError(
            f"The stub cannot be kept in {folder}: the loader's LD_PRELOAD splits names at spaces and colons.",
            "Point XDG_CACHE_HOME at a folder without them.",
        )
    return folder


def _key(install: TorchInstall) -> str:
    digest = hashlib.sha256(f"{install.version} {install.build_id}".encode())
    for path in sorted([*(_HERE / "csrc").rglob("*"), *_HERE.glob("*.py")]):
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:20]


def _load(folder: Path) -> StubBuild | None:
    try:
        stored = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        build = StubBuild(
            folder=folder,
            preload=folder / PRELOAD,
            driver_folder=folder / DRIVER_FOLDER,
            **{**stored, "refused": tuple(stored["refused"])},
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None
    complete = build.preload.exists() and build.driver_folder.is_dir()
    return build if complete else None


def _build(install: TorchInstall, folder: Path) -> StubBuild:
    """Build beside the final place and move there in one step, so that nobody ever sees half a build."""
    command = find_compiler(os.environ)
    work = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        started = datetime.now(UTC)
        facts = _facts(install, compile_libraries(install, Compiler(command, work / "compile.log"), work))
        facts |= {
            "compiler": " ".join(command),
            "built_at": started.isoformat(timespec="seconds"),
            "build_seconds": round((datetime.now(UTC) - started).total_seconds(), 2),
        }
        (work / MANIFEST).write_text(json.dumps(facts, indent=1), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)  # a damaged build
        for leftover in work.glob("*.o"):
            leftover.unlink()
        work.rename(folder)
    except CompileError as error:
        raise _compile_failure(work, folder) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    build = _load(folder)
    if build is None:
        raise StubUnavailableError(f"The stub was built in {folder} and is not there any more.", "Try again.")
    return build


def _compile_failure(work: Path, folder: Path) -> StubUnavailableError:
    kept = folder.with_suffix(".log")
    shutil.copyfile(work / "compile.log", kept)
    return StubUnavailableError(
        f"The stub device does not compile here; what the compiler said is in {kept}.",
        "Try another compiler with CC=..., or `pip install ziglang`. `--device cpu` works without the stub.",
    )


def _facts(install: TorchInstall, libraries: Libraries) -> dict[str, object]:
    counts = Counter(decision.treatment.value for decision in libraries.decisions)
    return {
        "torch_version": install.version,
        "cuda_version": install.cuda,
        "torch_build_id": install.build_id,
        "symbols": dict(sorted(counts.items())),
        "refused": [one.function for one in libraries.decisions if one.treatment is Treatment.REFUSE],
        "zeroes_memory": libraries.zeroes_memory,
    }
