"""Links into MLflow's UI: the prepared table of a run's variants, and their comparison.

Both use formats of MLflow's UI that it does not document. If a later MLflow reads them differently, the links still
open the experiment, only without the prepared columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from harness.model import HEADLINE_AXES, Plan
from harness.results import DECISIVE_FIRST
from harness.store.content import PARENT_TAG, axis_param, metric_name

if TYPE_CHECKING:
    from mlflow.entities import Run

    from harness.store.connection import Connection

MOST_COMPARED = 12
"""How many variants the comparison shows: the link names each by 41 characters, and has to be read in a terminal."""

_STATE_TAG = "mlflow.sharedViewState."
_MORE_METRICS = ("timesteps_per_second", "step_ms_median", "peak_memory_bytes", "last_loss")
_PINNED = {"attributes.`Run Name`": 110, "attributes.`Created`": 115}
"""Columns that MLflow always shows, at their least width: the axes say what the name says."""

_METRIC_WIDTH = 200
_WIDTHS = {
    "cell": 75,
    "bidirectional": 100,
    "cudnn": 65,
    "placement": 170,
    "outcome": 115,
    "path": 70,
    "device": 70,
    "timed-on": 80,
}


def view_key(run: str) -> str:
    """The name under which the prepared table of ``run`` is kept."""
    return f"harness-{run}"


def table_columns(plan: Plan) -> list[str]:
    """The columns of the prepared table, in MLflow's spelling: headline axes, what came of it, how fast, the rest.

    The numbers are those of the device that is timed; a plan for the stub alone has none.
    """
    values: dict[str, set[object]] = {}
    for variant in plan.variants:
        for axis, value in variant.axes.items():
            values.setdefault(axis, set()).add(value)
    headline = [axis for axis in HEADLINE_AXES if axis in values]
    varying = [axis_param(axis) for axis, seen in values.items() if len(seen) > 1 and axis not in HEADLINE_AXES]
    timed = [device for device in DECISIVE_FIRST if device.computes and device in plan.devices][:1]
    return [
        *(f"params.`{name}`" for name in (*headline, "outcome", "device", "path")),
        *(f"metrics.`{metric_name('sequences_per_second', device)}`" for device in timed),
        *(f"params.`{name}`" for name in ("timed-on", *varying, "phase")),
        *(f"metrics.`{metric_name(name, device)}`" for device in timed for name in _MORE_METRICS),
    ]


def view_state(plan: Plan, parent: str) -> dict[str, Any]:
    """The prepared table, as MLflow's UI keeps it: only this run's children, the errors first."""
    columns = table_columns(plan)
    return {
        "searchFilter": f"tags.{PARENT_TAG} = '{parent}'",
        "orderByKey": "params.`outcome`",
        "orderByAsc": True,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": columns,
        "columnOrder": [*_PINNED, *columns],
        "columnWidths": {
            **_PINNED,
            **{f"params.`{name}`": width for name, width in _WIDTHS.items()},
            # Wide enough for the device at the end of the name, which says whose number it is.
            **{column: _METRIC_WIDTH for column in columns if column.startswith("metrics.")},
        },
        "runsExpanded": {},
        "runsPinned": [],
        "runsHidden": [],
        "runsHiddenMode": "FIRST_20_RUNS",
        "runsVisibilityMap": {},
        "viewMaximized": True,
        "runListHidden": False,
        "isAccordionReordered": False,
        "groupBy": None,
        "groupsExpanded": {},
        "useGroupedValuesInCharts": True,
        "hideEmptyCharts": True,
        "globalLineChartConfig": {},
        "chartsSearchFilter": "",
    }


def publish(connection: Connection, plan: Plan, parent: str) -> None:
    """Keep the prepared table of the run with the experiment, unless it is there already."""
    name, text = _STATE_TAG + view_key(plan.run), json.dumps(view_state(plan, parent), separators=(",", ":"))
    if connection.client.get_experiment(connection.experiment).tags.get(name) != text:
        connection.client.set_experiment_tag(connection.experiment, name, text)


def table_link(base: str, experiment: str, run: str) -> str:
    """The address of the prepared table of ``run`` on the MLflow UI at ``base``."""
    query = f"workflowType=machine_learning&viewStateShareKey={quote(view_key(run), safe='')}"
    return f"{base.rstrip('/')}/#/experiments/{experiment}/runs?{query}"


def compare_link(base: str, experiment: str, run_ids: Iterable[str]) -> str:
    """The address of the comparison of MLflow runs on the UI at ``base``."""
    runs = json.dumps(list(run_ids), separators=(",", ":"))
    experiments = json.dumps([experiment])
    return f"{base.rstrip('/')}/#/compare-runs?runs={quote(runs, safe='')}&experiments={quote(experiments, safe='')}"


def compared(children: Iterable[Run], most: int = MOST_COMPARED) -> list[str]:
    """The ids of the children to compare: all, or ``most`` of them spread evenly over outcomes, cells and placements.

    MLflow takes the first metric that all of them have for the colour of the lines, in the order it was written in.
    """
    ordered = sorted(children, key=_place)
    count = min(most, len(ordered))
    return [ordered[number * len(ordered) // count].info.run_id for number in range(count)]


def _place(child: Run) -> tuple[str, ...]:
    return (*(child.data.params.get(name, "") for name in ("outcome", *HEADLINE_AXES)), child.info.run_name or "")
