"""Files that are whole or absent, and operating system errors in one sentence."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.errors import StoreError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


def store_error(action: str, error: OSError) -> StoreError:
    """``error`` as one sentence with what to do; ``action`` reads like ``write <path>``."""
    if error.errno in _FULL:
        return StoreError(
            f"cannot {action}: the disk is full",
            "Free some space, or put the store on another disk with --store DIR; what was recorded is intact.",
        )
    if error.errno in _FORBIDDEN:
        return StoreError(
            f"cannot {action}: {os_words(error)}",
            "Choose a folder that you may write to with --store DIR (or HARNESS_STORE).",
        )
    return StoreError(f"cannot {action}: {os_words(error)}", "Check the folder, or choose another with --store DIR.")


def os_words(error: OSError) -> str:
    """What the system says; the file is for the caller to name, since it may be a temporary one."""
    return (error.strerror or str(error) or type(error).__name__).lower()


@contextmanager
def explained(action: str) -> Iterator[None]:
    """Turn an ``OSError`` of the block into a ``StoreError`` that says which ``action`` failed, and why."""
    try:
        yield
    except OSError as error:
        raise store_error(action, error) from error


def sync_folder(folder: Path) -> None:
    """Make names created in ``folder`` survive a power loss, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write ``content`` so that a reader sees the old file or the new one, never a part; returns ``path``.

    Raises:
        StoreError: the file cannot be written; nothing of it is left behind.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with explained(f"write {path}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            with draft.open("wb") as stream:
                stream.write(content.encode() if isinstance(content, str) else content)
                stream.flush()
                os.fsync(stream.fileno())
            draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
    return path


def remove_drafts(folder: Path) -> None:
    """Remove what writers of ``folder`` that were killed have left half-written. Only where nobody writes."""
    for draft in folder.glob(".*.part"):
        with suppress(OSError):
            draft.unlink()


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Create ``folder`` and the parents it lacks; if the block fails, all that was created empty is removed.

    Raises:
        StoreError: it cannot be created, or exists already.
    """
    absent = [parent for parent in folder.parents if not parent.exists()]
    with explained(f"create {folder}"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            folder.mkdir()
        except OSError:
            _remove_empty(absent)
            raise
    try:
        yield folder
    except BaseException:
        for leftover in folder.iterdir():
            with suppress(OSError):
                leftover.unlink()
        _remove_empty([folder, *absent])
        raise


def _remove_empty(folders: list[Path]) -> None:
    """Remove ``folders``, innermost first, as far as they are empty."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()
