"""A journal -> MLflow, at any later time."""

from __future__ import annotations

from collections.abc import Callable

from harness.campaign.desk import artifacts
from harness.store.journal import held, read_plan, read_records
from harness.store.layout import Store
from harness.store.tracking import closed_words, sync


def sync_run(store: Store, run: str | None, tell: Callable[[str], None] = lambda _: None) -> str:
    """Replay a run's journal into the store's MLflow; returns the run's id. A second time changes nothing.

    What a killed coordinator left open in MLflow, of whichever run, is closed, and ``tell`` hears of it.

    Raises:
        RunBusyError: a coordinator is at work on the run, and writes to MLflow itself.
        HarnessError: no such run, a damaged journal, or MLflow refuses.
    """
    folder = store.find(run)
    plan = read_plan(folder)
    with held(folder, store.command("report", folder.run)):
        projection = sync(store, plan, read_records(folder), artifacts=artifacts(folder))
    for left in projection.closed:
        tell(closed_words(left))
    return folder.run
