"""The person's wish to stop: once to finish what runs, twice to stop now."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequest:
    """Counts the requests; the supervisor asks between two events."""

    def __init__(self) -> None:
        self.count = 0

    def ask(self, *_: int | FrameType | None) -> None:
        """Ask once more. Has the signature of a signal handler."""
        self.count += 1

    @property
    def no_more(self) -> bool:
        """Start nothing new."""
        return self.count >= 1

    @property
    def now(self) -> bool:
        """End what runs."""
        return self.count >= 2


@contextmanager
def on_signals(stop: StopRequest) -> Iterator[StopRequest]:
    """SIGINT and SIGTERM ask for a stop, for as long as the context lasts."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, stop.ask) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
