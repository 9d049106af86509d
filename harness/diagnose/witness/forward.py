"""One forward of an RNN, as the witness describes it while the stack that called it is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any, cast
from weakref import ReferenceType, ref

import torch
from torch import nn

from harness.diagnose.facts import Chain, Fact, Seen
from harness.diagnose.witness import surroundings
from harness.diagnose.witness.histories import History, Switched
from harness.diagnose.witness.places import Key, chain_of, entry_of, key_of
from harness.modes.sites import called_root

if TYPE_CHECKING:
    from torch.autograd.graph import Node

_MARK = "harness.diagnose"
_KERNELS = {"Cudnn": "cudnn", "Miopen": "miopen", "Mkldnn": "mkldnn"}


@dataclass(slots=True)
class Standing:
    """What is the same whenever an RNN is called from the same lines."""

    root: ReferenceType[nn.Module]
    module: str
    kind: str
    root_kind: str
    chain: Chain
    entry: int
    key: Key
    entry_key: Key
    named_for: int = 0
    """The switch for whose module the chain has names."""


def standing_of(stack: list[FrameType], lines: list[FrameType], rnn: nn.Module) -> Standing:
    """Describe a call of ``rnn``; ``lines`` are the lines of ``stack`` outside the machinery."""
    root, name = called_root(stack, rnn)
    entry = entry_of(stack, root)
    key = key_of(lines)
    chain = chain_of(lines, {"root": root, "rnn": rnn})
    return Standing(ref(root), name, type(rnn).__name__, type(root).__name__, chain, entry, key, key[entry:])


@dataclass(slots=True)
class Forward:
    """One forward in eval mode or without a graph, until a gradient arrives or the program ends."""

    rnn: Callable[[], nn.Module | None]
    standing: Standing
    history: History
    at: int
    count: int
    path: str | None = None
    on_gpu: bool = False
    raises: bool = False
    switched: Switched | None = None
    seen: Seen = field(default_factory=Seen)
    chain: Chain = ()
    arrived: set[int] = field(default_factory=set)

    @property
    def what(self) -> tuple[int, Key, Chain]:
        """What tells it from forwards that are another finding: the RNN, the lines that called, those that switched."""
        return self.history.number, self.standing.key, self.switched.fact.chain if self.switched else ()

    def fact(self, number: int, what: str, seen: Seen) -> Fact:
        """The fact that this forward comes to."""
        return Fact(
            number=number,
            what=what,
            module=self.standing.module,
            kind=self.standing.kind,
            root=self.standing.root_kind,
            path=self.path,
            on_gpu=self.on_gpu,
            raises=self.raises,
            chain=self.chain,
            entry=self.standing.entry,
            switch=self.switched.fact if self.switched else None,
            forward_count=self.count,
            backward_count=self.history.backwards,
            seen=seen,
        )


def mark(forward: Forward, nodes: Sequence[Node]) -> None:
    """Have the graph know which forward these nodes belong to."""
    for node in nodes:
        _metadata(node)[_MARK] = forward


def marked(node: Node) -> Forward | None:
    """The forward that a node belongs to, if it was marked."""
    found = _metadata(node).get(_MARK)
    return found if isinstance(found, Forward) else None


def _metadata(node: Node) -> dict[str, Any]:
    """A dictionary that PyTorch keeps with the node; it is declared as a method, and is an attribute."""
    return cast("dict[str, Any]", node.metadata)


def seen_at_forward(stack: list[FrameType], standing: Standing, rnn: nn.Module, switched: Switched | None) -> Seen:
    """What can only be seen while the forward runs."""
    root, through = standing.root(), switched.through() if switched else None
    others = [] if root is None else [one for one in root.modules() if one is not root and one is not rnn]
    return Seen(
        switched_part=_part(root, through),
        root_training=root is not None and root.training,
        rest_training=any(one.training for one in others),
        frozen=surroundings.frozen(rnn),
        input_grad=root is not None and surroundings.input_takes_gradient(stack, root),
        inference=torch.is_inference_mode_enabled(),
    )


def _part(root: nn.Module | None, through: nn.Module | None) -> str:
    if root is None or through is None:
        return ""
    if any(one is root for one in through.modules()):
        return "whole"
    return "part" if any(one is through for one in root.modules()) else "other"


def name_switched(standing: Standing, lines: list[FrameType], rnn: nn.Module, switched: Switched | None) -> None:
    """Have the chain know what the module that was switched is called, if it holds all that was called."""
    at, root = switched.at if switched else 0, standing.root()
    if at == standing.named_for or root is None:
        return
    parts, through = {"root": root, "rnn": rnn}, switched.through() if switched else None
    if through is not None and any(one is root for one in through.modules()):
        parts["through"] = through
    standing.chain, standing.named_for = chain_of(lines, parts), at


def path_of(nodes: Sequence[Node]) -> str | None:
    """The kernels that ran, by the nodes at which the outputs begin; None where there is no graph."""
    for node in nodes:
        for prefix, path in _KERNELS.items():
            if node.name().startswith(prefix):
                return path
    return "native" if nodes else None
