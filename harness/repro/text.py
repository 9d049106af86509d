"""Python text that ``ruff format`` leaves alone at any usual line length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import indent, wrap

WIDTH = 88
"""The default of formatters; a line that fits it fits every other one."""

_STEP = "    "


def call(head: str, arguments: Sequence[str], *, depth: int = 0, tail: str = "") -> list[str]:
    """``head(arguments)tail`` on one line, or with one argument a line where it would be too long."""
    line = f"{head}({', '.join(arguments)}){tail}"
    if len(_STEP) * depth + len(line) <= WIDTH:
        return [line]
    return [f"{head}(", *(f"{_STEP}{argument}," for argument in arguments), f"){tail}"]


def block(opening: str, body: Iterable[str]) -> list[str]:
    """``body`` one level deeper below ``opening``, such as ``with torch.no_grad():``; nothing without a body."""
    lines = list(body)
    return [opening, *deeper(lines)] if lines else []


def deeper(lines: Iterable[str]) -> list[str]:
    """``lines`` one level deeper."""
    return indent("\n".join(lines), _STEP).splitlines()


def comment(paragraphs: Iterable[str]) -> list[str]:
    """``paragraphs`` as comment lines; an empty one is a bare ``#``."""
    lines: list[str] = []
    for paragraph in paragraphs:
        words = wrap(_printable(paragraph), WIDTH - 2, break_long_words=False, break_on_hyphens=False)
        lines += [f"# {line}" for line in words] or ["#"]
    return lines


def _printable(text: str) -> str:
    """What a record says may hold anything; a comment may not hold an end of line, nor what steers a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
