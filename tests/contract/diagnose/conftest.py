"""The warm processes that the programs run in, one set for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.diagnose.warm import Warm, warmed


@pytest.fixture(scope="session")
def warm(stub_device: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    """Where programs are run."""
    with warmed(tmp_path_factory.mktemp("warm")) as processes:
        yield processes
