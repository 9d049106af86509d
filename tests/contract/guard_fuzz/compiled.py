"""``torch.compile`` under the guard: what is left to eager mode is seen, what is taken apart is not cuDNN's.

Prints one JSON object: for each way to compile, what became of the backward without and with the guard, and of a
TorchScript compilation under it.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from contextlib import nullcontext

import torch
import torch._dynamo
from torch import nn

import harness


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(4, 5)
        self.head = nn.Linear(5, 1)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(sequence)[0])


DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def backward(*, apart: bool, backend: str, guarded: bool) -> str:
    torch._dynamo.reset()
    torch._dynamo.config.allow_rnn = apart
    with harness.guard() if guarded else nullcontext():
        net = torch.compile(Net().to(DEVICE).eval(), backend=backend)
        try:
            net(torch.ones(3, 2, 4, device=DEVICE)).sum().backward()
        except harness.EvalModeBackwardError as error:
            return f"guard: {error.module} of {error.root}"
        except RuntimeError as error:
            return str(error)
    return "ok"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = {
        f"{'apart' if apart else 'whole'} {backend} {'guarded' if guarded else 'bare'}": backward(
            apart=apart, backend=backend, guarded=guarded
        )
        for apart, backend in ((False, "eager"), (False, "aot_eager"), (True, "aot_eager"))
        for guarded in (False, True)
    }
    with harness.guard():
        torch.jit.script(Net())(torch.ones(3, 2, 4))
    print(json.dumps(found), flush=True)
    sys.stdout.flush()
    os._exit(0)
