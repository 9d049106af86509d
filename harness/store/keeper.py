"""Keeps a server alive exactly as long as whoever asked for it: a program of its own, between the two.

``python keeper.py COMMAND...`` runs COMMAND and waits for its end, and for the end of its own stdin. The other end of
that pipe is held by the process that wants the server; however that dies, also of SIGKILL, the pipe closes, and the
whole process group is killed. Only the standard library, so that it starts in no time.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading


def main(command: list[str]) -> int:
    """Run ``command`` in this process group, and end all of it when stdin does."""
    # The server is told as well, and it is its end that is waited for. A handler, since an ignored signal is inherited.
    signal.signal(signal.SIGTERM, lambda *_: None)
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as server:
        return server.wait()


def _end_with_stdin() -> None:
    while os.read(0, 1024):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
