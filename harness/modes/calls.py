"""Every call that an RNN makes into PyTorch's kernels, seen from Python.

``nn.RNN``, ``nn.LSTM`` and ``nn.GRU`` reach their kernels through four functions of ``torch._VF``. Those are wrapped,
and not the modules: the mode that counts is the one that arrives there, whatever a subclass, a hook or a
parametrization made of ``self.training`` on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from harness.modes.compiling import left_alone

OPERATORS = ("lstm", "gru", "rnn_tanh", "rnn_relu")

_ARGUMENTS = 9


class Observer(Protocol):
    """Is told of every call after it was made."""

    def __call__(self, operator: str, arguments: Sequence[Any], training: bool, outputs: tuple[Tensor, ...]) -> None:
        """``arguments`` begin with the input; ``outputs`` are the output, h_n and, of an LSTM, c_n."""


Adjuster = Callable[[tuple[Any, ...], int], tuple[Any, ...]]
"""Is given the arguments of a call in eval mode and the place of the mode among them; returns those to call with."""

observers: tuple[Observer, ...] = ()
adjusters: tuple[Adjuster, ...] = ()


def place_of_mode(arguments: tuple[Any, ...]) -> int:
    """Where the mode is among the arguments; the dropout is just before it. A packed call has batch sizes in front."""
    return 6 if isinstance(arguments[3], bool) else 7


def _wrapped(operator: str) -> Callable[..., Any]:
    original = getattr(torch._C._VariableFunctions, operator)

    def call(*arguments: Any, **named: Any) -> Any:
        __tracebackhide__ = True  # from pytest: a person has no use for this frame
        # A traced layer is taken apart: no kernel of cuDNN will run it, and there is nothing to see.
        if torch.compiler.is_compiling() or named or len(arguments) != _ARGUMENTS:
            return original(*arguments, **named)
        place = place_of_mode(arguments)
        if not arguments[place]:
            for adjust in adjusters:
                arguments = adjust(arguments, place)
        outputs = original(*arguments)
        for observe in observers:
            observe(operator, arguments, arguments[place], outputs)
        return outputs

    call.__name__ = call.__qualname__ = operator
    return left_alone(call)


wrappers: dict[str, Callable[..., Any]] = {operator: _wrapped(operator) for operator in OPERATORS}


def install() -> None:
    """Put the wrappers in front of the kernels."""
    from torch.jit import _builtins

    for operator, wrapper in wrappers.items():
        # TorchScript looks functions up by identity; to it the wrapper is the operator itself.
        _builtins._register_builtin(wrapper, f"aten::{operator}")
        setattr(torch._VF, operator, wrapper)


def uninstall() -> None:
    """Take the wrappers away again; what others put there in the meantime stays."""
    for operator, wrapper in wrappers.items():
        if vars(torch._VF).get(operator) is wrapper:
            delattr(torch._VF, operator)
