"""The processes of a run, found by descent from its coordinator, and their end."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from random import Random

from tests.contract.command import processes_of

MARK = "HARNESS_TORTURE_MARK"
"""In the environment of every process of a run."""


class Victim(StrEnum):
    """Who is killed."""

    COORDINATOR = "coordinator"
    ZYGOTE = "zygote"
    ATTEMPT = "attempt"


def victims(coordinator: int, kind: Victim) -> list[int]:
    """The living processes of that kind."""
    if kind is Victim.COORDINATOR:
        return [coordinator]
    zygotes = [pid for pid in _children(coordinator) if b"harness.trial" in _command(pid)]
    return zygotes if kind is Victim.ZYGOTE else [child for zygote in zygotes for child in _children(zygote)]


def kill(coordinator: int, kind: Victim, rng: Random) -> bool:
    """SIGKILL one of that kind; whether there was one that lived."""
    found = sorted(pid for pid in victims(coordinator, kind) if _lives(pid))
    if not found:
        return False
    try:
        os.kill(rng.choice(found), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def left_over(mark: str, patience_s: float = 30.0) -> list[str]:
    """The command lines of processes that carry ``mark`` and do not end within a time."""
    deadline = time.monotonic() + patience_s
    while (found := processes_of(f"{MARK}={mark}")) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def _children(pid: int) -> list[int]:
    found = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(word) for word in file.read_text().split()]
    return found


def _command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def _lives(pid: int) -> bool:
    """Whether it is there and no zombie."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
