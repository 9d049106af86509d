"""Lines of the running program, with the extent of the call in each and the names that modules have there."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType, GetSetDescriptorType, MemberDescriptorType

from torch import nn

from harness.diagnose.facts import Chain, Place
from harness.modes.sites import Site, is_machinery, module_of

_DEEPEST = 32

Key = tuple[tuple[str, CodeType, int], ...]
"""What tells one call stack from another."""


def outside(stack: list[FrameType]) -> list[FrameType]:
    """The frames of a stack outside PyTorch and this package, innermost first."""
    return [frame for frame in stack if not is_machinery(frame.f_code)][:_DEEPEST]


def key_of(lines: list[FrameType]) -> Key:
    """What stays the same where the same lines call each other again."""
    # Code objects of equal files are equal: the name of the file tells them apart.
    return tuple((frame.f_code.co_filename, frame.f_code, frame.f_lasti) for frame in lines)


def chain_of(lines: list[FrameType], parts: dict[str, nn.Module] | None = None) -> Chain:
    """The places of ``lines``, with the names that these parts have in each line of the person's own."""
    places = [place_at(frame, frame.f_lineno, frame.f_lasti) for frame in lines]
    if not parts:
        return tuple(places)
    return tuple(
        _named(place, frame, parts) if place.own else place for place, frame in zip(places, lines, strict=True)
    )


def place_at(frame: FrameType, line: int, instruction: int) -> Place:
    """A place of a frame, which may have gone on since, as a traceback knows it."""
    return _place(frame.f_code.co_filename, frame.f_code, line, instruction)


def _named(place: Place, frame: FrameType, parts: dict[str, nn.Module]) -> Place:
    names = {part: name for part, module in parts.items() if (name := _name(frame, module))}
    return replace(place, names=names)


@lru_cache(maxsize=4096)
def _place(file: str, code: CodeType, line: int, instruction: int) -> Place:
    site = Site(file, line, code.co_qualname)
    path = site.file if site.file.startswith("<") else os.path.abspath(site.file)  # noqa: PTH100 - links stay
    return Place(path, line, site.function, site.own, code.co_firstlineno, _span(code, instruction))


def _span(code: CodeType, instruction: int) -> tuple[int, int, int, int] | None:
    line, end, column, end_column = next(islice(code.co_positions(), max(instruction, 0) // 2, None), (None,) * 4)
    if line is None or end is None or column is None or end_column is None:
        return None
    return line, end, column, end_column


def _name(frame: FrameType, module: nn.Module) -> str | None:
    """An expression that means ``module`` in ``frame``: a variable, an attribute of ``self``, a global."""
    found = _variable(frame.f_locals, module)
    if found is not None:
        return found
    owner = frame.f_locals.get("self")
    for holder, name in ((owner, "self"), *_objects(frame.f_locals)):
        attribute = _attribute(holder, module)
        if attribute is not None:
            return f"{name}.{attribute}"
    return _variable(frame.f_globals, module)


def _variable(variables: dict[str, object], module: nn.Module) -> str | None:
    return next((name for name, one in list(variables.items()) if one is module and name.isidentifier()), None)


def _objects(variables: dict[str, object]) -> list[tuple[object, str]]:
    return [(one, name) for name, one in list(variables.items()) if name.isidentifier() and name != "self"]


def _attribute(holder: object, module: nn.Module) -> str | None:
    """The name of the attribute of ``holder`` that is ``module``."""
    variables = _variables(holder)
    inside = variables.get("_modules") if isinstance(holder, nn.Module) else None
    for attributes in (inside, variables):
        if isinstance(attributes, dict):
            for name, one in list(attributes.items()):
                if one is module and isinstance(name, str) and name.isidentifier():
                    return name
    return None


def _variables(holder: object) -> dict[str, object]:
    """The attributes of an object itself, without running any code of the person's."""
    for kind in type(holder).__mro__:
        slot = kind.__dict__.get("__dict__")
        if slot is not None:
            plain = isinstance(slot, GetSetDescriptorType | MemberDescriptorType)
            return slot.__get__(holder) if plain else {}
    return {}


def entry_of(stack: list[FrameType], root: nn.Module) -> int:
    """How many of the ``outside`` lines are inside the call of ``root``: the number of the line that called it."""
    called = [depth for depth, frame in enumerate(stack) if _calls(frame) and module_of(frame) is root]
    if not called:
        called = [depth for depth, frame in enumerate(stack) if module_of(frame) is root]
    return len(outside(stack[: called[-1] + 1])) if called else 0


def _calls(frame: FrameType) -> bool:
    return frame.f_code.co_name in ("_call_impl", "forward")
