"""Programs in warm processes: as ``harness diagnose`` runs them, but with PyTorch imported once for all of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.diagnose import run
from harness.diagnose.facts import VARIABLE
from harness.stub.environment import MARKER

REPOSITORY = Path(__file__).parents[3]
HIDDEN = {"CUDA_VISIBLE_DEVICES": ""}


@dataclass(frozen=True)
class Ended:
    """How a program ended, and what it wrote."""

    code: int
    out: str
    err: str
    diagnosis: dict[str, Any]

    @property
    def finding(self) -> dict[str, Any]:
        """The only finding."""
        (finding,) = self.diagnosis["findings"]
        return dict(finding)


class Warm:
    """Two processes, one with the stub in front and one without; each is started when it is needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._hosts: dict[bool, subprocess.Popen[str]] = {}
        self._number = 0

    def diagnosed(self, path: Path, device: str, *arguments: str) -> Ended:
        """The program as ``harness diagnose --device DEVICE PATH ARGUMENTS`` runs it."""
        ends: list[tuple[int, str, str]] = []

        def forked(command: Sequence[str], environment: dict[str, str]) -> int:
            ends.append(self._run(command[1:], environment, guarded=False))
            return ends[0][0]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run, "_run", forked)
            diagnosis = run.diagnose([str(path), *arguments], device)
        return Ended(*ends[0], json.loads(json.dumps(diagnosis.as_json())))

    def guarded(self, path: Path) -> Ended:
        """The program on a CPU inside ``harness.guard()``."""
        return Ended(*self._run([str(path)], dict(os.environ) | HIDDEN, guarded=True), {})

    def _run(self, argv: Sequence[str], environment: dict[str, str], *, guarded: bool) -> tuple[int, str, str]:
        host = self._host(environment)
        self._number += 1
        out, err = (self._folder / f"{self._number}.{name}" for name in ("out", "err"))
        order = {"argv": list(argv), "out": str(out), "err": str(err), "guarded": guarded}
        assert host.stdin
        assert host.stdout
        host.stdin.write(json.dumps(order | {"watched": environment.get(VARIABLE)}) + "\n")
        host.stdin.flush()
        return int(host.stdout.readline()), out.read_text(), err.read_text()

    def _host(self, environment: dict[str, str]) -> subprocess.Popen[str]:
        stubbed = MARKER in environment
        if stubbed not in self._hosts:
            self._hosts[stubbed] = subprocess.Popen(
                [sys.executable, "-m", "tests.contract.diagnose.host"],
                env={name: value for name, value in environment.items() if name != VARIABLE}
                | {"PYTHONPATH": str(REPOSITORY)},
                cwd=REPOSITORY,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        return self._hosts[stubbed]

    def end(self) -> None:
        """End the processes."""
        for host in self._hosts.values():
            host.communicate()


@contextmanager
def warmed(folder: Path) -> Iterator[Warm]:
    """``Warm``, ended at the end of the block."""
    warm = Warm(folder)
    try:
        yield warm
    finally:
        warm.end()
