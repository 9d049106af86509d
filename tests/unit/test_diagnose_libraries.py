"""Programs whose loop is in an installed library: its lines are told, the cure is in the person's own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.diagnose.findings import Finding
from harness.modes import sites
from tests.watched import cured, findings, line_of

TRAINER = """
import torch

class Trainer:
    def check(self, task, batch):
        task.eval()
        with torch.no_grad():
            getattr(task, "validation", task.loss)(batch)

    def fit(self, task, batches, check=True, ready=False):
        optimizer = torch.optim.SGD(task.parameters(), lr=0.1)
        for epoch in range(2):
            for batch in batches:
                if ready:
                    task.train()
                optimizer.zero_grad()
                task.loss(batch).backward()
                optimizer.step()
            if check:
                self.check(task, batches[0])
"""

TASK = """
import lightly

class Task(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def loss(self, batch):
        return self.net(batch).sum()  # call
"""


@pytest.fixture(autouse=True)
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "lightly.py").write_text(TRAINER)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sites, "_LIBRARIES", (*sites._LIBRARIES, str(folder)))
    monkeypatch.delitem(sys.modules, "lightly", raising=False)
    return folder


def only(folder: Path, program: str) -> Finding:
    (finding,) = findings(folder, TASK + program)
    return finding


def test_the_librarys_validation_and_the_persons_forward(tmp_path: Path, library: Path) -> None:
    validated = """
class Validated(Task):
    def validation(self, batch):
        assert not self.training
        self.net(batch)

lightly.Trainer().fit(Validated(), [x, x])  # fit
"""
    found = only(tmp_path, validated)
    assert (found.pattern, found.cure.id) == ("eval-after-epoch", "train-first")
    assert found.switch is not None
    assert found.switch.library is not None
    assert found.switch.place.line == line_of(tmp_path, "fit")
    assert (found.switch.library.file, found.switch.library.line) == (str(library / "lightly.py"), 6)
    (edit,) = found.cure.edits
    # It undoes what was done, to all of the task and not to the net alone.
    assert (edit.line, edit.code) == (line_of(tmp_path, "call"), "self.train()")
    assert cured(tmp_path, found) == ()


def test_no_line_is_offered_that_the_librarys_validation_comes_through_as_well(tmp_path: Path) -> None:
    found = only(tmp_path, "lightly.Trainer().fit(Task(), [x, x])\n")
    assert (found.pattern, found.cure.id, found.cure.edits) == ("eval-after-epoch", "train-first", ())
    assert "before this forward" in found.cure.sentence


def test_no_line_is_offered_that_cannot_help(tmp_path: Path) -> None:
    # The library both switches and calls the model itself: a train() before fit() would be undone in it.
    program = """
import lightly
Direct = type("Direct", (Net,), {"loss": Net.forward})
lightly.Trainer().fit(Direct(), [torch.ones(1, 1, 4)])
"""
    (found,) = findings(tmp_path, program)
    assert (found.pattern, found.cure.id, found.cure.edits) == ("eval-after-epoch", "train-first", ())
    assert "before this forward" in found.cure.sentence


def test_an_eval_gradient_in_a_library_is_allowed_around_the_persons_call(tmp_path: Path) -> None:
    found = only(
        tmp_path,
        "task = Task().eval()\n"
        "def attribute(task):\n    lightly.Trainer().fit(task, [x], check=False)  # own\n\nattribute(task)\n",
    )
    assert found.cure.id == "eval-gradients"
    assert cured(tmp_path, found) == ()


def test_a_library_that_does_it_right_is_left_alone(tmp_path: Path) -> None:
    assert findings(tmp_path, TASK + "lightly.Trainer().fit(Task(), [x, x], ready=True)\n") == ()
