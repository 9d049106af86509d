"""Keeps ``torch.compile`` out of this package: what is called here runs as plain Python.

Left to itself it treats a wrapper of ours as a function of the person's program. A layer that it leaves to eager mode
would then be compiled from inside the wrapper, and taken apart, where cuDNN would have run it.
"""

from __future__ import annotations

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
    else:  # PyTorch before 2.7
        machinery.skip_code(code)
    return function
