"""How the program ends: which exception, and which processes it started. All of it is handed on undisturbed."""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import context
from pathlib import Path
from types import TracebackType
from typing import Any

from harness.diagnose.facts import Chain, Count
from harness.diagnose.witness.notes import Notes
from harness.diagnose.witness.places import place_at
from harness.diagnose.witness.watcher import Watcher
from harness.modes.sites import is_machinery

_PACKAGE = Path(__file__).parents[2]
_WRAPPERS = ("calls.py", "switches.py", "compiling.py")
_WATCHING = (f"{_PACKAGE / 'diagnose'}{os.sep}", *(str(_PACKAGE / "modes" / name) for name in _WRAPPERS))
_DATA_WORKER = "torch.utils.data._utils.worker"
_NO_GRAPH = "does not require grad and does not have a grad_fn"


def watch_ending(watcher: Watcher, notes: Notes) -> None:
    """Notice the exception that ends the program, or a thread of it."""
    main, thread = sys.excepthook, threading.excepthook

    def in_main(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> Any:
        with suppress(Exception):  # whatever is wrong with us, the error is told as ever
            notes.ended_by(kind.__name__, str(error))
            look_at(watcher, error, trace)
            trace = _without_us(error, trace)
        return main(kind, error, trace)

    def in_thread(arguments: Any) -> Any:
        with suppress(Exception):
            look_at(watcher, arguments.exc_value, arguments.exc_traceback)
            _without_us(arguments.exc_value, arguments.exc_traceback)
        return thread(arguments)

    sys.excepthook, threading.excepthook = in_main, in_thread


def look_at(watcher: Watcher, error: BaseException, trace: TracebackType | None) -> None:
    """Notice if PyTorch refused a backward for want of a graph."""
    if isinstance(error, RuntimeError) and _NO_GRAPH in str(error):
        watcher.refused_without_graph(_chain(trace))


def _without_us(error: BaseException, trace: TracebackType | None) -> TracebackType | None:
    """The traceback as it would be printed if nobody had watched, in what led to the error as well."""
    for earlier in (error.__cause__, error.__context__):
        if earlier is not None and earlier is not error:
            _without_us(earlier, earlier.__traceback__)
    while trace is not None and _ours(trace):
        trace = trace.tb_next
    last = trace
    while last is not None:
        while last.tb_next is not None and _ours(last.tb_next):
            last.tb_next = last.tb_next.tb_next
        last = last.tb_next
    error.__traceback__ = trace
    return trace


def _ours(trace: TracebackType) -> bool:
    return trace.tb_frame.f_code.co_filename.startswith(_WATCHING)


def _chain(trace: TracebackType | None) -> Chain:
    places = []
    while trace is not None:
        if not is_machinery(trace.tb_frame.f_code):
            places.append(place_at(trace.tb_frame, trace.tb_lineno, trace.tb_lasti))
        trace = trace.tb_next
    return tuple(reversed(places))


def watch_forks(watcher: Watcher) -> None:
    """A forked process is not watched: what it does would be taken for its parent's."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=watcher.forked)


def watch_spawns(notes: Notes) -> None:
    """Count the processes that multiprocessing starts afresh: nothing of what runs in them is seen."""
    for name in ("SpawnProcess", "ForkServerProcess"):  # the second is missing on some systems
        kind = getattr(context, name, None)
        if kind is not None:
            kind._Popen = staticmethod(_counted(kind._Popen, notes))


def _counted(start: Callable[[Any], Any], notes: Notes) -> Callable[[Any], Any]:
    @functools.wraps(start)
    def counted(process: Any) -> Any:
        if getattr(getattr(process, "_target", None), "__module__", None) != _DATA_WORKER:
            notes.add(Count.SPAWNED)
        return start(process)

    return counted
