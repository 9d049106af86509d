"""Changes of a source file that a person, or a program, can make line by line."""

from __future__ import annotations

import io
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

_STEP = "    "


class EditAction(StrEnum):
    """What an edit does with the lines that it names."""

    INSERT_BEFORE = "insert-before"
    REPLACE = "replace"
    WRAP = "wrap"


_ORDER = (EditAction.REPLACE, EditAction.WRAP, EditAction.INSERT_BEFORE)


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
        """The last line that is replaced or wrapped; of an insertion, the line that it stands before."""
        return self.end_line or self.line


_EDIT: TypeAdapter[Edit] = TypeAdapter(Edit)


def apply(edits: Iterable[Edit | Mapping[str, Any]]) -> dict[str, str]:
    """The text of each file as the edits, also those of a diagnosis' JSON, change it; nothing is written.

    Raises:
        ValueError: what is no edit, one of lines that its file does not have, or two that contradict each other.
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


def lines_of(text: str) -> list[str]:
    """The lines as Python counts them: a form feed and the like, at which ``splitlines`` splits too, end none."""
    return [line.removesuffix("\n") for line in io.StringIO(text, newline=None)]


def apply_to(text: str, edits: Iterable[Edit]) -> str:
    """``text`` as the edits change it. At one line what is there is replaced, then wrapped, then inserted before.

    Raises:
        ValueError: an edit of lines that ``text`` does not have, or two that contradict each other.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = lines_of(text)
    inside = _inside_strings(lines)
    # What has become of each line: no edit moves another's lines.
    cells = [[line] for line in lines]
    for edit in _in_order(edits, len(lines)):
        first, last = edit.line - 1, edit.last
        begins = next((cell[0] for cell in cells[first:] if cell), "")
        code = _indented(edit.code, begins)
        match edit.action:
            case EditAction.INSERT_BEFORE:
                cells[first] = [*code, *cells[first]]
            case EditAction.REPLACE:
                cells[first:last] = [code, *([] for _ in range(edit.line, last))]
            case EditAction.WRAP:
                for number in range(first, last):
                    kept = int(number + 1 in inside)
                    deeper = [_deeper(line, step_of(begins)) for line in cells[number][kept:]]
                    cells[number] = cells[number][:kept] + deeper
                cells[first] = [*code, *cells[first]]
                cells[last - 1] += _indented(edit.end or "", begins)
    return newline.join(line for cell in cells for line in cell) + (newline if text.endswith(("\n", "\r")) else "")


def _in_order(edits: Iterable[Edit], count: int) -> list[Edit]:
    """The edits of a text of ``count`` lines, inner ones before those around them."""
    ordered = sorted(edits, key=lambda edit: (_ORDER.index(edit.action), -edit.line, edit.last))
    for edit in ordered:
        if not 1 <= edit.line <= edit.last <= count:
            raise ValueError(f"{edit.file} has {count} lines, and an edit is of lines {edit.line} to {edit.last}")
    for one, other in combinations(ordered, 2):
        if contradict(one, other):
            lines = f"lines {one.line} to {one.last} and {other.line} to {other.last}"
            raise ValueError(f"two edits of {one.file} contradict each other: of {lines}")
    return ordered


def contradict(one: Edit, other: Edit) -> bool:
    """Whether two edits cannot both be made: one cuts the other's lines in two, or is of lines that it replaces."""
    if one.file != other.file or one == other or one.last < other.line or other.last < one.line:
        return False
    inner, outer = sorted((one, other), key=lambda edit: (_ORDER.index(edit.action), edit.last - edit.line))
    if outer.action is EditAction.INSERT_BEFORE:
        return inner.action is EditAction.REPLACE and outer.line != inner.line
    within = outer.line <= inner.line and inner.last <= outer.last
    return not within or outer.action is EditAction.REPLACE


def _indented(code: str, like: str) -> list[str]:
    return [_space(like) + line for line in lines_of(code)]


def _space(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _deeper(line: str, step: str) -> str:
    # At a form feed Python counts the indentation anew.
    begins = _space(line).rfind("\f") + 1
    return f"{line[:begins]}{step}{line[begins:]}" if line else line


def step_of(like: str) -> str:
    """By what a line is indented that stands one deeper than ``like``."""
    return "\t" if like.startswith("\t") else _STEP


def _inside_strings(lines: list[str]) -> set[int]:
    """The lines that begin inside a string: indenting them would change what the program says."""
    found: set[int] = set()
    starts: list[int] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline):
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
