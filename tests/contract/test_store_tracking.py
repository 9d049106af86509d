"""MLflow as a projection, with a real SQLite store."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from store_samples import FINE, PLAN, RAISES, RECORDS

from harness.errors import TrackingError
from harness.model import Outcome, Plan, Record
from harness.store.background import start_tracking
from harness.store.connection import Connection
from harness.store.journal import Journal
from harness.store.layout import RunFolder, Store, new_run_id
from harness.store.tracking import Ending, MlflowProjection, children_of, close_abandoned, find_parent, sync
from harness.store.ui import links
from harness.store.views import view_key

pytestmark = pytest.mark.filterwarnings(
    "ignore:The ``noload`` loader strategy is deprecated:DeprecationWarning"  # MLflow's models with SQLAlchemy 2.1
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        yield Store(tmp_path_factory.mktemp("a store"))


def make_plan() -> Plan:
    """A run of its own, of the two variants that end on every device."""
    return replace(PLAN, run=new_run_id(), variants=(RAISES, FINE))


def make_records(plan: Plan) -> list[Record]:
    return [replace(record, run=plan.run) for record in RECORDS[:4]]


def kept(store: Store, plan: Plan, records: list[Record]) -> RunFolder:
    folder = store.folder(plan.run)
    with Journal.create(folder, plan) as journal:
        for record in records:
            journal.append(record)
    return folder


def everything(connection: Connection, plan: Plan) -> dict[str, Any]:
    """All that MLflow has of a run, deleted children included."""
    found = connection.client.search_runs(
        [connection.experiment], f"tags.`harness.run` = '{plan.run}'", run_view_type=3, max_results=1000
    )
    return {run.info.run_id: run.to_dictionary() for run in found}


def test_a_run_is_shown_while_it_goes_on_and_is_whole_when_it_ends(store: Store) -> None:
    plan = make_plan()
    records = make_records(plan)
    folder = kept(store, plan, records)
    folder.report.write_text("# Report\n")
    tracking = start_tracking(store, plan)
    tracking.project(RAISES, records[:2])
    tracking.project(FINE, records[2:])
    tracking.finish(Ending.COMPLETE, records, [folder.report, folder.plan, folder.records, folder.results])
    assert tracking.caveats == ()

    projection = MlflowProjection.open(store, plan, live=False)
    client = projection.connection.client
    parent = client.get_run(projection.parent)
    assert parent.info.status == "FINISHED"
    assert parent.data.params["environment.torch"] == "2.9"
    assert parent.data.metrics["outcome.backward-error"] == 1
    assert parent.data.metrics["outcome.ok.cpu"] == 2
    names = {artifact.path for artifact in client.list_artifacts(projection.parent)}
    assert names == {"report.md", "plan.json", "records.jsonl"}

    children = children_of(projection.connection, projection.parent)
    assert children.keys() == {RAISES.key, FINE.key}
    raises = children[RAISES.key]
    assert raises.info.status == "FAILED"
    assert (raises.info.end_time - raises.info.start_time) == 4500
    assert raises.data.params["outcome"] == "backward-error"
    assert raises.data.tags["harness.device"] == "stub+cpu"
    assert raises.data.metrics["sequences_per_second.cpu"] == 32.0
    assert [m.value for m in client.get_metric_history(raises.info.run_id, "step_ms.cpu")] == [500.0, 1000.0, 500.0]
    assert children[FINE.key].info.status == "FINISHED"


def test_the_layout_is_mlflows_own_wherever_one_stands(store: Store) -> None:
    connection = MlflowProjection.open(store, make_plan()).connection
    for name in (connection.experiment, "0"):
        experiment = connection.client.get_experiment(name)
        assert Path(experiment.artifact_location.removeprefix("file://")) == store.artifacts / name
    with closing(sqlite3.connect(store.database)) as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_replay_makes_what_is_missing_and_a_second_one_changes_nothing(store: Store) -> None:
    plan = make_plan()
    records = make_records(plan)
    folder = kept(store, plan, records)
    connection = sync(store, plan, records, artifacts=[folder.records]).connection
    first = everything(connection, plan)
    assert len(first) == 3
    sync(store, plan, records, artifacts=[folder.records])
    assert everything(connection, plan) == first


def test_a_replay_into_another_store_has_all_of_it(store: Store, tmp_path: Path) -> None:
    plan = make_plan()
    records = make_records(plan)
    uri = f"sqlite:///{tmp_path}/else/mlflow.db"
    projection = sync(store, plan, records, uri)
    assert len(everything(projection.connection, plan)) == 3
    assert (tmp_path / "else" / "mlflow.db").is_file()


def test_a_retry_replaces_the_child_and_the_counts(store: Store) -> None:
    plan = make_plan()
    records = make_records(plan)
    crashed = [*records[:2], replace(records[2], outcome=Outcome.CRASH), records[3]]
    first = sync(store, plan, crashed)
    before = children_of(first.connection, first.parent)
    retried = [*crashed, replace(records[2], attempt=2)]
    again = sync(store, plan, retried)
    assert again.parent == first.parent
    after = children_of(again.connection, again.parent)
    assert after[FINE.key].data.params["outcome"] == "ok"
    assert after[FINE.key].info.run_id != before[FINE.key].info.run_id
    assert after[RAISES.key].info.run_id == before[RAISES.key].info.run_id
    metrics = again.connection.client.get_run(again.parent).data.metrics
    assert (metrics["outcome.crash"], metrics["outcome.ok"]) == (0, 1)


def test_a_child_that_was_half_written_is_written_anew(store: Store) -> None:
    plan = make_plan()
    records = make_records(plan)
    projection = MlflowProjection.open(store, plan)
    projection.project(FINE, records[2:])
    child = children_of(projection.connection, projection.parent)[FINE.key]
    projection.connection.client.update_run(child.info.run_id, status="RUNNING")
    sync(store, plan, records)
    children = children_of(projection.connection, projection.parent)
    assert children[FINE.key].info.run_id != child.info.run_id
    assert {run.info.status for run in children.values()} == {"FAILED", "FINISHED"}


def test_a_run_with_missing_records_ends_as_killed_and_goes_on_as_running(store: Store) -> None:
    plan = make_plan()
    records = make_records(plan)
    projection = sync(store, plan, records[:2])
    client = projection.connection.client
    assert client.get_run(projection.parent).info.status == "KILLED"
    assert client.get_run(projection.parent).data.metrics["outcome.not-run"] == 1
    resumed = MlflowProjection.open(store, plan)
    assert resumed.parent == projection.parent
    assert client.get_run(projection.parent).info.status == "RUNNING"
    resumed.project(FINE, records[2:])
    resumed.finish(Ending.COMPLETE, records)
    assert client.get_run(projection.parent).info.status == "FINISHED"


def test_what_a_killed_coordinator_left_open_is_closed_but_not_what_is_being_run(store: Store) -> None:
    dead, alive = make_plan(), make_plan()
    kept(store, dead, [])
    with Journal.create(store.folder(alive.run), alive):
        projections = [MlflowProjection.open(store, plan) for plan in (dead, alive)]
        connection = projections[0].connection
        client = connection.client
        assert dead.run in projections[1].closed, "whoever opens the store next closes it"
        assert close_abandoned(store, connection) == ()
        assert [client.get_run(p.parent).info.status for p in projections] == ["KILLED", "RUNNING"]
    assert alive.run in close_abandoned(store, connection)
    assert close_abandoned(store, connection) == ()


def killed_while_it_wrote_a_child(store: Store, plan: Plan) -> MlflowProjection:
    """As a coordinator leaves MLflow that was killed between making a child and committing it."""
    projection = MlflowProjection.open(store, plan)
    projection.project(RAISES, make_records(plan)[:2])
    projection.project(FINE, make_records(plan)[2:])
    client = projection.connection.client
    child = children_of(projection.connection, projection.parent)[FINE.key].info.run_id
    client.update_run(child, status="RUNNING")
    return projection


def test_a_half_written_child_that_was_closed_as_killed_is_not_taken_for_whole(store: Store) -> None:
    plan = make_plan()
    kept(store, plan, make_records(plan))
    left = killed_while_it_wrote_a_child(store, plan)
    before = children_of(left.connection, left.parent)
    assert plan.run in close_abandoned(store, left.connection)
    assert children_of(left.connection, left.parent)[FINE.key].info.status == "KILLED"
    again = sync(store, plan, make_records(plan))
    after = children_of(again.connection, again.parent)
    assert after[FINE.key].info.run_id != before[FINE.key].info.run_id
    assert after[FINE.key].info.status == "FINISHED"
    assert after[RAISES.key].info.run_id == before[RAISES.key].info.run_id, "what was whole stays"


def test_a_child_whose_record_the_journal_lost_is_removed(store: Store) -> None:
    """A power loss can take the journal's last line, of which MLflow may have heard already."""
    plan = make_plan()
    left = killed_while_it_wrote_a_child(store, plan)
    again = sync(store, plan, make_records(plan)[:2])
    assert children_of(again.connection, again.parent).keys() == {RAISES.key}
    client = again.connection.client
    assert client.get_run(again.parent).info.status == "KILLED"
    again.project(FINE, make_records(plan)[2:])
    assert children_of(left.connection, left.parent).keys() == {RAISES.key, FINE.key}


def test_of_a_child_that_is_there_twice_one_is_left(store: Store) -> None:
    plan = make_plan()
    projections = [MlflowProjection.open(store, plan) for _ in range(2)]  # two writers that knew nothing of each other
    for projection in projections:
        projection.project(FINE, make_records(plan)[2:])
    shown = [
        run for run in everything(projection.connection, plan).values() if run["info"]["lifecycle_stage"] == "active"
    ]
    assert len(shown) == 1 + 2
    again = sync(store, plan, make_records(plan))
    shown = [run for run in everything(again.connection, plan).values() if run["info"]["lifecycle_stage"] == "active"]
    assert len(shown) == 1 + 2, "the parent and one child for each variant"


def test_a_parent_that_was_made_but_not_filled_is_filled(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> None:
        raise RuntimeError("killed")

    plan = make_plan()
    with monkeypatch.context() as patch:
        patch.setattr("harness.store.entries.log", killed)
        with pytest.raises(TrackingError, match="killed"):
            MlflowProjection.open(store, plan)
    again = sync(store, plan, make_records(plan))
    parent = again.connection.client.get_run(again.parent)
    assert parent.data.params["environment.torch"] == "2.9"
    assert (parent.data.params["variants"], parent.info.status) == ("2", "FINISHED")


def test_a_parent_that_was_closed_as_killed_gets_its_artifacts_all_the_same(store: Store) -> None:
    plan = make_plan()
    folder = kept(store, plan, make_records(plan)[:2])
    folder.report.write_text("# Report\n")
    projection = sync(store, plan, make_records(plan)[:2])
    client = projection.connection.client
    digest = client.get_run(projection.parent).data.tags["harness.digest"]
    client.update_run(projection.parent, status="RUNNING")  # killed after the tags, before the artifacts
    assert plan.run in close_abandoned(store, projection.connection)
    assert "harness.digest" not in client.get_run(projection.parent).data.tags
    sync(store, plan, make_records(plan)[:2], artifacts=[folder.report])
    assert [artifact.path for artifact in client.list_artifacts(projection.parent)] == ["report.md"]
    assert client.get_run(projection.parent).data.tags["harness.digest"] != digest


def test_of_a_database_that_was_never_made_whole_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is killed among MLflow's migrations leaves a draft; under its own name the database is always whole."""
    from harness.store import connection

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    fresh, draft = Store(tmp_path), tmp_path / ".mlflow.db.4711.part"
    draft.write_bytes(b"half a database")
    seen: list[tuple[bool, bool]] = []
    really = connection._make_whole

    def look(make: Any, uri: str, database: Path) -> None:
        def made(*arguments: str) -> Any:
            engine = make(*arguments)
            seen.append((database.exists(), draft.exists()))
            return engine

        really(made, uri, database)

    monkeypatch.setattr(connection, "_make_whole", look)
    connection.connect(fresh)
    assert seen == [(False, False)], "made under another name, after the leftover was removed"
    assert fresh.database.is_file()
    assert [path.name for path in tmp_path.iterdir() if ".part" in path.name] == []


def test_a_seed_programs_losses_and_files_are_kept(store: Store, tmp_path: Path) -> None:
    plan = make_plan()
    plot = tmp_path / "losses.png"
    plot.write_bytes(b"png")
    losses = [float(number) for number in range(1500)]  # more than one batch of MLflow's
    epochs = [{"epoch": 1, "train_loss": 2.0}, {"epoch": 2, "train_loss": 1.0}]
    results = {"epochs": epochs, "step_losses": losses, "plot": str(plot)}
    record = replace(make_records(plan)[3], results=results)
    projection = MlflowProjection.open(store, plan)
    projection.project(FINE, [record])
    child = children_of(projection.connection, projection.parent)[FINE.key]
    client = projection.connection.client
    history = client.get_metric_history(child.info.run_id, "train_loss.cpu")
    assert [(metric.step, metric.value) for metric in history] == [(1, 2.0), (2, 1.0)]
    assert len(client.get_metric_history(child.info.run_id, "step_loss.cpu")) == 1500
    assert [artifact.path for artifact in client.list_artifacts(child.info.run_id)] == ["losses.png"]


def test_the_links_lead_to_a_prepared_table_of_the_latest_run_and_a_comparison(store: Store) -> None:
    plan = make_plan()
    records = make_records(plan)
    kept(store, plan, records)
    projection = sync(store, plan, records)
    found = links(store, 5055)
    assert found.run == plan.run
    assert found.table is not None
    assert found.table.endswith(view_key(plan.run))
    tags = projection.connection.client.get_experiment(projection.connection.experiment).tags
    assert projection.parent in tags[f"mlflow.sharedViewState.{view_key(plan.run)}"]
    children = children_of(projection.connection, projection.parent)
    assert found.comparison is not None
    assert all(child.info.run_id in found.comparison for child in children.values())


def test_a_run_that_mlflow_does_not_have_has_no_table(store: Store) -> None:
    plan = make_plan()
    kept(store, plan, [])
    found = links(store, 5055, plan.run)
    assert (found.run, found.table, found.comparison) == (plan.run, None, None)
    assert find_parent(MlflowProjection.open(store, make_plan()).connection, plan.run) is None


def test_a_file_that_is_no_database_is_one_sentence_and_a_caveat_for_a_run(tmp_path: Path) -> None:
    (tmp_path / "mlflow.db").write_text("not a database, but rather long, so that SQLite sees it is none" * 20)
    broken = Store(tmp_path, f"sqlite:///{tmp_path}/mlflow.db")
    with pytest.raises(TrackingError, match="MLflow could not open sqlite") as caught:
        MlflowProjection.open(broken, make_plan())
    assert "\n" not in str(caught.value)
    assert "--no-tracking" in caught.value.advice
    plan = make_plan()
    tracking = start_tracking(broken, plan)
    tracking.project(FINE, make_records(plan)[2:])
    tracking.finish(Ending.COMPLETE, make_records(plan))
    assert "1 of 1 variants were not written" in tracking.caveats[0]
