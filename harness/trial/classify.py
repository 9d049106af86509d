"""An exception of a variant -> its outcome, and what a record keeps of it."""

from __future__ import annotations

import errno
import hashlib
import re
import traceback
from pathlib import PurePath

import torch

from harness.model import Outcome
from harness.symptoms import BACKWARD_ERROR, MAYBE_OUT_OF_MEMORY, OUT_OF_MEMORY, STICKY

_VOLATILE = re.compile(r"0x[0-9a-fA-F]+|[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)

FULL_BELOW_BYTES = 256 << 20
"""With less than this free, cuBLAS and cuDNN may find no room for their handles, kernels and workspaces."""

MESSAGE_LIMIT = 2000
FRAMES = 6


def outcome_of(error: BaseException, free_bytes: int | None = None) -> Outcome:
    """The outcome of an attempt that ended in ``error``.

    ``free_bytes`` is what was free on its device then, where that is known: it decides about errors that a lack of
    memory may have caused, or something else.
    """
    message = message_of(error)
    if isinstance(error, torch.OutOfMemoryError | MemoryError) or OUT_OF_MEMORY.search(message):
        return Outcome.OOM
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return Outcome.OOM
    if may_be_oom(error) and free_bytes is not None and free_bytes < FULL_BELOW_BYTES:
        return Outcome.OOM
    if isinstance(error, RuntimeError) and BACKWARD_ERROR.search(message):
        return Outcome.BACKWARD_ERROR
    return Outcome.ERROR


def may_be_oom(error: BaseException) -> bool:
    """Whether a lack of device memory is one of the things that ``error`` may mean."""
    return isinstance(error, RuntimeError) and bool(MAYBE_OUT_OF_MEMORY.search(message_of(error)))


def is_sticky(error: BaseException) -> bool:
    """Whether the process cannot use its device any more after ``error``."""
    return isinstance(error, RuntimeError) and bool(STICKY.search(message_of(error)))


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
