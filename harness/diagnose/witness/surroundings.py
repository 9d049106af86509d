"""What surrounds a forward: frozen weights, optimizers, inputs that take a gradient."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from harness.modes.sites import module_of

_DEPTH = 3


def frozen(module: nn.Module) -> bool:
    """Whether it has weights, and none takes a gradient."""
    weights = list(module.parameters())
    return bool(weights) and not any(weight.requires_grad for weight in weights)


def optimizers() -> list[torch.optim.Optimizer]:
    """All optimizers of the process. Asked of the garbage collector, so that nothing of theirs has to be wrapped."""
    return [one for one in gc.get_objects() if issubclass(type(one), torch.optim.Optimizer)]


def holds_any(those: Sequence[torch.optim.Optimizer], module: nn.Module) -> bool:
    """Whether one of the optimizers applies the gradient of a weight of ``module``."""
    weights = {id(weight) for weight in module.parameters()}
    held = (id(weight) for one in those for group in one.param_groups for weight in group["params"])
    return any(weight in weights for weight in held)


def train_others(those: Sequence[torch.optim.Optimizer], module: nn.Module) -> bool:
    """Whether an optimizer holds parameters of other modules, and none of this one."""
    for one in those:
        held = [weight for group in one.param_groups for weight in group["params"]]
        if any(isinstance(weight, nn.Parameter) for weight in held) and not holds_any([one], module):
            return True
    return False


def input_takes_gradient(stack: list[FrameType], root: nn.Module) -> bool:
    """Whether anything that ``root`` was called with takes a gradient."""
    for frame in reversed(stack):
        if frame.f_code.co_name in ("_call_impl", "forward") and module_of(frame) is root:
            values = [value for name, value in frame.f_locals.items() if name != "self"]
            return any(tensor.requires_grad for tensor in _tensors(values, _DEPTH))
    return False


def _tensors(value: Any, depth: int) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, PackedSequence):
        yield value.data
    elif depth and type(value) in (tuple, list, dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _tensors(one, depth - 1)
