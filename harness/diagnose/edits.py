"""Changes of a source file that a person, or a program, can make line by line."""

from __future__ import annotations

import io
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

_STEP = "    "


class EditAction(StrEnum):
    """What an edit does with the lines that it names."""

    INSERT_BEFORE = "insert-before"
    INSERT_AFTER = "insert-after"
    REPLACE = "replace"
    WRAP = "wrap"


@dataclass(frozen=True, slots=True)
class Edit:
    """One change: ``code``, which has no indentation of its own, goes to ``line`` (counted from 1), indented as it is.

    ``end_line`` is the last line that is replaced or wrapped; ``end`` stands after what is wrapped.
    """

    file: str
    line: int
    action: EditAction
    code: str
    end_line: int | None = None
    end: str | None = None

    @property
    def last(self) -> int:
        """The last line that is replaced, wrapped, or stands beside what is inserted."""
        return self.end_line or self.line


_EDIT: TypeAdapter[Edit] = TypeAdapter(Edit)


def apply(edits: Iterable[Edit | Mapping[str, Any]]) -> dict[str, str]:
    """The text of each file as the edits, also those of a diagnosis' JSON, change it; nothing is written.

    Raises:
        ValueError: what is no edit, or one of lines that its file does not have.
        OSError, UnicodeDecodeError: a file cannot be read.
    """
    by_file: dict[str, list[Edit]] = defaultdict(list)
    for edit in dict.fromkeys(map(_edit, edits)):  # two findings may ask for the same
        by_file[edit.file].append(edit)
    return {file: apply_to(read(Path(file)), changes) for file, changes in by_file.items()}


def _edit(given: Edit | Mapping[str, Any]) -> Edit:
    if isinstance(given, Edit):
        return given
    try:
        return _EDIT.validate_python(given)
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg']}" for one in error.errors())
        raise ValueError(f"{given!r} is no edit of a diagnosis: {wrong}") from None


def read(path: Path) -> str:
    """The text of a Python file, decoded as it declares, with its own line ends."""
    content = path.read_bytes()
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    return content.decode(encoding)


def apply_to(text: str, edits: Iterable[Edit]) -> str:
    """``text`` as the edits change it, made from the last line to the first.

    Raises:
        ValueError: an edit of lines that ``text`` does not have.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines()
    inside = _inside_strings(text)
    for edit in sorted(edits, key=lambda edit: (edit.line, edit.last), reverse=True):
        first, last = edit.line - 1, edit.last
        if not 0 <= first < last <= len(lines):
            raise ValueError(f"{edit.file} has {len(lines)} lines, and an edit is of lines {edit.line} to {last}")
        before, covered, after = lines[:first], lines[first:last], lines[last:]
        code = _indented(edit.code, lines[first])
        match edit.action:
            case EditAction.INSERT_BEFORE:
                lines = [*before, *code, *covered, *after]
            case EditAction.INSERT_AFTER:
                lines = [*before, *covered, *code, *after]
            case EditAction.REPLACE:
                lines = [*before, *code, *after]
            case EditAction.WRAP:
                deeper = [
                    line if edit.line + place in inside or not line else _step(lines[first]) + line
                    for place, line in enumerate(covered)
                ]
                lines = [*before, *code, *deeper, *_indented(edit.end or "", covered[0]), *after]
    return newline.join(lines) + (newline if text.endswith("\n") else "")


def _indented(code: str, like: str) -> list[str]:
    space = like[: len(like) - len(like.lstrip())]
    return [space + line for line in code.splitlines()]


def _step(like: str) -> str:
    return "\t" if like.startswith("\t") else _STEP


def _inside_strings(text: str) -> set[int]:
    """The lines that begin inside a string: indenting them would change what the program says."""
    found: set[int] = set()
    starts: list[int] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            kind = tokenize.tok_name[token.type]
            if kind == "STRING":
                found.update(range(token.start[0] + 1, token.end[0] + 1))
            elif kind in ("FSTRING_START", "TSTRING_START"):
                starts.append(token.start[0])
            elif kind in ("FSTRING_END", "TSTRING_END"):
                found.update(range(starts.pop() + 1, token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError):
        return found
    return found
