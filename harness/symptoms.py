"""The words by which a failure is known, in an exception's message or in the last words of a process that died."""

from __future__ import annotations

import re

# The wording of cuDNN's check and of MIOpen's (ROCm); the case changed between releases.
BACKWARD_ERROR = re.compile(r"\b(cudnn|miopen) RNN backward can only be called in training mode", re.IGNORECASE)

# Device and host memory run out under many names; these can mean nothing else.
OUT_OF_MEMORY = re.compile(
    r"\b(CUDA|HIP)( driver| runtime)?( error:)? out of memory"
    r"|\bCU[A-Z]+_(STATUS_)?(INTERNAL_ERROR_(HOST|DEVICE)_)?ALLOC(ATION)?_FAILED|miopenStatusAllocFailed"
    r"|cudaErrorMemoryAllocation|hipErrorOutOfMemory|std::bad_alloc|c10::OutOfMemoryError"
    r"|DefaultCPUAllocator: .*(can't allocate|not enough) memory",
    re.IGNORECASE | re.DOTALL,
)

MAYBE_OUT_OF_MEMORY = re.compile(
    r"\bCUBLAS_STATUS_NOT_INITIALIZED|\bCUDNN_STATUS_(NOT_INITIALIZED|INTERNAL_ERROR)\b"
    r"|\bmiopenStatus(NotInitialized|InternalError)\b"
)
"""What libraries say of a device without memory for their handle or workspace, and as often of something else."""

STICKY = re.compile(
    r"\b(CUDA|HIP)( driver| runtime)? error: "
    r"(an illegal (memory access|instruction) was encountered|device-side assert triggered|unspecified launch failure"
    r"|misaligned address|hardware stack error|invalid program counter|the launch timed out and was terminated"
    r"|operation not supported on global/shared address space|uncorrectable (ECC|NVLink) error|context is destroyed)"
    r"|\b(cuda|hip)Error(IllegalAddress|IllegalInstruction|Assert|LaunchFailure|MisalignedAddress|HardwareStackError"
    r"|InvalidPc|LaunchTimeout|InvalidAddressSpace|ECCUncorrectable|NvlinkUncorrectable|ContextIsDestroyed)\b",
    re.IGNORECASE,
)
"""Errors after which a CUDA context is lost: every later call of its process fails as well, whatever it asks for.

The libraries' EXECUTION_FAILED is none of them: nothing in it says that the context is lost.
"""

POISONED = "process_poisoned"
"""The fact of a record whose process met a sticky error."""

POISONED_REASON = (
    "a sticky CUDA error: its process could not use the device any more, and ended; no other attempt shares it"
)

_UNCAUGHT = re.compile(r"terminate called after throwing an instance of '[^'\n]*'(\s+what\(\):[^\n]*)?")


def uncaught(output: str | None) -> str:
    """What a C++ program says of the exception that ended it, or nothing."""
    found = _UNCAUGHT.search(output or "")
    return found[0] if found else ""
