"""``harness ui``: MLflow's own UI on a store, on loopback only, with links to what a person wants to see."""

from __future__ import annotations

import http.client
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import IO

from harness.errors import PortInUseError, TrackingError, UsageError
from harness.store import keeper
from harness.store.connection import Connection, check_tracking, connect, tracked
from harness.store.journal import read_plan
from harness.store.layout import Store
from harness.store.tracking import children_of, close_abandoned, closed_words, find_parent
from harness.store.views import compare_link, compared, publish, table_link

HOST = "127.0.0.1"
"""The UI has no password, so nobody but this machine may reach it."""

DEFAULT_PORT = 5000
START_PATIENCE_S = 60.0
_STOP_PATIENCE_S = 5.0
_PORTS_TRIED = 50


@dataclass(frozen=True, slots=True)
class Links:
    """Where to look in the UI. ``table`` and ``comparison`` are absent where MLflow does not have the run."""

    home: str
    run: str | None = None
    table: str | None = None
    comparison: str | None = None


def base_url(port: int) -> str:
    """The address of the UI on ``port``."""
    return f"http://{HOST}:{port}"


def ui_command(store: Store, port: int = DEFAULT_PORT) -> list[str]:
    """The command line that serves MLflow's UI on ``store``: one worker, since more are slower on SQLite."""
    return [
        sys.executable, "-m", "mlflow", "ui", "--host", HOST, "--port", str(port), "--workers", "1",
        "--backend-store-uri", store.uri, "--default-artifact-root", str(store.artifacts),
    ]  # fmt: skip


def check_port(port: int) -> None:
    """Make sure that ``port`` can be listened on.

    Raises:
        UsageError: it is no port number.
        PortInUseError: another program has it; the advice names the next that is free.
    """
    if not 1 <= port <= 65535:
        raise UsageError(f"{port} is not a port number", "A port is a number from 1 to 65535, such as 5000.")
    if _is_free(port):
        return
    tried = range(port + 1, min(port + 1 + _PORTS_TRIED, 65536))
    free = next((candidate for candidate in tried if _is_free(candidate)), None)
    advice = f"Use --port {free}, or stop the program that has it." if free else "Choose another with --port."
    raise PortInUseError(f"port {port} on {HOST} is taken by another program or may not be used", advice)


def _is_free(port: int) -> bool:
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        # As the server does: a port that a program has just left is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def links(store: Store, port: int = DEFAULT_PORT, run: str | None = None) -> Links:
    """Links to the latest run, or to the one that ``run`` names. A store without runs has only its home page.

    Raises:
        RunNotFoundError: ``run`` is given, and there is none of that name.
        TrackingError: MLflow is missing, cannot be reached, or refuses.
    """
    home = store.uri.rstrip("/") if store.uri.startswith(("http://", "https://")) else base_url(port)
    if run is None and not store.runs():
        return Links(home)
    folder = store.find(run)
    connection = connect(store)
    parent = find_parent(connection, folder.run)
    if parent is None:
        return Links(home, folder.run)
    with tracked(f"prepare the table of run {folder.run}"):
        publish(connection, read_plan(folder), parent)
    return Links(
        home, folder.run, table_link(home, connection.experiment, folder.run), _comparison(connection, home, parent)
    )


def _comparison(connection: Connection, home: str, parent: str) -> str | None:
    with tracked("look for variants to compare"):
        chosen = compared(children_of(connection, parent).values())
    return compare_link(home, connection.experiment, chosen) if len(chosen) > 1 else None


@contextmanager
def serving(
    store: Store,
    port: int = DEFAULT_PORT,
    *,
    output: IO[bytes] | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Serve the UI for the length of the block, which begins when it answers. ``output`` gets what MLflow prints.

    What a killed coordinator left open in the store is closed first, and ``tell`` hears of it.

    Raises:
        PortInUseError: the port is taken.
        TrackingError: MLflow is missing, refuses the store, or does not come up.
    """
    check_tracking(store)
    if store.uri.startswith(("http://", "https://")):
        raise UsageError("the runs are on a tracking server, which has a UI of its own", f"Open {store.uri}.")
    check_port(port)
    for left in close_abandoned(store, connect(store)):
        tell(closed_words(left))
    # Without its seven helper processes for jobs, of which we have none, the UI is up in half the time.
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    # A file of the person's called random.py or mlflow.py must shadow nothing. Uvicorn would add the current folder.
    safe = {"PYTHONSAFEPATH": "1", "UVICORN_APP_DIR": os.devnull}
    command = ui_command(store, port)
    process = subprocess.Popen(
        # MLflow's own processes would outlive us if we were killed; the keeper hears of it by its stdin.
        [sys.executable, "-I", "-S", keeper.__file__, *command],
        stdin=subprocess.PIPE,
        stdout=output or subprocess.DEVNULL,
        stderr=output or subprocess.DEVNULL,
        env={**quiet, **os.environ, **safe},
        start_new_session=True,
    )
    try:
        with _terminable():
            _wait_until_it_answers(process, port, command)
            yield process
    finally:
        _stop(process)


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end the block like an exit, so that the server does not outlive it; in the main thread only."""

    def leave(_number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + signal.SIGTERM)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _wait_until_it_answers(process: subprocess.Popen[bytes], port: int, command: list[str]) -> None:
    deadline = time.monotonic() + START_PATIENCE_S
    while not _answers(port):
        if process.poll() is not None:
            raise TrackingError(
                f"the MLflow UI ended at once, with exit code {process.returncode}",
                f"See why with `{shlex.join(command)}`.",
            )
        if time.monotonic() > deadline:
            raise TrackingError(
                f"the MLflow UI did not answer within {START_PATIENCE_S:.0f} s", "Try again on a less busy machine."
            )
        time.sleep(0.1)


def _answers(port: int) -> bool:
    with closing(http.client.HTTPConnection(HOST, port, timeout=5)) as connection:
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server, its workers and their keeper: they are a process group of their own."""
    assert process.stdin is not None
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_PATIENCE_S)
            break
    process.stdin.close()
