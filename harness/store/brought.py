"""Runs by name or by path: those of the store, and those that were brought from another machine.

What is brought is a run's folder, or one file: the plan's line, then the journal's, gzipped or not. So a reference is
made with ``cat plan.json records.jsonl | gzip > reference.jsonl.gz``.
"""

from __future__ import annotations

import gzip
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from harness.errors import JournalError, RunNotFoundError, UsageError
from harness.files import explained
from harness.model import Plan, Record
from harness.store.journal import read_plan, read_records
from harness.store.layout import LATEST, RunFolder, Store, shown
from harness.store.planned import planning
from harness.wire import NewerSchemaError, load

T = TypeVar("T", Plan, Record)

_GZIP = b"\x1f\x8b"
_HOW = "A reference is made with `cat plan.json records.jsonl | gzip > reference.jsonl.gz` in a run's folder."


def read_run(store: Store, text: str) -> tuple[Plan, tuple[Record, ...]]:
    """Plan and records of the run that ``text`` names: what ``Store.find`` knows, or the path of one.

    Raises:
        RunNotFoundError: there is no such run.
        UsageError: the path leads to something else.
        JournalError: the run is damaged, or was written by a newer harness.
    """
    path = _path(text)
    if text == LATEST or text in store.runs() or not _is_path(text, path):
        folder = store.find(text)
        return read_plan(folder), read_records(folder)
    if path.name in ("plan.json", "records.jsonl"):
        path = path.parent
    if path.is_dir():
        folder = RunFolder(path)
        return read_plan(folder), read_records(folder)
    if not path.exists():
        raise RunNotFoundError(f"there is no {text}", "Name a run, a run's folder, or a reference file.")
    if not path.is_file():  # a pipe would be waited for, and /dev/zero has no end
        raise UsageError(f"{path} is no file", _HOW)
    return _read_reference(path)


def _path(text: str) -> Path:
    """``text`` as a path that the system can be asked about."""
    try:
        path = Path(text).expanduser()
        path.exists()
    except (OSError, ValueError, RuntimeError) as error:  # too long, a null byte, nobody's home
        raise RunNotFoundError(
            f"there is no run {shown(text)}", "Name a run, a run's folder, or a reference file."
        ) from error
    return path


def _is_path(text: str, path: Path) -> bool:
    """Whether a path is meant: it looks like one, or there is a run or a file there."""
    return "/" in text or text.startswith((".", "~")) or path.is_file() or (path / "plan.json").exists()


def _read_reference(path: Path) -> tuple[Plan, tuple[Record, ...]]:
    """As the journal does, it leaves out an unfinished last line."""
    first, _, rest = _content(path).partition(b"\n")
    if not first.strip():
        raise UsageError(f"{path} is no run: it is empty, or begins with an empty line", _HOW)
    plan = _line(Plan, first, path, 1)
    *lines, unfinished = rest.split(b"\n")
    records = [_line(Record, line, path, number) for number, line in enumerate(lines, start=2)]
    with suppress(UsageError):
        records.append(_line(Record, unfinished, path, len(lines) + 2))
    return plan, tuple(records)


def _content(path: Path) -> bytes:
    with explained(f"read {path}"):
        content = path.read_bytes()
        if not content.startswith(_GZIP):
            return content
        try:
            return gzip.decompress(content)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise UsageError(f"{path} is a damaged gzip file", "Copy it anew, in binary mode.") from error


def _line(kind: type[T], line: bytes, path: Path, number: int) -> T:
    try:
        return _checked(load(kind, line))
    except NewerSchemaError as error:
        raise NewerSchemaError(f"{path}, line {number}: {error}", error.advice) from error
    except JournalError as error:
        raise UsageError(f"{path} is no run: line {number} is {error}", _HOW) from error


def _checked(thing: T) -> T:
    if isinstance(thing, Plan):
        planning(thing)
    return thing
