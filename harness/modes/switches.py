"""Who put an RNN into eval mode: every change of ``training`` of an RNN, with the line that made it."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from harness.modes.compiling import left_alone
from harness.modes.sites import Site, frames, is_machinery, module_of, name_in, sites_of, told


@dataclass(frozen=True, slots=True)
class Switch:
    """One change of the mode of one RNN.

    ``how`` is what was written: ``eval()``, ``train(False)``, ``training = False``, or ``copied`` for a module that was
    copied or loaded as it was. ``through`` names the class of the module that ``eval()`` or ``train()`` was called on,
    ``name`` is what the RNN is called in it; both are empty where there was none.
    """

    training: bool
    how: str
    through: str
    name: str
    sites: tuple[Site, ...]

    def __str__(self) -> str:
        where = told(self.sites)
        if self.how == "copied":
            return f"{where} (copied or loaded, already in eval mode)"
        if not self.through:
            return f"{where} ({self.how})"
        inside = f", which contains it as {self.name!r}" if self.name else " itself"
        return f"{where} ({self.how} on {self.through}{inside})"


Listener = Callable[[nn.Module, Switch], None]
Twin = Callable[[nn.Module, nn.Module], None]

listeners: tuple[Listener, ...] = ()
"""Told of every switch as it happens."""

twins: tuple[Twin, ...] = ()
"""Told of every replica that ``nn.DataParallel`` makes: the module and its replica."""

_last: WeakKeyDictionary[nn.Module, Switch] = WeakKeyDictionary()


def last_switch(module: nn.Module) -> Switch | None:
    """The latest switch of ``module`` that was seen; None where none was, or where it is not in that mode any more."""
    switch = _last.get(module)
    return switch if switch is not None and switch.training == module.training else None


def _note(module: nn.Module, switch: Switch) -> None:
    _last[module] = switch
    for listener in listeners:
        listener(module, switch)


def asked_by(stack: list[FrameType], training: bool) -> tuple[list[FrameType], nn.Module | None, str]:
    """Who asked for the switch that is going on in ``stack``.

    Returns the stack from the line that asked outwards, the module that ``train()`` or ``eval()`` was called on (None
    for a bare assignment), and how the call was written.
    """
    through: nn.Module | None = None
    how = f"training = {training}"
    for depth, frame in enumerate(stack):
        owner = module_of(frame) if frame.f_code.co_name in ("train", "eval") else None
        if not is_machinery(frame.f_code) and (owner is None or owner is not through):
            # Not an override of train() that merely calls super(): this line asked for the switch.
            return stack[depth:], through, how
        if owner is not None:
            through, how = owner, _spelling(frame, training)
    return stack, through, how


def _switched(module: nn.Module, training: bool) -> None:
    stack, through, how = asked_by(frames(sys._getframe(2)), training)
    parent, name = ("", None) if through is None else (type(through).__name__, name_in(through, module))
    _note(module, Switch(training, how, parent, name or "", sites_of(stack)))


def _spelling(frame: FrameType, training: bool) -> str:
    return "eval()" if frame.f_code.co_name == "eval" else "train()" if training else "train(False)"


_replaced: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {}
"""What was there, and what is there instead."""


def _watched_set_attribute(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def set_attribute(self: nn.Module, attr: str, value: Any) -> None:
        changes = attr == "training" and not torch.compiler.is_compiling() and self.__dict__.get(attr, value) != value
        original(self, attr, value)
        if changes:
            _switched(self, bool(value))

    return left_alone(set_attribute)


def _watched_set_state(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def set_state(self: nn.Module, state: Any) -> None:
        original(self, state)
        if not self.training:
            _note(self, Switch(False, "copied", "", "", sites_of(frames(sys._getframe(1)))))

    return left_alone(set_state)


def _watched_replicate(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def replicate(self: nn.Module) -> Any:
        replica = original(self)
        switch = last_switch(self)
        if switch is not None:
            _last[replica] = switch
        for tell in twins:
            tell(self, replica)
        return replica

    return left_alone(replicate)


_WATCHED = {
    "__setattr__": _watched_set_attribute,
    "__setstate__": _watched_set_state,
    "_replicate_for_data_parallel": _watched_replicate,
}


def install() -> None:
    """Watch every assignment to ``training`` of an RNN, every copy and every replica."""
    for name, watched in _WATCHED.items():
        original = vars(nn.RNNBase)[name]
        _replaced[name] = original, watched(original)
        setattr(nn.RNNBase, name, _replaced[name][1])


def uninstall() -> None:
    """Put back what was there; what others put there in the meantime stays."""
    for name, (original, ours) in _replaced.items():
        if vars(nn.RNNBase)[name] is ours:
            setattr(nn.RNNBase, name, original)
    _replaced.clear()
    _last.clear()
