"""Edits as a program reads them out of a diagnosis' JSON, and those that take the place of a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.diagnose import edits
from harness.diagnose.edits import EditAction
from harness.diagnose.findings import Diagnosis, Exit
from harness.model import Device
from tests.watched import cured, findings, line_of

VALID: dict[str, Any] = {"file": "f.py", "line": 1, "end_line": None, "action": "replace", "code": "c", "end": None}


def test_the_edits_of_the_json_are_those_of_the_finding(tmp_path: Path) -> None:
    found = findings(tmp_path, "net = Net().eval()\nnet(x).sum().backward()\n")
    written = json.loads(json.dumps(Diagnosis(Device.CPU, Exit(0), 1, 1, 1, findings=found).as_json()))
    (told,) = (finding["cure"]["edits"] for finding in written["findings"])
    text = (tmp_path / "program.py").read_text()
    ((file, changed),) = edits.apply(told).items()
    assert file == str(tmp_path / "program.py")
    assert "with harness.eval_gradients(net):\n    net(x).sum().backward()" in changed
    assert edits.apply([*found[0].cure.edits, *told]) == {file: changed}
    assert (tmp_path / "program.py").read_text() == text


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ({**VALID, "action": "delete"}, "action: Input should be 'insert-before'"),
        ({**VALID, "action": "insert-after"}, "action: Input should be 'insert-before'"),
        ({**VALID, "line": "three"}, "line: Input should be a valid integer"),
        ({key: VALID[key] for key in VALID if key != "code"}, "code: Field required"),
        ({**VALID, "file": None}, "file: Input should be a valid string"),
        ("model.train()", "'model.train()' is no edit of a diagnosis"),
    ],
)
def test_what_is_no_edit_is_told(edit: Any, words: str) -> None:
    with pytest.raises(ValueError, match="is no edit of a diagnosis") as info:
        edits.apply([edit])
    assert words in str(info.value)


@pytest.mark.parametrize(("line", "last"), [(0, None), (3, None), (1, 3), (2, 1), (-1, None)])
def test_an_edit_of_lines_that_are_not_there_is_told(tmp_path: Path, line: int, last: int | None) -> None:
    path = tmp_path / "f.py"
    path.write_text("a = 1\nb = 2\n")
    with pytest.raises(ValueError, match=r"f\.py has 2 lines"):
        edits.apply([{**VALID, "file": str(path), "line": line, "end_line": last}])


LATE = "net = Net()\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
REINFORCE = """
policy = Net()
for episode in range(2):
    policy.eval()  # replaced
    score = policy(x).sum()
    policy.train()
    score.backward()
"""
REPLACED = {
    "each epoch": f"""{LATE}
for epoch in range(2):
    net.eval()  # replaced
    # the batches
    for batch in [x, x]:
        loss = net(batch).sum()
        net.train()
        loss.backward()
""",
    "each step": f"""{LATE}
for batch in [x, x]:
    net.train(False)  # replaced
    loss = net(batch).sum()
    net.train()
    loss.backward()
""",
    "another name": REINFORCE,
}


@pytest.mark.parametrize("name", REPLACED)
def test_train_takes_the_place_of_an_eval_that_it_would_undo_at_once(tmp_path: Path, name: str) -> None:
    (found,) = findings(tmp_path, REPLACED[name])
    (edit,) = found.cure.edits
    line = line_of(tmp_path, "replaced")
    assert (found.pattern, found.cure.id) == ("train-before-backward", "train-first")
    assert (edit.action, edit.line, edit.last) == (EditAction.REPLACE, line, line)
    assert f"in place of the eval() at {edit.file}:{line}" in found.cure.sentence
    assert "too late" in found.cure.sentence
    assert cured(tmp_path, found) == ()


STAYS = {
    "of another": REINFORCE.replace("policy.eval()  # replaced", "policy.eval()\n    nn.GRU(1, 1).eval()"),
    "needed between": REINFORCE.replace("policy.eval()  # replaced", "policy.eval()\n    assert not policy.training"),
    "on one line": REINFORCE.replace("policy.eval()  # replaced", "start = 0; policy.eval()"),
    "with a value": REINFORCE.replace("policy.eval()  # replaced", "same = policy.eval()"),
}


@pytest.mark.parametrize("name", STAYS)
def test_an_eval_that_may_be_needed_stays(tmp_path: Path, name: str) -> None:
    (found,) = findings(tmp_path, STAYS[name])
    (edit,) = found.cure.edits
    assert (edit.action, edit.code) == (EditAction.INSERT_BEFORE, "policy.train()")
    assert cured(tmp_path, found) == ()
