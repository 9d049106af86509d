"""The faults that are injected, and what the record of each has to say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.model import Device, Outcome, Phase, Record, Stall, Value

PROGRAM = Path(__file__).parent / "faults" / "program.py"
"""A worker loads it by its path; nothing here imports it."""

CONTAINED = frozenset({"reason", "output_tail", "error_message"})
"""Fields of a record that have to contain what is expected; all others have to be it."""

PATIENCE_S = 60.0
"""The deadline of what ends by itself: nobody's machine is so slow that the verdict on it should be a timeout."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that an attempt may do, and what becomes of it.

    It is an act of the program, or, where it has ``axes``, a variant of the matrix in the harness's own training loop.
    ``stalls`` marks what runs until its deadline; ``leaves`` what leaves a process behind, whose id it notes.
    """

    name: str
    what: str
    outcome: Outcome
    said: Mapping[str, Any] = field(default_factory=dict)
    act: str = ""
    axes: Mapping[str, Value] | None = None
    devices: tuple[Device, ...] = tuple(Device)
    stalls: bool = False
    leaves: bool = False


HERE = MappingProxyType({"phase": Phase.STEP, "epoch": 1, "step": 2})
DIED = MappingProxyType({**HERE, "error_type": None})
WELL = MappingProxyType(
    {"phase": Phase.EVALUATE, "epoch": 1, "step": 2, "error_type": None, "exit_code": None, "signal": None}
)
GPUS = (Device.CUDA, Device.STUB)

PLAIN = Fault("none", "does nothing wrong", Outcome.OK, WELL, "behaves")
"""Runs first, and after each of the others: what an attempt does must not reach the next."""

QUICK = (
    Fault(
        "python-error",
        "raises an exception",
        Outcome.ERROR,
        {"error_type": "RuntimeError", "error_message": "injected by harness doctor", "signal": None},
        "raises",
    ),
    Fault("oom", "asks PyTorch for more memory than the device has", Outcome.OOM, {}, "runs_out_of_device_memory"),
    Fault(
        "oom-host",
        "asks Python for more memory than the machine has",
        Outcome.OOM,
        {"error_type": "MemoryError"},
        "runs_out_of_memory",
        devices=(Device.CPU,),
    ),
    Fault("segfault", "reads from address 0", Outcome.CRASH, {**DIED, "signal": "SIGSEGV"}, "segfaults"),
    Fault("abort", "ends as a failed assertion in C", Outcome.CRASH, {**DIED, "signal": "SIGABRT"}, "aborts"),
    Fault("kill", "is killed", Outcome.CRASH, {**DIED, "signal": "SIGKILL"}, "kills_itself"),
    Fault("exit-3", "calls sys.exit(3)", Outcome.ERROR, {"error_type": "SystemExit", "error_message": "3"}, "exits"),
    Fault("exit-0", "calls sys.exit(0)", Outcome.ERROR, {"error_type": "SystemExit"}, "exits_well"),
    Fault("hard-exit-3", "calls os._exit(3)", Outcome.CRASH, {**DIED, "exit_code": 3}, "exits_hard_3"),
    Fault(
        "hard-exit-0",
        "calls os._exit(0) and leaves no record",
        Outcome.CRASH,
        {**DIED, "exit_code": 0, "reason": "no record"},
        "exits_hard_0",
    ),
    Fault(
        "half-record",
        "dies in the middle of its record",
        Outcome.CRASH,
        {**DIED, "exit_code": 0, "reason": "half a record"},
        "writes_half_a_record",
    ),
    Fault(
        "flood",
        "writes a gigabyte to stdout",
        Outcome.OK,
        {**WELL, "output_tail": "the end of the flood"},
        "floods",
        devices=(Device.CPU,),
    ),
    Fault("closed-stdout", "closes stdout and stderr", Outcome.OK, WELL, "closes_descriptors_1_and_2"),
    Fault("fork", "forks a daemon and leaves", Outcome.OK, WELL, "forks_away", leaves=True),
)

STALLED = (
    Fault(
        "hang",
        "hangs",
        Outcome.TIMEOUT,
        {**HERE, "stall": Stall.HUNG, "signal": "SIGTERM", "output_tail": "in hangs"},
        "hangs",
        stalls=True,
    ),
    Fault(
        "deaf-hang",
        "hangs in C and ignores SIGTERM",
        Outcome.TIMEOUT,
        {**HERE, "stall": Stall.HUNG, "signal": "SIGKILL"},
        "hangs_deaf",
        stalls=True,
    ),
    Fault(
        "slow",
        "goes on step by step beyond its deadline",
        Outcome.TIMEOUT,
        {"phase": Phase.STEP, "epoch": 1, "stall": Stall.SLOW, "signal": "SIGTERM", "output_tail": "in dawdles"},
        "dawdles",
        stalls=True,
    ),
)

_EVAL: Mapping[str, Value] = {"cell": "lstm", "placement": "eval-always", "cudnn": "on"}

_AGAINST = "takes a gradient through a forward in eval mode"

BACKWARD = "backward-error"
"""The fault that this project is about."""

REAL = (
    Fault(
        BACKWARD,
        _AGAINST,
        Outcome.BACKWARD_ERROR,
        {
            "phase": Phase.BACKWARD,
            "epoch": 1,
            "step": 1,
            "error_type": "RuntimeError",
            "error_message": "RNN backward can only be called in training mode",
        },
        axes=_EVAL,
        devices=GPUS,
    ),
    Fault(
        "eval-cudnn-off",
        "does the same with cuDNN off",
        Outcome.OK,
        {"error_type": None},
        axes={**_EVAL, "cudnn": "off"},
        devices=GPUS,
    ),
    # On a CPU no forward goes through cuDNN, so the same variant must not raise there.
    Fault(BACKWARD, _AGAINST, Outcome.OK, {"error_type": None}, axes=_EVAL, devices=(Device.CPU,)),
)

NAMES = tuple(dict.fromkeys(fault.name for fault in (PLAIN, *QUICK, *STALLED, *REAL)))
"""In the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of a record that is not what it has to be."""

    name: str
    expected: Any
    seen: Any

    def __str__(self) -> str:
        return f"{self.name} is {_words(self.seen)}, not {_words(self.expected)}"


def _words(value: Any) -> str:
    return "absent" if value is None else repr(str(value)) if isinstance(value, str) else str(value)


def differences(fault: Fault, record: Record) -> tuple[Difference, ...]:
    """How ``record`` is not what an attempt with ``fault`` has to leave; empty where all is as expected."""
    expected = {"outcome": fault.outcome, **fault.said}
    found = [Difference(name, value, getattr(record, name)) for name, value in expected.items()]
    return tuple(one for one in found if not _holds(one))


def _holds(one: Difference) -> bool:
    if one.name in CONTAINED and one.expected is not None:
        return str(one.expected) in str(one.seen or "")
    return bool(one.seen == one.expected)
