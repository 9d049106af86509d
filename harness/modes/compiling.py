"""Keeps ``torch.compile`` out of this package: what is called here runs as plain Python.

Left to itself it treats a wrapper of ours as a function of the person's program. A layer that it leaves to eager mode
would then be compiled from inside the wrapper, and taken apart, where cuDNN would have run it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

import torch

Function = TypeVar("Function", bound=Callable[..., object])


def left_alone(function: Function) -> Function:
    """Have ``function`` and all it calls run uncompiled. Inlined in a trace, it has to ask ``is_compiling()``."""
    machinery: Any = torch._C._dynamo.eval_frame
    code = cast("FunctionType", function).__code__
    if hasattr(machinery, "set_code_exec_strategy"):
        skip = machinery._FrameAction.SKIP
        machinery.set_code_exec_strategy(code, machinery._FrameExecStrategy(skip, skip))
        return function
    # PyTorch 2.5: what a function calls can only be left alone while it runs.
    alone = _uncompiled(function, machinery)
    machinery.skip_code(alone.__code__)
    return cast("Function", alone)


def _uncompiled(function: Callable[..., object], machinery: Any) -> FunctionType:
    @functools.wraps(function)
    def uncompiled(*arguments: Any, **named: Any) -> object:
        if torch.compiler.is_compiling():
            return function(*arguments, **named)
        compiler = machinery.set_eval_frame(None)
        try:
            return function(*arguments, **named)
        finally:
            machinery.set_eval_frame(compiler)

    return cast("FunctionType", uncompiled)
