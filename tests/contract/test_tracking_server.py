"""A real tracking server that dies in mid-run: a caveat, and a later sync that makes up for all of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from command import MlflowView, ended, environment, free_port, harness, kept, only_run, started, wait_until

from harness.model import Plan, Record

pytestmark = pytest.mark.filterwarnings(
    "ignore:The ``noload`` loader strategy is deprecated:DeprecationWarning"  # MLflow's models with SQLAlchemy 2.1
)

LOOPBACK = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}
"""Past the proxy that keeps tests from the network."""

MATRIX = """
description: attempts that outlast a server
settings: {epochs: 40, steps: 10, evaluation_steps: 1, deadline: 60}
axes: {cell: [lstm, gru], placement: [train-each-epoch, eval-always]}
"""


@contextmanager
def serving(root: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """MLflow's own server on a store in ``root``, in a process group that is killed at the end."""
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += [
        "--backend-store-uri",
        f"sqlite:///{root}/mlflow.db",
        "--artifacts-destination",
        str(root / "artifacts"),
    ]
    with (root / "server.log").open("ab") as log:
        server = subprocess.Popen(
            command, cwd=root, env=environment(quiet), stdout=log, stderr=log, start_new_session=True
        )
    try:
        wait_until(lambda: _answers(port) or server.poll() is not None)
        assert server.poll() is None, (root / "server.log").read_text()
        yield server
    finally:
        kill(server)


def kill(server: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()


def _answers(port: int) -> bool:
    with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
        return bool(answer.status == 200)
    return False


def check_shown(root: Path, plan: Plan, records: tuple[Record, ...]) -> None:
    """The server's store has the whole run, each thing once."""
    view = MlflowView(root, plan.run)
    assert [parent.info.status for parent in view.parents] == ["FINISHED"]
    assert "RUNNING" not in view.statuses
    shown = sorted(child.data.tags["harness.key"] for child in view.children)
    assert shown == sorted(variant.key for variant in plan.variants) == sorted(record.key for record in records)
    assert all(child.data.params["outcome"] for child in view.children)


@pytest.mark.timeout(280)
def test_a_server_that_is_killed_in_mid_run_costs_a_caveat_until_the_next_sync(tmp_path: Path) -> None:
    here, there, port = tmp_path / "here", tmp_path / "there", free_port()
    here.mkdir()
    there.mkdir()
    (here / "long.yaml").write_text(MATRIX)
    uri = ("--tracking-uri", f"http://127.0.0.1:{port}")
    words = ("run", "matrix", "long.yaml", "--device", "cpu", *uri)
    with serving(there, port) as server, started(*words, cwd=here, env=LOOPBACK) as run:
        wait_until(lambda: run.poll() is not None or MlflowView(there).statuses == {"RUNNING"})
        assert run.poll() is None, run.communicate()
        kill(server)
        end = ended(run)
    assert end.code == 0, end.err
    plan, records = kept(here)
    assert len(records) == len(plan.variants) == 4
    lost = "4 of 4 variants were not written to MLflow"
    assert f"note: {lost}" in end.err
    assert f"`harness sync {' '.join([plan.run, *uri])}`" in end.err
    assert lost in only_run(here).report.read_text()
    assert MlflowView(there, plan.run).statuses == {"RUNNING"}, "the server has died over it"

    with serving(there, port):
        synced = harness("sync", *uri, cwd=here, env=LOOPBACK)
        assert synced.code == 0, synced.err
        assert synced.out == f"run {plan.run} is in {uri[-1]}\n", "MLflow prints nothing between"
        check_shown(there, plan, records)
        before = MlflowView(there).snapshot()
        assert harness("sync", *uri, cwd=here, env=LOOPBACK).code == 0
        assert MlflowView(there).snapshot() == before, "twice changes nothing"
