"""Where a cure can take hold: a line of the person's own, and what the module is called there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from harness.diagnose.edits import Edit, EditAction
from harness.diagnose.facts import Chain, Fact, Place
from harness.diagnose.source import Spot, first_line


@dataclass(frozen=True, slots=True)
class Handle:
    """A line of the person's own that calls the model (or, further in, the RNN), and what it is called there."""

    spot: Spot
    name: str

    @property
    def file(self) -> str:
        """Its file."""
        return self.spot.place.file


def handle_of(fact: Fact) -> Handle | None:
    """The first of ``handles``."""
    return next(handles(fact), None)


def handles(fact: Fact, *, inwards: bool = True) -> Iterator[Handle]:
    """Where the person can act on the forward: from the line that called the model outwards, then inwards."""
    outwards = range(fact.entry, len(fact.chain))
    for depth in (*outwards, *(reversed(range(fact.entry)) if inwards else ())):
        place = fact.chain[depth]
        if not place.own:
            continue
        spot = Spot(place)
        name = _name(spot, place, entry=depth == fact.entry, inside=depth < fact.entry)
        if spot.statements and not (spot.later or spot.beside_def) and name:
            yield Handle(spot, name)


def _name(spot: Spot, place: Place, *, entry: bool, inside: bool) -> str | None:
    """An expression for the module to act on: what was switched if that is more than what was called."""
    if inside:
        return place.names.get("rnn")
    known = place.names.get("through") or place.names.get("root")
    if known is None and entry and spot.call is not None and plain(spot.call.func):
        return ast.unparse(spot.call.func)
    return known


def plain(node: ast.expr) -> bool:
    """Whether an expression can be written again without doing anything."""
    return all(
        isinstance(one, ast.Name | ast.Attribute | ast.Subscript | ast.Constant | ast.expr_context)
        for one in ast.walk(node)
    )


def own_place(chain: Chain) -> Place | None:
    """The innermost line of the person's own."""
    return next((place for place in chain if place.own), None)


def import_edits(handle: Handle, module: str) -> tuple[Edit, ...]:
    """``import module`` among the imports at the top of the file, if it is not there."""
    tree = handle.spot.source.tree
    if tree is None:
        return ()
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    if any(
        isinstance(node, ast.Import) and any((one.asname or one.name) == module for one in node.names)
        for node in imports
    ):
        return ()
    usual = [node for node in imports if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")]
    if usual:
        return (Edit(handle.file, usual[0].lineno, EditAction.INSERT_BEFORE, f"import {module}"),)
    first = next((node for node in tree.body if not _heads(node)), None)
    return (Edit(handle.file, first_line(first), EditAction.INSERT_BEFORE, f"import {module}"),) if first else ()


def _heads(node: ast.stmt) -> bool:
    future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
    return future or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
