"""Whether cuDNN runs an RNN: read from the graph on a GPU, foretold elsewhere by the conditions PyTorch checks."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch.autograd.graph import Node

_FUSED = ("CudnnRnnBackward", "MiopenRnnBackward")
_ALWAYS = (torch.float32, torch.float64, torch.float16)
_BFLOAT16_CUDNN = 91300
_BFLOAT16_TORCH = (2, 10)
_BFLOAT16_CAPABILITY = (8, 0)


def raises_in_eval(data: Tensor, nodes: Sequence[Node]) -> bool:
    """Whether a backward through this forward raises on a GPU, given that it ran in eval mode.

    ``data`` is the input of the RNN, ``nodes`` where its outputs begin in the graph. On a GPU they tell which kernels
    ran. On any other device the answer is what a GPU would have done.
    """
    if data.is_cuda:
        return any(node.name().startswith(_FUSED) for node in nodes)
    if not torch.backends.cudnn.enabled or data.numel() == 0:
        return False
    return data.dtype in _ALWAYS or (data.dtype is torch.bfloat16 and bfloat16_runs_on_cudnn())


@functools.cache
def bfloat16_runs_on_cudnn() -> bool:
    """Whether this PyTorch gives a bfloat16 RNN to cuDNN.

    It does if it was compiled with cuDNN 9.13 or newer, on a GPU of capability 8.0 or newer; where there is no GPU, one
    is assumed. A PyTorch without cuDNN is taken for the CUDA build of the same release.
    """
    compiled_with = _cudnn_compiled_with()
    if compiled_with is None:
        major, minor = torch.__version__.split(".")[:2]
        return (int(major), int(minor)) >= _BFLOAT16_TORCH
    if compiled_with < _BFLOAT16_CUDNN:
        return False
    return not torch.cuda.is_available() or torch.cuda.get_device_capability() >= _BFLOAT16_CAPABILITY


def _cudnn_compiled_with() -> int | None:
    cudnn = getattr(torch._C, "_cudnn", None)
    if cudnn is None or getattr(cudnn, "is_cuda", True) is False:
        return None
    major, minor, patch = cudnn.getCompileVersion()
    # From cuDNN 9 on a digit more is left for the minor version.
    return int(major * 10000 + minor * 100 + patch if major >= 9 else major * 1000 + minor * 100 + patch)


def beginnings(outputs: Sequence[Tensor]) -> list[Node]:
    """The nodes of the graph through which every gradient of these outputs passes, whatever is done to the outputs.

    Of a view it is the node of its base: an operation in place on the view leaves the view's own node behind.
    """
    nodes: list[Node] = []
    for output in outputs:
        base = output._base if output._is_view() else output
        node = (None if base is None else base.grad_fn) or output.grad_fn
        if node is not None and node not in nodes:
            nodes.append(node)
    return nodes
