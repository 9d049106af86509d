"""One round: a run that is killed again and again, until it is complete."""

from __future__ import annotations

import subprocess
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from harness.errors import HarnessError
from harness.model import Outcome
from harness.results import collect
from harness.store.journal import read_plan, read_records
from harness.store.layout import RunFolder, Store
from tests.contract.command import HARNESS, environment
from tests.torture.checks import Place, check_whole
from tests.torture.tally import Tally
from tests.torture.victims import MARK, Victim, kill, left_over
from tests.torture.wrong import WrongError

CHOICES = ("stub", "cpu", "auto")
DRAWN = ("stub", "stub", "cpu", "auto")
ROUNDS_PER_STORE = 4
MOST_SITTINGS = 40
PATIENCE_S = 180.0

PAUSE_S = 0.07
"""Between two looks for an attempt or a zygote to kill, on average."""

MOST_IN_A_ROW = 2
"""Zygotes, and processes of any kind before the first record: after the third in a row that dies before it was of any
use, the harness is right to give up."""

MATRIX = """
description: short attempts
settings: {epochs: 4, steps: 5, evaluation_steps: 1, deadline: 60}
axes:
  cell: [lstm, gru, rnn-tanh]
  bidirectional: [false, true]
  cudnn: ["on", "off"]
  placement: [train-each-epoch, eval-always, eval-no-grad]
"""


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """A run that nobody disturbed: what came out, and how long it took on this machine at its load."""

    outcomes: dict[Place, Outcome]
    seconds: float


@dataclass(slots=True)
class Torture:
    """Rounds over a store, which several of them share."""

    folder: Path
    seed: int
    tally: Tally
    device: str | None = None
    reference: dict[str, Undisturbed] = field(default_factory=dict)

    def round(self, number: int) -> None:
        """Make a run whole against all odds.

        Raises:
            WrongError: a promise was broken.
        """
        rng = Random(f"{self.seed}/{number}")
        drawn = rng.choice(DRAWN)
        device = self.device or drawn
        if device not in self.reference:
            self.reference[device] = self._undisturbed(device)
        store = Store(self.folder / f"store-{number // ROUNDS_PER_STORE}")
        self.tally.stores += not store.root.exists()
        store.root.mkdir(exist_ok=True)
        before = _closed(store.root)
        folder = _Run(self, store, device, rng).make_whole()
        self.tally.closed += _closed(store.root) - before
        check_whole(store, folder, self.reference[device].outcomes)
        records = read_records(folder)
        results = collect(read_plan(folder), records).results
        self.tally.rounds += 1
        self.tally.planned += read_plan(folder).attempts
        self.tally.records += len(records)
        self.tally.superseded += sum(result.superseded for result in results)

    def _undisturbed(self, device: str) -> Undisturbed:
        """The outcome of every attempt where nobody is killed."""
        began = time.monotonic()
        root = self.folder / f"reference-{device}"
        root.mkdir()
        process = _start(root, uuid.uuid4().hex, "run", "matrix", str(self._matrix()), "--device", device, "-q")
        if _ended(process) != 0:
            raise WrongError(f"an undisturbed run ended with {process.returncode}: {_said(root)}")
        folder = Store(root).latest()
        results = collect(read_plan(folder), read_records(folder)).results
        outcomes = {(r.key, r.device, record.replicate): record.outcome for r in results for record in r.records}
        return Undisturbed(outcomes, time.monotonic() - began)

    def _matrix(self) -> Path:
        file = self.folder / "torture.yaml"
        file.write_text(MATRIX)
        return file


@dataclass(slots=True)
class _Run:
    """One run and the commands that it takes."""

    torture: Torture
    store: Store
    device: str
    rng: Random
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    run: str | None = None
    before: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.before = frozenset(self.store.runs())

    @property
    def tally(self) -> Tally:
        return self.torture.tally

    def make_whole(self) -> RunFolder:
        """Begin, be killed, go on; the folder when there is nothing left to be done."""
        kills = self.rng.randint(8, 30)
        for _ in range(MOST_SITTINGS):
            words = ("--resume", self.run) if self.run else (str(self.torture._matrix()), "--device", self.device)
            process = _start(self.store.root, self.mark, "run", "matrix", *words)
            self.tally.sittings += 1
            done, left = self._torment(process, kills)
            kills -= done
            code = _ended(process)
            self._find_run()
            self.tally.unkept += self.run is None
            if left:
                self._after_a_kill()
            elif code != 0:
                raise WrongError(f"a coordinator that nobody killed ended with {code}: {_said(self.store.root)}")
            elif not self._to_do():
                break
        else:
            raise WrongError(f"not complete after {MOST_SITTINGS} sittings")
        orphans = left_over(self.mark)
        if orphans:
            raise WrongError(f"{len(orphans)} processes were left over: {orphans[:3]}")
        assert self.run is not None
        return self.store.folder(self.run)

    def _torment(self, process: subprocess.Popen[bytes], kills: int) -> tuple[int, bool]:
        """Perhaps kill attempts and zygotes, and then perhaps the coordinator; how many, and whether that one."""
        if kills <= 0:
            return 0, False
        done, zygotes, early = 0, MOST_IN_A_ROW, MOST_IN_A_ROW
        size = self._journal_size()
        length = self.rng.random() * self.torture.reference[self.device].seconds
        spares_it, spares_the_others = self.rng.random() < 0.15, self.rng.random() < 0.4
        if self.rng.random() < 0.6:  # most of a sitting is its start; here the start is spared
            self._wait_for_a_record(process, size)
            length *= 0.6
        end = time.monotonic() + length
        while process.poll() is None and time.monotonic() < end and done < kills and not spares_the_others:
            time.sleep(self.rng.expovariate(1 / PAUSE_S))
            victim = Victim.ZYGOTE if self.rng.random() < 0.08 and zygotes else Victim.ATTEMPT
            is_early = self._journal_size() <= size  # a coordinator begins with cutting half a line off
            killed = (early > 0 or not is_early) and self._kill(process, victim)
            early -= killed and is_early
            zygotes -= killed and victim is Victim.ZYGOTE
            done += killed
        if spares_it or process.poll() is not None:
            return done, False
        time.sleep(max(end - time.monotonic(), 0))
        killed = process.poll() is None and self._kill(process, Victim.COORDINATOR)
        return done + killed, killed

    def _kill(self, process: subprocess.Popen[bytes], victim: Victim) -> bool:
        killed = kill(process.pid, victim, self.rng)
        self.tally.kills[victim] += killed
        return killed

    def _wait_for_a_record(self, process: subprocess.Popen[bytes], size: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while process.poll() is None and self._journal_size() <= size and time.monotonic() < deadline:
            time.sleep(0.01)

    def _journal_size(self) -> int:
        self._find_run()
        journal = self.store.folder(self.run).records if self.run else None
        return journal.stat().st_size if journal and journal.exists() else 0

    def _find_run(self) -> None:
        new = set(self.store.runs()) - self.before
        if len(new) > 1:
            raise WrongError(f"one run became several: {sorted(new)}")
        self.run = next(iter(new), None)

    def _after_a_kill(self) -> None:
        """Perhaps cut the journal as a power loss would; whatever is left has to be readable."""
        if self.run is None:
            return
        folder = self.store.folder(self.run)
        if self.rng.random() < 0.7:
            self._cut(folder.records)
        try:
            records = read_records(folder)
            read_plan(folder)
        except HarnessError as error:
            raise WrongError(f"after a kill the journal cannot be read: {error}") from error
        if any(record.run != self.run for record in records):
            raise WrongError("a record of another run is in the journal")
        if self.rng.random() < 0.2:
            self._sync_something()

    def _sync_something(self) -> None:
        """Another command opens the store before the run goes on: it closes there what was left open."""
        process = _start(self.store.root, self.mark, "sync", self.rng.choice(self.store.runs()))
        self.tally.syncs += 1
        if _ended(process) != 0:
            raise WrongError(f"a sync ended with {process.returncode}: {_said(self.store.root)}")

    def _cut(self, journal: Path) -> None:
        content = journal.read_bytes() if journal.exists() else b""
        if not content:
            return
        start = content.rstrip(b"\n").rfind(b"\n") + 1
        size = self.rng.randint(start, len(content))
        with journal.open("r+b") as stream:
            stream.truncate(size)
        self.tally.cut += 1
        self.tally.torn += start < size < len(content) - 1

    def _to_do(self) -> bool:
        """Whether a resume would still make an attempt: one that was killed counts as crashed, and is made again."""
        if self.run is None:
            raise WrongError("a run that ended well is not in the store")
        folder = self.store.folder(self.run)
        collection = collect(read_plan(folder), read_records(folder))
        outcomes = {record.outcome for result in collection.results for record in result.records}
        if not collection.complete:
            raise WrongError("a run that ended well lacks records")
        return Outcome.CRASH in outcomes


def _start(root: Path, mark: str, *words: str) -> subprocess.Popen[bytes]:
    with (root / "said.txt").open("ab") as said:
        return subprocess.Popen(
            [HARNESS, *words],
            cwd=root,
            env=environment({MARK: mark}),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )


def _ended(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired as error:
        process.kill()
        process.wait()
        raise WrongError(f"a coordinator did not end within {PATIENCE_S:.0f} s") from error


def _closed(root: Path) -> int:
    """How many runs the commands in this store have said to have closed in MLflow."""
    said = root / "said.txt"
    return said.read_text(errors="replace").count("MLflow still showed run") if said.exists() else 0


def _said(root: Path) -> str:
    return (root / "said.txt").read_text(errors="replace")[-2000:]
