"""An exception of a variant -> its outcome, and what a record keeps of it."""

from __future__ import annotations

import errno
import hashlib
import re
import traceback
from pathlib import PurePath

import torch

from harness.model import Outcome

# The wording of cuDNN's check and of MIOpen's (ROCm); the case changed between releases.
_BACKWARD_ERROR = re.compile(r"\b(cudnn|miopen) RNN backward can only be called in training mode", re.IGNORECASE)

# Device and host memory run out under many names; only those that can mean nothing else are listed.
# CUBLAS_STATUS_NOT_INITIALIZED and CUDNN_STATUS_INTERNAL_ERROR often are out-of-memory, and as often are not.
_OUT_OF_MEMORY = re.compile(
    r"\b(CUDA|HIP)( driver| runtime)?( error:)? out of memory"
    r"|\bCU[A-Z]+_(STATUS_)?(INTERNAL_ERROR_(HOST|DEVICE)_)?ALLOC(ATION)?_FAILED|miopenStatusAllocFailed"
    r"|cudaErrorMemoryAllocation|hipErrorOutOfMemory|std::bad_alloc"
    r"|DefaultCPUAllocator: .*(can't allocate|not enough) memory",
    re.IGNORECASE | re.DOTALL,
)
_VOLATILE = re.compile(r"0x[0-9a-fA-F]+|[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)

MESSAGE_LIMIT = 2000
FRAMES = 6


def outcome_of(error: BaseException) -> Outcome:
    """The outcome of an attempt that ended in ``error``."""
    message = message_of(error)
    if isinstance(error, torch.OutOfMemoryError | MemoryError) or _OUT_OF_MEMORY.search(message):
        return Outcome.OOM
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return Outcome.OOM
    if isinstance(error, RuntimeError) and _BACKWARD_ERROR.search(message):
        return Outcome.BACKWARD_ERROR
    return Outcome.ERROR


def message_of(error: BaseException) -> str:
    """``str(error)``, also where the exception's own code fails at that."""
    try:
        return str(error)
    except Exception as failure:
        return f"<no message: {type(failure).__name__} while it was made>"


def type_name(error: BaseException) -> str:
    """The exception's class, with its module unless it is a builtin."""
    kind = type(error)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def fingerprint(error: BaseException) -> str:
    """Eight hex digits that are equal for equal failures: type and message without numbers and addresses."""
    first_line = next(iter(message_of(error).splitlines()), "")
    text = f"{type_name(error)}: {_VOLATILE.sub('#', first_line)}"
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:8]


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
