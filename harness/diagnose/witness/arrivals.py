"""Gradients that arrive: what they mean for the RNN that they reach."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from harness.diagnose.facts import Count, Fact, Seen
from harness.diagnose.witness import passing, surroundings
from harness.diagnose.witness.forward import Forward, marked
from harness.diagnose.witness.histories import History, TrainForward, tick
from harness.diagnose.witness.mode_calls import ModeCalls
from harness.diagnose.witness.notes import Notes
from harness.diagnose.witness.places import chain_of, outside

if TYPE_CHECKING:
    from collections.abc import Hashable
    from types import FrameType

_RECENT = 64

Gradients = tuple[Tensor | None, ...]


@dataclass(frozen=True, slots=True)
class Passing:
    """The backward pass that is going on: its number, who called it, and the optimizers that there are."""

    task: int
    calling: list[FrameType]
    optimizers: list[torch.optim.Optimizer]
    reaches_optimizer: bool


class Arrivals:
    """Counts backward passes, and writes down each gradient that came to a forward in eval mode."""

    def __init__(self, notes: Notes, calls: ModeCalls) -> None:
        self._notes, self._calls = notes, calls
        self._passes: deque[int] = deque(maxlen=_RECENT)
        self._latest = self._ended = 0
        self._numbers: dict[Hashable, int] = {}

    def number(self, what: Hashable) -> tuple[int, bool]:
        """The number of a fact, and whether it is new."""
        new = what not in self._numbers
        number = self._numbers.setdefault(what, len(self._numbers))
        self._notes.happened(number)
        return number, new

    def to_train_forward(self, history: History, forward: TrainForward) -> bool:
        """A gradient came to a forward in train mode; False if the same pass brought one before."""
        task = self.arrived(history)
        if forward.arrived == task:
            return False
        forward.arrived = task
        history.lineage.learnt(forward.key, forward.chain)
        return True

    def to_eval_forward(self, forward: Forward) -> None:
        """A gradient came to a forward in eval mode: with cuDNN, this is the error."""
        task = self.arrived(forward.history)
        if task in forward.arrived:
            return
        forward.arrived.add(task)
        trained_here = forward.history.lineage.trained_at[forward.standing.entry_key]
        if not forward.raises and not trained_here:
            return
        number, new = self.number(("gradient", *forward.what))
        if new:
            now = _passing(task)
            also = [self._described(one, number, now) for one in _in_one_graph(forward, now.calling)]
            self._notes.write(replace(self._described(forward, number, now), also=tuple(also)))

    def arrived(self, history: History) -> int:
        """Count the backward pass that is going on; returns its number."""
        task = torch._C._current_graph_task_id()
        if task not in self._passes:
            self._passes.append(task)
            self._ended = self._latest
            self._notes.add(Count.BACKWARDS)
        if history.latest_backward != task:
            history.latest_backward = task
            history.backwards += 1
        self._latest = tick()
        return task

    def _described(self, forward: Forward, number: int, now: Passing) -> Fact:
        rnn = forward.rnn()
        fact = forward.fact(number, "gradient", self._seen(rnn, forward, now))
        switched = forward.switched.at if forward.switched else 0
        return replace(
            fact,
            train_calls=self._calls.since(rnn, forward.history.lineage, switched, forward.at),
            eval_call=self._calls.latest_eval(rnn, forward.history.lineage, forward.at),
            backward=chain_of(outside(now.calling)),
        )

    def _seen(self, rnn: nn.Module | None, forward: Forward, now: Passing) -> Seen:
        history, lineage = forward.history, forward.history.lineage
        optimizers, root = now.optimizers, forward.standing.root()
        latest = history.switched
        pending = [one for one in history.train_forwards if one.at > self._ended and one.arrived in (None, now.task)]
        return replace(
            forward.seen,
            trained=lineage.trained,
            trained_here=lineage.trained_at[forward.standing.entry_key],
            train_chains=tuple(lineage.chains.values()),
            train_forward_since=any(one.at > forward.at for one in history.train_forwards),
            pending=tuple(one.chain for one in pending),
            switched_after=latest is not None and latest.training and latest.at > forward.at,
            cudnn_off_at_backward=not torch.backends.cudnn.enabled,
            optimizers=len(optimizers),
            reaches_optimizer=now.reaches_optimizer,
            rnn_in_optimizer=rnn is not None and surroundings.holds_any(optimizers, rnn),
            root_in_optimizer=root is not None and surroundings.holds_any(optimizers, root),
            others_train=root is not None and surroundings.train_others(optimizers, root),
            evaluated=history.evaluated_at > (forward.switched.at if forward.switched else 0),
            evaluation_chains=tuple(history.evaluations.values()),
        )


def _passing(task: int) -> Passing:
    calling, optimizers = passing.calling_backward(), surroundings.optimizers()
    return Passing(task, calling, optimizers, passing.reaches_optimizer(calling, optimizers))


def _in_one_graph(forward: Forward, calling: list[FrameType]) -> list[Forward]:
    """Other forwards in eval mode in the graph of this backward, one for each finding that they would be."""
    found = {one.what: one for one in map(marked, passing.nodes_behind(calling)) if one is not None and one.raises}
    found.pop(forward.what, None)
    return list(found.values())
