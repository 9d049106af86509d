"""Impatient people: Ctrl-C once and twice, SIGTERM, and a coordinator that is killed. Nothing recorded is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from command import Ended, MlflowView, ended, harness, kept, processes_of, started, wait_until

from harness.model import Outcome, Plan, Record
from harness.store.layout import Store

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated:DeprecationWarning")

WORDS = ("run", "matrix", "quick", "--device", "cpu")
PLANNED = 36
SHORT = ("run", "matrix", "quick", "-a", "cell=lstm", "-a", "cudnn=on", "--device", "cpu")
SLOW = """
description: attempts that take long enough to be interrupted
settings: {epochs: 500, steps: 50, evaluation_steps: 1, deadline: 60}
axes: {placement: [eval-no-grad, train-always, train-each-epoch]}
"""


@dataclass(frozen=True)
class Going:
    """A run that is going on, and the mark that all its processes carry."""

    process: subprocess.Popen[str]
    root: Path
    run: str
    mark: str

    @property
    def kept(self) -> tuple[Plan, tuple[Record, ...]]:
        """Its plan, and its records by now."""
        return kept(self.root, self.run)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One store for all runs here: making its database takes longer than the runs."""
    return tmp_path_factory.mktemp("interrupted")


@pytest.fixture
def with_database(root: Path) -> Path:
    """That store when it has its database, also where this is the first test of all."""
    if not (root / "mlflow.db").exists():
        assert harness(*SHORT, cwd=root).code == 0
    return root


@contextmanager
def running(root: Path, *words: str, records: int) -> Iterator[Going]:
    """A run in ``root`` that has made some records."""
    store, mark = Store(root), uuid.uuid4().hex
    before = set(store.runs())
    with started(*words, cwd=root, env={"HARNESS_TEST_MARK": mark}) as process:

        def has_begun() -> bool:
            new = set(store.runs()) - before
            return process.poll() is not None or bool(new and len(kept(root, *new)[1]) >= records)

        wait_until(has_begun)
        assert process.poll() is None, process.communicate()
        (run,) = set(store.runs()) - before
        yield Going(process, root, run, mark)


def assert_stopped_in_order(end: Ended, going: Going) -> int:
    """What is recorded is reported, in MLflow, and said; the number of records."""
    plan, records = going.kept
    assert end.code == 130, end.err
    sentence, advice = end.err.splitlines()[-2:]
    assert sentence.startswith(f"harness: stopped: {len(records)} of {len(plan.variants)} attempts are recorded in ")
    assert f"`harness report {plan.run}`" in advice
    assert f"`harness run matrix --resume {plan.run}`" in advice
    assert "Traceback" not in end.err

    assert 0 < len(records) < len(plan.variants)
    assert len({record.key for record in records}) == len(records)
    assert "The run did not finish" in Store(going.root).folder(going.run).report.read_text()

    view = MlflowView(going.root, going.run)
    (parent,) = view.parents
    assert parent.info.status == "KILLED"
    assert "RUNNING" not in view.statuses
    assert sorted(child.data.tags["harness.key"] for child in view.children) == sorted(r.key for r in records)
    assert {"report.md", "results.csv", "records.jsonl", "plan.json"} <= view.artifacts(parent)
    return len(records)


def assert_goes_on(going: Going) -> None:
    """The command that was named makes what is missing and nothing else, in the same MLflow run."""
    _, before = going.kept
    (parent,) = MlflowView(going.root, going.run).parents
    end = harness("run", "matrix", "--resume", going.run, cwd=going.root)
    assert end.code == 0, end.err
    plan, records = going.kept
    assert records[: len(before)] == before
    assert len({record.key for record in records}) == len(records) == len(plan.variants)
    assert [record.sitting for record in records] == [1] * len(before) + [2] * (len(records) - len(before))
    view = MlflowView(going.root, going.run)
    assert [(run.info.run_id, run.info.status) for run in view.parents] == [(parent.info.run_id, "FINISHED")]
    assert sorted(child.data.tags["harness.key"] for child in view.children) == sorted(r.key for r in records)
    assert "RUNNING" not in view.statuses
    assert "sittings.jsonl" in view.artifacts(view.parents[0])
    status = json.loads(harness("status", going.run, "--json", cwd=going.root).out)
    assert (status["state"], status["recorded"], len(status["sittings"])) == ("complete", PLANNED, 2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_asked_once_it_lets_what_runs_end_and_keeps_everything(root: Path, number: signal.Signals) -> None:
    with running(root, *WORDS, records=3) as going:
        going.process.send_signal(number)
        end = ended(going.process)
    assert assert_stopped_in_order(end, going) >= 3
    assert Outcome.NOT_RUN not in {record.outcome for record in going.kept[1]}
    assert processes_of(going.mark) == []
    if number is signal.SIGINT:
        assert_goes_on(going)


@pytest.mark.timeout(120)
def test_asked_twice_it_stops_now(root: Path) -> None:
    (root / "slow.yaml").write_text(SLOW)
    with running(root, "run", "matrix", "slow.yaml", "--device", "cpu", records=1) as going:
        time.sleep(1)  # the second attempt would go on for most of a minute
        os.killpg(going.process.pid, signal.SIGINT)  # as a terminal does: to every process of the group
        time.sleep(0.3)
        assert going.process.poll() is None, "asked once, it waits for what runs"
        os.killpg(going.process.pid, signal.SIGINT)
        end = ended(going.process)
    assert assert_stopped_in_order(end, going) == 2
    first, second = going.kept[1]
    assert (first.outcome, second.outcome) == (Outcome.ERROR, Outcome.NOT_RUN)
    assert "stopped by the person" in str(second.reason)
    assert processes_of(going.mark) == []


SLOW_TO_START = """
import sys, time
if any("harness.trial" in word for word in sys.orig_argv):
    time.sleep(200)
"""


def test_stopped_before_anything_ran_it_leaves_nothing(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    mark, site = uuid.uuid4().hex, tmp_path_factory.mktemp("site")
    (site / "sitecustomize.py").write_text(SLOW_TO_START)
    changes = {"HARNESS_TEST_MARK": mark, "PYTHONPATH": str(site)}
    # Whether there is a GPU can be said only when PyTorch is up; until then nothing is planned.
    words = ("run", "matrix", "quick", "--device", "cuda")
    with started(*words, cwd=tmp_path, env=changes) as process:
        wait_until(lambda: any("harness.trial" in command for command in processes_of(mark)))
        process.send_signal(signal.SIGINT)
        end = ended(process)
    assert (end.code, end.out, end.err.strip()) == (130, "", "harness: interrupted")
    assert list(tmp_path.iterdir()) == []
    wait_until(lambda: not processes_of(mark))


def test_a_killed_coordinator_leaves_a_whole_journal_and_no_orphans(with_database: Path) -> None:
    root = with_database
    with running(root, *WORDS, records=3) as going:
        going.process.kill()
        going.process.wait()
        wait_until(lambda: not processes_of(going.mark))
    _, records = going.kept
    assert 3 <= len(records) < PLANNED
    assert Store(root).folder(going.run).records.read_bytes().endswith(b"}\n")
    report = harness("report", going.run, cwd=root)
    assert report.code == 0
    assert "not-run" in report.out
    assert "The run did not finish" in report.out
    rows = harness("report", going.run, "--format", "csv", cwd=root).out.splitlines()
    assert len(rows) == 1 + PLANNED
    assert sum(",not-run," in row for row in rows) == PLANNED - len(records)
    # The next command that opens the store closes what was left open there, of whatever run.
    assert "RUNNING" in MlflowView(root, going.run).statuses
    other = harness(*SHORT, cwd=root)
    assert other.code == 0
    assert f"note: MLflow still showed run {going.run}, whose coordinator was killed, as running" in other.err
    assert "RUNNING" not in MlflowView(root, going.run).statuses
    again = harness("sync", going.run, cwd=root)
    assert again.code == 0
    assert "still showed" not in again.err
    view = MlflowView(root, going.run)
    (parent,) = view.parents
    assert parent.info.status == "KILLED"
    assert "RUNNING" not in view.statuses
    assert len(view.children) == len(records)
    assert parent.data.metrics["outcome.not-run"] == PLANNED - len(records)
    assert_goes_on(going)
