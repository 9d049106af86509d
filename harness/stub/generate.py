"""Write the C for the functions that have no body, and find the names that a CUDA header declares."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from harness.stub.policy import Decision, Treatment

_HEADER = """/* Generated: the functions that this PyTorch needs and that csrc/ has no body for. Do not edit.
 * They take no arguments here because they look at none; the calling convention allows that. */
#include "stub.h"
"""


def generated_source(decisions: Iterable[Decision]) -> str:
    """Return a C file with one line for each function that succeeds or is refused."""
    return _HEADER + "\n" + "".join(line for decision in decisions if (line := _definition(decision)))


def _definition(decision: Decision) -> str:
    name, family = decision.function, decision.family
    if decision.treatment is Treatment.SUCCEED:
        return f"long {name}(void) {{ return 0; }}\n"
    if decision.treatment is not Treatment.REFUSE:
        return ""
    if family.raises:
        call = f'stub_refuse("{name}", "{family.advice}", {family.status}, __builtin_return_address(0))'
    else:
        call = f'stub_refuse_with_code("{name}", "{family.advice}", {family.status})'
    return f"long {name}(void) {{ return {call}; }}\n"


def driver_functions(cuda_header: Path) -> frozenset[str]:
    """Return every function that cuda.h declares, under the names that a libcuda exports."""
    text = cuda_header.read_text(encoding="utf-8", errors="replace")
    declared = frozenset(re.findall(r"CUDAAPI\s+(cu[A-Z]\w*)\s*\(", text))
    versioned = dict(re.findall(r"^\s*#\s*define\s+(cu[A-Z]\w*)\s+(cu[A-Z]\w*_v\d+)\s*$", text, re.MULTILINE))
    return declared | frozenset(versioned.values())
