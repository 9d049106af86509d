"""Orders, records and plans <-> JSON, and the breadcrumb. The only thing that coordinator and workers share.

One object is one line. Each carries its ``schema``; a reader refuses what is newer than it knows and says so, since
guessing at a newer record would invent evidence.

History: order 1, record 1, plan 1 - the first.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from mmap import mmap
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from harness.errors import JournalError
from harness.model import Order, Phase, Plan, Record

ORDER_SCHEMA = 1
RECORD_SCHEMA = 1
PLAN_SCHEMA = 1

_NEWEST: dict[type, int] = {Order: ORDER_SCHEMA, Record: RECORD_SCHEMA, Plan: PLAN_SCHEMA}
_ADAPTERS: dict[type, TypeAdapter[Any]] = {kind: TypeAdapter(kind) for kind in _NEWEST}
_ANY_OBJECT: TypeAdapter[Mapping[str, Any]] = TypeAdapter(Mapping[str, Any])

T = TypeVar("T", Order, Record, Plan)


class NewerSchemaError(JournalError):
    """The line was written by a newer harness."""


def dump(thing: Order | Record | Plan) -> str:
    """``thing`` as one line of JSON, without a newline; absent fields are left out."""
    return _ADAPTERS[type(thing)].dump_json(thing, exclude_none=True).decode()


def load(kind: type[T], line: str | bytes) -> T:
    """Read back what ``dump`` wrote.

    Raises:
        NewerSchemaError: the line has a schema that this version does not know.
        JournalError: the line is not JSON, or not a ``kind``.
    """
    noun = kind.__name__.lower()
    try:
        schema = _ANY_OBJECT.validate_json(line).get("schema")
        if isinstance(schema, int) and schema > _NEWEST[kind]:
            raise NewerSchemaError(
                f"this {noun} has schema {schema}, newer than the {_NEWEST[kind]} that this harness reads",
                "Upgrade harness to read it.",
            )
        thing: T = _ADAPTERS[kind].validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the line"
        raise JournalError(f"not a {noun}: {where}: {first['msg']}") from error
    return thing


_CRUMB = struct.Struct("<QIIB")
_PHASES = tuple(Phase)
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
        _CRUMB.pack_into(self.memory, 0, self.beats, epoch, step, _PHASES.index(phase))

    def read(self) -> tuple[int, Phase | None, int | None, int | None]:
        """Beats, phase, epoch and step; without a beat the rest is None."""
        beats, epoch, step, phase = _CRUMB.unpack_from(self.memory, 0)
        if not beats or phase >= len(_PHASES):
            return 0, None, None, None
        return beats, _PHASES[phase], epoch or None, step or None
