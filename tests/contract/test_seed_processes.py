"""The seed programs as a reader runs them: real processes, on a CPU."""

import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
NO_NETWORK = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")


@dataclass
class Ended:
    """How a program ended."""

    code: int
    out: str
    err: str
    result: dict[str, Any]


def run_program(name: str, folder: Path, *flags: str) -> Ended:
    """Run a seed program in ``folder``, on the CPU and without a network."""
    command = [sys.executable, str(EXPERIMENTS / name), "--device", "cpu", "--json", "result.json", *flags]
    ended = subprocess.run(
        command, cwd=folder, env={**os.environ, **NO_NETWORK}, capture_output=True, text=True, timeout=120, check=False
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr, json.loads((folder / "result.json").read_text()))


def assert_trained_to_the_end(ended: Ended, folder: Path, epochs: int) -> None:
    assert ended.code == 0, ended.err
    assert ended.err == ""
    assert [report["epoch"] for report in ended.result["epochs"]] == list(range(1, epochs + 1))
    losses = [report[kind] for report in ended.result["epochs"] for kind in ("train_loss", "test_loss")]
    assert all(math.isfinite(loss) and loss > 0 for loss in losses)
    assert losses[-1] < losses[0]
    assert all(0 < report["test_accuracy"] <= 1 for report in ended.result["epochs"])
    assert ended.result["failed_at"] is ended.result["error_type"] is None
    assert ended.result["device"] == "cpu"
    assert (folder / ended.result["plot"]).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    weights = torch.load(folder / ended.result["checkpoint"], weights_only=True)
    assert all(tensor.isfinite().all() for tensor in weights.values())


def test_brnn_as_written_trains_on_a_cpu_and_says_that_this_proves_nothing(tmp_path: Path) -> None:
    ended = run_program("seed_brnn_mnist.py", tmp_path, "--limit", "300")
    assert_trained_to_the_end(ended, tmp_path, epochs=2)
    assert ended.result["variant"] == "as-written"
    assert "This run cannot show the error: it ran on a CPU" in ended.out
    assert "MNIST cannot be had" in ended.out
    assert "MNIST cannot be had" in ended.result["dataset_reason"]
    assert "not MNIST" in ended.result["dataset"]
    assert not (tmp_path / "data").exists()


def test_brnn_fixed(tmp_path: Path) -> None:
    ended = run_program("seed_brnn_mnist.py", tmp_path, "--fixed", "--data", "digits", "--limit", "300")
    assert_trained_to_the_end(ended, tmp_path, epochs=2)
    assert (ended.result["variant"], ended.result["remedy"]) == ("fixed", "train-each-epoch")
    assert ended.result["training_samples"] == 300
    assert "cannot show the error" not in ended.out


def test_brnn_without_mnist_refuses_when_mnist_alone_will_do(tmp_path: Path) -> None:
    ended = run_program("seed_brnn_mnist.py", tmp_path, "--data", "mnist")
    assert ended.code == 2
    assert ended.err.startswith("brnn-mnist: MNIST cannot be had")
    assert "Traceback" not in ended.err
    assert ended.result["error_type"] == "MnistUnavailableError"
    assert ended.result["epochs"] == []


@pytest.mark.parametrize("flags", [(), ("--fixed",)], ids=["as-written", "fixed"])
def test_simple_rnn(tmp_path: Path, flags: tuple[str, ...]) -> None:
    ended = run_program("seed_simple_rnn.py", tmp_path, "--limit", "1000", "--epochs", "3", *flags)
    assert_trained_to_the_end(ended, tmp_path, epochs=3)
    assert ended.result["dataset"] == "random sequences"
    assert ("This run cannot show the error: it ran on a CPU" in ended.out) is (flags == ())
