"""The sittings of a run, kept beside its journal: the first is in the plan, each resume adds a line."""

from __future__ import annotations

from pydantic import TypeAdapter, ValidationError

from harness.errors import JournalError
from harness.files import explained, write_whole
from harness.model import Plan
from harness.sittings import SCHEMA, Sitting, first_sitting
from harness.store.layout import RunFolder
from harness.wire import NewerSchemaError

_ADAPTER = TypeAdapter(Sitting)


def read_sittings(folder: RunFolder, plan: Plan) -> tuple[Sitting, ...]:
    """Every sitting of the run, the first one first.

    Raises:
        JournalError: a line is damaged, or was written by a newer harness.
    """
    later = (_read(line, folder, number) for number, line in enumerate(_content(folder).splitlines(), start=1))
    return (first_sitting(plan), *later)


def append_sitting(folder: RunFolder, sitting: Sitting) -> None:
    """Keep one more sitting; the file is replaced as a whole, so it never has half a line.

    Raises:
        StoreError: it cannot be written; the lines before it are intact.
    """
    write_whole(folder.sittings, _content(folder) + _ADAPTER.dump_json(sitting) + b"\n")


def _content(folder: RunFolder) -> bytes:
    with explained(f"read {folder.sittings}"):
        try:
            return folder.sittings.read_bytes()
        except FileNotFoundError:
            return b""


def _read(line: bytes, folder: RunFolder, number: int) -> Sitting:
    where = f"{folder.sittings}, line {number}"
    try:
        sitting = _ADAPTER.validate_json(line)
    except ValidationError as error:
        raise JournalError(
            f"{where}: not a sitting: {error.errors(include_url=False)[0]['msg']}",
            "Restore the file from a copy, or remove the line; the records are untouched.",
        ) from error
    if sitting.schema > SCHEMA:
        raise NewerSchemaError(f"{where}: this is a sitting of schema {sitting.schema}", "Upgrade harness to read it.")
    return sitting
