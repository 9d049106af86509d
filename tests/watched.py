"""A small program, watched inside the process of the tests: what `harness diagnose --device cpu` would find in it."""

from __future__ import annotations

import textwrap
import threading
from pathlib import Path

import torch

from harness.diagnose import edits
from harness.diagnose.collected import Collected, collect, prepare
from harness.diagnose.findings import Finding
from harness.diagnose.reading import findings_of
from harness.diagnose.source import source_of
from harness.diagnose.witness.ending import look_at
from harness.diagnose.witness.notes import Notes
from harness.diagnose.witness.watcher import Watcher

PRELUDE = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.encoder = nn.Linear(4, 4)
        self.rnn = nn.LSTM(4, 5, **options)
        self.head = nn.Linear(5, 1)

    def forward(self, x):
        return self.head(self.rnn(self.encoder(x))[0])

x = torch.ones(2, 3, 4)
"""


def seen(folder: Path, program: str) -> Collected:
    """Run ``program`` in a thread of its own, whose stack begins with it, and collect what was seen."""
    folder.mkdir(exist_ok=True)
    path = folder / "program.py"
    path.write_text(program)
    prepare(folder)
    source_of.cache_clear()  # the file may have been another program's
    watcher = Watcher(Notes(folder))
    failures: list[BaseException] = []

    def run() -> None:
        torch.set_num_threads(1)  # a new thread would set up a pool of its own
        names: dict[str, object] = {"__name__": "__main__"}
        try:
            exec(compile(program, str(path), "exec"), names)
        except BaseException as error:
            look_at(watcher, error, error.__traceback__)
            failures.append(error)
        names.clear()  # its functions keep it alive, and with it an optimizer that the next program would be told of

    watcher.open()
    thread = threading.Thread(target=run)
    try:
        thread.start()
        thread.join()
    finally:
        watcher.close()
    found = collect(folder)
    assert found.failed is None, found.failed
    for failure in failures:
        if "does not require grad" not in str(failure):
            raise failure
    return found


def findings(folder: Path, program: str) -> tuple[Finding, ...]:
    """What is found in ``PRELUDE`` and ``program``."""
    found = seen(folder, PRELUDE + textwrap.dedent(program))
    return findings_of(list(found.facts.values()), found.times)


def cured(folder: Path, finding: Finding) -> tuple[Finding, ...]:
    """What is found in the program once the cure of a finding has been applied."""
    ((_, text),) = edits.apply(finding.cure.edits).items()
    found = seen(folder / "cured", text)
    return findings_of(list(found.facts.values()), found.times)


def line_of(folder: Path, mark: str) -> int:
    """The number of the line that ends with ``# mark``."""
    lines = (folder / "program.py").read_text().splitlines()
    (number,) = (number for number, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))
    return number
