"""A zygote as the coordinator sees it: a process, a socket to it, and the events that come back."""

from __future__ import annotations

import json
import os
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

from harness.errors import LaunchError
from harness.launch.memory import shared_memory
from harness.quoting import one_line

START_SECONDS = 180.0
"""Importing torch takes a second or two; on a cold disk or a busy machine a minute has been seen."""

LAST_WORDS = 2000
"""Bytes at the end of its log in which its last line is looked for."""


class ZygoteDiedError(LaunchError):
    """The zygote, or what it was to do for us, ended while it was needed; ``killed``: by a SIGKILL that is not ours."""

    def __init__(self, sentence: str, advice: str = "", *, killed: bool = False) -> None:
        super().__init__(sentence, advice)
        self.killed = killed


class ZygoteProcess:
    """One fork server. ``environment`` is all it and its children see, so the stub's variables reach nothing else."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        # Not a pipe: nobody reads it unless the zygote dies, and a full pipe would block it.
        self._log = shared_memory("harness worker's log")
        self._ready = False
        self.socket = ours
        self._buffer = b""
        with theirs:
            self._process = subprocess.Popen(
                # -P: a file of the person's called random.py or harness/ must not shadow ours.
                [sys.executable, "-P", "-m", "harness.trial", str(theirs.fileno())],
                env=dict(environment),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                start_new_session=True,
            )

    def wait_ready(self) -> None:
        """Block until the zygote takes requests; not at all once it does.

        Raises:
            ZygoteDiedError: it died on the way, with the last lines that it wrote.
            LaunchError: it is not ready after ``START_SECONDS``.
        """
        if self._ready:
            return
        deadline = time.monotonic() + START_SECONDS
        while not any(event["event"] == "ready" for event in self.events(deadline - time.monotonic())):
            if time.monotonic() >= deadline:
                raise LaunchError(
                    f"the worker process was not ready after {START_SECONDS:.0f} s",
                    "Is the machine out of memory or its disk very slow? Try again when it is quieter.",
                )
        self._ready = True

    def send(self, request: Mapping[str, Any], descriptors: list[int]) -> None:
        """Send one request with its descriptors; the caller waits for the answer before the next."""
        try:
            socket.send_fds(self.socket, [json.dumps(request).encode() + b"\n"], descriptors)
        except OSError as error:
            raise self._died() from error

    def events(self, seconds: float) -> list[dict[str, Any]]:
        """The events that have arrived, or arrive within ``seconds``."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.socket, selectors.EVENT_READ)
            if b"\n" not in self._buffer and not selector.select(max(seconds, 0)):
                return []
        return self.read_events()

    def read_events(self) -> list[dict[str, Any]]:
        """The events in the socket, which has something to read.

        Raises:
            ZygoteDiedError: it hung up.
        """
        if b"\n" not in self._buffer:
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionError:
                data = b""
            if not data:
                raise self._died()
            self._buffer += data
        *lines, self._buffer = self._buffer.split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        """Hang up; the zygote then ends its children and itself."""
        self.socket.close()
        self._process.send_signal(signal.SIGCONT)  # one that was suspended could not leave in order
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._log)

    def _died(self) -> ZygoteDiedError:
        try:
            status: object = self._process.wait(2)
        except subprocess.TimeoutExpired:
            status = "still running"
        size = os.lseek(self._log, 0, os.SEEK_END)
        tail = os.pread(self._log, LAST_WORDS, max(0, size - LAST_WORDS)).decode(errors="replace").strip("\0 \n")
        last = one_line(tail.splitlines()[-1]) if tail else "it wrote nothing"
        alone = shlex.join([sys.executable, "-P", "-c", "import torch._dynamo"])
        advice = (
            "The system's log may know who ended it; the kernel does so when memory runs out."
            if self._ready
            else f"It begins with importing PyTorch; see what `{alone}` says."
        )
        sentence = f"the worker process ended (exit status {status}): {last}"
        return ZygoteDiedError(sentence, advice, killed=status == -signal.SIGKILL)
