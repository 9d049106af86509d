"""The guard of tests/conftest.py: a unit test that starts a process fails."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

WAYS: dict[str, Callable[[], object]] = {
    "run": lambda: subprocess.run([sys.executable, "-c", ""], check=False),
    "Popen": lambda: subprocess.Popen([sys.executable, "-c", ""]),
    "fork": lambda: os.fork() or os._exit(0),
    "posix_spawn": lambda: os.posix_spawn(sys.executable, [sys.executable, "-c", ""], {}),
    "system": lambda: os.system("true"),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_process_can_be_started(way: str) -> None:
    with pytest.raises(AssertionError, match="a unit test starts no process"):
        WAYS[way]()
