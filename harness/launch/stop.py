"""The person's wish to stop: once to finish what runs, twice to end it, three times to leave everything as it is."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from harness.errors import LeftAtOnceError

PATIENCE = 2
"""Whoever asks more often than this no longer wants to wait for anything, the end of the bookkeeping included."""


class StopRequest:
    """Counts the requests; the supervisor asks between two events."""

    def __init__(self) -> None:
        self.count = 0

    def ask(self, *_: int | FrameType | None) -> None:
        """Ask once more. Has the signature of a signal handler.

        Raises:
            LeftAtOnceError: it was asked for more often than anybody asks who still waits.
        """
        self.count += 1
        if self.count > PATIENCE:
            raise LeftAtOnceError

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
    """SIGINT, SIGTERM and a closed terminal ask for a stop, for as long as the context lasts."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as `nohup` sets it
        numbers.append(signal.SIGHUP)
    before = [signal.signal(number, stop.ask) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
