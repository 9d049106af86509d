"""The modules that a fuzzed program is made of: every piece takes and gives a tensor ``(time, batch, 4)``."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.checkpoint import checkpoint

WIDTH = 4

Tree = dict[str, Any]


class OwnLSTM(nn.LSTM):
    """A subclass that looks at its own mode, and has a ``train`` of its own."""

    def train(self, mode: bool = True) -> OwnLSTM:
        super().train(mode)
        return self

    def forward(self, sequence: Any, state: Any = None) -> Any:
        assert isinstance(self.training, bool)
        return super().forward(sequence, state)


class NoGradient(torch.autograd.Function):
    """Lets a value through and no gradient back."""

    @staticmethod
    def forward(_context: Any, value: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def backward(_context: Any, _gradient: Tensor) -> None:
        return None


class Piece(nn.Module):
    """What can be called with a sequence."""


class Box(Piece):
    def __init__(self, tree: Tree, known: list[nn.Module]) -> None:
        super().__init__()
        self.parts = nn.Sequential(*(build(part, known) for part in tree["parts"]))

    def forward(self, sequence: Tensor) -> Tensor:
        return self.parts(sequence)


class Plain(Piece):
    def __init__(self, tree: Tree, _known: list[nn.Module]) -> None:
        super().__init__()
        kinds = {"linear": nn.Linear(WIDTH, WIDTH), "dropout": nn.Dropout(0.5), "norm": nn.LayerNorm(WIDTH)}
        self.layer = kinds[tree["kind"]]

    def forward(self, sequence: Tensor) -> Tensor:
        return self.layer(sequence)


class Cell(Piece):
    def __init__(self, tree: Tree, _known: list[nn.Module]) -> None:
        super().__init__()
        self.cell = getattr(nn, tree["cell"])(WIDTH, WIDTH)

    def forward(self, sequence: Tensor) -> Tensor:
        state, states = None, []
        for moment in sequence:
            state = self.cell(moment, state)
            states.append(state[0] if isinstance(state, tuple) else state)
        return torch.stack(states)


class Recurrent(Piece):
    """An RNN with a way to call it (``call``) and a part of what it gives to go on with (``use``)."""

    def __init__(self, tree: Tree, known: list[nn.Module]) -> None:
        super().__init__()
        self.call, self.use = tree["call"], tree["use"]
        if tree["shared"] is not None and known:
            self.rnn = known[tree["shared"] % len(known)]
        else:
            self.rnn = make_rnn(tree)
            known.append(self.rnn)

    def forward(self, sequence: Tensor) -> Tensor:
        across = self.rnn.batch_first
        output, state = self.run(sequence.transpose(0, 1) if across else sequence)
        output = output.transpose(0, 1) if across else output
        last, cell = state if isinstance(state, tuple) else (state, state)
        if self.use == "hooked" and output.requires_grad:
            output.register_hook(lambda gradient: gradient * 0)
        uses = {
            "output": lambda: output,
            "hooked": lambda: output,
            "h_n": lambda: wide(last, sequence),
            "h_n-in-place": lambda: wide(last.mul_(2), sequence),
            "c_n": lambda: wide(cell, sequence),
            "one-layer": lambda: wide(last[:1], sequence),
            "last-moment": lambda: output[-1:].expand_as(output) + 0,
            "detached": lambda: sequence + output.detach(),
            "no-gradient": lambda: sequence + NoGradient.apply(output),
            "nothing": lambda: sequence,
        }
        return uses[self.use]()

    def run(self, sequence: Tensor) -> Any:
        calls = {
            "packed": lambda: self.run_packed(sequence),
            "state": lambda: self.rnn(sequence, self.rnn(sequence)[1]),
            "checkpoint": lambda: checkpoint(self.rnn, sequence, use_reentrant=False),
            "checkpoint-reentrant": lambda: checkpoint(self.rnn, sequence, use_reentrant=True),
            "copied": lambda: copy.deepcopy(self.rnn)(sequence),
            "forward": lambda: self.rnn.forward(sequence),
            "functional": lambda: functional_call(self.rnn, dict(self.rnn.named_parameters()), (sequence,)),
        }
        contexts = {"no_grad": torch.no_grad(), "cudnn-off": torch.backends.cudnn.flags(enabled=False)}
        with contexts.get(self.call, contextlib.nullcontext()):
            return calls.get(self.call, lambda: self.rnn(sequence))()

    def run_packed(self, sequence: Tensor) -> Any:
        across = self.rnn.batch_first
        batch, time = sequence.shape[:2] if across else (sequence.shape[1], sequence.shape[0])
        lengths = torch.arange(batch, 0, -1).clamp(max=time)
        output, state = self.rnn(pack_padded_sequence(sequence, lengths, batch_first=across))
        return pad_packed_sequence(output, batch_first=across, total_length=time)[0], state


def wide(state: Tensor, like: Tensor) -> Tensor:
    mean = state.mean(0, keepdim=True)
    return torch.cat([mean] * (WIDTH // mean.shape[2]), dim=2).expand(like.shape[0], -1, -1) + 0


def make_rnn(tree: Tree) -> nn.Module:
    directions = 2 if tree["bidirectional"] else 1
    kind, options = tree["rnn"], {"bidirectional": tree["bidirectional"], "batch_first": tree["batch_first"]}
    options |= {"num_layers": tree["layers"], "dropout": 0.5 if tree["layers"] > 1 else 0.0, "bias": tree["bias"]}
    match kind:
        case "lstm-proj":
            return nn.LSTM(WIDTH, 6, proj_size=WIDTH // directions, **options)
        case "own-lstm":
            return OwnLSTM(WIDTH, WIDTH // directions, **options)
        case "lstm" | "gru":
            return getattr(nn, kind.upper())(WIDTH, WIDTH // directions, **options)
    return nn.RNN(WIDTH, WIDTH // directions, nonlinearity=kind.removeprefix("rnn-"), **options)


def build(tree: Tree, known: list[nn.Module]) -> Piece:
    kinds = {"box": Box, "cell": Cell, "recurrent": Recurrent}
    return kinds.get(tree["kind"], Plain)(tree, known)
