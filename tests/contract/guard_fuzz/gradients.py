"""The stub's side of the proof for ``eval_gradients``: which path ran, and whether the backward was allowed.

Prints a JSON line a variant: ``allowed`` inside the context, ``refused`` outside it, the path read from the graph, and
whether every flag was left alone.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import warnings
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import harness
from harness.trial.sight import path_of

CELLS = ("LSTM", "GRU", "RNN", "LSTM-proj", "RNN-relu")
DTYPES = ("float32", "float64", "float16", "bfloat16", "autocast")


def make(cell: str, layers: int, bidirectional: bool) -> nn.Module:
    name, _, extra = cell.partition("-")
    options: dict[str, Any] = {"proj_size": 3} if extra == "proj" else {"nonlinearity": "relu"} if extra else {}
    rnn = getattr(nn, name)(4, 6, layers, dropout=0.5 if layers > 1 else 0.0, bidirectional=bidirectional, **options)
    return nn.ModuleDict({"norm": nn.BatchNorm1d(4), "rnn": rnn, "dropout": nn.Dropout(0.5)})


def forward(net: nn.Module, dtype: torch.dtype, packed: bool) -> torch.Tensor:
    x = net["norm"](torch.ones(5, 4, 3, device="cuda", dtype=dtype)).transpose(1, 2)
    output = net["rnn"](pack_padded_sequence(x.contiguous(), torch.tensor([5, 4, 2])) if packed else x.contiguous())[0]
    return output.data if packed else output


def allowed(output: torch.Tensor) -> bool:
    try:
        output.float().sum().backward()
    except RuntimeError as error:
        if "cudnn RNN backward can only be called in training mode" not in str(error):
            raise
        return False
    return True


def attempt(cell: str, dtype: str, layers: int, bidirectional: bool, packed: bool) -> dict[str, Any]:
    kind = torch.float32 if dtype == "autocast" else getattr(torch, dtype)
    net = make(cell, layers, bidirectional).to("cuda", kind).eval()
    flags = [(module.training, getattr(module, "dropout", None)) for module in net.modules()]
    with torch.autocast("cuda", torch.float16, enabled=dtype == "autocast"):
        with harness.eval_gradients(net):
            output = forward(net, kind, packed)
        inside = allowed(output)
        outside = allowed(forward(net, kind, packed))
    left = flags == [(module.training, getattr(module, "dropout", None)) for module in net.modules()]
    return {"path": path_of(output), "inside": inside, "outside": outside, "left_alone": left}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for variant in itertools.product(CELLS, DTYPES, (1, 2), (False, True), (False, True)):
        print(json.dumps({"variant": variant} | attempt(*variant)), flush=True)
    sys.stdout.flush()
    os._exit(0)
