"""The package as people import it: typed, and without PyTorch before it is used."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

USES = """
import harness
reveal_type(harness.guard)
reveal_type(harness.eval_gradients)
reveal_type(harness.EvalModeBackwardError)
harness.no_such_name
"""


def test_importing_it_imports_no_torch() -> None:
    code = "import sys, harness; print('torch' in sys.modules, harness.guard.__module__, 'torch' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "False harness.modes.guarding True\n"


def test_it_says_that_it_is_typed() -> None:
    assert files("harness").joinpath("py.typed").is_file()


def test_a_type_checker_sees_what_people_import(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "mine.py").write_text(USES)
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "mine.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    guard, gradients, error, unknown, *_ = ended.stdout.splitlines()
    assert "-> harness.modes.guarding.Guard" in guard
    assert "(model: torch.nn" in gradients
    assert "-> harness.modes.error.EvalModeBackwardError" in error
    assert "mine.py:6: error:" in unknown
