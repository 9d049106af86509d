"""The runs of MLflow as they are written: the parent, a child, and values in as many batches as MLflow asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.model import Plan
from harness.store.connection import Connection
from harness.store.content import DIGEST_TAG, PARENT_TAG, Content, parent_content

if TYPE_CHECKING:
    from mlflow.entities import Run

RUNNING = "RUNNING"
_MOST_ENTITIES = 900
_MOST_PARAMS = 90


def new_parent(connection: Connection, plan: Plan) -> str:
    """Make the parent of the run of ``plan``, shown as running; its id."""
    content = parent_content(plan, (), status=RUNNING)
    run = connection.client.create_run(
        connection.experiment, start_time=content.started_ms, tags=dict(content.tags), run_name=content.name
    )
    log(connection, run.info.run_id, [], content.params, {})
    return str(run.info.run_id)


def complete_parent(connection: Connection, plan: Plan, parent: Run) -> None:
    """Give a parent the params that it lacks, since its maker was killed before it had written them."""
    params = parent_content(plan, (), status=RUNNING).params
    lacking = {name: text for name, text in params.items() if name not in parent.data.params}
    if lacking:
        log(connection, parent.info.run_id, [], lacking, {})


def write_child(connection: Connection, parent: str, content: Content) -> str:
    """Make a child of ``parent`` with all of ``content``; its id. That it is no longer running is the commit mark."""
    client = connection.client
    tags = {**content.tags, PARENT_TAG: parent, DIGEST_TAG: content.digest}
    run = client.create_run(connection.experiment, start_time=content.started_ms, tags=tags, run_name=content.name)
    run_id = str(run.info.run_id)
    log(connection, run_id, [metric(p.name, p.value, p.at_ms, p.step) for p in content.metrics], content.params, {})
    for path in content.files:
        client.log_artifact(run_id, str(path))
    client.set_terminated(run_id, content.status, content.ended_ms)
    return run_id


def metric(name: str, value: float, at_ms: int, step: int) -> Any:
    """A metric as MLflow's client takes it."""
    from mlflow.entities import Metric

    return Metric(name, value, at_ms, step)


def log(connection: Connection, run_id: str, metrics: list[Any], params: Any, tags: Any) -> None:
    """One ``log_batch``, or as many as MLflow's limits ask for."""
    from mlflow.entities import Param, RunTag

    waiting_params = [Param(name, text) for name, text in params.items()]
    waiting_tags = [RunTag(name, text) for name, text in tags.items()]
    while metrics or waiting_params or waiting_tags:
        room = _MOST_ENTITIES - 2 * _MOST_PARAMS
        connection.client.log_batch(
            run_id,
            metrics=metrics[:room],
            params=waiting_params[:_MOST_PARAMS],
            tags=waiting_tags[:_MOST_PARAMS],
            synchronous=True,
        )
        metrics = metrics[room:]
        waiting_params, waiting_tags = waiting_params[_MOST_PARAMS:], waiting_tags[_MOST_PARAMS:]
