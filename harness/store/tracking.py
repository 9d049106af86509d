"""MLflow as a projection of the journal: one parent per run, one nested child per variant, found again by tags.

Writing the same thing twice changes nothing, so a projection can be replayed at any time, into any tracking store. A
child is written in three calls and ``set_terminated`` is the last of them: it is the commit mark. A child that lacks
it, or whose content has changed (a retry), is deleted and written anew, since MLflow's params cannot be changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from harness.model import Outcome, Plan, Record, Variant
from harness.results import by_variant, collect
from harness.store import views
from harness.store.connection import Connection, connect, tracked
from harness.store.content import (
    DIGEST_TAG,
    KEY_TAG,
    KIND_RUN,
    KIND_TAG,
    KIND_VARIANT,
    PARENT_TAG,
    RUN_TAG,
    Content,
    child_content,
    parent_content,
)
from harness.store.entries import RUNNING, complete_parent, log, metric, new_parent, write_child
from harness.store.journal import is_being_run
from harness.store.layout import Store, checked_run_id

if TYPE_CHECKING:
    from mlflow.entities import Run

_PAGE = 1000


class Ending(StrEnum):
    """How a run came to its end, in MLflow's words."""

    COMPLETE = "FINISHED"
    INTERRUPTED = "KILLED"
    BROKEN = "FAILED"

    @classmethod
    def of(cls, plan: Plan, records: Sequence[Record]) -> Ending:
        """What is shown of a run that nobody is at work on: whether every planned attempt has been made."""
        results = collect(plan, records).results
        made = all(record.outcome is not Outcome.NOT_RUN for result in results for record in result.records)
        return cls.COMPLETE if made and all(result.complete for result in results) else cls.INTERRUPTED


class Projection(Protocol):
    """Something that shows a run elsewhere. Both methods may raise ``TrackingError``; the run goes on without it."""

    @property
    def closed(self) -> tuple[str, ...]:
        """The runs that killed coordinators had left open there, and that were closed."""

    def project(self, variant: Variant, records: Sequence[Record]) -> None:
        """Show ``variant``, of which ``records`` are all that there are so far."""

    def finish(self, ending: Ending, records: Sequence[Record], artifacts: Sequence[Path] = ()) -> None:
        """Close the run, of which ``records`` are all records, and attach ``artifacts`` (those that exist)."""


class MlflowProjection:
    """One run in MLflow. Make it with ``open``."""

    def __init__(
        self, connection: Connection, plan: Plan, parent: str, children: dict[str, Run], closed: tuple[str, ...] = ()
    ) -> None:
        """Go on with the MLflow run ``parent``, whose ``children`` (by variant key) are those that exist."""
        self.connection = connection
        self.parent = parent
        self.closed = closed
        self._plan = plan
        self._children = {key: (run.info.run_id, _committed_digest(run)) for key, run in children.items()}

    @classmethod
    def open(cls, store: Store, plan: Plan, *, live: bool = True) -> MlflowProjection:
        """Find the run's parent, or make it; ``live`` says that the run is going on, so that it is shown as running.

        Raises:
            TrackingError: MLflow is missing, cannot be reached, or refuses.
        """
        connection = connect(store)
        closed = close_abandoned(store, connection)
        with tracked(f"start run {plan.run}"):
            found = next(_search(connection, _parent_filter(plan.run)), None)
            if found is None:
                return cls(connection, plan, new_parent(connection, plan), {}, closed)
            complete_parent(connection, plan, found)
            if live:
                connection.client.update_run(found.info.run_id, status=RUNNING)
            children = _one_each(connection, found.info.run_id)
            return cls(connection, plan, found.info.run_id, children, closed)

    def project(self, variant: Variant, records: Sequence[Record]) -> None:
        """Write the child of ``variant``, unless the same is there already."""
        with tracked(f"write {variant.label}"):
            content = child_content(self._plan, variant, records)
            known, digest = self._children.get(variant.key, (None, None))
            if digest == content.digest:
                return
            if known is not None:
                self.connection.client.delete_run(known)
            run_id = write_child(self.connection, self.parent, content)
            self._children[variant.key] = (run_id, content.digest)

    def finish(self, ending: Ending, records: Sequence[Record], artifacts: Sequence[Path] = ()) -> None:
        """Bring the parent up to date and close it, unless it is so already.

        A child that was never finished, or of whose variant there is no record, is removed: the journal is the truth.
        """
        self.connection.check_in_place()
        present = [path for path in artifacts if path.is_file()]
        recorded = {record.key for record in records}
        with tracked(f"finish run {self._plan.run}"):
            for key, (run_id, known) in list(self._children.items()):
                if known is None or key not in recorded:
                    self.connection.client.delete_run(run_id)
                    del self._children[key]
            content = parent_content(self._plan, records, status=ending)
            digest = _digest_with(content, present)
            run = self.connection.client.get_run(self.parent)
            if run.info.status == ending and run.data.tags.get(DIGEST_TAG) == digest:
                return
            self._update_parent(run, content, digest)
            for path in present:
                self.connection.client.log_artifact(self.parent, str(path))
            views.publish(self.connection, self._plan, self.parent)
            self.connection.client.set_terminated(self.parent, ending, content.ended_ms)
        self.connection.tidy()

    def _update_parent(self, run: Run, content: Content, digest: str) -> None:
        tags = {name: text for name, text in content.tags.items() if run.data.tags.get(name) != text}
        metrics = [point for point in content.metrics if run.data.metrics.get(point.name) != point.value]
        step = max((point.step for point in content.metrics), default=0)
        # A retry can leave an outcome without any variant; MLflow forgets nothing, so it is told.
        gone = set(run.data.metrics) - {point.name for point in content.metrics}
        zeros = [metric(name, 0.0, content.ended_ms, step) for name in sorted(gone) if run.data.metrics[name] != 0]
        points = [metric(p.name, p.value, p.at_ms, p.step) for p in metrics]
        log(self.connection, run.info.run_id, points + zeros, {}, tags | {DIGEST_TAG: digest})


def sync(
    store: Store,
    plan: Plan,
    records: Sequence[Record],
    tracking_uri: str | None = None,
    *,
    artifacts: Sequence[Path] = (),
) -> MlflowProjection:
    """Replay a run into ``tracking_uri`` (by default the store's own); a second time changes nothing.

    Every variant that has a record gets its child; how many have none stands in the parent's ``outcome.not-run``.

    Raises:
        TrackingError: MLflow is missing, cannot be reached, or refuses.
    """
    target = store if tracking_uri is None else Store(store.root, tracking_uri)
    projection = MlflowProjection.open(target, plan, live=False)
    for variant, mine in by_variant(plan, records):
        if mine:
            projection.project(variant, mine)
    projection.finish(Ending.of(plan, records), records, artifacts)
    return projection


def close_abandoned(store: Store, connection: Connection) -> tuple[str, ...]:
    """Close as KILLED what a killed coordinator of this store left RUNNING; the ids of the harness runs concerned.

    Raises:
        TrackingError: MLflow is missing, cannot be reached, or refuses.
    """
    closed: dict[str, None] = {}
    with tracked("close what was left open"):
        left = list(_search(connection, "attributes.status = 'RUNNING'"))
        ours = frozenset(store.runs()) if left else frozenset()
        for run in left:
            name = run.data.tags.get(RUN_TAG, "")
            if name in ours and not is_being_run(store.folder(name)):
                # First the mark goes that says it is whole: nothing may take it for finished.
                if DIGEST_TAG in run.data.tags:
                    connection.client.delete_tag(run.info.run_id, DIGEST_TAG)
                connection.client.set_terminated(run.info.run_id, Ending.INTERRUPTED)
                closed[name] = None
    return tuple(closed)


def closed_words(run: str) -> str:
    """What a person is told of a run that ``close_abandoned`` has closed."""
    return f"MLflow still showed run {run}, whose coordinator was killed, as running; it is closed there as KILLED"


def find_parent(connection: Connection, run: str) -> str | None:
    """MLflow's id of the parent of the harness run ``run``."""
    with tracked(f"look for run {run}"):
        found = next(_search(connection, _parent_filter(run)), None)
        return found.info.run_id if found else None


def children_of(connection: Connection, parent: str) -> dict[str, Run]:
    """The children of an MLflow run by their variant's key, the newest where a key has several."""
    return {key: runs[0] for key, runs in _children(connection, parent).items()}


def _one_each(connection: Connection, parent: str) -> dict[str, Run]:
    """The same; of a key that has several, the older ones are removed."""
    found = _children(connection, parent)
    for _, *older in found.values():
        for run in older:
            connection.client.delete_run(run.info.run_id)
    return {key: runs[0] for key, runs in found.items()}


def _children(connection: Connection, parent: str) -> dict[str, list[Run]]:
    """The children of an MLflow run by their variant's key, the newest first."""
    found: dict[str, list[Run]] = {}
    for run in _search(connection, f"tags.{PARENT_TAG} = '{parent}' AND tags.`{KIND_TAG}` = '{KIND_VARIANT}'"):
        found.setdefault(run.data.tags.get(KEY_TAG, run.info.run_id), []).append(run)
    return found


def _parent_filter(run: str) -> str:
    return f"tags.`{RUN_TAG}` = '{checked_run_id(run)}' AND tags.`{KIND_TAG}` = '{KIND_RUN}'"


def _search(connection: Connection, condition: str) -> Iterator[Run]:
    token: str | None = None
    while True:
        page = connection.client.search_runs([connection.experiment], condition, max_results=_PAGE, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def _committed_digest(run: Run) -> str | None:
    """The digest of a child's content; None if it was never finished."""
    return None if run.info.status == RUNNING else run.data.tags.get(DIGEST_TAG)


def _digest_with(content: Content, files: Sequence[Path]) -> str:
    """A digest of ``content`` and of what is in ``files``."""
    whole = hashlib.sha256(content.digest.encode())
    for path in files:
        whole.update(path.name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()[:16]
