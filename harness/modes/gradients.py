"""The gradient of a network in eval mode, on cuDNN: for saliency, attacks, attribution, influence."""

from __future__ import annotations

import threading
from contextlib import ContextDecorator
from types import TracebackType
from typing import Any
from weakref import WeakSet

import torch
from torch import nn

from harness.modes.sites import caller, frames, module_of
from harness.modes.tap import Tap

_SCRIPTED = ("RNN", "LSTM", "GRU")


class _Scope:
    """The RNNs of one model. Whether a module belongs to it is asked when it is called: it may have been replaced."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._members: WeakSet[nn.Module] = WeakSet(model.modules())
        self._lock = threading.Lock()

    def covers(self, module: nn.Module) -> bool:
        """Whether ``module`` is a part of the model, or a replica of one that ``nn.DataParallel`` made."""
        with self._lock:
            if module in self._members:
                return True
            newer = any(module is one for one in self._model.modules())
            if newer:
                self._members.add(module)
            return newer

    def twin(self, module: nn.Module, replica: nn.Module) -> None:
        """A replica is covered as what it is a replica of."""
        if self.covers(module):
            with self._lock:
                self._members.add(replica)

    def adjusted(self, arguments: tuple[Any, ...], place: int) -> tuple[Any, ...]:
        """The arguments of a call in eval mode, as cuDNN allows a backward: training, and without dropout."""
        if not torch.is_grad_enabled():
            return arguments
        owner = next((one for one in map(module_of, frames(caller(2))) if one is not None), None)
        if owner is None or not self.covers(owner):
            return arguments
        return (*arguments[: place - 1], 0.0, True, *arguments[place + 1 :])


class EvalGradients(ContextDecorator):
    """Context manager and decorator; see ``eval_gradients``. It can be entered again, also while it is entered."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._taps: list[Tap] = []

    def __enter__(self) -> nn.Module:
        _check(self._model)
        scope = _Scope(self._model)
        tap = Tap(adjuster=scope.adjusted, twin=scope.twin)
        tap.open()
        self._taps.append(tap)
        return self._model

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._taps.pop().close()


def eval_gradients(model: nn.Module) -> EvalGradients:
    """Allow a backward through the RNNs of ``model`` that are in eval mode: a forward inside can be differentiated.

    ``with eval_gradients(model): loss = model(x).sum()`` - only the forward has to be inside, the backward need not be;
    with ``torch.utils.checkpoint``, which runs the forward again in the backward, both have to. The RNNs stay on cuDNN.
    Outputs equal those of eval mode: an RNN of the model that is in eval mode tells its kernel to train, without its
    dropout; nothing else changes. No flag of any module is touched, so that whatever reads ``self.training`` (dropout,
    norms, ``spectral_norm``, subclasses, hooks) still sees eval mode, and nothing has to be put back. An RNN in
    training mode keeps its dropout: a model partly in training runs as it would without this.

    It can be nested, entered again, and used as a decorator. Modules that are shared, moved in or replaced meanwhile
    are covered when they are called as a part of ``model``. It is process-wide: a forward of the same model in another
    thread is covered as well, and gives the same outputs. Under ``no_grad`` nothing changes. Entering it raises a
    ``TypeError`` for what is no module, and for a model with a scripted or traced RNN in it.
    """
    return EvalGradients(model)


def _check(model: object) -> None:
    if not isinstance(model, nn.Module):
        raise TypeError(f"eval_gradients() takes a module, not {type(model).__name__}")
    for name, module in model.named_modules():
        if getattr(module, "original_name", None) in _SCRIPTED:
            raise TypeError(f"{name or 'the model'} is TorchScript: its mode cannot be changed from outside")
