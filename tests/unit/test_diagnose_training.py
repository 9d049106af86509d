"""Whether others call the function that trains: by name, by what a function in a function is, and by arguments."""

from __future__ import annotations

import ast

import pytest

from harness.diagnose.facts import Place
from harness.diagnose.source import Loop, pauses
from harness.diagnose.training import _may_call


def call_of(text: str) -> ast.Call:
    (call,) = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return call


def place_in(qualified: str) -> Place:
    return Place(file="train.py", line=2, function=qualified, starts=1, own=True)


@pytest.mark.parametrize(
    ("qualified", "head", "call", "expected"),
    [
        ("step", "def step(batch)", "step(x)", True),
        ("step", "def step(batch)", "training.step(x)", True),
        ("step", "def step(batch)", "step_all(x)", False),
        ("step", "def step(batch)", "optimizer.step()", False),
        ("step", "def step(batch)", "step(x, y)", False),
        ("step", "def step(batch)", "step(other=x)", False),
        ("step", "def step(batch)", "step(batch=x)", True),
        ("step", "def step(batch, weight=1)", "step(x)", True),
        ("step", "def step(batch, *rest)", "step(x, y, z)", True),
        ("step", "def step(**named)", "step(batch=x)", True),
        ("step", "def step(batch, *, weight)", "step(x)", False),
        ("step", "def step(batch, *, weight)", "step(x, weight=1)", True),
        ("step", "def step(batch)", "step(*both)", True),
        ("step", "def step(batch)", "step(**both)", True),
        ("step", "def step()", "optimizer.step()", True),
        ("build.<locals>.step", "def step()", "optimizer.step()", False),
        ("build.<locals>.step", "def step()", "step()", True),
        ("Trainer.step", "def step(self, batch)", "self.step(x)", True),
        ("Trainer.step", "def step(self, batch)", "Trainer.step(trainer, x)", True),
        ("Trainer.step", "def step(self, batch)", "self.optimizer.step()", False),
        ("Trainer.step", "def step(self)", "self.step()", True),
    ],
)
def test_what_may_be_a_call_of_it(qualified: str, head: str, call: str, expected: bool) -> None:
    function = ast.parse(f"{head}: pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    assert _may_call(call_of(call), place_in(qualified), function) is expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("yield batch", True),
        ("loss = yield", True),
        ("if batch:\n        yield from batch", True),
        ("print(batch)", False),
        ("def inner():\n        yield 1\n    print(inner)", False),
        ("sizes = (lambda: (yield))", False),
    ],
)
def test_a_loop_pauses_where_it_yields_itself(body: str, expected: bool) -> None:
    loop = ast.parse(f"for batch in batches:\n    {body}").body[0]
    assert isinstance(loop, Loop)
    assert pauses(loop) is expected
