"""Orders, records and plans <-> JSON, and the breadcrumb. The only thing that coordinator and workers share.

One object is one line. Each carries its ``schema``; a reader refuses what is newer than it knows and says so, since
guessing at a newer record would invent evidence.

History:

- order 1, record 1, plan 1: the first.
- order 2, plan 2: settings have ``timed_blocks`` and ``block_ms``; record 2: samples have their parts and the machine's
  state, records their exactness. What was written before is read with these absent.
- order 3, record 3: both say which ``sitting`` of the run they belong to; a timeout has ``deadline_s`` and
  ``silent_s``. What was written before belongs to the first sitting, and says of no timeout whether it hung.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from mmap import mmap
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from harness.errors import JournalError
from harness.model import Order, Phase, Plan, Record

ORDER_SCHEMA = 3
RECORD_SCHEMA = 3
PLAN_SCHEMA = 2

_NEWEST: dict[type, int] = {Order: ORDER_SCHEMA, Record: RECORD_SCHEMA, Plan: PLAN_SCHEMA}
_ADAPTERS: dict[type, TypeAdapter[Any]] = {kind: TypeAdapter(kind) for kind in _NEWEST}
_ANY_OBJECT: TypeAdapter[Mapping[str, Any]] = TypeAdapter(Mapping[str, Any])
_NOUNS: dict[type, str] = {Order: "an order", Record: "a record", Plan: "a plan"}

T = TypeVar("T", Order, Record, Plan)


class NewerSchemaError(JournalError):
    """The line was written by a newer harness."""


def dump(thing: Order | Record | Plan) -> str:
    """``thing`` as one line of JSON, without a newline; absent fields are left out.

    Half of a surrogate pair, as file names and damaged text hold them, is written as ``\\udc80`` in plain letters.
    """
    adapter = _ADAPTERS[type(thing)]
    try:
        return adapter.dump_json(thing, exclude_none=True).decode()
    except PydanticSerializationError:
        return adapter.dump_json(_encodable(thing), exclude_none=True).decode()


def _encodable(value: Any) -> Any:
    match value:
        case Enum():
            return value
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case Mapping():
            return {_encodable(key): _encodable(item) for key, item in value.items()}
        case list() | tuple():
            return type(value)(map(_encodable, value))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _encodable(getattr(value, field.name)) for field in fields(value)})
    return value


def load(kind: type[T], line: str | bytes) -> T:
    """Read back what ``dump`` wrote.

    Raises:
        NewerSchemaError: the line has a schema that this version does not know.
        JournalError: the line is not JSON, or not a ``kind``.
    """
    noun = _NOUNS[kind]
    try:
        # In the strict sense: a schema that is no integer is nothing that any version wrote.
        schema = _ANY_OBJECT.validate_json(line).get("schema", 1)
        if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
            raise JournalError(f"not {noun}: its schema is {str(schema)[:20]!r}")
        if schema > _NEWEST[kind]:
            raise NewerSchemaError(
                f"this is {noun} of schema {schema}, newer than the {_NEWEST[kind]} that this harness reads",
                "Upgrade harness to read it.",
            )
        thing: T = _ADAPTERS[kind].validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the line"
        raise JournalError(f"not {noun}: {where}: {first['msg']}") from error
    return thing


_CRUMB = struct.Struct("<QIIB")
_PHASES = tuple(Phase)
_PLACES = {phase: place for place, phase in enumerate(_PHASES)}
BREADCRUMB_SIZE = _CRUMB.size


@dataclass(slots=True)
class Breadcrumb:
    """Where an attempt is, in a few bytes of shared memory.

    The worker writes it without a system call, so it costs a timed step nothing; the supervisor can read it even
    after the worker was killed. ``beats`` counts the writes: one that stands still belongs to a hung attempt.
    """

    memory: mmap | bytearray
    beats: int = 0

    def drop(self, phase: Phase, epoch: int = 0, step: int = 0) -> None:
        """Say that ``phase`` begins, in this epoch and step (both from 1; 0 is none)."""
        self.beats += 1
        _CRUMB.pack_into(self.memory, 0, self.beats, epoch, step, _PLACES[phase])

    def read(self) -> tuple[int, Phase | None, int | None, int | None]:
        """Beats, phase, epoch and step; without a beat the rest is None."""
        beats, epoch, step, phase = _CRUMB.unpack_from(self.memory, 0)
        if not beats or phase >= len(_PHASES):
            return 0, None, None, None
        return beats, _PHASES[phase], epoch or None, step or None
