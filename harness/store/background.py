"""MLflow off the critical path: one thread writes, while the coordinator goes on with its attempts.

The journal has everything before this room learns of it, so nothing here may stop a run: what fails becomes a caveat
for the report, and ``harness sync`` can make up for it later.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from harness.errors import HarnessError
from harness.model import Caveat, Plan, Record, Variant
from harness.store.connection import check_tracking
from harness.store.layout import Store
from harness.store.tracking import Ending, MlflowProjection, Projection

PATIENCE_S = 60.0
"""How long ``finish`` waits for the writer without seeing any progress."""

HURRY_S = 5.0
"""How long an interrupted run still writes variants before its parent is closed."""

MOST_FAILURES = 3
"""After so many failures in a row the writer gives up on the variants."""

_PAUSE_PATIENCE_S = 10.0
_LOOK_S = 0.1


class Tracking(Protocol):
    """What the coordinator knows of MLflow. None of these raises because of MLflow."""

    def project(self, variant: Variant, records: Sequence[Record]) -> None:
        """Show ``variant`` soon; ``records`` are all that it has, on every device. Again, with more, replaces."""

    def pause(self) -> bool:
        """Write nothing until ``resume``, since something is being timed; whether the writer is at rest now."""

    def resume(self) -> None:
        """Writing may go on."""

    def finish(self, ending: Ending, records: Sequence[Record], artifacts: Sequence[Path] = ()) -> None:
        """Write what is left, close the run with all its ``records`` and attach ``artifacts``; waits for that."""

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a reader of the report must know about this; complete after ``finish``."""

    @property
    def closed(self) -> tuple[str, ...]:
        """The runs that killed coordinators had left open, and that are closed now; complete after ``finish``."""


def start_tracking(store: Store, plan: Plan, *, enabled: bool = True) -> Tracking:
    """Begin to show the run of ``plan`` in MLflow; returns at once, MLflow is imported meanwhile.

    Call it before anything is kept, so that what can never work is refused first.

    Raises:
        TrackingError: tracking is wanted, and MLflow is not installed or the store is in its old file format.
        UsageError: the tracking URI is none that MLflow knows.
    """
    if not enabled:
        return NoTracking()
    check_tracking(store)
    return BackgroundProjection(
        lambda: MlflowProjection.open(store, plan), store.command("sync", plan.run, tracking=True)
    )


class NoTracking:
    """Nothing is shown anywhere: the person said ``--no-tracking``."""

    def project(self, variant: Variant, records: Sequence[Record]) -> None:
        """Do nothing."""

    def pause(self) -> bool:
        """Do nothing: nobody writes."""
        return True

    def resume(self) -> None:
        """Do nothing."""

    def finish(self, ending: Ending, records: Sequence[Record], artifacts: Sequence[Path] = ()) -> None:
        """Do nothing."""

    @property
    def caveats(self) -> tuple[str, ...]:
        """That there is nothing in MLflow."""
        return (str(Caveat.NOT_TRACKED),)

    @property
    def closed(self) -> tuple[str, ...]:
        """None."""
        return ()


class BackgroundProjection:
    """A projection that is opened and written to by a thread of its own."""

    def __init__(
        self,
        open_projection: Callable[[], Projection],
        sync: str,
        *,
        patience_s: float = PATIENCE_S,
        hurry_s: float = HURRY_S,
    ) -> None:
        """Start the thread, which begins with ``open_projection``; the command ``sync`` makes up for what fails."""
        self._open = open_projection
        self._sync = sync
        self._patience_s, self._hurry_s = patience_s, hurry_s
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Variant, tuple[Record, ...]]] = deque()
        self._ending: Callable[[Projection], None] | None = None
        self._paused = self._busy = self._done = self._abandoned = False
        self._moves = self._failures = 0
        self._written: set[str] = set()
        self._keys: set[str] = set()
        self._reason: str | None = None
        self._closing_reason: str | None = None
        self._closed: tuple[str, ...] = ()
        # A daemon: a server that never answers must not keep the process from ending.
        self._thread = threading.Thread(target=self._work, name="mlflow-writer", daemon=True)
        self._thread.start()

    def project(self, variant: Variant, records: Sequence[Record]) -> None:
        """Leave ``variant`` for the writer; returns at once."""
        with self._changed:
            self._keys.add(variant.key)
            self._written.discard(variant.key)
            self._waiting.append((variant, tuple(records)))
            self._changed.notify_all()

    def pause(self) -> bool:
        """Keep the writer from beginning anything; waits for what it is at, but not for ever."""
        with self._changed:
            self._paused = True
            return self._changed.wait_for(lambda: not self._busy, _PAUSE_PATIENCE_S)

    def resume(self) -> None:
        """Let the writer go on."""
        with self._changed:
            self._paused = False
            self._changed.notify_all()

    def finish(self, ending: Ending, records: Sequence[Record], artifacts: Sequence[Path] = ()) -> None:
        """Let the writer finish; gives up when it makes no progress. An interrupted run soon leaves variants out.

        A ``KeyboardInterrupt`` passes through, and the writer goes on as long as the process lives.
        """
        kept, files = tuple(records), tuple(artifacts)
        with self._changed:
            self._ending = lambda projection: projection.finish(ending, kept, files)
            self._paused = False
            self._changed.notify_all()
        self._wait(hurry=ending is not Ending.COMPLETE)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What did not reach MLflow, and how to make up for it."""
        with self._changed:
            lost, reasons = len(self._keys - self._written), []
            how = f"The journal has them: `{self._sync}` writes them later."
            if lost:
                why = f" ({self._reason})" if self._reason else ""
                reasons.append(f"{lost} of {len(self._keys)} variants were not written to MLflow{why}. {how}")
            if self._abandoned or self._closing_reason:
                why = self._closing_reason or self._reason or f"no answer for {self._patience_s:g} s"
                reasons.append(f"The run was not closed in MLflow ({why}). `{self._sync}` closes it.")
            return tuple(reasons)

    @property
    def closed(self) -> tuple[str, ...]:
        """See ``Tracking.closed``."""
        with self._changed:
            return self._closed

    def _wait(self, *, hurry: bool) -> None:
        """Wait until the writer is done, or has not moved for too long. The hurry begins when MLflow is open."""
        with self._changed:
            moves, moved_at = self._moves, time.monotonic()
            hurry_at = moved_at + self._hurry_s if hurry and moves else None
            while not self._done:
                self._changed.wait(_LOOK_S)
                now = time.monotonic()
                if self._moves != moves:
                    moves, moved_at = self._moves, now
                    hurry_at = hurry_at or (now + self._hurry_s if hurry else None)
                if hurry_at is not None and now > hurry_at and self._waiting:
                    self._reason = self._reason or "the run was interrupted"
                    self._waiting.clear()
                if now - moved_at > self._patience_s:
                    self._abandoned = True
                    return

    def _work(self) -> None:
        """The thread: open, write what comes, end."""
        projection: Projection | None = None
        self._begin(lambda: True)
        try:
            projection = self._open()
            self._closed = projection.closed
        except Exception as error:  # nothing that MLflow does may stop a run
            self._reason = self._closing_reason = _sentence(error)
        self._end()
        while (job := self._next()) is not None:
            if projection is not None and self._failures < MOST_FAILURES:
                self._write(projection, *job)
            self._end()
        if projection is not None:
            self._close(projection)
        with self._changed:
            self._done = True
        self._end()

    def _begin(self, ready: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._paused and ready())
            self._busy = True

    def _end(self) -> None:
        with self._changed:
            self._busy = False
            self._moves += 1
            self._changed.notify_all()

    def _next(self) -> tuple[Variant, tuple[Record, ...]] | None:
        """The next variant to write; None when the run has ended and none is left."""
        self._begin(lambda: bool(self._waiting) or self._ending is not None)
        with self._changed:
            return self._waiting.popleft() if self._waiting else None

    def _write(self, projection: Projection, variant: Variant, records: tuple[Record, ...]) -> None:
        try:
            projection.project(variant, records)
        except Exception as error:  # nothing that MLflow does may stop a run
            self._failures += 1
            self._reason = self._reason or _sentence(error)
            return
        self._failures = 0
        with self._changed:
            self._written.add(variant.key)

    def _close(self, projection: Projection) -> None:
        assert self._ending is not None, "the writer closes only what was asked to end"
        try:
            self._ending(projection)
        except Exception as error:  # nothing that MLflow does may stop a run
            self._closing_reason = _sentence(error)


def _sentence(error: Exception) -> str:
    return str(error) if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}"
