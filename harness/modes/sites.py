"""Where in a person's program something happened, and what a module is called there: read from the call stack."""

from __future__ import annotations

import copy
import os
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from weakref import WeakKeyDictionary, ref

import torch
from torch import nn


def _folder(path: Path | str) -> str:
    """How the files in a folder begin, and not those of another whose name begins alike, as torchvision's does."""
    return f"{path}{os.sep}"


_OWN = _folder(Path(__file__).parent)
_TORCH = _folder(Path(torch.__file__).parent)
_DIAGNOSE = _folder(Path(__file__).parents[1] / "diagnose")
_MACHINERY = (_OWN, _DIAGNOSE, _TORCH)
_LIBRARIES = tuple({_folder(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_DEEPEST = 400
_KEPT = 32
_MOST_DECORATORS = 16


@dataclass(frozen=True, slots=True)
class Site:
    """A line of a program: file, line number and the function it is in."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"

    @property
    def own(self) -> bool:
        """Whether the line belongs to the person's program, not to an installed library."""
        return not self.file.startswith(_LIBRARIES)


def is_machinery(code: CodeType) -> bool:
    """Whether ``code`` belongs to PyTorch, to this package or to ``copy``: never a line to show to a person."""
    file = code.co_filename
    return file.startswith(_MACHINERY) or file in (copy.__file__, "<string>") or file.startswith("<frozen ")


def frames(start: FrameType | None) -> list[FrameType]:
    """``start`` and the frames that called it, innermost first."""
    found: list[FrameType] = []
    while start is not None and len(found) < _DEEPEST:
        found.append(start)
        start = start.f_back
    return found


def sites_of(stack: list[FrameType]) -> tuple[Site, ...]:
    """The lines of ``stack`` outside the machinery, innermost first."""
    lines = [frame for frame in stack if not is_machinery(frame.f_code)]
    return tuple(Site(one.f_code.co_filename, one.f_lineno, one.f_code.co_qualname) for one in lines[:_KEPT])


def told(sites: tuple[Site, ...]) -> str:
    """The innermost line; where a library called it, the person's own line that called the library as well."""
    if not sites:
        return "an unknown line"
    own = next((site for site in sites if site.own), None)
    if own is None or own == sites[0]:
        return str(sites[0])
    return f"{sites[0]}, called from {own}"


def module_of(frame: FrameType) -> nn.Module | None:
    """The module whose method ``frame`` runs; None where it runs something else."""
    code = frame.f_code
    if code.co_argcount == 0:
        return None
    first = code.co_varnames[0]
    if first != "self" and not _in_a_class(code):
        return None
    owner = frame.f_locals.get(first)
    if not isinstance(owner, nn.Module):
        return None
    return owner if first == "self" or _is_method(code, type(owner)) else None


def _in_a_class(code: CodeType) -> bool:
    """Whether the function is written in the body of a class: cheaper to tell than what its variables are."""
    around = code.co_qualname.rpartition(".")[0]
    return bool(around) and not around.endswith("<locals>")


def _is_method(code: CodeType, kind: type) -> bool:
    """Whether ``code`` is that of a method or property of ``kind``, also inside decorators that say what they wrap."""
    for base in kind.__mro__:
        found = base.__dict__.get(code.co_name)
        for _ in range(_MOST_DECORATORS):
            if isinstance(found, property):
                found = found.fget
            if not isinstance(found, FunctionType):
                break
            if found.__code__ is code:
                return True
            found = found.__dict__.get("__wrapped__")
    return False


def caller(depth: int = 1) -> FrameType | None:
    """The innermost frame outside this package."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return frame


def called_root(stack: list[FrameType], module: nn.Module) -> tuple[nn.Module, str]:
    """The outermost module on the stack that contains ``module``, and the name of ``module`` in it.

    One that was called counts before one of which another method runs, such as an ``encode()`` called from outside.
    """
    methods: list[FrameType] = []
    for frame in reversed(stack):
        if frame.f_code.co_name in ("_call_impl", "forward"):
            named = _named_by(frame, module)
            if named is not None:
                return named
        else:
            methods.append(frame)
    return next((named for frame in methods if (named := _named_by(frame, module)) is not None), (module, ""))


def _named_by(frame: FrameType, module: nn.Module) -> tuple[nn.Module, str] | None:
    root = module_of(frame)
    # What torch.compile wraps is called next, under the name its author knows.
    if root is None or root is module or "_orig_mod" in root._modules:
        return None
    name = name_in(root, module)
    return None if name is None else (root, name)


_names: WeakKeyDictionary[nn.Module, tuple[ref[nn.Module], str]] = WeakKeyDictionary()


def name_in(root: nn.Module, module: nn.Module) -> str | None:
    """The qualified name of ``module`` in ``root``; None where it is not part of it."""
    known = _names.get(module)
    if known is not None and known[0]() is root and _still(root, known[1], module):
        return known[1]
    for name, one in root.named_modules():
        if one is module:
            _names[module] = (ref(root), name)
            return str(name)
    return None


def _still(root: nn.Module, name: str, module: nn.Module) -> bool:
    try:
        return root.get_submodule(name) is module
    except AttributeError:
        return False
