"""Run any command with the stub in front of its PyTorch."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from harness.errors import UsageError
from harness.stub.build import ensure

NOTICE = "on the stub no kernel runs and every result is zero: errors are real, losses and other numbers are not"
"""What whoever runs a program of theirs on the stub has to know before they read its output."""

SIGNALLED = 128
"""What a shell adds to the number of the signal that ended a command."""


def run(
    argv: Sequence[str], base: Mapping[str, str] | None = None, *, started: Callable[[], object] = lambda: None
) -> int:
    """Run a command with the stub in front, wait for it, and return its own exit code; ``started`` is called once."""
    if not argv:
        raise UsageError("there is no command to run with the stub", "For example: harness stub run -- python train.py")
    environment = os.environ if base is None else base
    build = ensure(torch_of(argv[0], environment))
    try:
        process = subprocess.Popen(list(argv), env=build.environment(environment))
    except OSError as error:
        raise UsageError(f"the command {argv[0]} cannot be run: {error.strerror}", _advice(argv)) from error
    with signals_passed_on(process):
        started()
        code = process.wait()
    return code if code >= 0 else SIGNALLED - code


def _advice(argv: Sequence[str]) -> str:
    """What to try where the command cannot be run: a script is mostly meant for Python."""
    if Path(argv[0]).suffix == ".py" and Path(argv[0]).is_file():
        return f"Put `python` in front: harness stub run -- python {shlex.join(argv)}"
    return "Check its spelling."


def torch_of(command: str, environment: Mapping[str, str]) -> Path | None:
    """Return the torch of a Python interpreter other than this one; None where the one installed here will do."""
    found = shutil.which(command, path=environment.get("PATH"))
    if found is None or not Path(found).name.startswith(("python", "pypy")):
        return None
    question = "import importlib.util as u; s = u.find_spec('torch'); print(s.origin if s else '')"
    command_line, variables = [str(Path(found).absolute()), "-c", question], dict(environment)
    # `python -c` looks in the current folder first: elsewhere, no torch.py of the person's can answer for PyTorch.
    with tempfile.TemporaryDirectory() as nowhere:
        try:
            answer = subprocess.run(
                command_line, env=variables, cwd=nowhere, capture_output=True, text=True, check=False, timeout=60
            )
        except (OSError, subprocess.TimeoutExpired):
            return None  # the command itself will say what is wrong with it
    origin = answer.stdout.strip()
    return Path(origin).parent if origin else None


@contextmanager
def signals_passed_on(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Leave Ctrl-C to the command, which the terminal tells itself; hand on what only this process was told."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        del frame
        process.send_signal(number)

    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN),
        signal.SIGTERM: signal.signal(signal.SIGTERM, pass_on),
        signal.SIGHUP: signal.signal(signal.SIGHUP, pass_on),
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
