"""The library that people import into their own code: the guard, and the gradient of a network in eval mode.

``import harness`` makes all of it available without importing PyTorch before it is used.
"""

from __future__ import annotations

from harness.modes.error import EvalModeBackwardError
from harness.modes.gradients import eval_gradients
from harness.modes.guarding import Guard, guard

__all__ = ["EvalModeBackwardError", "Guard", "eval_gradients", "guard"]
