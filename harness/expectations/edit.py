"""Edits the text of a file of expectations, and only where something changes: comments and layout are a person's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from harness.expectations.box import Box
from harness.expectations.document import Expectations, ExpectationsFileError
from harness.model import Device, Value

WIDTH = 116

Piece = tuple[int, int, str]
"""From where to where the text is replaced, and by what."""

_ANCHOR = re.compile(r"(^|[\s{\[,])&\S")
_TRAILING = re.compile(r"(\s|\n[ \t]*#[^\n]*)*\Z")


@dataclass(frozen=True, slots=True)
class NewRule:
    """What a rule is to say."""

    devices: tuple[Device, ...]
    match: Box
    expect: Mapping[str, Value]
    reason: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A rule in front of the one at ``position``, or at the end where that is None, or in its place."""

    position: int | None
    rule: NewRule
    replaces: bool = False


def apply(expectations: Expectations, edits: Sequence[Edit]) -> str:
    """The text of the file after ``edits``.

    Raises:
        ExpectationsFileError: its rules are not a block list, in which each begins a line of its own.
    """
    text = expectations.text
    newline = "\r\n" if "\r\n" in text else "\n"
    last = [edit.rule for edit in edits if edit.position is None]
    pieces = [piece for edit in edits if edit.position is not None for piece in _pieces(expectations, edit)]
    pieces += [_at_the_end(expectations, last)] if last else []
    for start, end, new in sorted(pieces, key=lambda piece: piece[:2], reverse=True):
        text = text[:start] + new.replace("\n", newline) + text[end:]
    return text


def _pieces(expectations: Expectations, edit: Edit) -> list[Piece]:
    return (edit.replaces and _in_place(expectations, edit)) or [_in_front(expectations, edit)]


def _in_front(expectations: Expectations, edit: Edit) -> Piece:
    """In front of a rule and of the comment that stands directly above it."""
    assert edit.position is not None
    begin, indent = _line_of(expectations, edit.position)
    lines = expectations.text[:begin].splitlines(keepends=True)
    while lines and lines[-1].lstrip().startswith("#"):
        begin -= len(lines.pop())
    return begin, begin, f"{_rendered(edit.rule, indent)}\n\n"


def _at_the_end(expectations: Expectations, rules: Sequence[NewRule]) -> Piece:
    whole = expectations.node
    if not whole.value:  # `rules: []`
        new = "\n\n".join(_rendered(rule, "  ") for rule in rules)
        return len(expectations.text[: whole.start_mark.index].rstrip(" ")), whole.end_mark.index, f"\n{new}"
    _, indent = _line_of(expectations, -1)
    end = _trimmed(expectations.text, whole.value[-1].start_mark.index, whole.end_mark.index)
    return end, end, "".join(f"\n\n{_rendered(rule, indent)}" for rule in rules)


def _in_place(expectations: Expectations, edit: Edit) -> list[Piece]:
    """What a rule expects, and why, replaced where it stands; nothing where other parts of the file refer to it."""
    assert edit.position is not None
    _, indent = _line_of(expectations, edit.position)
    pieces: list[Piece] = []
    new = {"expect": _expect(edit.rule, indent), "reason": _reason(edit.rule)}
    for key, value in expectations.node.value[edit.position].value:
        if key.value in new:
            start = key.end_mark.index + 1
            if value.start_mark.index < start:  # an alias: its text stands elsewhere
                return []
            end = _trimmed(expectations.text, start, value.end_mark.index)
            if _ANCHOR.search(expectations.text[start:end]):
                return []
            pieces.append((start, end, new[key.value].partition(":")[2]))
    return pieces


def _line_of(expectations: Expectations, position: int) -> tuple[int, str]:
    """Where the line on which a rule begins begins, and what stands in front of its dash.

    Raises:
        ExpectationsFileError: more than a dash stands in front of the rule.
    """
    start = expectations.node.value[position].start_mark
    begin = start.index - start.column
    dash = re.fullmatch(r"(\s*)-\s+", expectations.text[begin : start.index])
    if dash is None:
        raise ExpectationsFileError(
            f"{expectations.source}, line {start.line + 1}: rules can be added only to a list with one dash a rule",
            "Write `rules:` as a list whose entries begin with `- devices:`.",
        )
    return begin, dash[1]


def _trimmed(text: str, start: int, end: int) -> int:
    """``end`` moved back over the white space and comments that a YAML node takes along, but never before ``start``."""
    found = _TRAILING.search(text[start:end])
    return start + found.start() if found else end


def _rendered(rule: NewRule, indent: str) -> str:
    """The rule as an entry of the list, without a newline at its end."""
    parts = [f"devices: [{', '.join(rule.devices)}]"]
    if rule.match:
        allowed = {axis: values[0] if len(values) == 1 else list(values) for axis, values in rule.match.items()}
        parts.append(_mapping("match", allowed, indent))
    return f"{indent}- " + f"\n{indent}  ".join([*parts, _expect(rule, indent), _reason(rule)])


def _expect(rule: NewRule, indent: str) -> str:
    return _mapping("expect", rule.expect, indent)


def _reason(rule: NewRule) -> str:
    return f"reason: {_value(rule.reason)}"


def _mapping(key: str, values: Mapping[str, Any], indent: str) -> str:
    """``key: {...}`` on one line if that is not too long, else one line per value."""
    line = f"{key}: {_value(values)}"
    if len(indent) + 2 + len(line) <= WIDTH:
        return line
    return "\n".join([f"{key}:", *(f"{indent}    {name}: {_value(value)}" for name, value in values.items())])


def _value(value: Any) -> str:
    """``value`` as YAML writes it inside a list in brackets: on one line, quoted where it has to be."""
    dumped = yaml.safe_dump([value], default_flow_style=True, sort_keys=False, width=10**9, allow_unicode=True)
    return dumped.strip()[1:-1]
