"""What each program has to be told: a header in YAML, and the lines marked ``# <- forward``, ``call`` or ``switch``."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

PROGRAMS = Path(__file__).parent / "programs"
CUDNN_SAYS = "cudnn RNN backward can only be called in training mode"
MARKED = ("forward", "call", "switch")


@dataclass(frozen=True)
class Expected:
    """The finding that a faulty program should get.

    ``kind`` is what it is on a device with cuDNN. ``patterns`` names a placement or a silent form, ``module`` the
    RNN in ``root``, and ``through`` what ``eval()`` was called on. Of several patterns or cures each is right.
    """

    path: Path
    kind: str
    patterns: tuple[str, ...]
    module: str
    class_: str
    root: str
    through: str | None = None
    cures: tuple[str, ...] = ()
    says: str = CUDNN_SAYS
    code: int = 0
    """What the program exits with on a device with cuDNN."""
    marks: dict[str, int] = field(default_factory=dict)

    @property
    def ends_in_it(self) -> bool:
        """Whether the error ends the program, on a device with cuDNN."""
        return self.kind == "error" and self.code != 0

    @property
    def guard_ends_it(self) -> bool:
        """Whether the guard's error ends the program on a CPU."""
        return self.says == CUDNN_SAYS and (self.ends_in_it or self.kind == "would-raise")

    @property
    def kind_on_cpu(self) -> str:
        """What it is on a CPU, where cuDNN's error is not raised."""
        return "would-raise" if self.kind == "error" and self.says == CUDNN_SAYS else self.kind


def read(path: Path) -> Expected:
    """The expectation that a faulty program carries."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    header: dict[str, Any] = yaml.safe_load(text.rpartition("\n\n")[2])
    return Expected(
        path,
        patterns=several(header.pop("pattern")),
        class_=header.pop("class"),
        cures=several(header.pop("cure")),
        marks=marks(path),
        **{"code": int(header["kind"] == "error")} | header,
    )


def several(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def marks(path: Path) -> dict[str, int]:
    """The number of the line that each mark stands in; a mark stands once."""
    found = [
        (mark, number)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for mark in re.findall(r"# <- (\w+)$", line)
    ]
    assert len(dict(found)) == len(found), f"{path} has a mark twice"
    assert set(dict(found)) <= set(MARKED), f"{path} has a mark that nobody reads"
    return dict(found)


FAULTY = tuple(read(path) for path in sorted((PROGRAMS / "faulty").glob("*.py")))
CORRECT = tuple(sorted((PROGRAMS / "correct").glob("*.py")))
