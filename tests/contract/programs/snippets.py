"""Runs pieces of code one after the other, each in names of its own, and says how each ended; JSON in, JSON out.

Not a test: what a test starts on another device than its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys


def ended(code: str) -> str:
    """``ok``, or the exception that ``code`` ended with: its type and its message."""
    try:
        exec(compile(code, "snippet", "exec"), {"__name__": "__main__"})
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "ok"


if __name__ == "__main__":
    snippets = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):
        ends = [ended(code) for code in snippets]
    print(json.dumps(ends), flush=True)
    os._exit(0)
