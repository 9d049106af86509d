"""CUDA without a GPU: PyTorch's real CUDA code path, with kernels that do nothing.

``ensure()`` compiles a small library against the headers that came with the installed PyTorch; ``environment()`` of
what it returns puts that library in front of CUDA for a child process. Importing this package imports no PyTorch.
"""

from __future__ import annotations

from harness.stub.build import StubBuild, ensure, info
from harness.stub.coverage import StubInfo
from harness.stub.process import NOTICE, run

__all__ = ["NOTICE", "StubBuild", "StubInfo", "ensure", "info", "run"]
