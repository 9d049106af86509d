"""The matrices that are timed, written to a folder as a person would write them."""

from __future__ import annotations

from pathlib import Path

import yaml

PLACEMENTS = (
    "train-always",
    "train-each-epoch",
    "train-each-step",
    "eval-before-backward",
    "rnn-frozen-in-train",
    "eval-output-detached",
    "rnn-train-rest-eval",
    "rnn-train-dropout-zero",
    "dropout-norm-eval",
    "train-for-gradient",
    "eval-cudnn-off-forward",
    "train-in-forward",
)
"""Twelve that end ``ok`` on a CPU, so that the bare loop and the harness do the same steps."""

SETTINGS = {"epochs": 2, "steps": 3, "evaluation_steps": 1}


def cpu_matrix(folder: Path) -> Path:
    """96 variants that end ``ok`` on a CPU."""
    axes = {"cell": "all", "bidirectional": [False, True], "placement": list(PLACEMENTS), "layers": 2, "dropout": 0.2}
    return _write(folder / "cpu96.yaml", axes)


def stub_matrix(folder: Path, variants: int) -> Path:
    """``variants`` (a multiple of 20) variants: cells, placements and a hidden size that only multiplies them."""
    axes = {
        "cell": ["lstm", "gru"],
        "bidirectional": [False, True],
        "placement": [
            "train-each-epoch",
            "eval-after-epoch",
            "eval-always",
            "rnn-train-rest-eval",
            "train-for-gradient",
        ],
        "hidden-size": list(range(8, 8 + variants // 20)),
    }
    return _write(folder / f"stub{variants}.yaml", axes)


def _write(file: Path, axes: dict[str, object]) -> Path:
    file.write_text(yaml.safe_dump({"description": "A benchmark.", "settings": SETTINGS, "axes": axes}))
    return file
