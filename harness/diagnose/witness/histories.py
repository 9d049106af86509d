"""What is remembered of each RNN: how often it ran, in which mode, and who switched it."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from torch import nn

from harness.diagnose.facts import Chain, SwitchFact
from harness.diagnose.witness.places import Key

_RECENT = 16
_CHAINS = 16

tick: Callable[[], int] = itertools.count(1).__next__
"""Tells what came first; threads share it."""


@dataclass(slots=True)
class TrainForward:
    """A forward in train mode that left a graph."""

    at: int
    key: Key
    chain: Chain
    arrived: int | None = None
    """The backward pass that brought a gradient to it."""


@dataclass(slots=True)
class Switched:
    """The latest switch of an RNN; ``through`` says which module ``train()`` or ``eval()`` was called on."""

    at: int
    training: bool
    fact: SwitchFact
    through: Callable[[], nn.Module | None]


@dataclass(slots=True)
class Forced:
    """A ``train()`` inside ``forward()``; ``changed`` if it changed the mode while gradients were enabled."""

    switched: Switched
    changed: bool


@dataclass(slots=True)
class Lineage:
    """What an RNN and its copies have in common."""

    trained: int = 0
    trained_at: Counter[Key] = field(default_factory=Counter)
    chains: dict[Key, Chain] = field(default_factory=dict)

    def learnt(self, key: Key, chain: Chain) -> None:
        """A gradient came to a forward in train mode."""
        self.trained += 1
        self.trained_at[key] += 1
        if key not in self.chains and len(self.chains) < _CHAINS:
            self.chains[key] = chain


@dataclass(slots=True)
class History:
    """What is known of one RNN."""

    number: int = field(default_factory=itertools.count(1).__next__)
    """Tells it from every other, also from one that has gone, whose ``id`` may be given again."""
    lineage: Lineage = field(default_factory=Lineage)
    forwards: int = 0
    backwards: int = 0
    latest_backward: int = -1
    """The number of the latest backward pass that reached it."""
    evaluated_at: int = 0
    """When it latest ran in eval mode without a graph."""
    evaluations: dict[Key, Chain] = field(default_factory=dict)
    """Some of the lines from which it did."""
    ever_trainable: bool = False
    frozen_fact: int | None = None
    """The number of the fact that it dropped out although it is frozen, if there is one."""
    switched: Switched | None = None
    forced: Forced | None = None
    """What ``forward()`` did to its mode, until it runs."""
    train_forwards: deque[TrainForward] = field(default_factory=lambda: deque(maxlen=_RECENT))

    def evaluated(self, at: int, key: Key, chain: Chain) -> None:
        """It ran in eval mode without a graph."""
        self.evaluated_at = at
        if key not in self.evaluations and len(self.evaluations) < _CHAINS:
            self.evaluations[key] = chain


class Histories:
    """The histories of all RNNs of the process; a replica of ``nn.DataParallel`` shares that of its original."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[nn.Module, History] = WeakKeyDictionary()

    def of(self, rnn: nn.Module) -> History:
        """The history of ``rnn``, which begins now if there was none."""
        known = self._known.get(rnn)
        if known is None:
            known = self._known[rnn] = History()
        return known

    def replicated(self, rnn: nn.Module, replica: nn.Module) -> None:
        """``replica`` stands for ``rnn`` in another thread."""
        self._known[replica] = self.of(rnn)

    def copied(self, original: nn.Module, copy: nn.Module) -> None:
        """``copy`` is another RNN that began as ``original``."""
        self.of(copy).lineage = self.of(original).lineage
