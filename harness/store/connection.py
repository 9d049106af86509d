"""The door to MLflow: the only file that imports it, late, because that costs over a second.

A fresh SQLite store is made by one process under a file lock, with MLflow's own layout set explicitly, under another
name until it is whole (whoever is killed halfway leaves no database that MLflow cannot open), and in WAL mode (a child
costs half the time, and the UI can read while the run writes). The journal is the truth, so a power loss may
cost the database its last transactions and nobody anything: hence ``synchronous=NORMAL``.
"""

from __future__ import annotations

import errno
import glob
import importlib.util
import logging
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from filelock import FileLock, Timeout

from harness.errors import HarnessError, TrackingError, UsageError
from harness.files import explained, store_error
from harness.quoting import public
from harness.store.layout import Store

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

EXPERIMENT = "harness"
"""The MLflow experiment that holds all runs."""

LOCK_PATIENCE_S = 60.0
"""How long to wait while another process makes the store."""

_DATABASES = frozenset({"sqlite", "postgresql", "mysql", "mssql"})
_WEB = frozenset({"http", "https"})
_ELSEWHERE = "Choose another folder with --store DIR; a run can do without MLflow, with --no-tracking."
_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    # A server that died is to cost a run a caveat, not the quarter of an hour that MLflow would try for.
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    # Two lines a variant, in the middle of what a program may be reading.
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}


@dataclass(frozen=True, slots=True)
class Connection:
    """A way to talk to one tracking store; ``database`` is its file where it is SQLite, ``inode`` which it was."""

    client: MlflowClient
    experiment: str
    uri: str
    database: Path | None = None
    inode: int = 0

    def check_in_place(self) -> None:
        """Find out whether the database is still the file that was opened: into a deleted one SQLite writes in silence.

        Raises:
            TrackingError: it was deleted or replaced.
        """
        if self.database is not None and _inode(self.database) != self.inode:
            raise TrackingError(
                f"{self.database} was deleted or replaced while the run was written to it",
                "`harness sync` writes the run anew.",
            )

    def tidy(self) -> None:
        """Let SQLite look at its tables: the UI sorts ten thousand runs 20 to 50 times faster after that."""
        self.check_in_place()
        if self.database is not None:
            with tracked(f"tidy {self.database}"), closing(sqlite3.connect(self.database, timeout=10)) as connection:
                connection.execute("PRAGMA analysis_limit=1000")
                connection.execute("ANALYZE")
                connection.commit()
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


def check_tracking(store: Store) -> None:
    """Find out cheaply, without importing MLflow, whether ``store`` can be tracked.

    Raises:
        TrackingError: MLflow is not installed, or the store is in its old file format.
        UsageError: the tracking URI is none that MLflow knows, or the path is one in which it can make no database.
    """
    if importlib.util.find_spec("mlflow") is None:
        raise TrackingError("MLflow is not installed", "Install it with `pip install mlflow`, or add --no-tracking.")
    named = store.uri != store.default_uri
    if not named:
        _check_folder(store.root.absolute())
    _check_uri(store.uri)
    store.refuse_old_file_store()
    database = sqlite_file(store.uri)
    if database is not None and database.is_dir():  # MLflow would try again and again for two minutes
        raise TrackingError(
            f"{database} is a folder, where MLflow's database should be",
            "Move it away, or choose another store with --store DIR.",
        )
    # A migration of MLflow's writes the artifact root into its SQL as Python quotes it, which SQLite then cannot read.
    if database is not None and {"'", '"'} <= set(str(database.parent)) and not database.exists():
        raise UsageError(
            f"MLflow can make no database in {database.parent}: the path has both ' and \" in it",
            "Use sqlite:///FILE with another path." if named else _ELSEWHERE,
        )


def _check_folder(folder: Path) -> None:
    """The same as ``_check_uri`` says of such paths, in the words of a person who named a folder and no URI."""
    unfit = re.search(r"\?|%[0-9a-f]{2}", str(folder), re.IGNORECASE)
    found = unfit[0] if unfit else next((each for each in str(folder) if not each.isprintable()), None)
    if found is not None:
        raise UsageError(
            f"MLflow can keep no database in the store's folder {str(folder)!r}: its path has {found!r} in it",
            _ELSEWHERE,
        )


def _check_uri(uri: str) -> None:
    scheme = uri.partition(":")[0].lower() if ":" in uri else ""
    dialect = scheme.partition("+")[0]
    if not uri.isprintable():
        raise UsageError(
            f"{public(uri)!r} has characters that no address has", "Use sqlite:///FILE or http://HOST:PORT."
        )
    if scheme in _WEB and not _names_a_server(uri):
        raise UsageError(f"{public(uri)!r} names no server", "Write it like http://HOST:PORT.")
    if scheme in _WEB or dialect in _DATABASES or "databricks" in (scheme, uri.lower()):
        # Of two versions of SQLAlchemy one reads %20 as a space and one as it stands: they would open different files.
        if dialect == "sqlite" and not re.fullmatch(r"sqlite(\+\w+)?:///([^?\x00%]|%(?![0-9a-f]{2}))+", uri, re.I):
            raise UsageError(
                f"{uri!r} names no SQLite file for sure",
                "Write it like sqlite:////folder/mlflow.db; a '?' or an escape like %20 cannot be in the path.",
            )
        return
    if scheme in {"", "file"}:
        raise UsageError(
            f"{public(uri)!r} is a folder, and MLflow no longer keeps runs in plain files",
            "Use sqlite:///FILE or http://HOST:PORT, or leave --tracking-uri away.",
        )
    if scheme not in {plugin.name for plugin in entry_points(group="mlflow.tracking_store")}:
        raise UsageError(f"MLflow knows no tracking store {public(uri)!r}", "Use sqlite:///FILE or http://HOST:PORT.")


def _names_a_server(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
        return bool(parts.hostname) and (parts.port is None or parts.port > 0) and not re.search(r"\s", parts.netloc)
    except ValueError:  # an open bracket, or a port that is none
        return False


@contextmanager
def tracked(action: str) -> Iterator[None]:
    """Turn whatever MLflow, SQLAlchemy or the network raise in the block into one ``TrackingError``.

    A database whose driver is not installed is a ``UsageError``.
    """
    try:
        yield
    except HarnessError:
        raise
    except ModuleNotFoundError as error:
        raise UsageError(
            f"MLflow could not {action}: that needs the Python package {error.name}, which is not installed",
            "Install it, or use sqlite:///FILE or http://HOST:PORT.",
        ) from error
    except Exception as error:
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise TrackingError(f"MLflow could not {action}: {public(first)[:300]}", _advice(first)) from error


def _advice(message: str) -> str:
    if "out-of-date database schema" in message:
        return "Upgrade it with `mlflow db upgrade URI` (make a copy first), or choose another store with --store DIR."
    if "disk is full" in message or os.strerror(errno.ENOSPC) in message:
        return "Free some space; the journal has everything, and `harness sync` makes up for it."
    return "Check the tracking URI and what it points to; the journal has everything, and --no-tracking does without."


def connect(store: Store) -> Connection:
    """Import MLflow, make its store if it is new, and find or make our experiment.

    Raises:
        TrackingError: MLflow is missing, or refuses.
        UsageError: the tracking URI is none that MLflow knows.
    """
    check_tracking(store)
    uri = store.uri
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    with tracked(f"open {public(uri)}"):
        from mlflow.tracking import MlflowClient

        for name in ("mlflow", "alembic"):
            logging.getLogger(name).setLevel(logging.WARNING)
        # What fails there reaches the person as one sentence; they would put a traceback before it each time.
        for name in ("mlflow.store", "sqlalchemy"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        database = sqlite_file(uri)
        if database is None:
            client = MlflowClient(tracking_uri=uri)
            return Connection(client, _experiment(client), uri)
        with _alone(store):
            experiment = _open_sqlite(uri, database)
        return Connection(MlflowClient(tracking_uri=uri), experiment, uri, database, _inode(database))


def _inode(file: Path) -> int:
    try:
        return file.stat().st_ino
    except OSError:
        return -1


def sqlite_file(uri: str) -> Path | None:
    """The file behind a SQLite URI; None for any other."""
    match = re.fullmatch(r"sqlite(?:\+\w+)?:///(.+)", uri, re.IGNORECASE)
    return Path(match[1]).absolute() if match else None


@contextmanager
def _alone(store: Store) -> Iterator[None]:
    """Be the only process that opens the store: of several that migrate a fresh one at once, some die."""
    with explained(f"create {store.runs_folder}"):
        store.runs_folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(store.runs_folder / ".mlflow.lock", timeout=LOCK_PATIENCE_S)
    try:
        lock.acquire()
    except Timeout as error:
        raise TrackingError(
            f"another process has been opening the store for over {LOCK_PATIENCE_S:.0f} s",
            "Stop it, or go on without MLflow with --no-tracking.",
        ) from error
    except OSError as error:
        raise store_error(f"lock {lock.lock_file}", error) from error
    try:
        yield
    finally:
        lock.release()


def _open_sqlite(uri: str, database: Path) -> str:
    """Make and open the database, with the artifacts beside it; the id of our experiment.

    MLflow's client would put the artifact root into the current folder, whatever the database's: so its store is made
    here first, with the root given. The client then uses the same engine.
    """
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
    from sqlalchemy import event

    make: Callable[..., Any] = SqlAlchemyStore  # untyped
    database.parent.mkdir(parents=True, exist_ok=True)
    if not database.exists():
        _make_whole(make, uri, database)
    tracking = make(uri, str(database.parent / "mlruns"))
    with closing(sqlite3.connect(database, timeout=10)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    if not event.contains(tracking.engine, "connect", _relax):
        event.listen(tracking.engine, "connect", _relax)
        tracking.engine.dispose()
    return _experiment(tracking)


def _make_whole(make: Callable[..., Any], uri: str, database: Path) -> None:
    """Make a database beside ``database`` and give it that name when MLflow's dozens of migrations are through."""
    _remove_drafts(database)  # of one who was killed; nobody else makes one while we hold the lock
    draft = database.with_name(f".{database.name}.{os.getpid()}.part")
    try:
        make(f"{uri[: uri.index(':///')]}:///{draft}", str(database.parent / "mlruns")).engine.dispose()
        if not database.exists():  # else a bare `mlflow ui` was quicker
            draft.replace(database)
    finally:
        _remove_drafts(database)


def _remove_drafts(database: Path) -> None:
    for draft in database.parent.glob(f".{glob.escape(database.name)}.*.part*"):
        with suppress(OSError):
            draft.unlink()


def _relax(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA synchronous=NORMAL")


def _experiment(tracking: Any) -> str:
    """The id of our experiment; ``tracking`` is a client or a store, which have these two methods in common."""
    found = tracking.get_experiment_by_name(EXPERIMENT)
    if found is None:
        return str(tracking.create_experiment(EXPERIMENT))
    if found.lifecycle_stage != "active":
        raise TrackingError(
            f"the MLflow experiment {EXPERIMENT!r} was deleted",
            f"Restore it with `mlflow experiments restore --experiment-id {found.experiment_id}`.",
        )
    return str(found.experiment_id)
