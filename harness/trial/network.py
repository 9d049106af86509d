"""The network of an attempt: an RNN with an optional encoder, norm and dropout around it, and a linear head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from harness.model import Variant

CLASSES = 4

DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}

_WIDE = (torch.float32, torch.float64)


@dataclass(frozen=True, slots=True)
class Batch:
    """Inputs ``(batch, seq, features)`` (or ``(seq, batch, features)``), integer targets ``(batch,)`` and lengths.

    ``lengths`` is None unless the input is to be packed; it stays on the CPU, where ``pack_padded_sequence`` wants it.
    """

    inputs: Tensor
    targets: Tensor
    lengths: Tensor | None
    timesteps: int


def make_rnn(variant: Variant) -> nn.RNNBase:
    """The recurrent layer that ``variant`` describes."""
    cell = str(variant["cell"])
    options: dict[str, Any] = {
        "input_size": int(variant["input-size"]),
        "hidden_size": int(variant["hidden-size"]),
        "num_layers": int(variant["layers"]),
        "bias": bool(variant["bias"]),
        "batch_first": bool(variant["batch-first"]),
        "dropout": float(variant["dropout"]),
        "bidirectional": bool(variant["bidirectional"]),
    }
    if cell == "lstm":
        return nn.LSTM(**options, proj_size=int(variant["proj-size"]))
    if cell == "gru":
        return nn.GRU(**options)
    return nn.RNN(**options, nonlinearity=cell.removeprefix("rnn-"))


class Net(nn.Module):
    """Classifies sequences: encoder? -> RNN -> mean over time -> norm? -> dropout? -> linear."""

    def __init__(self, variant: Variant, *, encoder: bool) -> None:
        super().__init__()
        size = int(variant["input-size"])
        self.time_dim = 1 if variant["batch-first"] else 0
        self.encoder = nn.Linear(size, size) if encoder else None
        self.rnn = make_rnn(variant)
        features = (int(variant["proj-size"]) or int(variant["hidden-size"])) * (2 if variant["bidirectional"] else 1)
        self.norm = nn.BatchNorm1d(features) if variant["norm"] == "batch-norm" else None
        self.dropout = nn.Dropout(float(variant["dropout"])) if variant["dropout"] else None
        self.head = nn.Linear(features, CLASSES)
        self.inside_forward: Callable[[], None] | None = None
        """Called at the top of ``forward``, for placements that switch modes there."""

    def forward(self, inputs: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Logits of shape ``(batch, CLASSES)``."""
        if self.inside_forward is not None:
            self.inside_forward()
        hidden = inputs if self.encoder is None else self.encoder(inputs)
        pooled = self._run_rnn(hidden, lengths)
        if self.norm is not None:
            pooled = self.norm(pooled)
        if self.dropout is not None:
            pooled = self.dropout(pooled)
        return cast("Tensor", self.head(pooled))

    def _run_rnn(self, hidden: Tensor, lengths: Tensor | None) -> Tensor:
        batch_first = self.time_dim == 1
        if lengths is None:
            output, _ = self.rnn(hidden)
            return cast("Tensor", output.mean(self.time_dim))
        packed = pack_padded_sequence(hidden, lengths, batch_first=batch_first, enforce_sorted=False)
        output, _ = self.rnn(packed)
        padded, _ = pad_packed_sequence(cast("PackedSequence", output), batch_first=batch_first)
        return padded.sum(self.time_dim) / lengths.to(padded.device, padded.dtype).unsqueeze(1)


def make_net(variant: Variant, device: torch.device, *, encoder: bool) -> Net:
    """The network on ``device``. It is initialised on the CPU, so that one seed gives one net everywhere."""
    return Net(variant, encoder=encoder).to(device=device, dtype=DTYPES[str(variant["dtype"])])


def make_batch(variant: Variant, device: torch.device, generator: torch.Generator) -> Batch:
    """One batch of noise with random targets, drawn on the CPU for the same reason."""
    batch, seq = int(variant["batch"]), int(variant["seq-len"])
    inputs = torch.randn(batch, seq, int(variant["input-size"]), generator=generator)
    targets = torch.randint(CLASSES, (batch,), generator=generator)
    lengths = torch.randint(1, seq + 1, (batch,), generator=generator) if variant["packed"] else None
    if lengths is not None:
        lengths[0] = seq  # the longest sequence has the length that the axis names
    if not variant["batch-first"]:
        inputs = inputs.transpose(0, 1).contiguous()
    timesteps = batch * seq if lengths is None else int(lengths.sum())
    return Batch(inputs.to(device, DTYPES[str(variant["dtype"])]), targets.to(device), lengths, timesteps)


def loss_of(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy. That of half-precision logits is taken in float32, as autocast would."""
    return nn.functional.cross_entropy(logits if logits.dtype in _WIDE else logits.float(), targets)
