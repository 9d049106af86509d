"""Every way the harness itself can fail: an exit code, a sentence, and the next thing to try.

The failure of a *variant* is never one of these: it is data and lives in a ``Record``.
"""

from __future__ import annotations

from typing import ClassVar


class HarnessError(Exception):
    """The harness failed. ``str(error)`` is one sentence; ``advice`` is the next thing to try."""

    exit_code: ClassVar[int] = 4

    def __init__(self, sentence: str, advice: str = "") -> None:
        super().__init__(sentence)
        self.advice = advice


class UsageError(HarnessError):
    """What was asked for makes no sense: an unknown name, a misspelt value, a malformed file."""

    exit_code = 2


class MatrixFileError(UsageError):
    """A matrix file cannot be found, parsed or validated."""


class RunNotFoundError(UsageError):
    """No run of that id is in this store."""


class NothingSelectedError(HarnessError):
    """The selection is valid but matches no variant."""

    exit_code = 3


class CheckFailedError(HarnessError):
    """A check that the person asked for did not hold."""

    exit_code = 1


class StoreError(HarnessError):
    """The store cannot be read or written."""


class RunBusyError(StoreError):
    """Another coordinator is at work on the run: nothing has failed, but it is not to be had now."""

    exit_code = 2


class JournalError(StoreError):
    """A journal or plan file is damaged or was written by a newer harness."""


class TrackingError(StoreError):
    """MLflow is missing, cannot be reached, or refuses the store."""


class PortInUseError(UsageError):
    """The port asked for is taken by another program."""


class LaunchError(HarnessError):
    """A worker process cannot be started, or keeps dying before it runs anything."""


class DeviceUnavailableError(UsageError):
    """The device asked for is not on this machine."""


class StubUnavailableError(DeviceUnavailableError):
    """The stub device cannot be built or loaded here (platform, compiler, or a CPU-only torch)."""


class InterruptedRunError(HarnessError):
    """The person stopped the run; everything recorded so far is kept."""

    exit_code = 130


class LeftAtOnceError(KeyboardInterrupt):
    """The person no longer waits, not even for the end of the bookkeeping. Whatever was recorded is in the journal."""

    sentence: ClassVar[str] = "left at once: what was recorded is kept; its report and MLflow may lack the end of it"
    advice: ClassVar[str] = "`harness report` shows all that was recorded, `harness sync` brings it to MLflow."
