"""The loop: plan, launch, journal, project to MLflow, report."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol

from harness.environment import environment
from harness.errors import InterruptedRunError
from harness.launch.site import Site, open_site
from harness.launch.stop import StopRequest, on_signals
from harness.matrix.expand import Expansion, expand, select
from harness.matrix.shelf import read_matrix
from harness.model import Device, Order, Outcome, Plan, Record, Settings, Variant
from harness.store.background import NoTracking, Tracking, start_tracking
from harness.store.connection import check_tracking
from harness.store.journal import Journal, read_plan, read_records
from harness.store.layout import RunFolder, Store, new_run_id
from harness.store.tracking import Ending, sync


@dataclass(frozen=True, slots=True)
class Selection:
    """Which variants of which matrix: overrides as ``axis=v1,v2``, globs over labels."""

    matrix: str = "matrix"
    overrides: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join([*(f"-a {text}" for text in self.overrides), *(f"-k {glob}" for glob in self.globs)])


@dataclass(frozen=True, slots=True)
class Chosen:
    """A matrix after selection: what would run."""

    name: str
    description: str
    settings: Settings
    expansion: Expansion


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

    def recorded(self, record: Record) -> None:
        """A record is safe in the journal."""

    def finishing(self, what: str) -> None:
        """All attempts are over; ``what`` comes next."""


@dataclass(slots=True)
class Books:
    """The records of a running campaign, by variant, and which variants are complete."""

    plan: Plan
    by_key: dict[str, list[Record]] = field(default_factory=lambda: defaultdict(list))

    def add(self, record: Record) -> None:
        """Enter ``record``."""
        self.by_key[record.key].append(record)

    @property
    def all(self) -> tuple[Record, ...]:
        """Every record, variant by variant."""
        return tuple(record for records in self.by_key.values() for record in records)

    def is_complete(self, key: str) -> bool:
        """Whether every attempt planned for a variant has its record."""
        return len(self.by_key[key]) >= self.plan.attempts // len(self.plan.variants)

    @property
    def finished(self) -> bool:
        """Whether every planned attempt has run: a stop that came after the last of them has stopped nothing."""
        ran = sum(record.outcome is not Outcome.NOT_RUN for record in self.all)
        return ran >= self.plan.attempts


def choose(selection: Selection) -> Chosen:
    """What a selection comes to.

    Raises:
        UsageError: an unknown name, axis or value, or a malformed file.
        NothingSelectedError: no variant is left.
    """
    name, document = read_matrix(selection.matrix)
    expansion = select(expand(document, selection.overrides), selection.globs)
    return Chosen(name, document.description.strip(), document.settings.settings(), expansion)


def run_matrix(selection: Selection, conditions: Conditions, listener: Listener) -> Finished:
    """Run every selected variant on every device, keep the records, tell MLflow, write the report.

    Raises:
        InterruptedRunError: the person stopped it; what was recorded is kept, reported and in MLflow.
        HarnessError: see ``choose``, ``check``, ``open_site`` and ``Journal``.
    """
    chosen = choose(selection)
    check(conditions)
    settings = replace(chosen.settings, replicates=conditions.replicates or chosen.settings.replicates)
    listener.preparing("starting PyTorch")
    with open_site(conditions.device) as site:
        plan = Plan(
            run=new_run_id(),
            matrix=chosen.name,
            description=chosen.description,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            devices=site.devices,
            settings=settings,
            variants=chosen.expansion.variants,
            exclusions=chosen.expansion.exclusions,
            selection=str(selection),
            command=conditions.command,
            environment=environment(),
            notes=tuple(site.notes),
        )
        return carry_out(plan, orders_of, site, conditions, listener)


def check(conditions: Conditions) -> None:
    """Refuse what can never work before seconds are spent on it and anything is kept.

    Raises:
        TrackingError: MLflow is wanted, and is not installed or cannot open the store.
        UsageError: the tracking URI is none that MLflow knows.
    """
    if conditions.tracked:
        check_tracking(conditions.store)


class OrderMaker(Protocol):
    """What has to be done for a plan on one device."""

    def __call__(self, plan: Plan, device: Device) -> Iterator[Order]:
        """The orders, in the order in which they are to be started."""
        ...


def orders_of(plan: Plan, device: Device) -> Iterator[Order]:
    """One order per variant and replicate. Replicates are the outer loop, so that a drift hits all variants alike.

    Where attempts are timed, each replicate has the variants in an order of its own: the plan's seed gives it, so it
    can be told from the plan alone.
    """
    for replicate in range(plan.replicates_on(device)):
        variants = plan.variants
        if device.computes:
            variants = tuple(sorted(variants, key=partial(_draw, plan.settings.seed, replicate)))
        for variant in variants:
            yield Order(plan.run, variant, device, plan.settings, replicate)


def _draw(seed: int, replicate: int, variant: Variant) -> bytes:
    """A lot that is the same in every version of Python, and does not depend on what else is planned."""
    return hashlib.sha256(f"{seed}/{replicate}/{variant.key}".encode()).digest()


def carry_out(plan: Plan, orders: OrderMaker, site: Site, conditions: Conditions, listener: Listener) -> Finished:
    """Run a plan to its end or to the person's stop, and leave store, MLflow and report in agreement."""
    store, stop = conditions.store, StopRequest()
    folder = store.folder(plan.run)
    books = Books(plan)
    # MLflow hears of a run that is in the journal, never of one that could not be kept.
    with on_signals(stop), Journal.create(folder, plan) as journal:
        tracking = start_tracking(store, plan, enabled=conditions.tracked)
        desk = _Desk(journal, books, tracking, listener)
        try:
            listener.started(plan)
            for device in plan.devices:
                _run_device(plan, orders(plan, device), site, desk, stop)
        except BaseException:
            # The harness itself failed. What is recorded is reported as far as that is possible, MLflow does not
            # show RUNNING, and it is the first failure that the person hears of.
            with suppress(Exception):
                _close(desk, Ending.INTERRUPTED if stop.no_more else Ending.BROKEN)
            raise
        ending = Ending.INTERRUPTED if stop.no_more and not books.finished else Ending.COMPLETE
        files = _close(desk, ending)
    if ending is Ending.INTERRUPTED:
        raise InterruptedRunError(
            f"stopped: {len(books.all)} of {plan.attempts} attempts are recorded in {folder.path}",
            f"`harness report {plan.run}` shows them; the same command runs all variants anew.",
        )
    return Finished(plan, books.all, folder.path, files, conditions.tracked, _lost(conditions, tracking))


def _lost(conditions: Conditions, tracking: Tracking) -> tuple[str, ...]:
    """What a person who wanted MLflow must be told about it."""
    return tracking.caveats if conditions.tracked else ()


def sync_run(store: Store, run: str | None) -> str:
    """Replay a run's journal into the store's MLflow; returns the run's id. A second time changes nothing.

    Raises:
        HarnessError: no such run, a damaged journal, or MLflow refuses.
    """
    folder = store.find(run)
    plan = read_plan(folder)
    sync(store, plan, read_records(folder), artifacts=_artifacts(folder))
    return folder.run


@dataclass(frozen=True, slots=True)
class _Desk:
    """Where a record goes, in this order: the journal, the books, the person, MLflow."""

    journal: Journal
    books: Books
    tracking: Tracking
    listener: Listener

    def enter(self, record: Record) -> None:
        self.journal.append(record)
        self.books.add(record)
        self.listener.recorded(record)


def _run_device(plan: Plan, orders: Iterator[Order], site: Site, desk: _Desk, stop: StopRequest) -> None:
    if stop.no_more:
        return
    todo = list(orders)
    device = todo[0].device
    variants = {variant.key: variant for variant in plan.variants}
    # Where the attempts are timed on the very cores that MLflow would be written with, it has to wait.
    if device is Device.CPU:
        desk.tracking.pause()
    for record in site.executors[device].run(todo, site.slots(device), stop):
        desk.enter(record)
        if desk.books.is_complete(record.key):
            desk.tracking.project(variants[record.key], tuple(desk.books.by_key[record.key]))
    desk.tracking.resume()


def _close(desk: _Desk, ending: Ending) -> tuple[Path, ...]:
    """Write the report and close the run in MLflow; the second also where the first cannot be done."""
    from harness.report import write_report

    books, tracking, folder = desk.books, desk.tracking, desk.journal.folder
    plan = books.plan
    if ending is not Ending.COMPLETE:
        for variant in plan.variants:
            if books.by_key.get(variant.key) and not books.is_complete(variant.key):
                tracking.project(variant, tuple(books.by_key[variant.key]))
    desk.listener.finishing("writing the report")
    try:
        # What MLflow may have lost is known only when it is closed; until then there is nothing to say about it.
        files = tuple(write_report(folder.path, plan, books.all))
    finally:
        if not isinstance(tracking, NoTracking):
            desk.listener.finishing("writing to MLflow")
        tracking.finish(ending, books.all, _artifacts(folder))
    if tracking.caveats:
        files = tuple(write_report(folder.path, plan, books.all, tracking.caveats))
    return files


def _artifacts(folder: RunFolder) -> tuple[Path, ...]:
    """What MLflow gets of a run's folder: the same at the run's end and for a later sync."""
    plots = sorted(path for path in folder.path.iterdir() if path.suffix in {".svg", ".png"})
    return (folder.report, folder.results, *plots, folder.plan, folder.records)
