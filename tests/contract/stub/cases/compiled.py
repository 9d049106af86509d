"""torch.compile around a recurrent layer."""

from __future__ import annotations

import torch
import torch._dynamo
from torch import nn


class _Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(4, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(x)[0])


def _compiled(backend: str, *, train: bool) -> None:
    model = torch.compile(_Model().cuda().train(train), backend=backend)
    model(torch.randn(5, 3, 4, device="cuda")).sum().backward()


def eager_train() -> None:
    _compiled("eager", train=True)


def eager_eval() -> None:
    _compiled("eager", train=False)


def aot_eager_eval() -> None:
    _compiled("aot_eager", train=False)


def aot_eager_eval_rnn_allowed() -> None:
    """Traced into, the layer is taken apart, cuDNN is never called, and eval mode passes."""
    torch._dynamo.config.allow_rnn = True
    _compiled("aot_eager", train=False)


def inductor_train() -> None:
    _inductor(train=True)


def inductor_eval() -> None:
    _inductor(train=False)


def _inductor(*, train: bool) -> None:
    """Triton compiles its kernels for real; the stub loads and launches them without running any."""
    import torch._inductor.config

    torch._inductor.config.compile_threads = 1  # no pool of compiling processes
    _compiled("inductor", train=train)
