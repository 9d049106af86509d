"""A program with the face of a seed program: its first argument says what it does to its attempt.

Only a worker runs it, so that it may import PyTorch; it does so where it has to. A hostile act never returns, or leaves
something behind; ``behaves`` shows that the attempt after it has not suffered.
"""
# ruff: noqa: ARG001 - every act is called alike

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

EPOCH, STEP = 1, 2
FOREVER_S = 10_000
FLOOD_BYTES = 1 << 30
BEAT_S = 0.01
MESSAGE = "injected by harness doctor"
LAST_WORDS = "the end of the flood"


@dataclass
class Result:
    """What an act reports."""

    values: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """As JSON."""
        return json.dumps(self.values)


@dataclass
class Position:
    """Epoch and step, both from 1."""

    epoch: int
    step: int


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """What to do, and on which of PyTorch's devices."""
    parser = argparse.ArgumentParser()
    parser.add_argument("act", choices=ACTS)
    parser.add_argument("--note", type=Path)
    parser.add_argument("--device", default="cpu")
    return parser.parse_args(argv)


def run(config: argparse.Namespace, *, on_step: Callable[[Position], None], result: Result) -> Result:
    """Be where a training would be, and do it there."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # an injected crash is no reason to fill a disk
    if config.device != "cpu":
        import torch

        torch.ones(1, device=config.device)  # from here on a driver is at work in this process
    on_step(Position(EPOCH, STEP))
    config.beat = lambda step: on_step(Position(EPOCH, step))
    ACTS[config.act](config, result)
    return result


def note(config: argparse.Namespace, text: object) -> None:
    """Tell whoever gave ``--note`` something at once, and whole."""
    if config.note is not None:
        unfinished = config.note.with_suffix(".part")
        unfinished.write_text(str(text))
        unfinished.rename(config.note)


def result_pipe() -> int:
    """The descriptor that the record goes to: of the two pipes that are open, the one that is not stdout's."""
    out = os.fstat(1).st_ino
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            target = str(entry.readlink())
            if int(entry.name) > 2 and target.startswith("pipe:") and str(out) not in target:
                return int(entry.name)
    raise AssertionError("no such pipe")


def behaves(config: argparse.Namespace, result: Result) -> None:
    """Do nothing wrong, and say who is behind it."""
    result.values["zygote"] = os.getppid()
    note(config, os.getpid())


def raises(config: argparse.Namespace, result: Result) -> NoReturn:
    """Fail like any Python program."""
    raise RuntimeError(MESSAGE)


def runs_out_of_memory(config: argparse.Namespace, result: Result) -> None:
    """Ask the host for more than any has."""
    bytearray(1 << 60)


def runs_out_of_device_memory(config: argparse.Namespace, result: Result) -> None:
    """Ask PyTorch's allocator for a tensor that no device can hold."""
    import torch

    torch.empty(1 << 50, dtype=torch.uint8, device=config.device)


def segfaults(config: argparse.Namespace, result: Result) -> None:
    """Read from address 0."""
    ctypes.string_at(0)


def aborts(config: argparse.Namespace, result: Result) -> None:
    """End as a failed assertion in C does."""
    os.abort()


def kills_itself(config: argparse.Namespace, result: Result) -> None:
    """Die as of the kernel's out-of-memory killer."""
    os.kill(os.getpid(), signal.SIGKILL)


def exits(config: argparse.Namespace, result: Result) -> NoReturn:
    """Leave with a code that a shell would take for a failure."""
    sys.exit(3)


def exits_well(config: argparse.Namespace, result: Result) -> NoReturn:
    """Leave, content, before it is done."""
    sys.exit(0)


def exits_hard_3(config: argparse.Namespace, result: Result) -> NoReturn:
    """Leave past the interpreter's own ending."""
    os._exit(3)


def exits_hard_0(config: argparse.Namespace, result: Result) -> NoReturn:
    """The same, with the code of a success."""
    os._exit(0)


def floods(config: argparse.Namespace, result: Result) -> None:
    """Write far more than anybody reads."""
    line = b"." * 99_999 + b"\n"
    for _ in range(FLOOD_BYTES // len(line)):
        os.write(1, line)
    print(LAST_WORDS)


def closes_descriptors_1_and_2(config: argparse.Namespace, result: Result) -> None:
    """Have nowhere to write to any more."""
    os.close(1)
    os.close(2)


def writes_half_a_record(config: argparse.Namespace, result: Result) -> None:
    """Die in the middle of the record, and call it a success."""
    os.write(result_pipe(), b'{"run":"run","key":"')
    os._exit(0)


def forks_away(config: argparse.Namespace, result: Result) -> None:
    """Leave a child behind as a daemon would be: in a session of its own, its parent gone, the pipes held open."""
    middle = os.fork()
    if middle == 0:
        os.setsid()
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(FOREVER_S)
        note(config, pid)
        os._exit(0)
    os.waitpid(middle, 0)


def hangs(config: argparse.Namespace, result: Result) -> None:
    """Never come back."""
    time.sleep(FOREVER_S)


def hangs_deaf(config: argparse.Namespace, result: Result) -> None:
    """Never come back, inside C with the interpreter's lock held, deaf to SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    nothing_to_read, _kept_open = os.pipe()
    ctypes.PyDLL(None).read(nothing_to_read, ctypes.create_string_buffer(1), 1)


def dawdles(config: argparse.Namespace, result: Result) -> None:
    """Make a step every now and then, and never be done."""
    step = STEP
    while True:
        step += 1
        config.beat(step)
        time.sleep(BEAT_S)


def tells_about_pytorch(config: argparse.Namespace, result: Result) -> None:
    """Say how PyTorch was built. Asks no driver anything."""
    import torch

    result.values |= {
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
    }


def tells_about_cudnn(config: argparse.Namespace, result: Result) -> None:
    """Say which cuDNN PyTorch finds; of a build for ROCm, which MIOpen. It may ask the driver first."""
    import torch

    with warnings.catch_warnings(record=True):
        result.values["cudnn"] = torch.backends.cudnn.version()


def tells_about_the_gpu(config: argparse.Namespace, result: Result) -> None:
    """Say what PyTorch sees of a GPU, and what it complains about."""
    import torch

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result.values["available"] = torch.cuda.is_available()
        if result.values["available"]:
            major, minor = torch.cuda.get_device_capability()
            result.values |= {
                "name": torch.cuda.get_device_name(),
                "capability": f"{major}.{minor}",
                "count": torch.cuda.device_count(),
                "stub": "HARNESS_STUB" in os.environ or "stub" in torch.cuda.get_device_name().lower(),
            }
    result.values["said"] = [" ".join(str(warning.message).split()) for warning in said]


ACTS: dict[str, Callable[[argparse.Namespace, Result], None]] = {
    act.__name__: act
    for act in list(globals().values())
    if callable(act) and getattr(act, "__annotations__", {}).keys() == {"config", "result", "return"}
}
