"""Questions with a limit: what hangs - a driver, a server, a network disk - must not hang who asks."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from harness.doctor.facts import Fact, warning
from harness.errors import HarnessError
from harness.quoting import one_line

LONGEST_WORDS = 400
"""Characters of what an error says; advice stands at its end."""

_LAST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Question:
    """Something to find out. ``ask`` may raise; it runs in a thread of its own, which is left behind if it hangs."""

    name: str
    ask: Callable[[], Sequence[Fact]]
    limit_s: float = 10.0


@dataclass(slots=True)
class Inquiry:
    """A question that is being asked."""

    question: Question
    began: float = field(default_factory=time.monotonic)
    _facts: Sequence[Fact] | None = None
    _thread: threading.Thread | None = None

    @classmethod
    def start(cls, question: Question) -> Inquiry:
        """Ask, without waiting for the answer."""
        inquiry = cls(question)
        thread = threading.Thread(target=inquiry._run, name=question.name, daemon=True)
        try:
            thread.start()
            inquiry._thread = thread
        except (RuntimeError, MemoryError):  # no more threads, by a limit on processes or address space
            inquiry._run()
        return inquiry

    def _run(self) -> None:
        name = self.question.name
        try:
            self._facts = tuple(self.question.ask())
        except HarnessError as error:
            self._facts = (warning(name, one_line(str(error), LONGEST_WORDS), error.advice or "Try again."),)
        except Exception as error:
            words = one_line(f"{type(error).__name__}: {error}", LONGEST_WORDS)
            self._facts = (warning(name, f"could not be found out: {words}", "Try again; if it stays, report it."),)

    def answer(self) -> tuple[Fact, ...]:
        """The facts; where they do not come within the limit, that itself is the fact."""
        limit = self.question.limit_s
        if self._thread is not None:
            self._thread.join(max(0.0, self.began + limit - time.monotonic()))
        if self._facts is None:
            return (warning(self.question.name, f"no answer within {limit:g} s", "Something there hangs."),)
        return tuple(self._facts)


_helpers: set[subprocess.Popen[str]] = set()


def ask_process(command: Sequence[str], said: str, limit_s: float) -> str | None:
    """What ``command`` prints when it is told ``said``; None if it does not end within ``limit_s``.

    It gets a process group of its own, so that what it has started ends with it. A process that hangs inside a driver
    does not even die of SIGKILL; it is left behind then.

    Raises:
        OSError: it cannot be started.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
        process_group=0,
    )
    _helpers.add(process)
    try:
        return process.communicate(said, timeout=limit_s)[0]
    except subprocess.TimeoutExpired:
        _kill(process)
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_LAST_SECONDS)
        return None
    finally:
        _helpers.discard(process)


@contextmanager
def ended_helpers() -> Iterator[None]:
    """At the end of the block, also of one that was interrupted, no process is left whose answer nobody waits for."""
    try:
        yield
    finally:
        for process in list(_helpers):
            _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
