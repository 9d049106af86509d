"""Turns the watching of RNN calls and mode switches on and off; any number of contexts may hold it on."""

from __future__ import annotations

import threading
from typing import TypeVar

from harness.modes import calls, switches

_lock = threading.RLock()
_open: list[Tap] = []
_T = TypeVar("_T")


class Tap:
    """What one context wants to be told, or to change, while it is open. Process-wide: it sees every thread."""

    def __init__(
        self,
        *,
        observer: calls.Observer | None = None,
        adjuster: calls.Adjuster | None = None,
        listener: switches.Listener | None = None,
        twin: switches.Twin | None = None,
    ) -> None:
        self._observer, self._adjuster, self._listener, self._twin = observer, adjuster, listener, twin

    def open(self) -> None:
        """Begin to watch."""
        with _lock:
            if not _open:
                calls.install()
                switches.install()
            _open.append(self)
            # Tuples that are replaced, never changed: a call in another thread walks over one or the other.
            calls.observers += _some(self._observer)
            calls.adjusters += _some(self._adjuster)
            switches.listeners += _some(self._listener)
            switches.twins += _some(self._twin)

    def close(self) -> None:
        """Stop watching, and put PyTorch back as it was if nobody else watches."""
        with _lock:
            calls.observers = _without(calls.observers, self._observer)
            calls.adjusters = _without(calls.adjusters, self._adjuster)
            switches.listeners = _without(switches.listeners, self._listener)
            switches.twins = _without(switches.twins, self._twin)
            _open.remove(self)
            if not _open:
                calls.uninstall()
                switches.uninstall()


def _some(one: _T | None) -> tuple[_T, ...]:
    return () if one is None else (one,)


def _without(several: tuple[_T, ...], one: _T | None) -> tuple[_T, ...]:
    """``several`` less one occurrence of ``one``: contexts that watch alike leave one by one."""
    if one is None or one not in several:
        return several
    place = several.index(one)
    return several[:place] + several[place + 1 :]
