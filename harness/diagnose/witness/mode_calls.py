"""Every call of ``train()`` and ``eval()`` on any module: those that changed nothing tell what a person wanted."""

from __future__ import annotations

import functools
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any
from weakref import ref

import torch
from torch import nn

from harness.diagnose.facts import Chain, TrainCall
from harness.diagnose.witness.histories import Histories, Lineage, tick
from harness.diagnose.witness.places import chain_of, outside
from harness.modes.compiling import left_alone
from harness.modes.sites import frames
from harness.modes.switches import asked_by

_KEPT = 256
_TOLD = 6

OnCall = Callable[[nn.Module, bool, list[FrameType]], None]


@dataclass(slots=True)
class _Called:
    at: int
    mode: bool
    kind: str
    parts: tuple[tuple[Callable[[], nn.Module | None], Lineage], ...]
    """The RNNs in the module then: it may be gone, or hold others, when somebody asks."""
    chain: Chain

    def holds(self, rnn: nn.Module | None, lineage: Lineage) -> str:
        """Whether the module held ``rnn``, a copy of it, or neither; of one that is gone, copies are not told apart."""
        related = any(one is lineage for _, one in self.parts)
        if any(one() is rnn for one, _ in self.parts) if rnn is not None else related:
            return "rnn"
        return "copy" if related else "other"


class ModeCalls:
    """The latest calls of ``train()`` and ``eval()``, each with the line that made it."""

    def __init__(self, histories: Histories) -> None:
        self._histories = histories
        self._calls: deque[_Called] = deque(maxlen=_KEPT)
        self._inside = threading.local()
        self._original: Callable[..., Any] | None = None
        self._watched: Callable[..., Any] | None = None

    def open(self, told: OnCall) -> None:
        """Watch ``nn.Module.train``; ``told`` learns of each call with the stack of the line that made it."""
        self._original = nn.Module.train
        self._watched = left_alone(self._wrapped(nn.Module.train, told))
        nn.Module.train = self._watched  # type: ignore[method-assign]

    def close(self) -> None:
        """Put back what was there, unless others put something else there meanwhile."""
        if self._original is not None and nn.Module.train is self._watched:
            nn.Module.train = self._original  # type: ignore[method-assign]

    def _wrapped(self, original: Callable[..., Any], told: OnCall) -> Callable[..., Any]:
        inside = self._inside

        # The names of the function and of its first argument are how a mode switch is recognised on a stack.
        @functools.wraps(original)
        def train(self: nn.Module, mode: bool = True) -> Any:
            if getattr(inside, "train", False) or torch.compiler.is_compiling():
                return original(self, mode)
            inside.train = True
            try:
                told(self, bool(mode), asked_by(frames(sys._getframe(0)), bool(mode))[0])
                return original(self, mode)
            finally:
                inside.train = False

        return train

    def note(self, module: nn.Module, mode: bool, stack: list[FrameType]) -> None:
        """Remember a call; ``stack`` begins with the line that made it."""
        rnns = [one for one in module.modules() if isinstance(one, nn.RNNBase)]
        parts = tuple((ref(one), self._histories.of(one).lineage) for one in rnns)
        self._calls.append(_Called(tick(), mode, type(module).__name__, parts, chain_of(outside(stack))))

    def latest_eval(self, rnn: nn.Module | None, lineage: Lineage, before: int) -> Chain:
        """The lines of the latest ``eval()`` on a module that holds ``rnn``; empty where there was none."""
        calls = [call for call in self._calls if not call.mode and call.at < before]
        return next((call.chain for call in reversed(calls) if call.holds(rnn, lineage) == "rnn"), ())

    def since(self, rnn: nn.Module | None, lineage: Lineage, switched: int, forward: int) -> tuple[TrainCall, ...]:
        """The calls since a switch to eval mode, and the latest one before it that had reached the RNN.

        ``switched`` and ``forward`` say when the two happened.
        """
        calls = [call for call in self._calls if call.mode]
        after = [call for call in calls if call.at > switched][-_TOLD:]
        before = [call for call in calls if call.at < switched and call.holds(rnn, lineage) == "rnn"][-1:]
        return tuple(
            TrainCall(call.kind, call.holds(rnn, lineage), _when(call.at, switched, forward), call.chain)
            for call in (*before, *after)
        )


def _when(at: int, switched: int, forward: int) -> str:
    if at < switched:
        return "before-switch"
    return "before-forward" if at < forward else "after-forward"
