"""Words, numbers and tables for markdown that also reads as plain text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import pandas as pd

from harness.model import Device
from harness.quoting import LONGEST_MESSAGE, clean, code, one_line

__all__ = ["DEVICE_WORDS", "clean", "code", "count", "listed", "number", "one_line", "plain", "sentence", "table"]

_HARMLESS = re.compile(r"[\w .,:;=()/%+'\"?!…-]+")
_MEANT = re.compile(r"www\.|://|^\s*(?:[-=+]|\d+[.)]\s)|__", re.IGNORECASE)


def plain(text: str, limit: int = LONGEST_MESSAGE) -> str:
    """``text`` as it is where markdown has no opinion about it, else as a code span."""
    line = one_line(text, limit)
    return line if _HARMLESS.fullmatch(line) and not _MEANT.search(line) else code(text, limit)


def sentence(text: str) -> str:
    """A sentence whose short code spans are meant, and nothing else in it."""
    line = one_line(text, limit=1000)
    rest = re.sub(r"`[^`<>]+`", "x", line)
    return line if plain(rest, limit=1000) == rest else code(text, limit=1000)


def table(frame: pd.DataFrame) -> str:
    """``frame``, whose cells are markdown, as a table; columns of figures to the right."""
    align = ["right" if frame[name].map(_is_figure).all() else "left" for name in frame.columns]
    cells = frame.map(_in_table).rename(columns=_in_table)
    # The stubs know neither tabulate's colalign nor its disable_numparse.
    options: dict[str, Any] = {"colalign": align, "disable_numparse": True, "tablefmt": "pipe"}
    return str(cells.to_markdown(index=False, **options))


def _in_table(cell: str) -> str:
    # A row is cut at pipes before code spans are read; a backslash in front of an escaped pipe would free it again.
    return re.sub(r"\\(?=\|)", r"\\ ", cell).replace("|", r"\|")


def _is_figure(cell: str) -> bool:
    return not cell or cell[0].isdigit()


def number(value: object) -> str:
    """A measured number with three significant digits; nothing at all where there is none."""
    if not isinstance(value, int | float) or math.isnan(value):
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def count(amount: int, noun: str, plural: str = "") -> str:
    """``1 variant``, ``1,152 variants``."""
    return f"{amount:,} {noun if amount == 1 else plural or noun + 's'}"


def listed(words: Iterable[str], limit: int = 8) -> str:
    """``a, b and c``; beyond ``limit`` the rest is counted."""
    every = list(words)
    if len(every) > limit:
        every = [*every[: limit - 1], f"{len(every) - limit + 1} more"]
    return every[0] if len(every) == 1 else f"{', '.join(every[:-1])} and {every[-1]}" if every else ""


DEVICE_WORDS = {
    Device.CUDA: "a real GPU",
    Device.STUB: "PyTorch's CUDA code with no GPU behind it",
    Device.CPU: "the CPU, where the error cannot occur",
}
