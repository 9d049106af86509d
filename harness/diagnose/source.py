"""A person's source as a tree: which call a line makes, in which statement, block, loop and function it stands."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from harness.diagnose.edits import lines_of, read
from harness.diagnose.facts import Place

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
_LATER = (ast.Lambda, ast.GeneratorExp)
"""What is written here, but may run elsewhere."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file. ``tree`` is None where it cannot be read or parsed."""

    file: str
    lines: tuple[str, ...]
    tree: ast.Module | None

    def path_to(self, place: Place) -> list[ast.AST]:
        """The nodes around the call that was running at ``place``, outermost first; ends with it where it is found."""
        if self.tree is None:
            return []
        line, end, column, end_column = place.span or (place.line, place.line, -1, -1)
        path: list[ast.AST] = [self.tree]
        while True:
            inner = next((node for node in _children(path[-1]) if _covers(node, line, end, column, end_column)), None)
            if inner is None:
                return path
            path.append(inner)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        # Some nodes, such as the arguments of a function, have no extent, but children that have one.
        if hasattr(child, "lineno"):
            yield child
        else:
            yield from _children(child)


def _covers(node: ast.AST, line: int, end: int, column: int, end_column: int) -> bool:
    first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])  # type: ignore[attr-defined]
    last = node.end_lineno  # type: ignore[attr-defined]
    if first > line or last < end:
        return False
    starts_later = column >= 0 and node.lineno == line and node.col_offset > column  # type: ignore[attr-defined]
    ends_before = end_column >= 0 and last == end and node.end_col_offset < end_column  # type: ignore[attr-defined]
    return not (starts_later or ends_before)


@cache
def source_of(file: str) -> Source:
    """The source of a file, read once."""
    try:
        text = read(Path(file))
        return Source(file, tuple(lines_of(text)), ast.parse(text))
    except (OSError, ValueError, SyntaxError):
        return Source(file, (), None)


class Spot:
    """Where in the source a place is."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.source = source_of(place.file)
        self.path = self.source.path_to(place)

    @property
    def known(self) -> bool:
        """Whether the source is there."""
        return len(self.path) > 1

    @property
    def call(self) -> ast.Call | None:
        """The call that was running, if its extent is known."""
        found = self.path[-1] if self.path else None
        return found if isinstance(found, ast.Call) and self.place.span else None

    @property
    def later(self) -> bool:
        """Whether the call stands in a lambda or generator, which runs later than the statement around it."""
        return any(isinstance(node, _LATER) for node in self._in_function)

    @property
    def beside_def(self) -> bool:
        """Whether its statement shares lines with the head of its function or class, as in ``def f(x): return g(x)``.

        A line before it would stand before the definition.
        """
        statements = self.statements
        if not statements:
            return False
        outer, block = self._home(statements[0])
        if not isinstance(outer, Function | ast.ClassDef) or not block:
            return False
        return self._beside(block[0]) and first_line(statements[0]) == block[0].lineno

    @property
    def function(self) -> Function | None:
        """The innermost function around it."""
        return next((node for node in reversed(self.path) if isinstance(node, Function)), None)

    @property
    def _in_function(self) -> list[ast.AST]:
        for depth in range(len(self.path) - 1, -1, -1):
            if isinstance(self.path[depth], Function | ast.ClassDef | ast.Module):
                return self.path[depth + 1 :]
        return []

    @property
    def statements(self) -> list[ast.stmt]:
        """The statements around it in its function, innermost last."""
        return [node for node in self._in_function if isinstance(node, ast.stmt)]

    @property
    def loops(self) -> list[Loop]:
        """The loops in its function that repeat it, innermost last."""
        found: list[Loop] = []
        for outer, inner in zip(self._in_function, self._in_function[1:], strict=False):
            repeated = isinstance(outer, Loop) and (inner in outer.body or inner is getattr(outer, "test", None))
            if repeated and isinstance(outer, Loop):
                found.append(outer)
        return found

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements among which ``statement`` stands, which is one around the call or a neighbour of one."""
        return self._home(statement)[1]

    def _home(self, statement: ast.stmt) -> tuple[ast.AST | None, list[ast.stmt]]:
        for node in reversed(self.path):
            # The cases of a match have no extent, and are no nodes of the path.
            for holder in (node, *(node.cases if isinstance(node, ast.Match) else ())):
                for _, block in ast.iter_fields(holder):
                    if isinstance(block, list) and statement in block:
                        return node, list(block)
        return None, [statement]

    def whole_lines(self, statement: ast.stmt) -> tuple[int, int, list[ast.stmt]]:
        """The first and last line of ``statement``, or of what shares lines with it, and the statements there."""
        outer, block = self._home(statement)
        first, last = first_line(statement), _last_line(statement)
        shared = [one for one in block if first_line(one) <= last and _last_line(one) >= first]
        first, last = min(map(first_line, shared)), max(map(_last_line, shared))
        begins = self.source.lines[first - 1].lstrip()
        if outer in self.path and (self._beside(shared[0]) or begins.startswith(("elif ", "elif("))):
            around = self.path[: self.path.index(outer) + 1]
            return self.whole_lines(next(node for node in reversed(around) if isinstance(node, ast.stmt)))
        return first, last, shared

    def _beside(self, statement: ast.stmt) -> bool:
        """Whether something else stands before ``statement`` in its line."""
        before = self.source.lines[statement.lineno - 1].encode()[: statement.col_offset]
        return first_line(statement) == statement.lineno and bool(before.strip())


def first_line(statement: ast.stmt) -> int:
    """The line where a statement begins, its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(one.lineno for one in decorators)])


def _last_line(statement: ast.stmt) -> int:
    return statement.end_lineno or statement.lineno


@dataclass(frozen=True, slots=True)
class Fork:
    """Where two call stacks part: the same activation of a function, as far as lines can tell, at two of its lines.

    ``left`` and ``right`` are the places there; ``deeper`` says how many calls each goes further from there.
    """

    left: Place
    right: Place
    left_deeper: int
    right_deeper: int
    shared: tuple[Place, ...]
    """The lines that both have in common, outermost first."""


def fork(left: tuple[Place, ...], right: tuple[Place, ...]) -> Fork | None:
    """Where two chains part, seen from the outside; None where they have no function in common."""
    shared: list[Place] = []
    for depth in range(1, min(len(left), len(right)) + 1):
        one, other = left[-depth], right[-depth]
        if (one.file, one.function, one.starts) != (other.file, other.function, other.starts):
            return None
        parted = (one.line, one.span) != (other.line, other.span)
        if parted or depth in (len(left), len(right)):
            return Fork(one, other, len(left) - depth, len(right) - depth, tuple(shared))
        shared.append(one)
    return None


def called_name(call: ast.Call) -> str | None:
    """What is called, by its last name."""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)


def pauses(node: Function | Loop) -> bool:
    """Whether a function, or a loop in one, stops at a ``yield`` for its caller to do something else meanwhile."""
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(one, Function | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(one)
    return False


def assigns(loop: Loop, name: str) -> bool:
    """Whether ``loop`` gives another value to the variable that the expression ``name`` begins with."""
    variable = name.partition(".")[0].partition("[")[0]
    stored = [node for node in ast.walk(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return any(node.id == variable for node in stored)


def shares_loop(parting: Fork) -> bool:
    """Whether a loop of the program repeats both sides of the parting, and not what runs it, as pytest does."""
    shared = list(parting.shared)
    while shared and not shared[0].own:
        del shared[0]
    if any(Spot(place).loops for place in shared):
        return True
    left, right = Spot(parting.left).loops, Spot(parting.right).loops
    return any(one in right for one in left)
