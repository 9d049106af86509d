"""The guard: raises where cuDNN would have, on any device, and says which module and which two lines it was.

``__tracebackhide__`` in its frames has pytest leave them out: nothing in them is of use to whom the error is told.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, TypeVar, cast, overload
from weakref import ref

from torch import Tensor, nn

from harness.modes import backend
from harness.modes.error import CUDNN_SAYS, EvalModeBackwardError
from harness.modes.sites import Site, called_root, caller, frames, module_of, sites_of, told
from harness.modes.switches import Switch, last_switch
from harness.modes.tap import Tap

When = Literal["backward", "forward"]
Function = TypeVar("Function", bound=Callable[..., Any])

_NOT_SEEN = "not seen: before the guard was entered, or in a way that it cannot watch"


@dataclass(frozen=True, slots=True)
class EvalForward:
    """One forward of an RNN that ran in eval mode and left a graph: a backward through it raises on a GPU."""

    module: str
    kind: str
    root: str
    sites: tuple[Site, ...]
    switch: Switch | None
    rnn: Callable[[], nn.Module | None]

    @property
    def label(self) -> str:
        """The RNN in words: its class, and its name in the module that was called."""
        return f"{self.kind} {self.module!r} of {self.root}" if self.module else self.kind

    def error(self, what: str) -> EvalModeBackwardError:
        """The error for this forward; ``what`` is its first line."""
        return EvalModeBackwardError(
            what,
            module=self.module,
            kind=self.kind,
            root=self.root,
            forward=told(self.sites),
            switch=str(self.switch) if self.switch else _NOT_SEEN,
            cure=self._cure(),
        )

    def _cure(self) -> str:
        rnn = self.rnn()
        if rnn is not None and rnn.training:
            return (
                "train() was called after this forward, which is too late: the mode counts while the forward runs. "
                "Call it before the forward, and run the forward again."
            )
        return (
            "to train, call train() on the model before this forward; for a gradient in eval mode, run the forward "
            "inside `with harness.eval_gradients(model):`; if no gradient is wanted here, run it under torch.no_grad() "
            "or detach() its output."
        )


class Guard:
    """Context manager and decorator; see ``guard``. It can be entered again, also while it is entered."""

    def __init__(self, when: When = "backward") -> None:
        if when not in _active:
            raise ValueError(f"when={when!r} is neither 'backward' nor 'forward'")
        self.when: When = when

    def __enter__(self) -> Guard:
        with _lock:
            if not any(_active.values()):
                _tap.open()
            _active[self.when] += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _lock:
            _active[self.when] -= 1
            if not any(_active.values()):
                _tap.close()

    def __call__(self, function: Function) -> Function:
        """``function``, guarded while it runs: a generator or coroutine function from its first step to its end."""
        if not callable(function) or isinstance(function, type):
            raise TypeError(f"guard() decorates functions, not {function!r}")
        return cast("Function", _decorated(self.when, function))


@overload
def guard(when: When = "backward") -> Guard: ...


@overload
def guard(when: Function) -> Function: ...


def guard(when: When | Callable[..., Any] = "backward") -> Guard | Callable[..., Any]:
    """Raise ``EvalModeBackwardError`` where cuDNN would refuse a backward through an RNN - on a CPU too.

    A context manager, and a decorator with or without parentheses. While it is active, a backward pass that reaches an
    ``nn.RNN``, ``nn.LSTM`` or ``nn.GRU`` whose forward ran in eval mode raises, on any device, with the name of the
    module, the line of that forward and the line that put the module into eval mode (if it happened while the guard was
    active: enter it early).
    With ``when="forward"`` the forward itself raises, if it records a graph: stricter than cuDNN, which allows it as
    long as no gradient comes back.

    It stays silent where cuDNN does: no graph (``no_grad``, ``inference_mode``, everything frozen), cuDNN disabled at
    forward time, an empty batch, a dtype that does not go to cuDNN, ``*Cell`` classes, an output that gets no gradient,
    an RNN that ``torch.compile`` took apart. A backward counts if both it and its forward run while a guard is active.

    It is process-wide: it watches every thread while any guard is active, and where guards are nested, or active in
    several threads, the strictest of them holds for all. It sees neither TorchScript nor calls of ``torch.lstm``.
    """
    return Guard()(when) if callable(when) else Guard(when)


_lock = threading.Lock()
_active: dict[str, int] = {"backward": 0, "forward": 0}


def _observe(operator: str, arguments: Sequence[Any], training: bool, outputs: tuple[Tensor, ...]) -> None:
    __tracebackhide__ = True
    if training or not any(output.requires_grad for output in outputs):
        return
    nodes = backend.beginnings(outputs)
    if not nodes or not backend.raises_in_eval(arguments[0], nodes):
        return
    forward = _described(operator)
    if _active["forward"]:
        raise forward.error(
            f"The {forward.label} records a graph in eval mode: on a GPU a backward through it raises {CUDNN_SAYS!r}."
        )
    for node in nodes:
        node.register_prehook(functools.partial(_arrived, forward))


_tap = Tap(observer=_observe)


def _arrived(forward: EvalForward, gradients: tuple[Tensor | None, ...]) -> None:
    __tracebackhide__ = True
    if (_active["backward"] or _active["forward"]) and any(gradient is not None for gradient in gradients):
        raise forward.error(
            f"A gradient reached the {forward.label}, whose forward ran in eval mode: on a GPU this is {CUDNN_SAYS!r}."
        )


def _described(operator: str) -> EvalForward:
    stack = frames(caller(2))
    rnn = next((module for module in map(module_of, stack) if module is not None), None)
    if rnn is None:
        return EvalForward("", operator, "", sites_of(stack), None, lambda: None)
    root, name = called_root(stack, rnn)
    return EvalForward(name, type(rnn).__name__, type(root).__name__, sites_of(stack), last_switch(rnn), ref(rnn))


def _decorated(when: When, function: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def guarded_coroutine(*arguments: Any, **named: Any) -> Any:
            __tracebackhide__ = True
            with Guard(when):
                return await function(*arguments, **named)

        return guarded_coroutine
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def guarded_generator(*arguments: Any, **named: Any) -> Any:
            __tracebackhide__ = True
            with Guard(when):
                return (yield from function(*arguments, **named))

        return guarded_generator

    @functools.wraps(function)
    def guarded(*arguments: Any, **named: Any) -> Any:
        __tracebackhide__ = True
        with Guard(when):
            return function(*arguments, **named)

    return guarded
