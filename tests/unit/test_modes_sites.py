"""Whose method a frame runs: by what the frame is, whatever its author calls the first argument."""

from __future__ import annotations

import functools
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import harness
from harness.modes.sites import Site, is_machinery, module_of


def owner() -> nn.Module | None:
    """The module whose method called this."""
    return module_of(sys._getframe(1))


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    """As ``no_grad()`` wraps a function."""

    @functools.wraps(function)
    def wrapper(*arguments: Any) -> Any:
        return function(*arguments)

    return wrapper


class Usual(nn.Module):
    """The first argument is called self."""

    def method(self) -> nn.Module | None:
        return owner()


class Short(nn.Module):
    """The first argument is called something else."""

    def method(s) -> nn.Module | None:  # noqa: N805 - that is what is tested
        return owner()

    @decorated
    @decorated
    def wrapped(me) -> nn.Module | None:  # noqa: N805
        return owner()

    @property
    def asked(this) -> nn.Module | None:  # noqa: N805
        return owner()

    def kept(s) -> nn.Module | None:  # noqa: N805
        def itself() -> nn.Module:
            return s  # so that it is kept in a cell

        return owner() if itself() is s else None

    @staticmethod
    def static(model: nn.Module) -> nn.Module | None:  # noqa: ARG004
        return owner()


class Inherits(Short):
    """Its methods are another class's."""


class Holder:
    """No module, with a method of the same name."""

    def method(s, model: nn.Module) -> nn.Module | None:  # noqa: ARG002, N805
        return owner()

    @staticmethod
    def wrapped(model: nn.Module) -> nn.Module | None:  # noqa: ARG004
        return owner()


def method(model: nn.Module) -> nn.Module | None:
    """A function that is called as a method of the module that it gets."""
    return owner()


@pytest.mark.parametrize("kind", [Short, Inherits])
def test_a_method_is_told_whatever_its_first_argument_is_called(kind: type[Short]) -> None:
    short = kind()
    assert short.method() is short
    assert short.wrapped() is short
    assert short.asked is short
    assert short.kept() is short


def test_self_is_taken_at_its_word() -> None:
    usual = Usual()
    assert usual.method() is usual


def test_a_function_that_is_given_a_module_is_no_method_of_it() -> None:
    short = Short()
    assert method(short) is None
    assert short.static(short) is None
    assert Holder().method(short) is None
    assert Holder.wrapped(short) is None


TORCH, PACKAGE, STDLIB = Path(torch.__file__).parent, Path(harness.__file__).parent, Path(sysconfig.get_path("stdlib"))


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (TORCH / "nn" / "modules" / "rnn.py", True),
        (PACKAGE / "modes" / "guard.py", True),
        (PACKAGE / "diagnose" / "witness" / "watcher.py", True),
        (TORCH.with_name("torchvision") / "ops.py", False),
        (TORCH.with_name("torch_of_mine.py"), False),
        (PACKAGE / "modesty.py", False),
        (PACKAGE / "diagnose_mine" / "train.py", False),
    ],
    ids=lambda value: "/".join(value.parts[-2:]) if isinstance(value, Path) else None,
)
def test_what_only_begins_as_the_machinery_does_is_none(file: Path, expected: bool) -> None:
    assert is_machinery(compile("pass", str(file), "exec")) is expected


@pytest.mark.parametrize("library", [STDLIB, Path(sysconfig.get_path("platstdlib"))], ids=["stdlib", "platstdlib"])
def test_what_only_begins_as_a_library_does_is_the_person_s(library: Path) -> None:
    assert not Site(str(library / "threading.py"), 1, "f").own
    assert Site(str(library.with_name(f"{library.name}-mine") / "train.py"), 1, "f").own
