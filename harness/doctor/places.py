"""Where a run writes: the store, temporary files, shared memory; and whether MLflow answers."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from harness.doctor.asking import ask_process
from harness.doctor.facts import Fact, State, absent, size_words, warning
from harness.errors import HarnessError
from harness.files import os_words
from harness.quoting import one_line, public
from harness.store.connection import check_tracking, sqlite_file
from harness.store.layout import Store

LITTLE_DISK = 1 << 30
"""A run of a thousand variants takes some 10 MB; what fills a disk is others, and the stub's build needs room too."""
FEW_INODES = 1000
LITTLE_SHARED_MEMORY = 128 << 20
"""A container gets 64 MiB if nobody asks for more."""

TRACKING_LIMIT_S = 30.0
"""Importing MLflow takes seconds on a slow machine, before anything is asked."""


def store_facts(store: Store) -> Iterator[Fact]:
    """Whether runs can be kept in the store, and how much space it has."""
    root = store.root.absolute()
    there = existing(store.runs_folder)
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(b"whether this can be written")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        advice = "Choose a folder that you may write to with --store DIR (or HARNESS_STORE)."
        yield warning("store", f"{root}: cannot write to {there}: {os_words(error)}", advice)
    else:
        runs = store.runs()
        kept = f"{len(runs)} run{'' if len(runs) == 1 else 's'}" if runs else "no runs yet"
        yield Fact("store", f"{root}, writable, {kept}", value=str(root))
    yield from _space("disk of the store", there)


def temporary_facts() -> Iterator[Fact]:
    """The folder for temporary files; each attempt has its whereabouts in a small one."""
    try:
        folder = Path(tempfile.gettempdir())
        with tempfile.TemporaryFile() as file:
            file.write(b"whether this can be written")
    except OSError as error:
        yield warning("temporary files", os_words(error), "Point TMPDIR at a folder that you may write to.")
        return
    wanted = os.environ.get("TMPDIR")
    if wanted and Path(wanted).absolute() != folder.absolute():
        yield warning("TMPDIR", f"{wanted} cannot be written to", f"{folder} is used instead; free or unset it.")
    yield from _space("temporary files", folder, shown=f"{folder}, ")


def _space(name: str, folder: Path, shown: str = "") -> Iterator[Fact]:
    try:
        usage, inodes = shutil.disk_usage(folder), os.statvfs(folder)
    except OSError as error:
        yield absent(name, f"{folder}: {os_words(error)}")
        return
    if not usage.total:  # /proc and the like
        yield absent(name, f"{shown}the file system does not say")
        return
    text = f"{shown}{size_words(usage.free)} of {size_words(usage.total)} free"
    if usage.free < LITTLE_DISK:
        yield warning(name, text, "Free some space: a run stops where its journal cannot be written.", usage.free)
    elif inodes.f_files and inodes.f_favail < FEW_INODES:
        yield warning(name, f"{text}, room for {inodes.f_favail} more files", "Remove files nobody needs.", usage.free)
    else:
        yield Fact(name, text, value=usage.free)


def shared_memory_facts(folder: Path = Path("/dev/shm")) -> Iterator[Fact]:
    """``/dev/shm``, through which PyTorch's data loaders hand over batches."""
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        yield absent("/dev/shm")
        return
    text = f"{size_words(usage.free)} of {size_words(usage.total)} free"
    if usage.free < LITTLE_SHARED_MEMORY:
        advice = "Data loaders with workers die of a bus error on little; give a container more with --shm-size=1g."
        yield warning("/dev/shm", text, advice, usage.free)
    else:
        yield Fact("/dev/shm", text, value=usage.free)


def existing(folder: Path) -> Path:
    """``folder``, or the nearest above it that exists.

    What cannot even be looked at counts as there: whoever then writes to it is told why.
    """
    return next(place for place in (folder, *folder.parents) if not _is_absent(place))


def _is_absent(path: Path) -> bool:
    """``Path.exists`` raises for what it may not see, or for a name that is too long."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def tracking_facts(store: Store, limit_s: float = TRACKING_LIMIT_S) -> Iterator[Fact]:
    """Whether MLflow answers at the tracking URI in force. Nothing is made: a store that is not there stays so."""
    name, uri = "MLflow's store", public(store.uri)
    try:
        check_tracking(store)
        database = sqlite_file(store.uri)
        fact = None if database is None else _database_fact(database)
    except HarnessError as error:
        fact = warning(name, one_line(str(error), 400), error.advice)
    except OSError as error:
        words = f"{store.root} cannot be looked at: {os_words(error)}"
        fact = warning(name, words, "Choose another place with --store DIR.")
    if fact is not None:
        yield fact
        return
    answer = ask_process([sys.executable, "-P", "-m", "harness.store.reach"], json.dumps(store.uri), limit_s)
    yield _reached(name, uri, answer, limit_s)


def _database_fact(database: Path) -> Fact | None:
    """What is wrong with MLflow's SQLite file, or that it is not there; None where MLflow itself is to be asked.

    Raises:
        OSError: it cannot be looked at.
    """
    name = "MLflow's store"
    try:
        database.stat()
    except (FileNotFoundError, NotADirectoryError):
        return absent(name, f"{database} is made by the first run")
    try:
        with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True, timeout=5)) as connection:
            found = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
    except sqlite3.Error as error:
        return warning(name, *_closed(database, error))
    if not found[0]:
        return absent(name, f"{database} is there and has nothing of MLflow's in it; the first run fills it")
    if not os.access(database, os.W_OK):
        return warning(name, f"{database} is read-only", "Make it writable, or run with --no-tracking.")
    return None


def _closed(database: Path, error: sqlite3.Error) -> tuple[str, str]:
    """Why the file does not open, and what to do. What is damaged is no ``OperationalError``; what is, may be sound."""
    if not isinstance(error, sqlite3.OperationalError):
        advice = "Restore it from a copy, or move it away: `harness sync` writes every run anew from its journal."
        return f"{database} does not open: {error}", advice
    if not os.access(database, os.R_OK):
        return f"{database} is not yours to read", "Make it readable and writable, or run with --no-tracking."
    if not os.access(database.parent, os.W_OK):  # in WAL mode SQLite has to make its log there, even to read
        return f"{database} is in a folder that is read-only", "Make the folder writable, or run with --no-tracking."
    advice = "Is another program at work on it? Runs can do without (--no-tracking); `harness sync` writes them later."
    return f"{database} cannot be opened now: {error}", advice


def _reached(name: str, uri: str, answer: str | None, limit_s: float) -> Fact:
    advice = "Runs can do without (--no-tracking); `harness sync` writes them there later."
    if answer is None:
        return warning(name, f"{uri}: no answer within {limit_s:g} s", advice)
    try:
        said = json.loads(answer.splitlines()[-1])
    except (ValueError, IndexError):
        return warning(name, f"{uri}: MLflow died over the question", advice)
    if said["error"]:
        return warning(name, one_line(said["error"], 400), said["advice"] or advice)
    return Fact(name, f"{uri} answers", State.OK)
