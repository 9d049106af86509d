"""Runs of the real command that several tests look at; each is made once."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import Ended, harness

from harness import stub
from harness.errors import StubUnavailableError


@pytest.fixture(scope="session")
def stub_device() -> None:
    """Skips where the stub cannot be built."""
    try:
        stub.ensure()
    except StubUnavailableError as error:
        pytest.skip(f"no stub device here: {error}")


@pytest.fixture(scope="session")
def cpu_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a run of the quick matrix on the CPU; its name is not the easiest."""
    return tmp_path_factory.mktemp("cpu") / "a store, über #1 & 100%"


@pytest.fixture(scope="session")
def cpu_run(cpu_root: Path) -> Ended:
    """A run of the quick matrix on the CPU, into ``cpu_root``."""
    return harness("--store", cpu_root, "run", "matrix", "quick", "--device", "cpu", cwd=cpu_root.parent)


@pytest.fixture(scope="session")
def auto_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a run of the quick matrix on whatever ``auto`` finds."""
    return tmp_path_factory.mktemp("auto")


@pytest.fixture(scope="session")
def auto_run(auto_root: Path) -> Ended:
    """A run of a part of the quick matrix, without any choice of a device, in ``auto_root``."""
    return harness("run", "matrix", "quick", "-a", "bidirectional=false", cwd=auto_root)


@pytest.fixture(scope="session")
def full_on_stub(stub_device: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a run of the whole ``full`` matrix on the stub: over a thousand attempts, with plan and journal."""
    return _on_stub("full", tmp_path_factory.mktemp("full"))


@pytest.fixture(scope="session")
def matrix_on_stub(stub_device: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of the default matrix."""
    return _on_stub("matrix", tmp_path_factory.mktemp("matrix"))


def _on_stub(matrix: str, root: Path) -> Path:
    ended = harness("run", "matrix", matrix, "--device", "stub", "--no-tracking", "-q", cwd=root, timeout=280)
    assert ended.code == 0, ended.err
    return root
