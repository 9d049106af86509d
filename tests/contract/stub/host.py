"""Runs cases under the stub: imports PyTorch once without touching CUDA, then forks a process for each case.

This is how the harness itself uses the stub (its zygote), and what makes hundreds of cases cheap. One JSON line a case.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import sys
import time
import traceback
import warnings

import torch._dynamo  # noqa: F401 - the children inherit it, and PyTorch with it


def public_functions(module: object) -> list[str]:
    names = []
    for name, value in vars(module).items():
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__ and callable(value):
            names.append(name)
    return names


def call(function: object) -> dict[str, object]:
    warnings.simplefilter("ignore")
    try:
        return {"value": function()}
    except BaseException as error:
        kind = type(error)
        return {
            "error": f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."),
            "message": str(error),
            "traceback": traceback.format_exc(),
        }


def in_a_child(function: object, seconds: float) -> dict[str, object]:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.setpgid(0, 0)
        answer = json.dumps(call(function)).encode()
        while answer:
            answer = answer[os.write(write, answer) :]
        os._exit(0)
    os.close(write)
    answer, deadline = b"", time.perf_counter() + seconds
    while time.perf_counter() < deadline and select.select([read], [], [], deadline - time.perf_counter())[0]:
        chunk = os.read(read, 1 << 16)
        if not chunk:
            break
        answer += chunk
    else:
        os.kill(child, signal.SIGKILL)
    os.close(read)
    _, status = os.waitpid(child, 0)
    return json.loads(answer) if answer and status == 0 else {"crash": os.waitstatus_to_exitcode(status)}


def main(modules: list[str]) -> None:
    for name in modules:
        module = importlib.import_module(f"cases.{name}")
        for function in public_functions(module):
            outcome = in_a_child(getattr(module, function), seconds=60)
            print(json.dumps({"case": f"{name}.{function}"} | outcome), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
