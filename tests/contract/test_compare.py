"""Two real runs of a small matrix on the CPU, side by side. Nothing here depends on how fast this machine is."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest
from command import Ended, harness

from harness.store.layout import Store

SMALL = ("-a", "cell=gru", "-a", "cudnn=on", "-a", "placement=train-each-epoch,eval-always,eval-no-grad")
VERDICTS = {"better", "worse", "same", "ambiguous"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two runs alike, of six attempts for each of three variants."""
    root = tmp_path_factory.mktemp("compare")
    for _ in range(2):
        words = ("run", "matrix", "quick", *SMALL, "--device", "cpu", "--replicates", "6", "--no-tracking", "-q")
        ended = harness(*words, cwd=root)
        assert ended.code == 0, ended.err
    return root


@pytest.fixture(scope="module")
def runs(root: Path) -> tuple[str, str]:
    first, second = Store(root).runs()
    return first, second


@pytest.fixture(scope="module")
def document(root: Path, runs: tuple[str, str]) -> Any:
    return json.loads(compare(root, *runs, "--format", "json").out)


def compare(root: Path, *words: str) -> Ended:
    ended = harness("compare", *words, cwd=root)
    assert "Traceback" not in ended.err
    return ended


def test_outcomes_are_the_same(document: Any) -> None:
    assert document["transition_counts"] == {"same": 3}
    assert sorted({t["a"].split()[0] for t in document["transitions"]}) == ["error", "ok"]
    assert document["differences"] == []


def test_ratios_are_of_what_is_ok_alone(document: Any) -> None:
    judged = [cell for cell in document["timings"] if cell["ratio"] is not None]
    assert len(document["timings"]) == 3
    assert len(judged) == 2
    for cell in judged:
        assert cell["verdict"] in VERDICTS
        assert len(cell["step_seconds_a"]) == len(cell["step_seconds_b"]) == 6
        assert 0 < cell["low"] <= cell["ratio"] <= cell["high"] < math.inf
    (other,) = [cell for cell in document["timings"] if cell["ratio"] is None]
    assert (other["verdict"], other["reason"]) == ("not comparable", "not ok in either run")


def test_nothing_is_claimed_without_evidence(document: Any) -> None:
    for cell in document["timings"]:
        if cell["verdict"] in ("better", "worse"):
            assert cell["q"] <= 0.05
            assert abs(math.log(cell["ratio"])) >= math.log(cell["needs"]) >= math.log(1.02)
            assert not cell["low"] <= 1 <= cell["high"]
        if cell["verdict"] == "same":
            assert 1 / 1.02 < cell["low"] <= cell["high"] < 1.02
    assert any("drift" in caveat for caveat in document["caveats"])


def test_it_is_told_in_order(root: Path, runs: tuple[str, str]) -> None:
    ended = compare(root, runs[0], "latest")
    assert (ended.code, ended.err) == (0, "")
    headings = [line for line in ended.out.splitlines() if line.startswith("#")]
    assert headings == [
        f"# Run {runs[1]} against {runs[0]}",
        "## What differs around them",
        "## Outcomes, from A to B",
        "## Time of a training step, B over A",
        "## Caveats",
    ]
    assert compare(root, *runs, "--fail-on", "outcome").code == 0


def test_a_reference_made_with_cat_and_gzip_compares_alike(root: Path, runs: tuple[str, str], tmp_path: Path) -> None:
    folder = Store(root).folder(runs[0])
    reference = tmp_path / "reference.jsonl.gz"
    reference.write_bytes(gzip.compress(folder.plan.read_bytes() + folder.records.read_bytes()))
    assert compare(root, str(reference), runs[1]).out == compare(root, *runs).out
    itself = compare(root, str(reference), runs[0])
    assert itself.code == 2
    assert "with itself" in itself.err
