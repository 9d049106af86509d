"""A program with the face of a seed program that asks its device for what the stub refuses, or for cuDNN's error."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import torch


class Result:
    def to_json(self) -> str:
        return "{}"


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("act", choices=ACTS)
    parser.add_argument("--device")
    return parser.parse_args(argv)


def run(config: argparse.Namespace, *, on_step: Callable[[SimpleNamespace], None], result: Result) -> Result:
    on_step(SimpleNamespace(epoch=1, step=1))
    ACTS[config.act](config.device)
    return result


class _FourierInBackward(torch.autograd.Function):
    @staticmethod
    def forward(_: object, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(_: object, gradient: torch.Tensor) -> torch.Tensor:
        return torch.fft.fft(gradient).real


def fourier(device: str) -> None:
    torch.fft.fft(torch.ones(8, device=device))


def fourier_in_backward(device: str) -> None:
    x = torch.ones(8, device=device, requires_grad=True)
    _FourierInBackward.apply(x).sum().backward()


def inverse(device: str) -> None:
    torch.linalg.inv(torch.eye(4, device=device))


def backward_in_eval(device: str) -> None:
    rnn = torch.nn.LSTM(4, 4).to(device).eval()
    rnn(torch.ones(3, 2, 4, device=device))[0].sum().backward()


def illegal_access(device: str) -> None:
    lose(device, "700")


def device_assert(device: str) -> None:
    lose(device, "710")


def launch_failure(device: str) -> None:
    lose(device, "719")


def lose(device: str, error: str) -> None:
    """As after a kernel that did what it must not: the error comes with whatever is asked for next, and stays."""
    x = torch.ones(8, device=device)
    event = torch.cuda.Event()
    event.record()
    os.environ["HARNESS_STUB_FAULT"] = error
    try:
        x.add_(1)
    except RuntimeError:
        del os.environ["HARNESS_STUB_FAULT"]
        for wait in (event.synchronize, torch.cuda.current_stream().synchronize):
            try:
                wait()
            except RuntimeError:
                continue
            raise AssertionError("a wait succeeds") from None
        torch.cuda.synchronize()
    raise AssertionError("the device still works")


def nothing(device: str) -> None:
    torch.ones(8, device=device)


STICKY = (illegal_access, device_assert, launch_failure)
ACTS: dict[str, Callable[[str], None]] = {
    act.__name__: act for act in (fourier, fourier_in_backward, inverse, backward_in_eval, *STICKY, nothing)
}
