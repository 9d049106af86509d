"""The journal of one run: its plan, written whole, and its records, appended one line each. It is the truth.

A record is appended, flushed and fsynced before anything else learns of it. What a power loss or a kill can do to the
file is one unfinished last line: readers leave it out, and the next coordinator cuts it off before it appends.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from filelock import FileLock, Timeout

from harness.errors import JournalError, RunBusyError, RunNotFoundError, StoreError
from harness.files import explained, new_folder, remove_drafts, store_error, sync_folder, write_whole
from harness.model import Plan, Record
from harness.store.layout import RunFolder
from harness.store.planned import planning
from harness.wire import NewerSchemaError, dump, load

_TAIL_STEP = 1 << 16

_NO_PLAN = "Restore plan.json from a copy, or start a new run; the records have a file of their own, records.jsonl."
_NO_LINE = "Restore the file from a copy, or start a new run; the other lines are untouched."

_LOOK = "harness report"
_PATIENCE_S = 0.5
"""Whoever only looks whether a run is being run holds its lock for an instant; that must refuse nobody."""


def read_plan(folder: RunFolder) -> Plan:
    """The plan of a run.

    Raises:
        RunNotFoundError: the folder has neither plan nor records.
        JournalError: the plan is damaged or was written by a newer harness, or is missing where there are records.
    """
    with explained(f"read {folder.plan}"):
        try:
            text = folder.plan.read_bytes()
        except FileNotFoundError as error:
            if folder.records.exists():
                raise JournalError(f"run {folder.run} has records, but its plan.json is missing", _NO_PLAN) from error
            raise RunNotFoundError(f"run {folder.run} has no plan.json", f"Look in {folder.path}.") from error
    try:
        return planning(load(Plan, text))
    except JournalError as error:
        raise _located(error, str(folder.plan), _NO_PLAN) from error


def read_records(folder: RunFolder) -> tuple[Record, ...]:
    """All records of a run, in the order they were made; an unfinished last line is left out.

    May be called while a coordinator is appending.

    Raises:
        JournalError: a line other than an unfinished last one is damaged, or was written by a newer harness.
    """
    with explained(f"read {folder.records}"):
        try:
            content = folder.records.read_bytes()
        except FileNotFoundError:
            return ()
    lines = content.split(b"\n")
    unfinished = lines.pop()
    records = [_read_line(line, folder.records, number) for number, line in enumerate(lines, start=1)]
    if _is_whole(unfinished):
        records.append(load(Record, unfinished))
    return tuple(records)


def _read_line(line: bytes, path: Path, number: int) -> Record:
    try:
        return load(Record, line)
    except JournalError as error:
        raise _located(error, f"{path}, line {number}", _NO_LINE) from error


def _located(error: JournalError, where: str, advice: str) -> JournalError:
    return type(error)(f"{where}: {error}", error.advice or advice)


def _is_whole(line: bytes) -> bool:
    """Whether a last line that lacks its newline is a record all the same.

    No beginning of a JSON object is a JSON object, so only the newline can be missing then.

    Raises:
        NewerSchemaError: it is whole, and newer than this harness.
    """
    try:
        load(Record, line)
    except NewerSchemaError:
        raise
    except JournalError:
        return False
    return True


class Journal:
    """The writing end of one run's journal. Holding one means being the run's only coordinator.

    Make one with ``create`` or ``resume``; use it as a context manager, or ``close`` it.
    """

    def __init__(self, folder: RunFolder, lock: FileLock) -> None:
        """Take over ``lock`` and open the records. Use ``create`` or ``resume`` instead."""
        self.folder = folder
        self._lock = lock
        with explained(f"write {folder.records}"):
            self._descriptor = os.open(folder.records, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            with explained(f"write {folder.records}"):
                self._end = _repaired_end(self._descriptor)
        except BaseException:
            os.close(self._descriptor)
            raise
        sync_folder(folder.path)

    @classmethod
    def create(cls, folder: RunFolder, plan: Plan) -> Journal:
        """Start the run's folder with its plan and an empty journal.

        Raises:
            StoreError: the folder exists or cannot be written; nothing is left half-written.
        """
        with new_folder(folder.path), _coordinator(folder) as lock:
            write_whole(folder.plan, dump(plan) + "\n")
            return cls(folder, lock)

    @classmethod
    def resume(cls, folder: RunFolder, look: str = _LOOK) -> Journal:
        """Go on with a run: an unfinished last line is cut off, so that the next record starts a line of its own.

        Whoever is refused is told to type ``look`` to see what the run has so far.

        Raises:
            RunNotFoundError: the folder has no plan.
            RunBusyError: another coordinator is at work on it.
            StoreError: it cannot be written.
            JournalError: the plan or the journal is damaged or newer than this harness.
        """
        read_plan(folder)
        with _coordinator(folder, look) as lock:
            read_records(folder)
            journal = cls(folder, lock)
        remove_drafts(folder.path)
        return journal

    def append(self, record: Record) -> None:
        """Keep ``record``; when this returns it survives a power loss.

        Raises:
            StoreError: it cannot be written; the records before it are intact, and a later append may succeed.
        """
        line = dump(record).encode() + b"\n"
        self._refuse_foreign_changes()
        try:
            _write_at(self._descriptor, line, self._end)
            os.fsync(self._descriptor)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._end)
            raise store_error(f"write {self.folder.records}", error) from error
        self._end += len(line)
        if os.fstat(self._descriptor).st_nlink == 0:
            raise StoreError(
                f"{self.folder.records} was deleted while the run was writing to it",
                "Start a new run; leave its folder alone until it has ended.",
            )

    def _refuse_foreign_changes(self) -> None:
        """Nobody but this coordinator writes here; a record after somebody else's change would be lost with it."""
        size = os.fstat(self._descriptor).st_size
        if size != self._end:
            raise StoreError(
                f"{self.folder.records} was changed while the run was writing to it: "
                f"it has {size} bytes, and {self._end} were written",
                "Start a new run; leave its folder alone until it has ended.",
            )

    def close(self) -> None:
        """Let another coordinator take the run."""
        if self._lock.is_locked:
            os.close(self._descriptor)
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def _coordinator(folder: RunFolder, look: str = _LOOK) -> Iterator[FileLock]:
    """Hold the run's lock; it is kept if the block succeeds and released if it fails.

    The system releases it when the process dies, however it dies.
    """
    lock = FileLock(folder.lock, thread_local=False)
    try:
        lock.acquire(timeout=_PATIENCE_S, poll_interval=0.02)
    except Timeout as error:
        raise RunBusyError(
            f"another harness process is working on run {folder.run}",
            f"Wait until it has ended or stop it; to look at what it has so far, use `{look}`.",
        ) from error
    except NotImplementedError as error:
        raise StoreError(
            f"the file system of {folder.path} has no file locks", "Choose a local folder with --store DIR."
        ) from error
    except OSError as error:
        raise store_error(f"lock {folder.lock}", error) from error
    try:
        yield lock
    except BaseException:
        lock.release()
        raise


@contextmanager
def held(folder: RunFolder, look: str = _LOOK) -> Iterator[None]:
    """Keep coordinators away from the run while the block looks at it, as far as the file system lets anybody.

    ``look`` is as in ``Journal.resume``.

    Raises:
        RunBusyError: one is at work on it.
    """
    try:
        with _coordinator(folder, look) as lock:
            pass
    except RunBusyError:
        raise
    except StoreError:  # a folder that nobody may write to has no coordinator either
        yield
        return
    try:
        yield
    finally:
        lock.release()


def is_being_run(folder: RunFolder) -> bool:
    """Whether a coordinator, in this process or another, is at work on the run."""
    if not folder.lock.exists():
        return False
    lock = FileLock(folder.lock, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except (Timeout, NotImplementedError):
        return True
    except OSError:
        return _is_locked(folder.lock)
    lock.release()
    return False


def _is_locked(file: Path) -> bool:
    """Whether somebody holds a lock on a file that we may only read, as on a read-only file system."""
    try:
        with file.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def _write_at(descriptor: int, data: bytes, offset: int) -> None:
    """Write all of ``data``; a short write (a disk nearly full) is followed by one that says why."""
    done = 0
    while done < len(data):
        done += os.pwrite(descriptor, data[done:], offset + done)


def _repaired_end(descriptor: int) -> int:
    """Give a whole last line its newline, cut an unfinished one off; the file's size in bytes after that."""
    size = os.fstat(descriptor).st_size
    start = _start_of_last_line(descriptor, size)
    if start == size:
        return size
    if _is_whole(os.pread(descriptor, size - start, start)):
        _write_at(descriptor, b"\n", size)
        end = size + 1
    else:
        os.ftruncate(descriptor, start)
        end = start
    os.fsync(descriptor)
    return end


def _start_of_last_line(descriptor: int, size: int) -> int:
    """Where the text after the last newline begins; ``size`` if the file ends with one or is empty."""
    position = size
    while position > 0:
        step = min(_TAIL_STEP, position)
        position -= step
        found = os.pread(descriptor, step, position).rfind(b"\n")
        if found >= 0:
            return position + found + 1
    return 0
