"""How the program ends: which exception, and which processes it forked. All of it is handed on undisturbed."""

from __future__ import annotations

import os
import sys
import threading
from types import TracebackType
from typing import Any

from harness.diagnose.facts import Chain, Count
from harness.diagnose.witness.notes import Notes
from harness.diagnose.witness.places import place_at
from harness.diagnose.witness.watcher import Watcher
from harness.modes.sites import is_machinery

_NO_GRAPH = "does not require grad and does not have a grad_fn"


def watch_ending(watcher: Watcher, notes: Notes) -> None:
    """Notice the exception that ends the program, or a thread of it."""
    main, thread = sys.excepthook, threading.excepthook

    def in_main(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> Any:
        if watcher.active:
            notes.ended_by(kind.__name__, str(error))
            _look_at(watcher, error, trace)
        return main(kind, error, trace)

    def in_thread(arguments: Any) -> Any:
        if watcher.active and arguments.exc_value is not None:
            _look_at(watcher, arguments.exc_value, arguments.exc_traceback)
        return thread(arguments)

    sys.excepthook, threading.excepthook = in_main, in_thread


def _look_at(watcher: Watcher, error: BaseException, trace: TracebackType | None) -> None:
    if isinstance(error, RuntimeError) and _NO_GRAPH in str(error):
        watcher.refused_without_graph(_chain(trace))


def _chain(trace: TracebackType | None) -> Chain:
    places = []
    while trace is not None:
        if not is_machinery(trace.tb_frame.f_code):
            places.append(place_at(trace.tb_frame, trace.tb_lineno, trace.tb_lasti))
        trace = trace.tb_next
    return tuple(reversed(places))


def watch_forks(watcher: Watcher, notes: Notes) -> None:
    """A forked process is not watched: what it does would be counted as its parent's."""

    def forget() -> None:
        watcher.active = False

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_parent=lambda: notes.add(Count.FORKS), after_in_child=forget)
