"""Run a person's script in a process of its own, watched from inside, and say what happened in it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from harness.diagnose.collected import Collected, collect, prepare
from harness.diagnose.device import Place, choose
from harness.diagnose.facts import VARIABLE, Count
from harness.diagnose.findings import Diagnosis, Exit
from harness.diagnose.limits import ended_unseen, limits
from harness.diagnose.reading import findings_of
from harness.errors import HarnessError, UsageError
from harness.stub.process import SIGNALLED, signals_passed_on

_STARTUP = Path(__file__).with_name("startup")


def diagnose(command: Sequence[str], device: str = "auto") -> Diagnosis:
    """Run ``python COMMAND`` with the streams of this process, wait for it, and say what was seen.

    ``command`` is a script and its arguments, or ``-m``, a module and its arguments.

    Raises:
        UsageError: there is no such script, or no such device.
        HarnessError: the process cannot be started.
    """
    _check(command)
    place = choose(device, os.environ)
    with tempfile.TemporaryDirectory(prefix="harness-diagnose-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        prepare(folder)
        status = _run([sys.executable, *command], place.environment | _orders(folder, place.environment))
        return _diagnosis(collect(folder), status, place)


def _check(command: Sequence[str]) -> None:
    script = Path(command[0])
    if command[0] in ("-m", "-") or script.is_file() or (script / "__main__.py").is_file():
        return
    if script.is_dir():
        raise UsageError(f"{script} is a folder without a __main__.py", "Name the script itself.")
    if script.name.startswith("python"):
        raise UsageError(
            f"there is no script {script}", "Name the script, without the interpreter: harness diagnose train.py"
        )
    raise UsageError(f"there is no script {script}", "Check its path; a module is run with -m.")


def _orders(folder: Path, environment: dict[str, str]) -> dict[str, str]:
    """What the startup module finds in its environment, and removes from it."""
    before = environment.get("PYTHONPATH")
    path = os.pathsep.join([str(_STARTUP), before] if before else [str(_STARTUP)])
    return {"PYTHONPATH": path, VARIABLE: json.dumps({"folder": str(folder), "pythonpath": before})}


def _run(command: list[str], environment: dict[str, str]) -> int:
    try:
        process = subprocess.Popen(command, env=environment)
    except OSError as error:
        raise HarnessError(f"Python cannot be started: {error.strerror}.") from error
    with signals_passed_on(process):
        return process.wait()


def _diagnosis(found: Collected, status: int, place: Place) -> Diagnosis:
    return Diagnosis(
        device=place.device,
        exit=_exit(status, found.exception),
        forwards=found.count(Count.FORWARDS),
        cudnn_forwards=found.count(Count.CUDNN_FORWARDS),
        backwards=found.count(Count.BACKWARDS),
        on_gpu=found.count(Count.GPU_FORWARDS) > 0,
        ended_unseen=ended_unseen(found),
        notes=(*place.notes, *limits(found, place.device)),
        findings=findings_of(list(found.facts.values()), found.times),
    )


def _exit(status: int, exception: str | None) -> Exit:
    if status >= 0:
        return Exit(status, exception=exception if status else None)
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return Exit(SIGNALLED - status, signal=name, exception=exception)
