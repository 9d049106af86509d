"""A process that has PyTorch imported already, and forks a child for each program: dozens of them in seconds.

One order a line on stdin, one answer a line on stdout. In the child a program runs as a script does, with streams of
its own: nothing of this process is left to it but the imports. It ends with its threads and what was registered for
the end, but without taking the interpreter apart, which costs a second when PyTorch has been forked.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import runpy
import sys
import threading
from pathlib import Path
from typing import Any, NoReturn

import torch._dynamo

import harness
from harness.diagnose.facts import VARIABLE
from harness.diagnose.witness import attach


def become(order: dict[str, Any]) -> None:
    """Run the program of ``order`` as ``__main__``."""
    for number, name in ((1, "out"), (2, "err")):
        file = os.open(order[name], os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(file, number)
        os.close(file)
    sys.argv = order["argv"]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    torch.set_num_threads(1)
    if order["watched"]:
        # What harness/diagnose/startup does in a process that starts anew.
        attach(json.loads(order["watched"])["folder"])
    with harness.guard() if order["guarded"] else contextlib.nullcontext():
        runpy.run_path(sys.argv[0], run_name="__main__")


def ended(order: dict[str, Any]) -> int:
    """The exit code that Python gives a program, after it has told of an exception as Python does."""
    try:
        become(order)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        return 1
    return 0


def leave(code: int) -> NoReturn:
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def serve() -> dict[str, Any] | None:
    """Fork a child for each order, and return it there: a loop around the program would be taken for one of its own."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            order: dict[str, Any] = json.loads(line)
            return order
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return None


if __name__ == "__main__":
    assert VARIABLE not in os.environ
    gc.freeze()  # a collection in a child would write to, and so copy, every page of PyTorch's modules
    ordered = serve()
    if ordered is not None:
        leave(ended(ordered))
