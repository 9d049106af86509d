"""An exception of a variant -> its outcome, and what a record keeps of it."""

from __future__ import annotations

import hashlib
import re
import traceback
from pathlib import PurePath

import torch

from harness.model import Outcome

# The wording of cuDNN's check and of MIOpen's (ROCm); the case changed between releases.
_BACKWARD_ERROR = re.compile(r"\b(cudnn|miopen) RNN backward can only be called in training mode", re.IGNORECASE)

# Device and host memory run out under many names; only those that can mean nothing else are listed.
_OUT_OF_MEMORY = re.compile(
    r"CUDA out of memory|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED|cudaErrorMemoryAllocation"
    r"|DefaultCPUAllocator: .*(can't allocate|not enough) memory|HIP out of memory",
    re.IGNORECASE | re.DOTALL,
)
_VOLATILE = re.compile(r"0x[0-9a-fA-F]+|\d+(\.\d+)?")

MESSAGE_LIMIT = 2000
FRAMES = 6


def outcome_of(error: BaseException) -> Outcome:
    """The outcome of an attempt that ended in ``error``."""
    message = str(error)
    if isinstance(error, torch.OutOfMemoryError | MemoryError) or _OUT_OF_MEMORY.search(message):
        return Outcome.OOM
    if isinstance(error, RuntimeError) and _BACKWARD_ERROR.search(message):
        return Outcome.BACKWARD_ERROR
    return Outcome.ERROR


def type_name(error: BaseException) -> str:
    """The exception's class, with its module unless it is a builtin."""
    kind = type(error)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def fingerprint(error: BaseException) -> str:
    """Eight hex digits that are equal for equal failures: type and message without numbers and addresses."""
    text = f"{type_name(error)}: {_VOLATILE.sub('#', str(error).splitlines()[0] if str(error) else '')}"
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def traceback_tail(error: BaseException) -> str:
    """The last frames, innermost last. Paths are cut to what is the same on every machine."""
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    return "\n".join(f"{_portable(f.filename)}:{f.lineno} in {f.name}: {f.line or ''}".rstrip(": ") for f in frames)


def clip(text: str) -> str:
    """``text``, its middle left out where it is longer than a record should carry."""
    if len(text) <= MESSAGE_LIMIT:
        return text
    half = MESSAGE_LIMIT // 2
    return f"{text[:half]}\n[... {len(text) - MESSAGE_LIMIT} characters left out ...]\n{text[-half:]}"


def _portable(filename: str) -> str:
    parts = PurePath(filename).parts
    for anchor in ("site-packages", "harness", "experiments"):
        if anchor in parts:
            last = len(parts) - 1 - parts[::-1].index(anchor)
            return "/".join(parts[last + (anchor == "site-packages") :])
    return PurePath(filename).name
