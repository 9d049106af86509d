"""Which variants a person asked for."""

from __future__ import annotations

from dataclasses import dataclass

from harness.matrix.expand import Expansion, expand, select
from harness.matrix.shelf import read_matrix
from harness.model import Settings


@dataclass(frozen=True, slots=True)
class Selection:
    """Which variants of which matrix: overrides as ``axis=v1,v2``, globs over labels."""

    matrix: str = "matrix"
    overrides: tuple[str, ...] = ()
    globs: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join([*(f"-a {text}" for text in self.overrides), *(f"-k {glob}" for glob in self.globs)])


@dataclass(frozen=True, slots=True)
class Chosen:
    """A matrix after selection: what would run."""

    name: str
    description: str
    settings: Settings
    expansion: Expansion


def choose(selection: Selection) -> Chosen:
    """What a selection comes to.

    Raises:
        UsageError: an unknown name, axis or value, or a malformed file.
        NothingSelectedError: no variant is left.
    """
    name, document = read_matrix(selection.matrix)
    expansion = select(expand(document, selection.overrides), selection.globs)
    return Chosen(name, document.description.strip(), document.settings.settings(), expansion)
