"""What all tests share: unit tests start no process, and none fails because a machine is slow."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# A shell starts background jobs with SIGINT ignored, and every process below would inherit that: the tests of Ctrl-C
# would then wait for what cannot come.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in (signal.SIGHUP, signal.SIGTERM):  # as nohup does
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)

# A width that whoever runs the tests has set, as workers of pytest-xdist do, is not that of the terminals in them.
for _name in ("COLUMNS", "LINES"):
    os.environ.pop(_name, None)

UNIT = Path(__file__).parent / "unit"


class ProcessInUnitTestError(AssertionError):
    """A unit test tried to start a process; such a test belongs under ``tests/contract``."""


def _refuse(*_: object, **__: object) -> NoReturn:
    raise ProcessInUnitTestError("a unit test starts no process; move it to tests/contract")


@pytest.fixture(autouse=True)
def no_processes_in_unit_tests(request: pytest.FixtureRequest) -> Iterator[None]:
    """Everything by which Python starts a process raises while a unit test runs."""
    if UNIT not in request.path.parents:
        yield
        return
    import matplotlib.font_manager  # noqa: F401 - the first time on a machine it lists the fonts with a process

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", _refuse)
        patch.setattr(subprocess.Popen, "__del__", lambda _: None)
        for name in ("fork", "forkpty", "posix_spawn", "posix_spawnp", "system", "popen"):
            patch.setattr(os, name, _refuse)
        yield


@pytest.fixture(autouse=True)
def ctrl_c_goes_on_working() -> Iterator[None]:
    """The command's ``main`` ignores SIGINT once all is said; the tests that call it go on."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)
