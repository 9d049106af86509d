"""Each program of ``programs/`` gets the diagnosis that it should, its cure cures it, and correct ones are left alone.

The lines, patterns and cures that are expected stand in the programs themselves; ``expected.py`` reads them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.diagnose.edits import Edit, EditAction, apply
from harness.placements import PLACEMENTS
from tests.contract.diagnose.expected import CORRECT, CUDNN_SAYS, FAULTY, MARKED, PROGRAMS, Expected, marks
from tests.contract.diagnose.warm import Ended, Warm

faulty = pytest.mark.parametrize("program", FAULTY, ids=[one.path.stem for one in FAULTY])
correct = pytest.mark.parametrize("program", CORRECT, ids=[path.stem for path in CORRECT])

_ON_STUB: dict[Path, Ended] = {}


def on_stub(warm: Warm, path: Path) -> Ended:
    """The diagnosis of a program on the stub, which several tests look at."""
    if path not in _ON_STUB:
        _ON_STUB[path] = warm.diagnosed(path, "stub")
    return _ON_STUB[path]


@faulty
def test_a_faulty_program_is_told_its_pattern_its_rnn_and_both_lines(program: Expected, warm: Warm) -> None:
    ended = on_stub(warm, program.path)
    assert ended.finding["kind"] == program.kind
    hold(ended.finding, program)


@faulty
def test_its_exit_code_and_its_traceback_are_its_own(program: Expected, warm: Warm) -> None:
    ended = on_stub(warm, program.path)
    assert ended.code == program.code == ended.diagnosis["exit"]["code"]
    if program.ends_in_it:
        assert ended.err.rstrip().splitlines()[-1].startswith("RuntimeError: ")
        assert program.says in ended.err.rstrip().splitlines()[-1]
        assert ended.diagnosis["exit"]["exception"] == "RuntimeError"
        assert str(program.path) in ended.err
    assert "harness/diagnose" not in ended.err


@faulty
def test_its_cure_cures_it(program: Expected, warm: Warm, tmp_path: Path) -> None:
    cure = on_stub(warm, program.path).finding["cure"]
    assert cure["id"] in program.cures
    cured = tmp_path / program.path.name
    cured.write_text(applied(cure["edits"], program.path))
    ended = warm.diagnosed(cured, "stub")
    assert (ended.code, ended.diagnosis["findings"]) == (0, []), ended.err


@faulty
def test_on_a_cpu_it_is_told_the_same(program: Expected, warm: Warm) -> None:
    ended = warm.diagnosed(program.path, "cpu")
    findings = ended.diagnosis["findings"]
    assert {finding["kind"] for finding in findings} == {program.kind_on_cpu}
    told = [lines_of(finding) for finding in findings]
    assert len(set(told)) == len(told), "one finding for each RNN and its lines"
    (found,) = (finding for finding in findings if expected_lines(program).items() <= dict(lines_of(finding)).items())
    hold(found, program)
    assert ended.code == (1 if program.kind_on_cpu == "error" else 0)


@faulty
def test_the_guard_raises_on_a_cpu_what_the_stub_raises(program: Expected, warm: Warm) -> None:
    ended = warm.guarded(program.path)
    assert ("EvalModeBackwardError" in ended.err) is program.guard_ends_it
    if program.guard_ends_it:
        rnn = f"{program.class_} {program.module!r} of {program.root}"
        assert f"A gradient reached the {rnn}, whose forward ran in eval mode" in ended.err
        assert f"forward in eval mode: {program.path}:{program.marks['forward']} in" in ended.err
        assert f"put into eval mode:   {program.path}:{program.marks['switch']} in" in ended.err


@correct
@pytest.mark.parametrize("device", ["stub", "cpu"])
def test_nothing_is_said_of_a_correct_program(program: Path, device: str, warm: Warm) -> None:
    ended = warm.diagnosed(program, device)
    assert (ended.code, ended.diagnosis["findings"]) == (0, []), ended.err


@correct
def test_the_guard_leaves_a_correct_program_alone(program: Path, warm: Warm) -> None:
    ended = warm.guarded(program)
    assert ended.code == 0, ended.err


UNSEEN = """
import torch
from torch import nn
device = "cuda" if torch.cuda.is_available() else "cpu"
rnn, x = nn.LSTM(2, 3).to(device).eval(), torch.randn(3, 2, 2, device=device)
state = (torch.zeros(1, 2, 3, device=device), torch.zeros(1, 2, 3, device=device))
"""
WAYS = {
    "TorchScript": "torch.jit.script(nn.Sequential(rnn))(x)[0].sum().backward()",
    "torch.lstm": "torch.lstm(x, state, list(rnn.parameters()), True, 1, 0.0, False, False, False)[0].sum().backward()",
}


@pytest.mark.parametrize("way", WAYS)
def test_an_error_of_an_rnn_that_cannot_be_seen_is_not_said_to_be_none(way: str, warm: Warm, tmp_path: Path) -> None:
    program = tmp_path / "unseen.py"
    program.write_text(f"{UNSEEN}{WAYS[way]}\n")
    ended = warm.diagnosed(program, "stub")
    assert (ended.code, ended.diagnosis["findings"], ended.diagnosis["forwards"]) == (1, [], 0)
    assert CUDNN_SAYS in ended.err.rstrip().splitlines()[-1]
    assert "an RNN ran that is not watched" in ended.diagnosis["notes"][0]
    on_cpu = warm.diagnosed(program, "cpu")
    assert (on_cpu.code, on_cpu.diagnosis["findings"]) == (0, [])
    assert "No nn.RNN, nn.LSTM or nn.GRU ran" in on_cpu.diagnosis["notes"][0]


def test_there_are_as_many_correct_programs_as_the_issue_asks_for_and_every_pattern_has_one() -> None:
    assert len(FAULTY) >= 45
    assert len(CORRECT) >= 35
    patterns = {pattern for program in FAULTY for pattern in program.patterns}
    raising = {name for name, placement in PLACEMENTS.items() if placement.raises}
    assert raising <= patterns


def test_every_mark_is_in_a_program_that_is_read() -> None:
    assert all(program.marks for program in FAULTY)
    assert not any(marks(path) for path in CORRECT)
    assert {path.parent.name for path in PROGRAMS.rglob("*.py")} == {"faulty", "correct", "speech"}


def lines_of(finding: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The RNN of a finding, and the number of each of its lines."""
    lines = {mark: finding[mark] and finding[mark]["line"] for mark in MARKED}
    return tuple({"module": finding["module"], "root": finding["root"], **lines}.items())


def expected_lines(program: Expected) -> dict[str, Any]:
    return {"module": program.module, "root": program.root, **program.marks}


def hold(finding: dict[str, Any], program: Expected) -> None:
    """What was found is what the program says of itself."""
    assert finding["pattern"] in program.patterns
    assert (finding["module"], finding["class"], finding["root"]) == (program.module, program.class_, program.root)
    assert finding["cure"]["id"] in program.cures
    for mark, line in program.marks.items():
        assert (finding[mark]["file"], finding[mark]["line"]) == (str(program.path), line), mark
    if program.through is not None:
        assert finding["switch"]["through"] == program.through


def applied(edits: list[dict[str, Any]], path: Path) -> str:
    """The text of a program after the edits of a diagnosis, which concern no other file."""
    assert edits
    made = [Edit(**edit | {"action": EditAction(edit["action"])}) for edit in edits]
    ((file, text),) = apply(made).items()
    assert file == str(path)
    return text
