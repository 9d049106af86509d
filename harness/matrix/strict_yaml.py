"""YAML text that people write -> plain values, read strictly: every complaint names the file and the line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import yaml
from pydantic import ValidationError
from yaml.constructor import ConstructorError
from yaml.reader import ReaderError

from harness.errors import UsageError
from harness.matrix.axes import nearest, shown

Path = tuple[int | str, ...]
"""Keys and positions that lead to a value, as pydantic gives them."""

MEND = "Mend the file."

_SURROGATE = re.compile("[\ud800-\udfff]")

MOST_NODES = 20_000
"""Values and keys of one file; the largest that people write have some hundreds."""


class _TooManyError(yaml.MarkedYAMLError):
    """A file that is YAML, and too much of it."""


class _Loader(yaml.SafeLoader):
    """Names the line of a scalar that looks like a date or number and is none, such as 2020-13-45 or ``!!int ""``."""

    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """See PyYAML, which would read for minutes what nobody has written by hand."""
        self.nodes += 1
        if self.nodes > MOST_NODES:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise _TooManyError(None, None, f"it has more than {MOST_NODES:,} keys and values", mark)
        return super().compose_node(parent, index)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """See PyYAML, whose own constructors raise whatever they run into."""
        if isinstance(node, yaml.ScalarNode) and _SURROGATE.search(node.value):
            raise ConstructorError(None, None, f"{shown(node.value)} holds half of a character", node.start_mark)
        try:
            return super().construct_object(node, deep)
        except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError) as error:
            problem = f"{shown(node.value)} is no {node.tag.rpartition(':')[2]}"
            raise ConstructorError(None, None, problem, node.start_mark) from error


def parse(text: str, source: str, refuse: type[UsageError]) -> tuple[yaml.Node | None, Any]:
    """The node tree of ``text``, for the places of its values, and the values; ``source`` is the file's name.

    Raises:
        UsageError: of the class ``refuse``: not YAML, or a key is given twice.
    """
    try:
        node = yaml.compose(text, Loader=_Loader)
        _refuse_duplicate_keys(node, source, refuse)
        return node, yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        problem = _one_line(error.problem or error)
        what = "" if isinstance(error, _TooManyError) else "not YAML: "
        raise refuse(f"{source}, line {line}: {what}{problem}", MEND) from error
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        problem = f"the character U+{ord(text[error.position]):04X} is not allowed"
        raise refuse(f"{source}, line {line}: not YAML: {problem}", MEND) from error
    except RecursionError as error:
        raise refuse(f"{source}: not YAML: it is nested too deeply", MEND) from error


def complaint(
    error: ValidationError,
    node: yaml.Node | None,
    source: str,
    keys_at: Callable[[Path], Iterable[str]],
    refuse: type[UsageError],
) -> UsageError:
    """What ``error`` found first, as a person can mend it. ``keys_at`` tells which keys a place may have."""
    errors = error.errors(include_url=False)
    # A misspelt key is why another one is missing.
    first = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    path = first["loc"]
    if first["type"] == "axis":
        path = (*path, first["ctx"]["axis"])
    where = _one_line(".".join(str(part) for part in path))
    message = first["msg"].removeprefix("Value error, ")
    advice = MEND
    if first["type"] == "extra_forbidden":
        message = f"there is no key {shown(path[-1])} here"
        advice = nearest(str(path[-1]), keys_at(path))
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return refuse(f"{source}, line {_line_of(node, path)}: {where}: {_one_line(message).rstrip('.')}{more}", advice)


def _line_of(node: yaml.Node | None, path: Path) -> int:
    """The line of the node that ``path`` leads to, or of the last one on the way that exists."""
    line = 1
    for part in path:
        if isinstance(node, yaml.MappingNode):
            pair = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
    return line


def _refuse_duplicate_keys(node: yaml.Node | None, source: str, refuse: type[UsageError]) -> None:
    """YAML loaders keep the last of two equal keys in silence, which would drop half of a matrix."""
    for mapping in _mappings(node, set()):
        seen: set[str] = set()
        for key, value in mapping.value:
            if key.value == "<<" and isinstance(value, yaml.SequenceNode):
                # A few levels of lists of merges would grow into billions of keys.
                line = key.start_mark.line + 1
                raise refuse(f"{source}, line {line}: '<<' takes one mapping, not a list", "Merge one.")
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                line = key.start_mark.line + 1
                raise refuse(f"{source}, line {line}: the key {shown(key.value)} is given twice", "Keep one.")
            seen.add(str(key.value))


def _mappings(node: yaml.Node | None, seen: set[int]) -> Iterator[yaml.MappingNode]:
    if node is None or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        yield node
        children = [child for pair in node.value for child in pair]
    else:
        children = node.value if isinstance(node, yaml.SequenceNode) else []
    for child in children:
        yield from _mappings(child, seen)


def _one_line(text: object) -> str:
    return " ".join(str(text).split())[:300]
