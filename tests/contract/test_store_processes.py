"""The store between real processes: locks that die with their holder, and MLflow's own UI."""

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from command import free_port, listeners

from harness.errors import PortInUseError, StoreError, TrackingError
from harness.model import Device, Outcome, Plan, Record, Settings, Variant
from harness.store.journal import Journal, is_being_run, read_records
from harness.store.layout import Store, new_run_id
from harness.store.tracking import Ending, MlflowProjection
from harness.store.ui import base_url, check_port, serving

pytestmark = pytest.mark.filterwarnings(
    "ignore:The ``noload`` loader strategy is deprecated:DeprecationWarning"  # MLflow's models with SQLAlchemy 2.1
)

VARIANT = Variant({"cell": "lstm"}, "cell=lstm")

HOLDER = """
import sys
from pathlib import Path
from harness.model import Device, Outcome, Record
from harness.store.journal import Journal
from harness.store.layout import Store
folder = Store(Path(sys.argv[1])).folder(sys.argv[2])
journal = Journal.resume(folder)
journal.append(Record(folder.run, "k", "l", Device.CPU, Outcome.OK))
with folder.records.open("ab") as stream:
    stream.write(b'{"run": "half')
print("holding", flush=True)
sys.stdin.read()
"""


def test_a_second_coordinator_is_refused_until_the_first_is_killed_and_then_goes_on(tmp_path: Path) -> None:
    run = new_run_id()
    folder = Store(tmp_path).folder(run)
    Journal.create(folder, Plan(run, "m", "", "", (Device.CPU,), Settings(), (VARIANT,))).close()
    command = [sys.executable, "-c", HOLDER, str(tmp_path), run]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "holding\n"
            assert is_being_run(folder)
            with pytest.raises(StoreError, match="another harness process is working on run"):
                Journal.resume(folder)
        finally:
            holder.send_signal(signal.SIGKILL)
    assert not is_being_run(folder)
    with Journal.resume(folder) as journal:
        journal.append(Record(run, "k2", "l", Device.CPU, Outcome.CRASH))
    assert [record.key for record in read_records(folder)] == ["k", "k2"]


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux's table of sockets")
def test_the_ui_answers_on_loopback_only_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    port, told = free_port(), list[str]()
    left = Plan(new_run_id(), "quick", "", "2025-01-31T09:30:00Z", (Device.CPU,), Settings(), (VARIANT,))
    Journal.create(Store(tmp_path).folder(left.run), left).close()
    parent = MlflowProjection.open(Store(tmp_path), left)
    with serving(Store(tmp_path), port, tell=told.append) as server:
        assert [f"run {left.run}, whose coordinator was killed" in sentence for sentence in told] == [True]
        assert parent.connection.client.get_run(parent.parent).info.status == "KILLED"
        with urllib.request.urlopen(base_url(port), timeout=120) as page:
            assert b"<title>MLflow" in page.read()
        with pytest.raises(PortInUseError):
            check_port(port)
        assert listeners(port) == {"0100007F"}
    assert listeners(port) == set()
    with pytest.raises(ProcessLookupError):
        os.killpg(server.pid, 0)


def test_a_ui_that_cannot_start_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    monkeypatch.setattr("harness.store.ui.ui_command", lambda *_: [sys.executable, "-c", "raise SystemExit(3)"])
    with pytest.raises(TrackingError, match="ended at once, with exit code 3"), serving(Store(tmp_path), free_port()):
        pass


def test_a_database_that_is_deleted_meanwhile_is_a_caveat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    store = Store(tmp_path)
    plan = Plan(new_run_id(), "quick", "", "2025-01-31T09:30:00Z", (Device.CPU,), Settings(), (VARIANT,))
    projection = MlflowProjection.open(store, plan)
    for file in tmp_path.glob("mlflow.db*"):
        file.unlink()
    with pytest.raises(TrackingError, match="was deleted or replaced") as caught:
        projection.finish(Ending.COMPLETE, ())
    assert "harness sync" in caught.value.advice
    assert not store.database.exists()
