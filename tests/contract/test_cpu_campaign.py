"""The main job with real processes, a real journal and a real MLflow: the quick matrix on the CPU."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from command import Ended, MlflowView, harness, kept, only_run, started, wait_until

from harness.campaign import Selection, choose
from harness.matrix.axes import AXES
from harness.model import Device, KernelPath, Outcome

pytestmark = pytest.mark.filterwarnings(
    "ignore:The ``noload`` loader strategy is deprecated:DeprecationWarning"  # MLflow's models with SQLAlchemy 2.1
)

COLUMNS = (
    "run", "key", "label", "device", "outcome", "phase", "epoch", "step", "path", "error_type", "error_message",
    "sequences_per_second", "timesteps_per_second", "step_ms_median", "peak_memory_bytes", "attempts",
)  # fmt: skip
"""What issue and README promise of results.csv, besides the axes."""


@pytest.fixture(scope="module")
def root(cpu_root: Path, cpu_run: Ended) -> Path:
    assert cpu_run.code == 0, cpu_run.err
    return cpu_root


@pytest.fixture(scope="module")
def mlflow(root: Path) -> MlflowView:
    return MlflowView(root)


def rows(root: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(only_run(root).results.read_text())))


def test_it_says_what_came_out_and_where(root: Path, cpu_run: Ended) -> None:
    lines = cpu_run.out.splitlines()
    assert lines[0] == "The error cannot occur on this device: 36 variants planned on cpu, 0 raise."
    folder = only_run(root)
    places = [line for line in lines if line.startswith(("report:", "results:", "MLflow:"))]
    assert places == [
        f"report: {folder.report.relative_to(root.parent)}",
        f"results: {folder.results.relative_to(root.parent)}",
        f"MLflow: sqlite:///{root}/mlflow.db (`harness --store '{root}' ui` opens it)",
    ]
    assert "\x1b" not in cpu_run.out + cpu_run.err
    assert len(cpu_run.err.splitlines()) == 2, "the run, and the one kind of error that is not the one sought"


def test_planned_is_recorded(root: Path) -> None:
    plan, records = kept(root)
    assert plan.devices == (Device.CPU,)
    assert plan.variants == choose(Selection("quick")).expansion.variants
    assert sorted((r.key, r.device) for r in records) == sorted((v.key, Device.CPU) for v in plan.variants)
    assert {record.run for record in records} == {plan.run} == {only_run(root).run}
    assert {r.outcome for r in records if "eval-no-grad" in r.label} == {Outcome.ERROR}
    assert {r.outcome for r in records if "eval-no-grad" not in r.label} == {Outcome.OK}


def test_no_record_claims_what_a_cpu_cannot_show(root: Path) -> None:
    _, records = kept(root)
    for record in records:
        unseen = record.outcome is Outcome.ERROR  # without a graph there is no path to be read
        assert record.path in ({None} if unseen else {KernelPath.NATIVE, KernelPath.MKLDNN})
    paths = {sighting.path for record in records for sighting in record.sightings}
    assert paths - {None}
    assert paths <= {KernelPath.NATIVE, KernelPath.MKLDNN, None}


def test_every_finished_attempt_is_measured(root: Path) -> None:
    _, records = kept(root)
    for record in records:
        if record.outcome is Outcome.OK:
            assert sum(sample.steps for sample in record.samples) >= 3 * 3 - 1
            assert all(sample.wall_s > 0 for sample in record.samples)
            assert record.first_loss != record.last_loss or "eval-always" in record.label or "cudnn-off" in record.label
            assert record.losses_digest
            assert record.weights_digest


def test_the_report_tells_the_story(root: Path) -> None:
    text = only_run(root).report.read_text()
    assert "The error cannot occur on this device: 36 variants planned on cpu, 0 raise." in text
    assert "so an `ok` on `cpu` says nothing about a GPU" in text
    assert "not written to MLflow" not in text
    assert "| train-each-epoch " in text
    assert "12 combinations of the matrix left out" in text


def test_results_have_a_row_per_variant_and_device(root: Path) -> None:
    plan, _ = kept(root)
    table = rows(root)
    assert {*COLUMNS, *AXES} <= set(table[0])
    assert [row["key"] for row in table] == [variant.key for variant in plan.variants]
    assert {(row["run"], row["device"], row["attempts"]) for row in table} == {(plan.run, "cpu", "1")}
    for row in table:
        measured = [row[name] for name in ("sequences_per_second", "timesteps_per_second", "step_ms_median")]
        if row["outcome"] == "ok":
            assert all(float(value) > 0 for value in measured)
        else:
            assert measured == ["", "", ""]
            assert row["error_type"] == "RuntimeError"
            assert (row["phase"], row["epoch"], row["step"]) == ("backward", "1", "1")


def test_mlflow_has_one_parent_and_one_child_per_variant(root: Path, mlflow: MlflowView) -> None:
    plan, _ = kept(root)
    (parent,) = mlflow.parents
    assert parent.info.status == "FINISHED"
    assert parent.data.tags["harness.run"] == plan.run
    assert {child.data.tags["mlflow.parentRunId"] for child in mlflow.children} == {parent.info.run_id}
    assert Counter(child.data.tags["harness.key"] for child in mlflow.children) == Counter(v.key for v in plan.variants)
    assert mlflow.statuses == {"FINISHED", "FAILED"}


def test_the_parent_holds_the_run(root: Path, mlflow: MlflowView) -> None:
    plan, _ = kept(root)
    (parent,) = mlflow.parents
    assert mlflow.artifacts(parent) >= {"report.md", "results.csv", "plan.json", "records.jsonl"}
    folder = only_run(root)
    for name in mlflow.artifacts(parent):
        content = Path(mlflow.client.download_artifacts(parent.info.run_id, name)).read_bytes()
        assert content == (folder.path / name).read_bytes(), "the same as in the run's folder"
    assert (parent.data.metrics["outcome.ok"], parent.data.metrics["outcome.error"]) == (30, 6)
    assert parent.data.params["environment.torch"] == plan.environment["torch"]
    assert parent.data.params["command"] == " ".join(plan.command)


def test_a_child_holds_its_variant(root: Path, mlflow: MlflowView) -> None:
    plan, records = kept(root)
    variants = {variant.key: variant for variant in plan.variants}
    table = {row["key"]: row for row in rows(root)}
    by_key = {record.key: record for record in records}
    for child in mlflow.children:
        key = child.data.tags["harness.key"]
        record, row = by_key[key], table[key]
        assert child.data.tags["harness.outcome"] == child.data.params["outcome"] == record.outcome
        assert child.data.tags["harness.device"] == child.data.params["device"] == "cpu"
        assert child.data.tags.get("harness.path") == child.data.params.get("path") == record.path
        assert set(variants[key].axes) <= set(child.data.params)
        assert child.data.params["placement"] == variants[key]["placement"]
        assert child.info.status == ("FINISHED" if record.outcome is Outcome.OK else "FAILED")
        speed = row["sequences_per_second"]
        if speed:
            assert child.data.metrics["sequences_per_second.cpu"] == pytest.approx(float(speed))
            assert child.data.metrics["peak_memory_bytes.cpu"] == record.peak_memory_bytes > 0
            assert child.data.tags["harness.memory_source.cpu"] == record.memory_source
        else:
            assert "sequences_per_second.cpu" not in child.data.metrics
            assert "does not require grad" in child.data.tags["harness.error"]


def without_plots(report: str) -> list[str]:
    """The lines of a report, without the images that only the one in the run's folder can show."""
    return [line for line in report.splitlines() if line and not line.startswith("![")]


def test_the_report_can_be_printed_again(root: Path) -> None:
    folder = only_run(root)
    outputs: dict[str, Any] = {
        form: harness("report", "--format", form, cwd=root).out for form in ("md", "csv", "json")
    }  # found without --store: it is the current folder
    assert without_plots(outputs["md"]) == without_plots(folder.report.read_text())
    assert outputs["csv"] == folder.results.read_text()
    table = json.loads(outputs["json"])
    assert [row["key"] for row in table] == [row["key"] for row in rows(root)]
    assert {row["sequences_per_second"] is None for row in table if row["outcome"] == "error"} == {True}


def test_syncing_what_is_there_changes_nothing(root: Path, mlflow: MlflowView) -> None:
    before = mlflow.snapshot()
    ended = harness("sync", cwd=root)
    assert (ended.code, ended.out) == (0, f"run {only_run(root).run} is in sqlite:///{root}/mlflow.db\n")
    assert mlflow.snapshot() == before


NO_MLFLOW = """
import importlib.machinery as machinery
found = machinery.PathFinder.find_spec
def find_spec(name, *rest):
    return None if name.partition(".")[0] == "mlflow" else found(name, *rest)
machinery.PathFinder.find_spec = staticmethod(find_spec)
"""


def test_where_mlflow_is_not_installed_and_after_it_is(tmp_path: Path) -> None:
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "sitecustomize.py").write_text(NO_MLFLOW)
    env = {"PYTHONPATH": str(tmp_path / "without")}
    root = tmp_path / "store"
    words = ("--store", root, "run", "matrix", "quick", "-a", "cell=gru", "-k", "eval-no-grad", "--device", "cpu", "-q")

    refused = harness(*words, cwd=tmp_path, env=env)
    assert refused.code == 4
    assert refused.out == ""
    sentence, advice = refused.err.splitlines()
    assert sentence == "harness: MLflow is not installed"
    assert "--no-tracking" in advice
    assert not root.exists(), "nothing half-written"

    ended = harness(*words, "--no-tracking", cwd=tmp_path, env=env)
    assert ended.code == 0
    assert [line.split(":")[0] for line in ended.out.splitlines()][:2] == ["report", "results"]
    assert "MLflow" not in ended.out
    assert ended.err == ""
    assert len(kept(root)[1]) == 2
    assert not (root / "mlflow.db").exists()
    assert "Nothing of this run was written to MLflow." in only_run(root).report.read_text()
    assert harness("--store", root, "sync", cwd=tmp_path, env=env).code == 4

    assert harness("--store", root, "sync", cwd=tmp_path).code == 0
    view = MlflowView(root)
    assert (len(view.parents), len(view.children), view.statuses) == (1, 2, {"FINISHED", "FAILED"})


def test_a_server_that_is_not_there_costs_a_caveat_and_no_record(tmp_path: Path) -> None:
    words = ("run", "matrix", "quick", "-k", "cell=gru*cudnn=on*eval-always*", "--device", "cpu", "--replicates", "3")
    env = {"NO_PROXY": "127.0.0.1", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
    ended = harness(*words, "--tracking-uri", "http://me:secret@127.0.0.1:9", cwd=tmp_path, env=env)
    assert ended.code == 0
    assert "note: " in ended.err
    assert "harness sync" in ended.err
    plan, records = kept(tmp_path)
    assert [record.replicate for record in records] == [0, 1, 2]
    assert len({record.losses_digest for record in records}) == 1, "the seed is fixed per variant"
    report = only_run(tmp_path).report.read_text()
    assert "1 of 1 variants were not written to MLflow" in report
    (row,) = rows(tmp_path)
    assert row["attempts"] == "3"
    everything = ended.out + ended.err + report + only_run(tmp_path).plan.read_text()
    assert "secret" not in everything
    assert "127.0.0.1:9" in " ".join(plan.command)


def test_a_reader_who_leaves_ends_no_run(tmp_path: Path) -> None:
    words = ("run", "matrix", "quick", "-a", "cell=gru", "-k", "eval-no-grad", "--device", "cpu", "--no-tracking")
    with started(*words, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stderr.close()
        wait_until(lambda: process.poll() is not None)
    assert process.returncode == 0
    assert len(kept(tmp_path)[1]) == 2
    assert only_run(tmp_path).report.is_file()
