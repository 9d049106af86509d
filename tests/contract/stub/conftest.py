"""The stub under test, once for the installed torch and once for another one.

The other one is named by HARNESS_OTHER_TORCH_PYTHON, the interpreter of a virtual environment that holds it, such as a
torch with CUDA 12. Without that variable one test is skipped and says so, and the others have no second half.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness import stub
from harness.errors import StubUnavailableError
from harness.stub.process import torch_of
from harness.stub.torch_install import current_torch_folder, read_torch_install

HERE = Path(__file__).parent
OTHER = "HARNESS_OTHER_TORCH_PYTHON"

# Two processes of about equal length: the cases take half as long on two cores.
GROUPS = (("layers", "losses", "graph", "runtime", "memory", "refusals"), ("recurrent", "compiled"))


@dataclass(frozen=True)
class Torch:
    """One torch, with the stub built for it."""

    python: str
    build: stub.StubBuild

    def environment(self) -> dict[str, str]:
        return self.build.environment(os.environ)

    def run(self, *arguments: str, timeout: float = 240) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.python, *arguments],
            env=self.environment(),
            cwd=HERE,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    @property
    def release(self) -> tuple[int, int]:
        major, minor = self.build.torch_version.split(".")[:2]
        return int(major), int(minor)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip where there can be no stub (another platform, a CPU-only torch). Where there can be, nothing is skipped."""
    try:
        read_torch_install(current_torch_folder())
    except StubUnavailableError as error:
        for item in items:
            if HERE in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=f"no stub here: {error}"))


@pytest.fixture(scope="session")
def installed() -> Torch:
    return Torch(sys.executable, stub.ensure())


@pytest.fixture(scope="session")
def other() -> Torch:
    python = os.environ.get(OTHER)
    if not python:
        pytest.skip(f"{OTHER} names no interpreter with another torch")
    return Torch(python, stub.ensure(torch_of(python, os.environ)))


@pytest.fixture(scope="session", params=["installed", "other"] if os.environ.get(OTHER) else ["installed"])
def torch_under_test(request: pytest.FixtureRequest) -> Torch:
    chosen: Torch = request.getfixturevalue(request.param)
    return chosen


def _run_cases(torch: Torch, modules: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    ended = torch.run("host.py", *modules)
    assert ended.returncode == 0, ended.stderr
    outcomes = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith('{"case"')]
    return {outcome["case"]: outcome for outcome in outcomes}


@pytest.fixture(scope="session")
def outcomes(torch_under_test: Torch) -> dict[str, dict[str, Any]]:
    """What every case did, each in a forked process of its own."""
    with ThreadPoolExecutor(len(GROUPS)) as pool:
        halves = pool.map(lambda modules: _run_cases(torch_under_test, modules), GROUPS)
    return {case: outcome for half in halves for case, outcome in half.items()}
