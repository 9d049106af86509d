"""What is installed: Python, PyTorch, MLflow, a compiler, the stub."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata

from harness import __version__, stub
from harness.doctor.facts import Fact, absent, warning
from harness.errors import StubUnavailableError
from harness.quoting import one_line
from harness.stub.compiler import find_compiler

PACKAGES = {"MLflow": "mlflow", "pandas": "pandas", "torchvision": "torchvision", "NVML": "nvidia-ml-py"}


def package_facts() -> Iterator[Fact]:
    """Versions, without importing anything."""
    yield Fact("harness", __version__, value=__version__)
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


def stub_facts() -> Iterator[Fact]:
    """Whether the stub is built or can be; this builds it."""
    try:
        build = stub.ensure()
    except StubUnavailableError as error:
        yield absent("stub", one_line(str(error), 400), error.advice)
        return
    text = f"built for torch {build.torch_version} with {build.compiler}, in {build.folder}"
    yield Fact("stub", text, value=str(build.folder))
