"""What has to hold of a run that was made whole."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

from harness.model import Device, Outcome, Plan, Record
from harness.results import collect
from harness.store.journal import read_plan, read_records
from harness.store.layout import RunFolder, Store
from tests.contract.command import MlflowView, harness
from tests.torture.wrong import WrongError

Place = tuple[str, Device, int]
"""A planned attempt: a variant's key, a device, a replicate."""


def check_whole(store: Store, folder: RunFolder, expected: Mapping[Place, Outcome]) -> None:
    """Planned = recorded, nothing twice, MLflow as the journal, and nothing half-written about.

    Raises:
        WrongError: something of this does not hold.
    """
    plan, records = read_plan(folder), read_records(folder)
    _check_journal(plan, records, expected)
    _check_folder(folder, plan)
    _check_mlflow(MlflowView(store.root, plan.run), plan, records)


def _check_journal(plan: Plan, records: tuple[Record, ...], expected: Mapping[Place, Outcome]) -> None:
    collection = collect(plan, records)
    latest = {(r.key, r.device, each.replicate): each for r in collection.results for each in r.records}
    _same("the planned attempts", set(latest), set(expected))
    _same("records that belong to nothing", collection.strays, 0)
    _same("outcomes", {place: record.outcome for place, record in latest.items()}, dict(expected))
    numbers = Counter((record.key, record.device, record.replicate, record.attempt) for record in records)
    _same("records of one attempt", {place: n for place, n in numbers.items() if n > 1}, {})
    for key, device, replicate in expected:
        made = sorted(r.attempt for r in records if (r.key, r.device, r.replicate) == (key, device, replicate))
        _same(f"the attempts at {key} on {device}", made, list(range(1, len(made) + 1)))
    sittings = [record.sitting for record in records]
    _same("the order of the sittings", sittings, sorted(sittings))


def _check_folder(folder: RunFolder, plan: Plan) -> None:
    content = folder.records.read_bytes()
    _same("the journal's last byte", content[-1:], b"\n")
    lines = content.splitlines()
    _same("lines that are no JSON", [line for line in lines if not isinstance(json.loads(line), dict)], [])
    _same("half-written files", [path.name for path in folder.path.iterdir() if path.name.endswith(".part")], [])
    if "The run did not finish" in folder.report.read_text():
        raise WrongError("the report says that the run did not finish")
    told = harness("status", plan.run, "--json", cwd=folder.path, env={"HARNESS_STORE": str(folder.path.parents[2])})
    _same("the exit code of harness status", told.code, 0)
    status = json.loads(told.out)
    _same("what harness status says", (status["state"], status["missing"]), ("complete", 0))


def _check_mlflow(view: MlflowView, plan: Plan, records: tuple[Record, ...]) -> None:
    _same("parents in MLflow", [parent.info.status for parent in view.parents], ["FINISHED"])
    _same("children that run for ever", [run.info.run_id for run in view.runs if run.info.status == "RUNNING"], [])
    shown = Counter(child.data.tags["harness.key"] for child in view.children)
    _same("children in MLflow", shown, Counter(variant.key for variant in plan.variants))
    for child in view.children:
        key = child.data.tags["harness.key"]
        made = sum(record.key == key for record in records)
        _same(f"the attempts that MLflow knows of at {key}", child.data.tags["harness.attempts"], str(made))
        if "outcome" not in child.data.params:
            raise WrongError(f"the child of {key} in MLflow has no params")
    (parent,) = view.parents
    for name in ("matrix", "variants"):
        if name not in parent.data.params:
            raise WrongError(f"the parent in MLflow has no param {name}")
    missing = {"report.md", "results.csv", "records.jsonl", "plan.json"} - view.artifacts(parent)
    _same("artifacts that MLflow lacks", missing, set())


def _same(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise WrongError(f"{what}: {str(found)[:600]}, where {str(wanted)[:600]} was to be")
