"""Where everything is: MLflow's own default layout in the store's root, and our run folders beside its artifacts.

::

    <root>/mlflow.db              MLflow's database, so that a bare ``mlflow ui`` in <root> shows the runs
    <root>/mlruns/<id>/           MLflow's artifacts
    <root>/mlruns/runs/<run-id>/  plan.json, records.jsonl, report.md, results.csv, plots
"""

from __future__ import annotations

import difflib
import os
import re
import secrets
import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from harness.errors import RunNotFoundError, TrackingError, UsageError
from harness.quoting import public

LATEST = "latest"
"""What a person may write for the newest run."""

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_MOST_NAMED = 5


def new_run_id(now: datetime | None = None) -> str:
    """A run id that sorts by time: UTC date and time, two characters of the second's fraction, three random ones."""
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    base = len(_ALPHABET)
    high, low = divmod(moment.microsecond * base * base // 1_000_000, base)
    chance = "".join(secrets.choice(_ALPHABET) for _ in range(3))
    return f"{moment:%Y%m%d-%H%M%S}-{_ALPHABET[high]}{_ALPHABET[low]}{chance}"


def checked_run_id(text: str) -> str:
    """``text`` if it can be the name of a run folder.

    Raises:
        UsageError: it has characters that could lead out of the store, or is empty or too long.
    """
    if not _RUN_ID.fullmatch(text):
        shown = text if len(text) <= 80 else text[:77] + "..."
        raise UsageError(
            f"{shown!r} is not a run id",
            "A run id has letters, digits, '.', '_' and '-' only, like 20250131-093000-7k3fq.",
        )
    return text


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of one run and the files in it, whether or not they exist yet."""

    path: Path

    @property
    def run(self) -> str:
        """The run's id."""
        return self.path.name

    @property
    def plan(self) -> Path:
        """The plan: written once, whole, before anything runs."""
        return self.path / "plan.json"

    @property
    def records(self) -> Path:
        """The journal: one record a line, only ever appended to."""
        return self.path / "records.jsonl"

    @property
    def report(self) -> Path:
        """The report for people."""
        return self.path / "report.md"

    @property
    def results(self) -> Path:
        """The report for programs: one row per planned variant and device."""
        return self.path / "results.csv"

    @property
    def sittings(self) -> Path:
        """What each resume was made with, one a line; absent where there was none."""
        return self.path / "sittings.jsonl"

    @property
    def lock(self) -> Path:
        """The file that the coordinator of the run holds a lock on."""
        return self.path / "coordinator.lock"


@dataclass(frozen=True, slots=True)
class Store:
    """One place where runs are kept.

    ``tracking_uri`` is what the person asked for with ``--tracking-uri``; None follows ``MLFLOW_TRACKING_URI`` and
    then MLflow's own default in ``root``.
    """

    root: Path
    tracking_uri: str | None = None

    @property
    def database(self) -> Path:
        """MLflow's SQLite file, where MLflow itself would put it."""
        return self.root.absolute() / "mlflow.db"

    @property
    def artifacts(self) -> Path:
        """MLflow's artifact root, where MLflow itself would put it."""
        return self.root.absolute() / "mlruns"

    @property
    def runs_folder(self) -> Path:
        """Where the run folders are."""
        return self.artifacts / "runs"

    @property
    def uri(self) -> str:
        """The tracking URI in force: ``--tracking-uri``, else ``MLFLOW_TRACKING_URI``, else the default in ``root``."""
        return self.tracking_uri or os.environ.get("MLFLOW_TRACKING_URI") or self.default_uri

    @property
    def default_uri(self) -> str:
        """The URI of ``database``, unquoted.

        A path with an escape like ``%20`` is refused elsewhere: SQLAlchemy 2.0 takes it as it is, 2.1 decodes it.
        """
        return f"sqlite:///{self.database}"

    def command(self, *words: str, tracking: bool = False) -> str:
        """What a person has to type for ``harness WORDS`` on this very store, and with ``tracking`` on its MLflow too.

        No password is shown.
        """
        store = [] if self.root == Path() else ["--store", str(self.root)]
        uri = ["--tracking-uri", public(self.tracking_uri)] if tracking and self.tracking_uri is not None else []
        return shlex.join(["harness", *store, *words, *uri])

    def folder(self, run: str) -> RunFolder:
        """The folder that run ``run`` has or would have.

        Raises:
            UsageError: ``run`` is not a run id.
        """
        return RunFolder(self.runs_folder / checked_run_id(run))

    def runs(self) -> tuple[str, ...]:
        """The ids of all runs, oldest first: of folders with a plan, or with records that have lost theirs.

        A folder of another name is none of ours; one that is empty is of a run that was killed before it was planned.
        """
        if not self.runs_folder.is_dir():
            return ()
        files = (file for name in ("plan.json", "records.jsonl") for file in self.runs_folder.glob(f"*/{name}"))
        names = {file.parent.name for file in files}
        return tuple(sorted(name for name in names if _RUN_ID.fullmatch(name)))

    def latest(self) -> RunFolder:
        """The newest run.

        Raises:
            RunNotFoundError: there is none yet.
        """
        runs = self.runs()
        if not runs:
            raise RunNotFoundError(
                f"there are no runs in {self.root.absolute()}",
                "Make one with `harness run matrix`, or name the folder that has them with --store DIR.",
            )
        return self.folder(runs[-1])

    def find(self, text: str | None = None) -> RunFolder:
        """The run that ``text`` names: an id, an unambiguous beginning of one, or ``latest`` (also for None).

        Raises:
            RunNotFoundError: no run, or more than one, has that name; the advice names the nearest.
        """
        if text is None or text == LATEST:
            return self.latest()
        runs = self.runs()
        if text in runs:
            return self.folder(text)
        matches = [run for run in runs if text and run.startswith(text)]
        if len(matches) == 1:
            return self.folder(matches[0])
        if matches:
            raise RunNotFoundError(f"{len(matches)} runs begin with {text!r}", f"Say which: {_some(matches)}.")
        self.latest()
        raise RunNotFoundError(f"there is no run {shown(text)} in {self.root.absolute()}", _nearest(text, runs))

    def refuse_old_file_store(self) -> None:
        """Stop before MLflow does, where an older MLflow left a plain-file store that new ones refuse to open.

        Raises:
            TrackingError: there is one, and the default tracking URI is in force.
        """
        if self.uri != self.default_uri:
            return
        for meta in self.artifacts.glob("*/meta.yaml"):
            if meta.parent.name.isdigit():
                raise TrackingError(
                    f"{self.artifacts} holds runs in MLflow's old file format, which MLflow can no longer open",
                    f"Convert it with `mlflow migrate-filestore --source {self.root.absolute()} --target "
                    f"{self.default_uri}`, then remove {self.artifacts}/*/meta.yaml; or use another folder with "
                    "--store DIR, or --no-tracking.",
                )


def shown(text: str) -> str:
    """``text``, which a person gave for a run, as a message quotes it."""
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _some(runs: list[str] | tuple[str, ...]) -> str:
    named = ", ".join(runs[-_MOST_NAMED:])
    return named if len(runs) <= _MOST_NAMED else f"{named} (newest {_MOST_NAMED} of {len(runs)})"


def _nearest(text: str, runs: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(text, runs, n=1, cutoff=0.6)
    if near:
        return f"Did you mean {near[0]}? Known runs: {_some(runs)}."
    return f"Known runs: {_some(runs)}."
