"""The installed ``harness`` command in processes of its own, as a person's shell starts it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.model import Plan, Record
from harness.store.journal import read_plan, read_records
from harness.store.layout import RunFolder, Store

HARNESS = str(Path(sys.executable).with_name("harness"))
NO_NETWORK = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
_PERSONAL = ("HARNESS_STORE", "MLFLOW_TRACKING_URI", "PYTHONPATH", "FORCE_COLOR", "CUDA_VISIBLE_DEVICES")
PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


def environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment without the settings of whoever runs the tests, and without a network."""
    inherited = {name: value for name, value in os.environ.items() if name not in _PERSONAL}
    return inherited | NO_NETWORK | dict(changes or {})


def harness(*words: str | Path, cwd: Path, env: Mapping[str, str] | None = None, **options: Any) -> Ended:
    """Run ``harness WORDS`` in ``cwd`` to its end."""
    settings = {"capture_output": True, "stdin": subprocess.DEVNULL, "timeout": PATIENCE_S} | options
    command = [HARNESS, *map(str, words)]
    ended = subprocess.run(command, cwd=cwd, env=environment(env), check=False, **settings)
    return Ended(ended.returncode, (ended.stdout or b"").decode(), (ended.stderr or b"").decode())


@contextmanager
def started(*words: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """``harness WORDS`` going on in ``cwd``, in a process group of its own; killed at the end of the block."""
    with subprocess.Popen(
        [HARNESS, *map(str, words)],
        cwd=cwd,
        env=environment(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()


def ended(process: subprocess.Popen[str], patience_s: float = PATIENCE_S) -> Ended:
    """Wait for a started command."""
    out, err = process.communicate(timeout=patience_s)
    return Ended(process.returncode, out, err)


def wait_until(condition: Callable[[], object], patience_s: float = 60.0) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def only_run(root: Path) -> RunFolder:
    """The folder of the only run in a store."""
    (run,) = Store(root).runs()
    return Store(root).folder(run)


def kept(root: Path, run: str | None = None) -> tuple[Plan, tuple[Record, ...]]:
    """Plan and records of a run, by default the only one of the store."""
    folder = Store(root).folder(run) if run else only_run(root)
    return read_plan(folder), read_records(folder)


def pids_of(mark: str) -> list[int]:
    """The living processes that were started with ``mark`` in their environment, whoever their parents are now."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes() and int(folder.name) != os.getpid():
                found.append(int(folder.name))
    return found


def processes_of(mark: str) -> list[str]:
    """The command lines of the same processes."""
    found = []
    for pid in pids_of(mark):
        with suppress(OSError):
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            found.append(command.replace(b"\0", b" ").decode(errors="replace"))
    return found


def free_port() -> int:
    """A port of this machine at which nobody listens now."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listeners(port: int) -> set[str]:
    """The addresses on which this machine listens at ``port``, as the kernel writes them."""
    return {address for address, listened_at, _ in sockets_that_listen() if listened_at == port}


def sockets_that_listen() -> list[tuple[str, int, str]]:
    """Address as the kernel writes it, port, and inode of every TCP socket of this machine that listens."""
    tables = [Path("/proc/net/tcp"), Path("/proc/net/tcp6")]
    rows = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    return [(row[1].split(":")[0], int(row[1].split(":")[1], 16), row[9]) for row in rows if row[3] == "0A"]


class MlflowView:
    """What MLflow shows of a store, or of one run in it, read as MLflow's own client does in that folder."""

    def __init__(self, root: Path, run: str | None = None) -> None:
        from mlflow.tracking import MlflowClient

        self.client = MlflowClient(tracking_uri=f"sqlite:///{root}/mlflow.db")
        experiments = [experiment.experiment_id for experiment in self.client.search_experiments()]
        condition = f"tags.`harness.run` = '{run}'" if run else ""
        runs = list(self.client.search_runs(experiments, condition, max_results=5000))
        self.parents = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
        self.children = [run for run in runs if "mlflow.parentRunId" in run.data.tags]
        self.runs = runs

    @property
    def statuses(self) -> set[str]:
        """Every status that occurs."""
        return {run.info.status for run in self.runs}

    def artifacts(self, run: Any) -> set[str]:
        """The names of a run's artifacts."""
        return {artifact.path for artifact in self.client.list_artifacts(run.info.run_id)}

    def snapshot(self) -> str:
        """Everything that is shown, as text."""
        rows = [run.to_dictionary() for run in self.client.search_runs(["0", "1"], max_results=5000)]
        return json.dumps(sorted(rows, key=lambda row: str(row["info"]["run_id"])), sort_keys=True, default=str)


def assert_sentence_and_advice(err: str, *hints: str) -> None:
    """A failure is one sentence and one advice, and no traceback."""
    assert "Traceback" not in err
    lines: Sequence[str] = [line for line in err.splitlines() if line]
    if lines[0].startswith("Usage:"):
        assert lines[-1].startswith("Error: ")
    else:
        assert [line.startswith("harness: ") for line in lines] == [True, False], err
    for hint in hints:
        assert hint in err
