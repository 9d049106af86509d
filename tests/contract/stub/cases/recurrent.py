"""Every kind of recurrent layer, in one process: a backward after a forward in train or eval mode, cuDNN on or off.

Each variant reports what was seen (the kernel family, read from the autograd graph) beside what happened, so that the
rule can be checked against what ran and not against what was asked for.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

_DTYPES = {name: getattr(torch, name) for name in ("float32", "float64", "float16", "bfloat16")}
_LENGTHS = torch.tensor([3, 5, 4])
_NATIVE = ("ThnnFusedLstmCellBackward0", "ThnnFusedGruCellBackward0", "TanhBackward0", "ReluBackward0")


def _kernels_seen(output: torch.Tensor) -> str:
    """The kernel family of the recurrent layer that this output came from."""
    seen, waiting = set(), [output.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        waiting += [following for following, _ in node.next_functions]
    names = {node.name() for node in seen}
    if "CudnnRnnBackward0" in names:
        return "cudnn"
    return "native" if names & set(_NATIVE) else "unknown"


class _Net(nn.Module):
    def __init__(self, variant: dict[str, object]) -> None:
        super().__init__()
        cell = str(variant["cell"])
        extra = {"proj_size": 3} if cell == "LSTM+proj" else {"nonlinearity": "relu"} if cell == "RNN+relu" else {}
        self.norm = nn.BatchNorm1d(4) if variant.get("norm") else None
        self.packed = variant.get("packed", "no")
        self.batch_first = bool(variant.get("batch_first", False))
        self.rnn = getattr(nn, cell.partition("+")[0])(
            4,
            6,
            num_layers=variant.get("layers", 1),
            dropout=variant.get("dropout", 0.0),
            bias=variant.get("bias", True),
            bidirectional=variant.get("bidirectional", False),
            batch_first=self.batch_first,
            **extra,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.norm is not None:
            x = self.norm(x.transpose(1, 2)).transpose(1, 2)
        if self.packed == "no":
            return self.rnn(x)[0]
        is_sorted = self.packed == "sorted"
        lengths = _LENGTHS.sort(descending=True)[0] if is_sorted else _LENGTHS
        packed = pack_padded_sequence(x, lengths, batch_first=self.batch_first, enforce_sorted=is_sorted)
        return pad_packed_sequence(self.rnn(packed)[0], batch_first=self.batch_first)[0]


def _attempt(variant: dict[str, object]) -> dict[str, object]:
    net = _Net(variant).to("cuda", _DTYPES[str(variant.get("dtype", "float32"))]).train(variant["mode"] == "train")
    shape = (3, 5, 4) if net.batch_first else (5, 3, 4)
    x = torch.randn(shape, device="cuda", dtype=next(net.parameters()).dtype)
    autocast = variant.get("autocast")
    mixed = torch.autocast("cuda", dtype=_DTYPES[str(autocast)]) if autocast else contextlib.nullcontext()
    seen: dict[str, object] = {"kernels": "unknown", "error": None}
    try:
        with torch.backends.cudnn.flags(enabled=bool(variant["cudnn"])), mixed:
            output = net(x)
        seen["kernels"] = _kernels_seen(output)
        output.float().sum().backward()
        assert all(one.grad is not None for one in net.parameters())
    except Exception as error:
        seen["error"] = f"{type(error).__name__}: {error}"
    return seen


def _product(**axes: list[object]) -> Iterator[dict[str, object]]:
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


_SWITCHES = {"mode": ["train", "eval"], "cudnn": [True, False]}
_CELLS = ["RNN", "RNN+relu", "LSTM", "LSTM+proj", "GRU"]


def _run(variants: Iterator[dict[str, object]]) -> list[dict[str, object]]:
    return [variant | _attempt(variant) for variant in variants]


def shapes_and_packing() -> list[dict[str, object]]:
    depths = [(1, 0.0), (2, 0.0), (2, 0.5)]
    axes = {"depth": depths, "bidirectional": [False, True], "bias": [True, False]}
    variants = _product(cell=_CELLS, packed=["no", "sorted", "unsorted"], **axes, **_SWITCHES)
    return _run({"layers": one["depth"][0], "dropout": one.pop("depth")[1]} | one for one in variants)


def precision() -> list[dict[str, object]]:
    axes = {"dtype": list(_DTYPES), "bidirectional": [False, True], "packed": ["no", "unsorted"], "layers": [1, 2]}
    return _run(_product(cell=_CELLS, **axes, **_SWITCHES))


def autocast() -> list[dict[str, object]]:
    axes = {"autocast": ["float16", "bfloat16"], "packed": ["no", "unsorted"], "bidirectional": [False, True]}
    return _run(_product(cell=_CELLS, **axes, **_SWITCHES))


def batch_first_and_norm() -> list[dict[str, object]]:
    return _run(_product(cell=_CELLS, batch_first=[False, True], norm=[False, True], **_SWITCHES))
