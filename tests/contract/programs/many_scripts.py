"""Runs many scripts, each as a program in a fork of its own: PyTorch is imported once for all of them.

Reads a JSON object of name -> text from stdin; writes one of name -> {code, out, err} to stdout.
"""

import contextlib
import io
import json
import os
import sys
import traceback
from pathlib import Path

import torch
import torch._dynamo  # the first optimizer step would import it in every child

from harness.trial.zygote import warm_up


def run(name: str, text: str, report: int) -> None:
    """Run ``text`` as a script, as ``python NAME`` would, and write how it ended to ``report``."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            exec(compile(text, name, "exec"), {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc()
            code = 1
    ended = {"code": code, "out": out.getvalue(), "err": err.getvalue()}
    Path(f"/proc/self/fd/{report}").write_text(json.dumps(ended))


def in_a_fork(name: str, text: str) -> dict[str, object]:
    """How a script ended."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            run(name, text, writer)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        told = stream.read()
    _, status = os.waitpid(pid, 0)
    return json.loads(told) if told else {"code": os.waitstatus_to_exitcode(status), "out": "", "err": "died"}


def main() -> None:
    """Serve one request."""
    warm_up()
    torch.set_num_threads(1)
    scripts = json.load(sys.stdin)
    json.dump({name: in_a_fork(name, text) for name, text in scripts.items()}, sys.stdout)


if __name__ == "__main__":
    main()
