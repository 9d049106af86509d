"""Text that others wrote, made fit to be shown: on one line, without what a terminal or a markdown parser acts on."""

from __future__ import annotations

import re

LONGEST_MESSAGE = 240
"""Characters of an error message that are shown; the whole of it is in the journal and in results.csv."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


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


def public(text: str) -> str:
    """``text`` with every address in it lacking its user and password."""
    return re.sub(r"(?<=://)[^/\s?#]*@", "", text)
