"""The command itself on some of the programs, in new processes: started as a person's shell starts it."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.contract.command import Ended, harness
from tests.contract.diagnose.expected import PROGRAMS, marks, read
from tests.contract.diagnose.test_diagnosed_programs import applied, hold

FAULTY, CORRECT = PROGRAMS / "faulty", PROGRAMS / "correct"


def diagnosed(*words: str | Path, cwd: Path, json_to: Path) -> tuple[Ended, dict[str, Any]]:
    """``harness diagnose --json JSON_TO WORDS``, and what it wrote there."""
    ended = harness("diagnose", "--json", json_to, *words, cwd=cwd)
    return ended, json.loads(json_to.read_text())


def undisturbed(*words: str | Path, cwd: Path) -> Ended:
    """The same program on the stub without anybody watching."""
    return harness("stub", "run", "--", sys.executable, *words, cwd=cwd)


def test_a_script_with_arguments_and_forked_workers(stub_device: None, tmp_path: Path) -> None:
    program = FAULTY / "validation_after_epoch.py"
    command = (program, "--epochs", "2", "--workers", "1")
    ended, diagnosis = diagnosed("--device", "stub", *command, cwd=tmp_path, json_to=tmp_path / "found.json")
    bare = undisturbed(*command, cwd=tmp_path)
    assert (ended.code, ended.out) == (bare.code, bare.out) == (1, "")
    own = bare.err[bare.err.index("Traceback") :]
    assert ended.err.startswith(own), "the traceback is the program's own, and comes first"
    (finding,) = diagnosis["findings"]
    hold(finding, read(program))
    said = ended.err.removeprefix(own)
    for mark, line in marks(program).items():
        assert f"{program}:{line} in" in said, mark
    assert finding["cure"]["sentence"] in said


def test_a_script_whose_workers_are_spawned(stub_device: None, tmp_path: Path) -> None:
    program = CORRECT / "train_at_the_top.py"
    ended, diagnosis = diagnosed("--device", "stub", program, "--epochs", "1", cwd=tmp_path, json_to=tmp_path / "found")
    assert (ended.code, ended.out, diagnosis["findings"]) == (0, "0 2\n", []), ended.err


def test_a_script_that_compiles_its_model(stub_device: None, tmp_path: Path) -> None:
    program = FAULTY / "compiled_model.py"
    ended, diagnosis = diagnosed("--device", "stub", program, cwd=tmp_path, json_to=tmp_path / "found.json")
    assert ended.code == 1
    (finding,) = diagnosis["findings"]
    hold(finding, read(program))


@pytest.fixture
def package(tmp_path: Path) -> Path:
    shutil.copytree(PROGRAMS / "package", tmp_path / "package", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "package"


def places(finding: dict[str, Any]) -> dict[str, tuple[str, int]]:
    return {mark: (finding[mark]["file"], finding[mark]["line"]) for mark in ("forward", "call", "switch")}


def marked(package: Path) -> dict[str, tuple[str, int]]:
    files = (package / "speech").glob("*.py")
    return {mark: (str(file), line) for file in files for mark, line in marks(file).items()}


def test_a_module_of_a_package_and_its_cure(stub_device: None, package: Path, tmp_path: Path) -> None:
    command = ("--device", "stub", "-m", "speech.train", "--epochs", "2")
    ended, diagnosis = diagnosed(*command, cwd=package, json_to=tmp_path / "found.json")
    assert (ended.code, ended.out) == (1, "epoch 0 (2,)\n")
    (finding,) = diagnosis["findings"]
    assert (finding["kind"], finding["pattern"], finding["module"]) == ("error", "eval-after-epoch", "rnn")
    assert places(finding) == marked(package)
    trains = package / "speech" / "train.py"
    trains.write_text(applied(finding["cure"]["edits"], trains))
    assert undisturbed("-m", "speech.train", "--epochs", "2", cwd=package).code == 0


def test_on_a_cpu_the_program_goes_on_to_its_end(package: Path) -> None:
    ended = harness(
        "diagnose",
        "--json",
        "-",
        "--device",
        "cpu",
        "-m",
        "speech.train",
        "--epochs",
        "3",
        "--device",
        "cpu",
        cwd=package,
    )
    own, _, found = ended.out.partition("{")
    assert (ended.code, own) == (0, "".join(f"epoch {number} (2,)\n" for number in range(3)))
    (finding,) = json.loads("{" + found)["findings"]
    assert (finding["kind"], finding["pattern"], finding["count"]["times"]) == ("would-raise", "eval-after-epoch", 4)
    assert places(finding) == marked(package)
