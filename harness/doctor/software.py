"""What is installed: Python, PyTorch, MLflow, a compiler, the stub."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict
from importlib import metadata

from harness import stub
from harness.doctor.asking import ask_process
from harness.doctor.facts import Fact, State, absent, warning
from harness.errors import StubUnavailableError
from harness.quoting import one_line
from harness.stub.compiler import find_compiler

PACKAGES = {"MLflow": "mlflow", "pandas": "pandas", "torchvision": "torchvision", "NVML": "nvidia-ml-py"}

STUB_LIMIT_S = 60.0
"""Compiling takes seconds; another process that compiles at the same time is waited for."""


def package_facts() -> Iterator[Fact]:
    """Versions, without importing anything."""
    own = version_of("harness")
    yield Fact("harness", own, value=own) if own else absent("harness", "used from a checkout, not installed")
    where = f"{platform.python_version()} at {sys.executable}"
    yield Fact("Python", where, value=platform.python_version())
    yield Fact("system", f"{platform.system()} {platform.release()} {platform.machine()}")
    if version_of("torch") is None:
        yield warning("PyTorch", "not installed", "Install it with `pip install torch`; without it nothing runs.")
    for name, package in PACKAGES.items():
        version = version_of(package)
        yield Fact(name, f"{package} {version}", value=version) if version else absent(name, f"no {package}")


def version_of(package: str) -> str | None:
    """The installed version of ``package``."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def compiler_facts() -> Iterator[Fact]:
    """The C compiler that the stub would be built with."""
    try:
        command = find_compiler(os.environ)
    except StubUnavailableError as error:
        yield absent("C compiler", one_line(str(error)), error.advice)
        return
    if shutil.which(command[0]) is None:
        yield warning("C compiler", f"CC is {command[0]}, which cannot be run", "Set CC to one that can, or unset it.")
    else:
        yield Fact("C compiler", " ".join(command), value=" ".join(command))


def stub_facts(limit_s: float = STUB_LIMIT_S) -> Iterator[Fact]:
    """Whether the stub is built or can be. This builds it, in a process of its own: a compiler may hang."""
    answer = ask_process([sys.executable, "-P", "-m", "harness.doctor.software"], "", limit_s)
    if answer is None:
        advice = "The compiler hangs, or another process is building it. Does `harness stub info` ever end?"
        yield warning("stub", f"not built within {limit_s:g} s", advice)
        return
    try:
        said = json.loads(answer.splitlines()[-1])
        yield Fact(**said | {"state": State(said["state"])})
    except (ValueError, IndexError):
        yield warning("stub", "whoever builds it died", "What does `harness stub info` say?")


def main() -> None:
    """Build the stub, and print the fact about it."""
    print(json.dumps(asdict(_built())))


def _built() -> Fact:
    try:
        build = stub.ensure()
    except StubUnavailableError as error:
        return absent("stub", one_line(str(error), 400), error.advice)
    text = f"built for torch {build.torch_version} with {build.compiler}, in {build.folder}"
    return Fact("stub", text, value=str(build.folder))


if __name__ == "__main__":
    main()
