"""Asks the tracking store whether it answers, in a process of its own that may be killed: ``-m harness.store.reach``.

Reads the URI as a JSON string from stdin, so that a password in it is in no list of processes; prints one JSON object
with ``error`` and ``advice``, both empty where the store answered. Changes nothing: MLflow's own client would make a
database that is not there, and upgrade one that an older MLflow made.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from harness.errors import HarnessError, TrackingError
from harness.quoting import public
from harness.store.connection import check_tracking, sqlite_file, tracked
from harness.store.layout import Store

PATIENCE = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "10", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}


def reach(uri: str) -> None:
    """Ask the store for something small.

    Raises:
        TrackingError: MLflow is missing, or the store refuses, does not answer or is of another MLflow's making.
        UsageError: the URI is none that MLflow knows.
    """
    check_tracking(Store(Path(), uri))
    os.environ.update(PATIENCE, MLFLOW_DISABLE_TELEMETRY="true")
    with tracked(f"reach {public(uri)}"):
        database = sqlite_file(uri)
        if database is not None:
            _check_schema(database)
            return
        from mlflow.tracking import MlflowClient

        MlflowClient(tracking_uri=uri).search_experiments(max_results=1)


def _check_schema(database: Path) -> None:
    """Compare what the file says of its schema with what the installed MLflow would make."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True, timeout=10)) as connection:
        connection.execute("SELECT count(*) FROM experiments").fetchone()
        found = [version for (version,) in connection.execute("SELECT version_num FROM alembic_version")]
    wanted = _newest_schemas()
    if set(found) != set(wanted):
        raise TrackingError(
            f"{database} was made by another version of MLflow (schema {' '.join(found) or 'none'}, not "
            f"{' '.join(wanted)})",
            "Make a copy, then `mlflow db upgrade URI`; or choose another store with --store DIR.",
        )


def _newest_schemas() -> list[str]:
    from alembic.script import ScriptDirectory

    spec = importlib.util.find_spec("mlflow")
    folder = Path(str(spec and spec.origin)).parent / "store" / "db_migrations"
    return ScriptDirectory(str(folder)).get_heads()


def main() -> None:
    """Answer the question on stdin."""
    said = {"error": "", "advice": ""}
    try:
        reach(json.load(sys.stdin))
    except HarnessError as error:
        said = {"error": str(error), "advice": error.advice}
    print(json.dumps(said))


if __name__ == "__main__":
    main()
