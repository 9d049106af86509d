"""The backward pass that is going on: what it was called for, and which nodes of the graph it goes through."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

import torch
from torch.autograd.graph import Node

from harness.modes.sites import frames, is_machinery

_MOST_NODES = 20_000


def calling_backward() -> list[FrameType]:
    """The stack that called the backward which is going on, also where a thread of PyTorch's carries it out."""
    for top in (sys._getframe(1), *sys._current_frames().values()):
        stack = frames(top)
        depth = next((depth for depth, frame in enumerate(stack) if _is_backward(frame)), None)
        if depth is not None and not all(is_machinery(frame.f_code) for frame in stack[depth:]):
            return stack[depth:]
    return []


def _is_backward(frame: FrameType) -> bool:
    return frame.f_code.co_name == "_engine_run_backward"


def reaches_optimizer(stack: list[FrameType], optimizers: Sequence[torch.optim.Optimizer]) -> bool:
    """Whether the backward of ``calling_backward`` leaves a gradient in a weight that one of the optimizers holds.

    False for ``torch.autograd.grad``, whose gradients are its caller's, and where it cannot be told.
    """
    held = {id(weight) for one in optimizers for group in one.param_groups for weight in group["params"]}
    called = _called_with(stack)
    if not held or not called.get("accumulate", False):
        return False
    if called["inputs"]:
        return any(id(tensor) in held for tensor in called["inputs"])
    return any(id(getattr(node, "variable", None)) in held for node in nodes_of(called["outputs"]))


def _called_with(stack: list[FrameType]) -> dict[str, Any]:
    """What ``_engine_run_backward`` was called with; empty where it is another function than is known here."""
    told = stack[0].f_locals if stack else {}
    arguments, named = told.get("args"), told.get("kwargs")
    if not isinstance(arguments, tuple) or len(arguments) < 4 or not isinstance(named, dict):
        return {}
    return {
        "outputs": [one for one in told.get("t_outputs", ()) if isinstance(one, torch.Tensor)],
        "inputs": [one for one in arguments[3] or () if isinstance(one, torch.Tensor)],
        "accumulate": named.get("accumulate_grad", False),
    }


def nodes_behind(stack: list[FrameType]) -> Iterator[Node]:
    """The nodes of the graph that the backward of ``calling_backward`` may go through."""
    return nodes_of(_called_with(stack).get("outputs", ()))


def nodes_of(outputs: Sequence[torch.Tensor]) -> Iterator[Node]:
    """The nodes of the graph behind ``outputs``, as far as they can be followed."""
    waiting = [one.grad_fn for one in outputs if one.grad_fn is not None]
    seen = set(waiting)  # also keeps their wrappers alive, so that no identity is given twice
    while waiting and len(seen) < _MOST_NODES:
        node = waiting.pop()
        yield node
        new = {one for one, _ in node.next_functions if one is not None and one not in seen}
        seen |= new
        waiting += new
