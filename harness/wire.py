"""Orders, records and plans <-> JSON. The only thing that the coordinating process and its workers share.

One object is one line. Each carries its ``schema``; a reader refuses what is newer than it knows and says so, since
guessing at a newer record would invent evidence.

History: order 1, record 1, plan 1 - the first.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from harness.errors import JournalError
from harness.model import Order, Plan, Record

ORDER_SCHEMA = 1
RECORD_SCHEMA = 1
PLAN_SCHEMA = 1

_NEWEST: dict[type, int] = {Order: ORDER_SCHEMA, Record: RECORD_SCHEMA, Plan: PLAN_SCHEMA}

T = TypeVar("T", Order, Record, Plan)


class NewerSchemaError(JournalError):
    """The line was written by a newer harness."""


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def dump(thing: Order | Record | Plan) -> str:
    """``thing`` as one line of JSON, without a newline; absent fields are left out."""
    return _adapter(type(thing)).dump_json(thing, exclude_none=True).decode()


def load(kind: type[T], line: str | bytes) -> T:
    """Read back what ``dump`` wrote.

    Raises:
        NewerSchemaError: the line has a schema that this version does not know.
        JournalError: the line is not JSON, or not a ``kind``.
    """
    noun = kind.__name__.lower()
    try:
        schema = _adapter(dict).validate_json(line).get("schema")
        if isinstance(schema, int) and schema > _NEWEST[kind]:
            raise NewerSchemaError(
                f"this {noun} has schema {schema}, newer than the {_NEWEST[kind]} that this harness reads",
                "Upgrade harness to read it.",
            )
        thing: T = _adapter(kind).validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the line"
        raise JournalError(f"not a {noun}: {where}: {first['msg']}") from error
    return thing
