"""Runs one program, given as data, on one device, and says what became of each of its steps.

A verdict is ``ok``, ``refused`` (cuDNN's error, or the guard's), ``skipped`` (it needed a value that an earlier step
failed to make) or ``error: <type>`` (anything else).
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import torch
from torch import Tensor

from tests.contract.guard_fuzz.pieces import WIDTH, Piece, build

CUDNN_SAYS = "cudnn RNN backward can only be called in training mode"


class MissingError(Exception):
    """A step needs a value that is not there."""


class Machine:
    def __init__(self, program: dict[str, Any], device: str) -> None:
        self.dtype, self.device = getattr(torch, program["dtype"]), device
        self.root = build(program["tree"], []).to(device, self.dtype)
        self.values: list[Tensor] = []
        self.inputs: list[Tensor] = []

    def module(self, index: int) -> torch.nn.Module:
        modules = list(self.root.modules())
        return modules[index % len(modules)]

    def value(self, index: int) -> Tensor:
        """Counted back from the latest."""
        if not self.values:
            raise MissingError
        return self.values[-1 - index % len(self.values)]

    def mode(self, on: int, how: str) -> None:
        module = self.module(on)
        match how:
            case "train":
                module.train()
            case "eval":
                module.eval()
            case "train-false":
                module.train(False)
            case _:
                module.training = how == "set-true"

    def freeze(self, on: int, trains: bool) -> None:
        self.module(on).requires_grad_(trains)

    def cudnn(self, enabled: bool) -> None:
        torch.backends.cudnn.enabled = enabled

    def forward(self, on: int, source: str | int, batch: int, under: str) -> None:
        pieces = [one for one in self.root.modules() if isinstance(one, Piece)]
        if isinstance(source, int) and self.values:
            sequence = self.value(source)
        else:
            sequence = torch.ones(3, batch, WIDTH, dtype=self.dtype).to(self.device)
            sequence.requires_grad_(source == "with-grad")
            if sequence.requires_grad:
                self.inputs.append(sequence)
        with self.context(under):
            # What autocast runs in half precision differs between devices.
            self.values.append(pieces[on % len(pieces)](sequence).to(self.dtype))

    def context(self, name: str) -> contextlib.AbstractContextManager[object]:
        match name:
            case "no_grad":
                return torch.no_grad()
            case "inference":
                self.make_dropout_state()
                return torch.inference_mode()
            case "cudnn-off" | "cudnn-on":
                return torch.backends.cudnn.flags(enabled=name == "cudnn-on")
            case "autocast" if self.dtype is torch.float32:  # two half precisions at once do not run on a CPU
                return torch.autocast(self.device, dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def make_dropout_state(self) -> None:
        """Have cuDNN make its dropout state, of which a process has one, outside inference mode.

        Made inside it, it can never be saved for a backward: a trap of PyTorch's own, which one program would set and
        the next one spring. It is made at the first use, and anew after the random state was set (by a checkpoint).
        """
        if self.device == "cuda":
            torch.nn.LSTM(WIDTH, WIDTH, num_layers=2, dropout=0.5).cuda()(torch.ones(1, 1, WIDTH).cuda())

    def detach(self, of: int) -> None:
        self.values.append(self.value(of).detach())

    def backward(self, of: list[int], to: str, retain: bool, under: str) -> None:
        loss = torch.stack([self.value(index).float().sum() for index in of]).sum()
        with self.context(under):
            match to:
                case "everything":
                    loss.backward(retain_graph=retain)
                case "input":
                    if not self.inputs:
                        raise MissingError
                    torch.autograd.grad(loss, [self.inputs[-1]], retain_graph=retain, allow_unused=True)
                case "first-weight" | "last-weight":
                    weights = list(self.root.parameters())
                    if not weights:
                        raise MissingError
                    weight = weights[0 if to == "first-weight" else -1]
                    torch.autograd.grad(loss, [weight], retain_graph=retain, allow_unused=True)


def run(program: dict[str, Any], device: str) -> list[str]:
    verdicts = []
    with warnings.catch_warnings(), torch.backends.cudnn.flags(enabled=True):
        warnings.simplefilter("ignore")
        machine = Machine(program, device)
        for name, arguments in program["steps"]:
            verdicts.append(verdict(machine, name, arguments))
    return verdicts


def verdict(machine: Machine, name: str, arguments: dict[str, Any]) -> str:
    try:
        getattr(machine, name)(**arguments)
    except MissingError:
        return "skipped"
    except RuntimeError as error:
        refused = type(error).__name__ == "EvalModeBackwardError" or str(error).startswith(CUDNN_SAYS)
        return "refused" if refused else f"error: {type(error).__name__}: {str(error)[:60]}"
    except Exception as error:
        return f"error: {type(error).__name__}: {str(error)[:60]}"
    return "ok"
