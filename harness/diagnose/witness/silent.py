"""The silent forms: what no device raises, and is wrong all the same."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from types import FrameType
from weakref import ref

import torch
from torch import nn

from harness.diagnose.facts import Chain, SwitchFact
from harness.diagnose.witness import surroundings
from harness.diagnose.witness.arrivals import Arrivals
from harness.diagnose.witness.forward import Forward
from harness.diagnose.witness.histories import Forced, Histories, Switched, tick
from harness.diagnose.witness.notes import Notes
from harness.diagnose.witness.places import chain_of, outside
from harness.modes.sites import module_of, name_in


class Silent:
    """Looks for the silent forms and writes each down once."""

    def __init__(self, notes: Notes, histories: Histories, arrivals: Arrivals) -> None:
        self._notes, self._histories, self._arrivals = notes, histories, arrivals
        self._changed: set[int] = set()
        self._fine: set[Hashable] = set()
        self._told: set[Hashable] = set()

    def drops_out(self, forward: Forward) -> None:
        """A forward ran with the RNN's own dropout on: wrong where no weight of it was ever to be trained."""
        history, frozen = forward.history, forward.seen.frozen
        if frozen and not history.ever_trainable:
            number, new = self._arrivals.number(("frozen", history.number))
            history.frozen_fact = number
            if new:
                self._notes.write(forward.fact(number, "frozen-dropout", forward.seen))
        elif not frozen and not history.ever_trainable:
            history.ever_trainable = True
            if history.frozen_fact is not None:
                self._notes.withdraw(history.frozen_fact)

    def learns_alone(self, rnn: nn.Module, forward: Forward) -> None:
        """A gradient came to an RNN in train mode, with its dropout on, while what surrounds it is in eval mode.

        Nothing is wrong with that if an optimizer trains the RNN.
        """
        what = ("rest-eval", forward.history.number, forward.standing.key)
        if what in self._fine:
            return
        if what not in self._told and surroundings.holds_any(surroundings.optimizers(), rnn):
            self._fine.add(what)
            return
        self._told.add(what)
        number, new = self._arrivals.number(what)
        if new:
            self._notes.write(forward.fact(number, "rest-eval", forward.seen))

    def train_called(self, through: nn.Module, stack: list[FrameType]) -> None:
        """``train()`` was called, by the first line of ``stack``: inside ``forward()`` it undoes every ``eval()``."""
        if not stack or stack[0].f_code.co_name != "forward" or module_of(stack[0]) is None:
            return
        rnn = next((one for one in through.modules() if isinstance(one, nn.RNNBase)), None)
        if rnn is None or (through is rnn and not has_own_dropout(rnn)):
            return
        history, lines = self._histories.of(rnn), chain_of(outside(stack))
        if not rnn.training and history.switched is not None and _in_one_function(history.switched.fact.chain, lines):
            return  # it puts back what it had changed itself
        changed = not rnn.training and torch.is_grad_enabled()
        fact = SwitchFact("train()", type(through).__name__, name_in(through, rnn) or "", lines)
        history.forced = Forced(Switched(tick(), True, fact, ref(through)), changed)

    def ran_after_train(self, forward: Forward) -> None:
        """A forward ran, before which the ``forward()`` around it had called ``train()``."""
        history, forced = forward.history, forward.history.forced
        if forced is None:
            return
        history.forced = None
        line = forced.switched.fact.chain[0]
        number, new = self._arrivals.number(("train-in-forward", line.file, line.line, history.number))
        if not new and (not forced.changed or number in self._changed):
            return
        if forced.changed:
            self._changed.add(number)
        trained_here = history.lineage.trained_at[forward.standing.entry_key]
        told = replace(forward, switched=forced.switched)
        seen = replace(forward.seen, trained_here=trained_here, changed=forced.changed)
        self._notes.write(told.fact(number, "train-in-forward", seen))


def _in_one_function(one: Chain, other: Chain) -> bool:
    functions = [(chain[0].file, chain[0].starts) for chain in (one, other) if chain]
    return len(functions) == 2 and functions[0] == functions[1]


def has_own_dropout(rnn: nn.Module) -> bool:
    """Whether the RNN drops out between its layers when it trains."""
    return isinstance(rnn, nn.RNNBase) and rnn.dropout > 0 and rnn.num_layers > 1
