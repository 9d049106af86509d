"""harness: reproduce, track and price the fixes of PyTorch's cuDNN RNN backward error.

For people's own code: ``harness.guard`` raises where cuDNN would have, on any device; ``harness.eval_gradients``
allows a gradient in eval mode. They import PyTorch when they are first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.modes import EvalModeBackwardError, eval_gradients, guard

__version__ = "0.1.0"
__all__ = ["EvalModeBackwardError", "__version__", "eval_gradients", "guard"]

_LAZY = {
    "EvalModeBackwardError": "harness.modes.error",
    "eval_gradients": "harness.modes",
    "guard": "harness.modes",
}


if not TYPE_CHECKING:  # a type checker that saw it would take every misspelt name for something

    def __getattr__(name: str) -> Any:
        """What people import into their own code, found when it is first asked for."""
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
