"""Words, numbers and tables for markdown that also reads as plain text, and the escaping of what others wrote."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import pandas as pd

from harness.model import Device

LONGEST_MESSAGE = 240
"""Characters of an error message in a report; the whole of it is in results.csv."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_HARMLESS = re.compile(r"[\w .,:;=()/%+'\"?!…-]+")
_MEANT = re.compile(r"www\.|://|^\s*(?:[-=+]|\d+[.)]\s)|__", re.IGNORECASE)


def clean(text: str) -> str:
    """``text`` with what a terminal or a parser would act on spelt out; line breaks and tabs stay."""
    return _CONTROL.sub(lambda match: ascii(match[0])[1:-1], text.replace("\r\n", "\n"))


def one_line(text: str, limit: int = LONGEST_MESSAGE) -> str:
    """``text`` on one line, cut at ``limit`` characters with a mark that says so."""
    line = " ".join(clean(text).split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def code(text: str, limit: int = LONGEST_MESSAGE) -> str:
    """``text`` as a code span that it cannot leave."""
    line = one_line(text, limit) or " "
    longest = max((len(run) for run in re.findall(r"`+", line)), default=0)
    fence, pad = "`" * (longest + 1), " " if line[0] == "`" or line[-1] in "`\\" else ""
    return f"{fence}{pad}{line}{pad}{fence}"


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
