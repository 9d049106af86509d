"""The worker processes that are examined: one as the environment is, one with the stub in front."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from harness import stub
from harness.doctor import pytorch
from harness.doctor.facts import Fact, State
from harness.errors import HarnessError
from harness.files import os_words
from harness.launch.local import Executor
from harness.model import Record
from harness.quoting import one_line

OpenExecutor = Callable[[Mapping[str, str]], Executor]


@dataclass(frozen=True, slots=True)
class NoExecutor:
    """Why there is no worker process."""

    why: str
    advice: str = ""


def no_executor(error: Exception) -> NoExecutor:
    """``error`` as a reason."""
    words = os_words(error) if isinstance(error, OSError) else str(error) or type(error).__name__
    advice = error.advice if isinstance(error, HarnessError) else "See the limits of this process, under `machine`."
    return NoExecutor(one_line(words, 400), advice)


class Bench:
    """Opens executors when they are asked for, and closes them all."""

    def __init__(self, executor: OpenExecutor) -> None:
        self._executor = executor
        self.base: Executor | NoExecutor = NoExecutor("it was not started")
        self._stub: Executor | NoExecutor | None = None

    def open_base(self) -> None:
        """Start a worker process in the environment as it is."""
        self.base = self._open(os.environ)

    def open_stub(self, facts: Iterable[Fact]) -> Executor | NoExecutor:
        """A worker process with the stub in front, if ``facts`` say that it is built; the second time, the same one."""
        if self._stub is None:
            fact = next((fact for fact in facts if fact.name == "stub"), None)
            if fact is None:
                self._stub = NoExecutor("nobody looked for a stub")
            elif fact.state is not State.OK:
                self._stub = NoExecutor(fact.text, fact.advice)
            else:
                self._stub = self._open_built()
        return self._stub

    def _open_built(self) -> Executor | NoExecutor:
        try:
            environment = stub.ensure().environment(os.environ)
        except HarnessError as error:
            return no_executor(error)
        return self._open(environment)

    def ask_pytorch(self) -> dict[str, Record] | NoExecutor:
        """See ``pytorch.ask_pytorch``."""
        if isinstance(self.base, NoExecutor):
            return self.base
        try:
            return pytorch.ask_pytorch(self.base)
        except (HarnessError, OSError, MemoryError) as error:
            return no_executor(error)

    def _open(self, environment: Mapping[str, str]) -> Executor | NoExecutor:
        try:
            return self._executor(environment)
        except (HarnessError, OSError, MemoryError) as error:
            return no_executor(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for opened in (self.base, self._stub):
            if opened is not None and not isinstance(opened, NoExecutor):
                opened.close()
