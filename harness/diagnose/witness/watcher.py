"""Watches every RNN of the process: forwards, mode switches, and the gradients that come back."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakKeyDictionary, ref

import torch
from torch import Tensor, nn

from harness.diagnose.facts import Chain, Count, SwitchFact
from harness.diagnose.witness.arrivals import Arrivals, Gradients
from harness.diagnose.witness.copies import Copies
from harness.diagnose.witness.forward import (
    Forward,
    Standing,
    mark,
    name_switched,
    path_of,
    seen_at_forward,
    standing_of,
)
from harness.diagnose.witness.histories import Histories, History, Switched, TrainForward, tick
from harness.diagnose.witness.mode_calls import ModeCalls
from harness.diagnose.witness.notes import Notes
from harness.diagnose.witness.places import Key, chain_of, key_of, outside
from harness.diagnose.witness.silent import Silent
from harness.modes import backend
from harness.modes.calls import place_of_mode
from harness.modes.sites import frames, module_of
from harness.modes.switches import Switch, asked_by
from harness.modes.tap import Tap

if TYPE_CHECKING:
    from torch.autograd.graph import Node

_MOST_STANDINGS = 512

Function = TypeVar("Function", bound=Callable[..., None])


def _undisturbing(method: Function) -> Function:
    """What goes wrong while we watch is our own affair: it is noted, the watching ends, the program goes on."""

    @functools.wraps(method)
    def watched(self: Watcher, *arguments: Any) -> None:
        if not self.active:
            return
        try:
            method(self, *arguments)
        except Exception as fault:
            self.active = False
            with suppress(OSError):  # the script may have removed the folder of our notes
                self.notes.failed(fault)

    return cast("Function", watched)


class Watcher:
    """Watches every thread of the process while it is open."""

    def __init__(self, notes: Notes) -> None:
        self.active = self._is_fork = False
        self.notes = notes
        self._histories = Histories()
        self._calls = ModeCalls(self._histories)
        self._arrivals = Arrivals(notes, self._calls)
        self._silent = Silent(notes, self._histories, self._arrivals)
        self._copies = Copies(self._histories.copied)
        self._standings: WeakKeyDictionary[nn.Module, dict[Key, Standing]] = WeakKeyDictionary()
        self._without_graph: Forward | None = None
        self._tap = Tap(observer=self._ran, listener=self._switched, twin=self._histories.replicated)

    def open(self) -> None:
        """Begin to watch."""
        self._tap.open()
        self._calls.open(self._mode_called)
        self._copies.open()
        self.active = True

    def close(self) -> None:
        """Stop, and put PyTorch back as it was."""
        self.active = False
        self._copies.close()
        self._calls.close()
        self._tap.close()

    def forked(self) -> None:
        """This process was forked off the one that is watched."""
        self.active, self._is_fork = False, True
        self.notes.forked()

    @_undisturbing
    def refused_without_graph(self, backward: Chain) -> None:
        """PyTorch refused a backward, since there was no graph."""
        forward = self._without_graph
        if forward is not None:
            number, _ = self._arrivals.number("no-graph")
            self.notes.write(replace(forward.fact(number, "no-graph", forward.seen), backward=backward))

    @_undisturbing
    def _mode_called(self, module: nn.Module, mode: bool, stack: list[FrameType]) -> None:
        self._calls.note(module, mode, stack)
        if mode:
            self._silent.train_called(module, stack)

    @_undisturbing
    def _switched(self, rnn: nn.Module, switch: Switch) -> None:
        stack, through, _ = asked_by(frames(sys._getframe(1)), switch.training)
        fact = SwitchFact(switch.how, switch.through, switch.name, chain_of(outside(stack)))
        module = (lambda: None) if through is None or switch.how == "copied" else ref(through)
        self._histories.of(rnn).switched = Switched(tick(), switch.training, fact, module)

    def _ran(self, operator: str, arguments: Sequence[Any], training: bool, outputs: tuple[Tensor, ...]) -> None:
        if self._is_fork:
            self.notes.add(Count.FORKED_FORWARDS)
        self._called(operator, arguments, training, outputs)

    @_undisturbing
    def _called(self, operator: str, arguments: Sequence[Any], training: bool, outputs: tuple[Tensor, ...]) -> None:
        del operator
        self.notes.add(Count.FORWARDS)
        data: Tensor = arguments[0]
        self.notes.add(Count.GPU_FORWARDS, by=int(data.is_cuda))
        stack = frames(sys._getframe(1))
        rnn = next((module for module in map(module_of, stack) if module is not None), None)
        if rnn is None:
            return
        graph = any(output.requires_grad for output in outputs)
        nodes = backend.beginnings(outputs) if graph else []
        raises = graph and backend.raises_in_eval(data, nodes)
        self.notes.add(Count.CUDNN_FORWARDS, by=int(raises))
        forward = self._forward(stack, rnn, raises=raises, on_gpu=data.is_cuda, path=path_of(nodes))
        forced = forward.history.forced is not None
        if forced:
            self._silent.ran_after_train(self._complete(forward, stack, rnn))
        place = place_of_mode(tuple(arguments))
        drops_out = training and arguments[place - 1] > 0 and arguments[place - 2] > 1
        if drops_out:
            self._silent.drops_out(self._complete(forward, stack, rnn))
        if not graph:
            self._ran_without_graph(forward, stack, rnn)
        elif training:
            self._ran_in_train(forward, stack, rnn, nodes, alone=drops_out and not forced)
        else:
            mark(self._complete(forward, stack, rnn), nodes)
            _on_gradient(nodes, functools.partial(self._arrived_in_eval, forward))

    def _forward(self, stack: list[FrameType], rnn: nn.Module, **known: Any) -> Forward:
        history = self._histories.of(rnn)
        history.forwards += 1
        lines = outside(stack)
        standings = self._standings.setdefault(rnn, {})
        if len(standings) > _MOST_STANDINGS:
            standings.clear()
        standing = standings.get(key_of(lines))
        if standing is None or standing.root() is None:
            standing = standing_of(stack, lines, rnn)
            standings[standing.key] = standing
        return Forward(ref(rnn), standing, history, tick(), history.forwards, **known)

    def _complete(self, forward: Forward, stack: list[FrameType], rnn: nn.Module) -> Forward:
        """``forward`` with all that can be seen only now."""
        switched = forward.history.switched
        forward.switched = None if switched is None or switched.training or rnn.training else switched
        name_switched(forward.standing, outside(stack), rnn, forward.switched)
        forward.chain = forward.standing.chain
        forward.seen = seen_at_forward(stack, forward.standing, rnn, forward.switched)
        return forward

    def _ran_without_graph(self, forward: Forward, stack: list[FrameType], rnn: nn.Module) -> None:
        if not rnn.training:
            forward.history.evaluated(forward.at, forward.standing.key, forward.standing.chain)
        if not torch.is_grad_enabled():
            self._without_graph = self._complete(forward, stack, rnn)

    def _ran_in_train(
        self, forward: Forward, stack: list[FrameType], rnn: nn.Module, nodes: list[Node], *, alone: bool
    ) -> None:
        standing, history = forward.standing, forward.history
        if not rnn.training:  # it was only told to, as eval_gradients does
            _on_gradient(nodes, functools.partial(self._arrived_otherwise, history))
            return
        kept = TrainForward(forward.at, standing.entry_key, standing.chain)
        history.train_forwards.append(kept)
        root = standing.root()
        alone = alone and root is not None and root is not rnn and not root.training
        told = self._complete(forward, stack, rnn) if alone else None
        _on_gradient(nodes, functools.partial(self._arrived_in_train, ref(rnn), history, kept, told))

    @_undisturbing
    def _arrived_otherwise(self, history: History, gradients: Gradients) -> None:
        if any(gradient is not None for gradient in gradients):
            self._arrivals.arrived(history)

    @_undisturbing
    def _arrived_in_train(
        self,
        rnn: Callable[[], nn.Module | None],
        history: History,
        kept: TrainForward,
        alone: Forward | None,
        gradients: Gradients,
    ) -> None:
        if any(gradient is not None for gradient in gradients):
            first, module = self._arrivals.to_train_forward(history, kept), rnn()
            if first and alone is not None and module is not None:
                self._silent.learns_alone(module, alone)

    @_undisturbing
    def _arrived_in_eval(self, forward: Forward, gradients: Gradients) -> None:
        if any(gradient is not None for gradient in gradients):
            self._arrivals.to_eval_forward(forward)


def _on_gradient(nodes: Sequence[Node], arrived: Callable[[Gradients], None]) -> None:
    for node in nodes:
        node.register_prehook(arrived)
