"""How a run is carried out, who is told of it, and what is left when it has ended."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.model import Plan, Record
from harness.sittings import Sitting
from harness.store.connection import check_tracking
from harness.store.layout import Store


@dataclass(frozen=True, slots=True)
class Conditions:
    """How a run is carried out: on which devices, how often, and whether MLflow is told."""

    store: Store
    device: str = "auto"
    replicates: int | None = None
    tracked: bool = True
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that has ended: its plan, everything recorded, and where the report is."""

    plan: Plan
    records: tuple[Record, ...]
    folder: Path
    files: tuple[Path, ...]
    tracked: bool
    caveats: tuple[str, ...] = ()
    """What did not reach MLflow, and how to make up for it."""


class Listener(Protocol):
    """Who is told how a run goes."""

    def preparing(self, what: str) -> None:
        """Something that takes seconds begins."""

    def started(self, plan: Plan) -> None:
        """The plan is kept and the first attempt is about to start."""

    def resumed(self, plan: Plan, sitting: Sitting, attempts: int) -> None:
        """A run is about to go on in a new sitting, with so many attempts."""

    def recorded(self, record: Record) -> None:
        """A record is safe in the journal."""

    def finishing(self, what: str) -> None:
        """All attempts are over; ``what`` comes next."""

    def noted(self, sentence: str) -> None:
        """Something that the person should know, and that is no failure."""


def check(conditions: Conditions) -> None:
    """Refuse what can never work before seconds are spent on it and anything is kept.

    Raises:
        TrackingError: MLflow is wanted, and is not installed or cannot open the store.
        UsageError: the tracking URI is none that MLflow knows.
    """
    if conditions.tracked:
        check_tracking(conditions.store)
