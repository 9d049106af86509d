"""A running campaign on the terminal: a progress bar, and a line per notable attempt, on stderr."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from harness.model import Outcome, Plan, Record
from harness.quoting import one_line
from harness.sittings import Sitting

STYLES = {
    Outcome.OK: "green",
    Outcome.BACKWARD_ERROR: "magenta",
    Outcome.ERROR: "yellow",
    Outcome.OOM: "red",
    Outcome.TIMEOUT: "red",
    Outcome.CRASH: "red",
    Outcome.SKIPPED: "dim",
    Outcome.NOT_RUN: "dim",
}

NOTABLE = frozenset({Outcome.OOM, Outcome.TIMEOUT, Outcome.CRASH})
"""Outcomes that a person should see while the run goes on. The error itself is what most runs are about: it is
counted, and the report lists it."""


class _Stderr(Console):
    """A console that falls silent when its reader leaves, as `2>&1 | head` does: nobody's ears end a run."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        with suppress(OSError, ValueError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, self.file.fileno())
            os.close(nothing)


class RunConsole:
    """Tells a person how a run goes: a bar on a terminal, and no more than a few lines anywhere else."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = _Stderr(stderr=True, quiet=quiet, highlight=False)
        self._counts: Counter[Outcome] = Counter()
        self._fingerprints: set[str | None] = set()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[counts]}"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
            refresh_per_second=4,  # each redraw takes time from the coordinator, which shares the cores
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._progress.stop()

    def preparing(self, what: str) -> None:
        """See ``campaign.Listener``."""
        if self._console.is_terminal:
            self._say(f"[dim]{_quoted(what)} ...[/dim]")

    def started(self, plan: Plan) -> None:
        """See ``campaign.Listener``."""
        devices = " and ".join(plan.devices)
        variants, attempts = _count(len(plan.variants), "variant"), _count(plan.attempts, "attempt")
        self._say(f"run {plan.run}: {variants} of {_quoted(plan.matrix)} on {devices}, {attempts}")
        for note in plan.notes:
            self.noted(note)
        self._begin(plan.attempts)

    def resumed(self, plan: Plan, sitting: Sitting, attempts: int) -> None:
        """See ``campaign.Listener``."""
        left = f"{attempts} of {_count(plan.attempts, 'attempt')}"
        self._say(f"run {plan.run} goes on: {left} of {_quoted(plan.matrix)}, sitting {sitting.number}")
        for difference in sitting.differences:
            self.noted(f"not as in sitting 1: {difference}")
        self._begin(attempts)

    def noted(self, sentence: str) -> None:
        """See ``campaign.Listener``."""
        self._say(f"note: {escape(one_line(sentence, 1000))}")

    def _begin(self, attempts: int) -> None:
        self._task = self._progress.add_task("running", total=attempts, counts="")
        self._progress.start()

    def recorded(self, record: Record) -> None:
        """See ``campaign.Listener``."""
        self._counts[record.outcome] += 1
        if record.outcome in NOTABLE or self._is_new_error(record):
            self._say(_line(record))
        if self._task is not None:
            counts = "  ".join(f"[{STYLES[o]}]{o} {n}[/]" for o, n in sorted(self._counts.items()))
            self._progress.update(self._task, advance=1, counts=counts)

    def finishing(self, what: str) -> None:
        """See ``campaign.Listener``."""
        self._progress.stop()
        if self._console.is_terminal:
            self._say(f"[dim]{_quoted(what)} ...[/dim]")

    def _say(self, markup: str) -> None:
        """Print a line of its own, however long; where nobody can read it any more, go on without."""
        try:
            self._console.print(markup, soft_wrap=True)
        except OSError:
            self._console.on_broken_pipe()

    def _is_new_error(self, record: Record) -> bool:
        """Whether it is the first of its kind: a hundred equal errors are one line here and one group in the report."""
        if record.outcome is not Outcome.ERROR or record.fingerprint in self._fingerprints:
            return False
        self._fingerprints.add(record.fingerprint)
        return True


def _quoted(text: str) -> str:
    """``text`` on one line, in which nothing is markup."""
    return escape(one_line(text, 1000))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _line(record: Record) -> str:
    error = f"{one_line(record.error_type or '')}: {one_line(record.error_message or '')}"
    told = [error] if record.error_type else []
    what = "; ".join([*told, one_line(record.reason)] if record.reason else told)
    where = f" in {record.phase}" if record.phase else ""
    style = STYLES[record.outcome]
    return f"[{style}]{record.outcome}[/] on {record.device}{where}: {_quoted(record.label)}: {escape(what)}"
