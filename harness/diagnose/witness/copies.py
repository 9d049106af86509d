"""Copies of RNNs: ``train()`` on a copy does not help the original, and a copy has learnt what its original has."""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch import nn

from harness.modes.compiling import left_alone

Copied = Callable[[nn.Module, nn.Module], None]


class Copies:
    """Tells of every copy of an RNN: the original and the copy."""

    def __init__(self, told: Copied) -> None:
        self._told = told
        self._original: Callable[..., Any] | None = None
        self._watched: Callable[..., Any] | None = None

    def open(self) -> None:
        """Begin to watch."""
        original = self._original = vars(nn.RNNBase)["__setstate__"]
        told = self._told

        @functools.wraps(original)
        def set_state(self: nn.Module, state: Any) -> None:
            original(self, state)
            source = None if torch.compiler.is_compiling() else _source(sys._getframe(1))
            if source is not None and type(source) is type(self):
                told(source, self)

        self._watched = left_alone(set_state)
        nn.RNNBase.__setstate__ = self._watched  # type: ignore[method-assign]

    def close(self) -> None:
        """Put back what was there, unless others put something else there meanwhile."""
        if self._original is not None and vars(nn.RNNBase)["__setstate__"] is self._watched:
            nn.RNNBase.__setstate__ = self._original  # type: ignore[method-assign]


def _source(frame: FrameType | None) -> nn.Module | None:
    """What ``copy`` is making a copy of; None where it is something else that restores a state."""
    while frame is not None and frame.f_code.co_name in ("_reconstruct", "__setstate__", "set_state"):
        if frame.f_code.co_filename == copy.__file__:
            source = frame.f_locals.get("x")
            return source if isinstance(source, nn.Module) else None
        frame = frame.f_back
    return None
