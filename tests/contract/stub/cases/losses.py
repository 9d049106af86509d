"""Losses, optimizers, clipping, mixed precision: the rest of a training step."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def cross_entropy() -> str:
    scores = torch.randn(4, 5, device="cuda", requires_grad=True)
    loss = nn.functional.cross_entropy(scores, torch.randint(0, 5, (4,), device="cuda"), label_smoothing=0.1)
    loss.backward()
    return loss.grad_fn.name()


def binary_cross_entropy() -> str:
    scores = torch.randn(4, device="cuda", requires_grad=True)
    loss = nn.functional.binary_cross_entropy_with_logits(scores, torch.ones(4, device="cuda"))
    loss.backward()
    return loss.grad_fn.name()


def _ctc(targets: torch.Tensor, lengths_on: str, dtype: torch.dtype) -> str:
    scores = torch.randn(12, 2, 6, device="cuda", requires_grad=True)
    lengths = torch.full((2,), 12, dtype=dtype, device=lengths_on)
    target_lengths = torch.full((2,), 3, dtype=dtype, device=lengths_on)
    loss = nn.functional.ctc_loss(scores.log_softmax(-1), targets, lengths, target_lengths)
    loss.backward()
    assert scores.grad is not None
    return loss.grad_fn.name()


def ctc_native() -> str:
    return _ctc(torch.randint(1, 6, (2, 3), device="cuda"), "cuda", torch.long)


def ctc_through_cudnn() -> list[str]:
    """cuDNN takes this loss where targets and lengths are int32 on the CPU; the mean over it hides its name."""
    scores = torch.randn(12, 2, 6, device="cuda", requires_grad=True)
    lengths = [torch.full((2,), size, dtype=torch.int32) for size in (12, 3)]
    loss = nn.functional.ctc_loss(
        scores.log_softmax(-1), torch.randint(1, 6, (6,), dtype=torch.int32), *lengths, reduction="none"
    )
    loss.sum().backward()
    assert scores.grad is not None
    return [loss.grad_fn.name(), loss.grad_fn.next_functions[0][0].name()]


def _step(make: Callable[..., torch.optim.Optimizer], **options: bool) -> int:
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 2)).cuda()
    optimizer = make(model.parameters(), **options)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(3, 4, device="cuda")).sum().backward()
        optimizer.step()
    return len(optimizer.state)


def _sgd(parameters: object, **options: bool) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True, **options)


def sgd() -> int:
    return _step(_sgd, foreach=False)


def sgd_foreach() -> int:
    return _step(_sgd, foreach=True)


def sgd_fused() -> int:
    return _step(_sgd, fused=True)


def adam() -> int:
    return _step(torch.optim.Adam, foreach=False)


def adam_foreach() -> int:
    return _step(torch.optim.Adam, foreach=True)


def adam_fused() -> int:
    return _step(torch.optim.Adam, fused=True)


def adam_capturable() -> int:
    return _step(torch.optim.Adam, capturable=True)


def adamw() -> int:
    return _step(torch.optim.AdamW)


def adamw_fused() -> int:
    return _step(torch.optim.AdamW, fused=True, amsgrad=True)


def rmsprop() -> int:
    return _step(torch.optim.RMSprop)


def _with_gradients() -> nn.Module:
    model = nn.LSTM(4, 8).cuda()
    model(torch.randn(5, 3, 4, device="cuda"))[0].sum().backward()
    return model


def clipping_by_norm() -> float:
    return float(nn.utils.clip_grad_norm_(_with_gradients().parameters(), 1.0, error_if_nonfinite=True))


def clipping_by_value() -> None:
    nn.utils.clip_grad_value_(_with_gradients().parameters(), 1.0)


def grad_scaler() -> list[object]:
    model = nn.LSTM(4, 8).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    scales = []
    for _ in range(2):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(torch.randn(5, 3, 4, device="cuda"))[0].sum()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return [len(optimizer.state) > 0, scales]


def grad_scaler_eval_rnn() -> None:
    model = nn.LSTM(4, 8).cuda().eval()
    scaler = torch.amp.GradScaler("cuda")
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(torch.randn(5, 3, 4, device="cuda"))[0].sum()
    scaler.scale(loss).backward()
