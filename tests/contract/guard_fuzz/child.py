"""The stub's side: one program a line on stdin, one list of verdicts a line on stdout."""

from __future__ import annotations

import json
import os
import sys

from tests.contract.guard_fuzz.interpreter import run

if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line), "cuda")), flush=True)
    sys.stdout.flush()
    os._exit(0)
