"""What the guard raises."""

from __future__ import annotations

from typing import Any

CUDNN_SAYS = "cudnn RNN backward can only be called in training mode"


class EvalModeBackwardError(RuntimeError):
    """A backward pass reached (or, with ``when="forward"``, could reach) an RNN whose forward ran in eval mode.

    On a GPU cuDNN refuses this with "cudnn RNN backward can only be called in training mode"; the guard raises it on
    any device, with what that message leaves out. The text says it all; the attributes are for programs:

    ``module``: qualified name of the RNN as seen from the module that was called, empty where it was called itself.
    ``kind``: class of the RNN. ``root``: class of the module that was called.
    ``forward``: where the forward that ran in eval was called, ``file:line in function``.
    ``switch``: where the RNN was put into eval mode, or that it was not seen. ``cure``: what to do.
    """

    __module__ = "harness"  # where people import it from, and what a traceback is to say

    def __init__(self, what: str, *, module: str, kind: str, root: str, forward: str, switch: str, cure: str) -> None:
        self.what, self.module, self.kind, self.root = what, module, kind, root
        self.forward, self.switch, self.cure = forward, switch, cure
        super().__init__(f"{what}\n  forward in eval mode: {forward}\n  put into eval mode:   {switch}\n  cure: {cure}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _revived, (self.what, {name: getattr(self, name) for name in _FACTS})


_FACTS = ("module", "kind", "root", "forward", "switch", "cure")


def _revived(what: str, facts: dict[str, str]) -> EvalModeBackwardError:
    return EvalModeBackwardError(what, **facts)
