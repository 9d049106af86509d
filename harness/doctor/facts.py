"""What is known about this machine: a fact, and whether anything is to be done about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """What a fact means for a run."""

    OK = "ok"
    WARNING = "warning"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that was seen, or was looked for and is not there.

    ``text`` says it to a person; ``value`` is the raw number or name behind it, where there is one (sizes in bytes,
    times in seconds). A warning always has its ``advice``.
    """

    name: str
    text: str
    state: State = State.OK
    advice: str = ""
    value: str | int | float | None = None


def absent(name: str, text: str = "not there", advice: str = "") -> Fact:
    """A fact about what is not there."""
    return Fact(name, text, State.ABSENT, advice)


def warning(name: str, text: str, advice: str, value: str | int | float | None = None) -> Fact:
    """A fact that somebody should do something about."""
    return Fact(name, text, State.WARNING, advice, value)


def size_words(amount: float) -> str:
    """``1.5 GiB``: bytes in the unit that a person would choose."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.3g} {unit}"
        amount /= 1024
    return f"{amount:,.3g} TiB" if amount < 1024 else f"{amount:,.0f} TiB"
