"""The naive way: one fresh process per variant that imports torch and MLflow and logs with the fluent API.

Usage: ``python naive.py MATRIX-FILE INDEX TRACKING-URI``.
"""

from __future__ import annotations

import sys
import time

import mlflow
import torch

from harness.matrix.expand import expand
from harness.matrix.shelf import read_matrix
from harness.model import Device, Order
from harness.trial.loop import Loop
from harness.wire import BREADCRUMB_SIZE, Breadcrumb


def main(matrix: str, index: int, uri: str) -> None:
    """Run one variant and log it, as a script written in an afternoon would."""
    _, document = read_matrix(matrix)
    variant = expand(document).variants[index]
    settings = document.settings.settings()
    torch.set_num_threads(settings.threads)
    mlflow.set_tracking_uri(uri)
    mlflow.set_experiment("naive")
    with mlflow.start_run(run_name=variant.label):
        for name, value in variant.axes.items():
            mlflow.log_param(name, value)
        began = time.perf_counter()
        loop = Loop(Order("naive", variant, Device.CPU, settings), Breadcrumb(bytearray(BREADCRUMB_SIZE)))
        loop.run()
        mlflow.log_metric("seconds", time.perf_counter() - began)
        mlflow.log_metric("last_loss", loop.losses[-1].item())
        mlflow.set_tag("outcome", "ok")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
