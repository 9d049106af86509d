"""Impatient people: Ctrl-C once and twice, SIGTERM, and a coordinator that is killed. Nothing recorded is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command import Ended, MlflowView, ended, harness, kept, only_run, processes_of, recorded, started, wait_until

from harness.model import Outcome

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated:DeprecationWarning")

WORDS = ("run", "matrix", "quick", "--device", "cpu")
PLANNED = 36
SLOW = """
description: attempts that take long enough to be interrupted
settings: {epochs: 500, steps: 50, evaluation_steps: 1, deadline: 60}
axes: {cell: [lstm, gru], placement: [train-always, train-each-epoch]}
"""


@contextmanager
def running(folder: Path, *words: str, records: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A run in ``folder`` that has made some records; with it a mark that all its processes carry."""
    mark = f"HARNESS_TEST_MARK={uuid.uuid4().hex}"
    name, value = mark.split("=")
    with started(*words, cwd=folder, env={name: value}) as process:
        wait_until(lambda: process.poll() is not None or recorded(folder) >= records)
        assert process.poll() is None, process.communicate()
        yield process, mark


def assert_stopped_in_order(end: Ended, folder: Path) -> int:
    """What is recorded is reported, in MLflow, and said; the number of records."""
    plan, records = kept(folder)
    assert end.code == 130, end.err
    sentence, advice = end.err.splitlines()[-2:]
    assert sentence.startswith(f"harness: stopped: {len(records)} of {len(plan.variants)} attempts are recorded in ")
    assert f"`harness report {plan.run}`" in advice
    assert "same command" in advice
    assert "Traceback" not in end.err

    assert 0 < len(records) < len(plan.variants)
    assert len({record.key for record in records}) == len(records)
    assert "The run did not finish" in only_run(folder).report.read_text()

    view = MlflowView(folder)
    (parent,) = view.parents
    assert parent.info.status == "KILLED"
    assert "RUNNING" not in view.statuses
    assert sorted(child.data.tags["harness.key"] for child in view.children) == sorted(r.key for r in records)
    assert {"report.md", "results.csv", "records.jsonl", "plan.json"} == view.artifacts(parent)
    return len(records)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_asked_once_it_lets_what_runs_end_and_keeps_everything(tmp_path: Path, number: signal.Signals) -> None:
    with running(tmp_path, *WORDS, records=3) as (process, mark):
        process.send_signal(number)
        end = ended(process)
    assert assert_stopped_in_order(end, tmp_path) >= 3
    assert Outcome.NOT_RUN not in {record.outcome for record in kept(tmp_path)[1]}
    assert processes_of(mark) == []


def test_asked_twice_it_stops_now(tmp_path: Path) -> None:
    (tmp_path / "slow.yaml").write_text(SLOW.replace("[train-always", "[eval-no-grad, train-always"))
    words = ("run", "matrix", "slow.yaml", "-a", "cell=lstm", "--device", "cpu")
    with running(tmp_path, *words, records=1) as (process, mark):
        time.sleep(2)  # the next attempt would go on for most of a minute; MLflow is open by now
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to every process of the group
        time.sleep(0.3)
        assert process.poll() is None, "asked once, it waits for what runs"
        os.killpg(process.pid, signal.SIGINT)
        end = ended(process)
        took = time.monotonic() - began
    assert assert_stopped_in_order(end, tmp_path) == 2
    first, second = kept(tmp_path)[1]
    assert (first.outcome, second.outcome) == (Outcome.ERROR, Outcome.NOT_RUN)
    assert "stopped by the person" in str(second.reason)
    assert took < 5 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    assert processes_of(mark) == []


def test_stopped_before_anything_ran_it_leaves_nothing(tmp_path: Path) -> None:
    with started(*WORDS, cwd=tmp_path) as process:
        time.sleep(0.4)
        process.send_signal(signal.SIGINT)
        end = ended(process)
    assert end.code in {130, -signal.SIGINT}, "before Python itself is up, the signal ends it"
    if end.code == 130:
        assert "harness: interrupted" in end.err
        assert "Traceback" not in end.err
    assert list(tmp_path.iterdir()) == []


def test_a_killed_coordinator_leaves_a_whole_journal_and_no_orphans(tmp_path: Path) -> None:
    with running(tmp_path, *WORDS, records=3) as (process, mark):
        process.kill()
        process.wait()
        wait_until(lambda: not processes_of(mark), patience_s=10)
    _, records = kept(tmp_path)
    assert 3 <= len(records) < PLANNED
    assert only_run(tmp_path).records.read_bytes().endswith(b"}\n")
    report = harness("report", cwd=tmp_path)
    assert report.code == 0
    assert "not-run" in report.out
    assert "The run did not finish" in report.out
    rows = harness("report", "--format", "csv", cwd=tmp_path).out.splitlines()
    assert len(rows) == 1 + PLANNED
    assert sum(",not-run," in row for row in rows) == PLANNED - len(records)
    assert harness("sync", cwd=tmp_path).code == 0
    view = MlflowView(tmp_path)
    (parent,) = view.parents
    assert parent.info.status == "KILLED"
    assert "RUNNING" not in view.statuses
    assert len(view.children) == len(records)
    assert parent.data.metrics["outcome.not-run"] == PLANNED - len(records)
