"""Sees what the error depends on: the kernel path, the mode at forward time, and whether a gradient arrives.

The path is read from the autograd graph that the forward left behind, never from a flag: a flag says what was asked
for, the graph what was done.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook
from torch.nn.utils.rnn import PackedSequence

from harness.model import KernelPath, Sighting
from harness.modes.backend import beginnings

if TYPE_CHECKING:
    from torch.autograd.graph import Node

_NODES = {
    "CudnnRnnBackward": KernelPath.CUDNN,
    "MiopenRnnBackward": KernelPath.MIOPEN,
    "MkldnnRnnLayerBackward": KernelPath.MKLDNN,
}


def path_of(output: Tensor) -> KernelPath | None:
    """The kernel family whose backward nodes lie behind ``output``; None where no graph was recorded.

    The search stops at the first fused RNN node. Where there is none the RNN was decomposed into (or ran as)
    PyTorch's own kernels: ``native``.
    """
    if output.grad_fn is None:
        return None
    queue: deque[Node] = deque([output.grad_fn])
    seen: set[Node] = {output.grad_fn}
    while queue:
        node = queue.popleft()
        for prefix, path in _NODES.items():
            if node.name().startswith(prefix):
                return path
        for parent, _ in node.next_functions:
            if parent is not None and parent not in seen:
                seen.add(parent)
                queue.append(parent)
    return KernelPath.NATIVE


class Watch:
    """Watches the forwards of one RNN, or of all in the process; each kind is looked at once, when it first occurs.

    A kind is the RNN's mode, the cuDNN flag, whether a graph is recorded, and the role that the step loop named.
    Looking once keeps the graph walk out of the steady state that is timed.
    """

    def __init__(self, rnn: nn.Module | None = None) -> None:
        """Without ``rnn`` every RNN is watched, and only forwards that record a graph: evaluations do not."""
        self.role = "step"
        self.epoch = 0
        self.step = 0
        self._seen: set[tuple[object, ...]] = set()
        self._sightings: list[Sighting] = []
        self._reached: set[int] = set()
        self._awaiting: set[int] = set()
        self._every = rnn is None
        self._hook = (
            register_module_forward_hook(self._on_forward)
            if rnn is None
            else rnn.register_forward_hook(self._on_forward)
        )

    def close(self) -> None:
        """Look no more; what was seen stays."""
        self._hook.remove()

    @property
    def sightings(self) -> tuple[Sighting, ...]:
        """What was seen so far, in order."""
        return tuple(self._sightings)

    @property
    def path(self) -> KernelPath | None:
        """The path of the latest training forward that left a graph; a second forward's only where no other did."""
        graphed = [sighting for sighting in self._sightings if sighting.path is not None]
        own = [sighting for sighting in graphed if sighting.role != "kept"] or graphed
        return own[-1].path if own else None

    def backward_tried(self) -> None:
        """A backward pass ended, in whichever way: what no gradient reached by now, none reached."""
        for index in self._awaiting:
            self._sightings[index] = replace(self._sightings[index], gradient_reached=index in self._reached)
        self._awaiting.clear()

    def _on_forward(self, rnn: nn.Module, _inputs: Any, outputs: Any) -> None:
        kind = (rnn.training, torch.backends.cudnn.enabled, torch.is_grad_enabled(), self.role)
        if kind in self._seen or self.role == "evaluate":
            return
        if self._every and not (isinstance(rnn, nn.RNNBase) and torch.is_grad_enabled()):
            return
        self._seen.add(kind)
        output, hidden = outputs
        output = output.data if isinstance(output, PackedSequence) else output
        index = len(self._sightings)
        self._sightings.append(Sighting(self.epoch, self.step, rnn.training, path_of(output), role=self.role))
        self._awaiting.add(index)
        # A gradient may come by the output or by the last hidden (and cell) state alone.
        for node in beginnings([output, *(hidden if isinstance(hidden, tuple) else (hidden,))]):
            node.register_prehook(lambda gradients: self._on_gradient(index, gradients))

    def _on_gradient(self, index: int, gradients: tuple[Tensor | None, ...]) -> None:
        if any(gradient is not None for gradient in gradients):
            self._reached.add(index)
