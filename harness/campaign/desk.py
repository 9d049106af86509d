"""Where a record goes, in this order: the journal, the books, the person, MLflow; and how a run is closed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.campaign.conditions import Listener
from harness.model import Order, Outcome, Plan, Record
from harness.results import collect
from harness.store.background import NoTracking, Tracking
from harness.store.journal import Journal
from harness.store.layout import RunFolder
from harness.store.sittings import read_sittings
from harness.store.tracking import Ending, closed_words


class Books:
    """All records of a run, those of earlier sittings included, and which of this sitting's orders are outstanding."""

    def __init__(self, plan: Plan, orders: Sequence[Order], before: Iterable[Record] = ()) -> None:
        """Open the books of a sitting that is to carry out ``orders``; ``before`` is what the journal has already."""
        self.plan = plan
        self.variants = {variant.key: variant for variant in plan.variants}
        self.by_key: dict[str, list[Record]] = defaultdict(list)
        for record in before:
            self.by_key[record.key].append(record)
        self._outstanding = Counter(order.variant.key for order in orders)
        self._given_up = 0

    def add(self, record: Record) -> None:
        """Enter ``record``, which one of the orders has led to."""
        self.by_key[record.key].append(record)
        self._outstanding[record.key] -= 1
        self._given_up += record.outcome is Outcome.NOT_RUN

    @property
    def all(self) -> tuple[Record, ...]:
        """Every record, variant by variant."""
        return tuple(record for records in self.by_key.values() for record in records)

    @property
    def recorded(self) -> int:
        """How many of the planned attempts have a record, however often they were made."""
        return sum(len(result.records) for result in collect(self.plan, self.all).results)

    def is_settled(self, key: str) -> bool:
        """Whether this sitting has made all that it was to make of a variant."""
        return self._outstanding[key] <= 0

    @property
    def outstanding(self) -> int:
        """How many orders have not been carried out; one that was given up on the way is among them."""
        return self._given_up + self._outstanding.total()

    @property
    def finished(self) -> bool:
        """Whether every order has been carried out: a stop that came after the last of them has stopped nothing."""
        return not self.outstanding


@dataclass(frozen=True, slots=True)
class Desk:
    """The coordinator's desk for one sitting."""

    journal: Journal
    books: Books
    tracking: Tracking
    listener: Listener

    def enter(self, record: Record) -> None:
        """Keep ``record``, then tell of it."""
        self.journal.append(record)
        self.books.add(record)
        self.listener.recorded(record)
        if self.books.is_settled(record.key):
            self._show(record.key)

    def show_all(self, *, settled: bool) -> None:
        """Let MLflow show every variant that is ``settled`` or that is not; what it shows already costs it little."""
        for key in self.books.variants:
            if self.books.is_settled(key) is settled:
                self._show(key)

    def _show(self, key: str) -> None:
        variant, records = self.books.variants.get(key), self.books.by_key.get(key)
        if variant is not None and records:
            self.tracking.project(variant, tuple(records))

    def close(self, ending: Ending) -> tuple[Path, ...]:
        """Write the report and close the run in MLflow; the second also where the first cannot be done."""
        from harness.report import write_report

        books, tracking, folder = self.books, self.tracking, self.journal.folder
        self.show_all(settled=False)
        self.listener.finishing("writing the report")
        sittings = read_sittings(folder, books.plan)
        try:
            # What MLflow may have lost is known only when it is closed; until then there is nothing to say about it.
            files = tuple(write_report(folder.path, books.plan, books.all, sittings=sittings))
        finally:
            if not isinstance(tracking, NoTracking):
                self.listener.finishing("writing to MLflow")
            tracking.finish(ending, books.all, artifacts(folder))
            for run in tracking.closed:
                self.listener.noted(closed_words(run))
        if tracking.caveats:
            files = tuple(write_report(folder.path, books.plan, books.all, tracking.caveats, sittings=sittings))
        return files


def artifacts(folder: RunFolder) -> tuple[Path, ...]:
    """What MLflow gets of a run's folder: the same at the run's end and for a later sync."""
    plots = sorted(path for path in folder.path.iterdir() if path.suffix in {".svg", ".png"})
    return (folder.report, folder.results, *plots, folder.plan, folder.records, folder.sittings)
