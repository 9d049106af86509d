"""Asks the tracking store whether it answers, in a process of its own that may be killed: ``-m harness.store.reach``.

Reads the URI as a JSON string from stdin, so that a password in it is in no list of processes; prints one JSON object
with ``error`` and ``advice``, both empty where the store answered. Makes nothing; a store that lacks our experiment
answers all the same.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from harness.errors import HarnessError
from harness.store.connection import check_tracking, public, tracked
from harness.store.layout import Store

PATIENCE = {"MLFLOW_HTTP_REQUEST_TIMEOUT": "10", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}


def reach(uri: str) -> None:
    """Ask MLflow for one experiment.

    Raises:
        TrackingError: MLflow is missing, or the store refuses or does not answer.
        UsageError: the URI is none that MLflow knows.
    """
    check_tracking(Store(Path(), uri))
    os.environ.update(PATIENCE, MLFLOW_DISABLE_TELEMETRY="true")
    with tracked(f"reach {public(uri)}"):
        from mlflow.tracking import MlflowClient

        MlflowClient(tracking_uri=uri).search_experiments(max_results=1)


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
