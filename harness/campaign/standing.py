"""How runs stand: what was planned, what is recorded, what is missing, and whether anybody is at work on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from harness.campaign.policy import Policy, remaining
from harness.errors import HarnessError
from harness.model import Device, Outcome, Plan
from harness.results import Result, collect
from harness.sittings import Sitting
from harness.store.journal import is_being_run, read_plan, read_records
from harness.store.layout import RunFolder, Store
from harness.store.sittings import read_sittings


class State(StrEnum):
    """What is going on with a run."""

    RUNNING = "running"
    COMPLETE = "complete"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class DeviceStanding:
    """Counts of attempts on one device; ``outcomes`` has those recorded, by the outcome of the latest of each."""

    device: Device
    planned: int
    recorded: int
    superseded: int
    outcomes: Counter[Outcome]

    @property
    def missing(self) -> int:
        """How many planned attempts have no record."""
        return self.planned - self.recorded


@dataclass(frozen=True, slots=True)
class Standing:
    """One run as its folder shows it.

    ``again`` counts the recorded attempts that a resume would make once more; ``reported`` is whether the latest
    sitting came to write its report.
    """

    plan: Plan
    state: State
    devices: tuple[DeviceStanding, ...]
    sittings: tuple[Sitting, ...]
    strays: int
    again: int
    reported: bool

    @property
    def planned(self) -> int:
        """How many attempts were planned on all devices."""
        return sum(each.planned for each in self.devices)

    @property
    def recorded(self) -> int:
        """How many of them have a record."""
        return sum(each.recorded for each in self.devices)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A run whose plan or journal cannot be read, and why."""

    run: str
    reason: str


def standing(folder: RunFolder) -> Standing:
    """How the run in ``folder`` stands; its coordinator may be at work meanwhile.

    Raises:
        HarnessError: plan or journal is missing, damaged or newer than this harness.
    """
    running = is_being_run(folder)  # before the journal is read: who then is not running has written all there is
    plan, records = read_plan(folder), read_records(folder)
    collection = collect(plan, records)
    state = State.RUNNING if running else State.COMPLETE if collection.complete else State.UNFINISHED
    devices = tuple(_on_device(plan, device, collection.results) for device in plan.devices)
    again = 0 if plan.is_program else sum(each.before is not None for each in remaining(plan, records, Policy()))
    sittings = read_sittings(folder, plan)
    return Standing(plan, state, devices, sittings, collection.strays, again, is_reported(folder, sittings))


def is_reported(folder: RunFolder, sittings: Sequence[Sitting]) -> bool:
    """Whether the latest sitting came to write its report. One that was killed before leaves none, or an earlier one.

    The journal's own time is not asked: whoever copies a run gives its files times in any order.
    """
    began = sittings[-1].started
    with suppress(OSError):
        written = folder.report.stat().st_mtime
        with suppress(ValueError):  # not a time: nobody but a person's editor writes that
            return written >= datetime.fromisoformat(began).timestamp()
        return True
    return False


def _on_device(plan: Plan, device: Device, results: tuple[Result, ...]) -> DeviceStanding:
    mine = [result for result in results if result.device is device]
    outcomes = Counter(record.outcome for result in mine for record in result.records)
    planned = len(plan.variants) * plan.replicates_on(device)
    return DeviceStanding(device, planned, outcomes.total(), sum(result.superseded for result in mine), outcomes)


def standings(store: Store) -> Iterator[Standing | Unreadable]:
    """How every run of ``store`` stands, oldest first; one that cannot be read hides no other."""
    for run in store.runs():
        try:
            yield standing(store.folder(run))
        except HarnessError as error:
            yield Unreadable(run, str(error))
