"""The traceback of a watched program shows the person's lines and PyTorch's, and none of those that watch."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

import harness
from harness.diagnose.witness.ending import _without_us
from harness.modes import compiling

MODES = Path(harness.__file__).parent / "modes"
WATCHING = ("calls.py", "switches.py", "compiling.py")


def fails() -> None:
    raise ValueError("no")


def through(file: Path) -> Callable[[Callable[[], None]], None]:
    """A function of ``file`` that calls what it is given."""
    names: dict[str, Callable[[Callable[[], None]], None]] = {}
    exec(compile("def through(function):\n    function()\n", str(file), "exec"), names)
    return names["through"]


def lines_left(function: Callable[[], object]) -> list[str]:
    with pytest.raises(ValueError, match="no") as caught:
        function()
    _without_us(caught.value, caught.value.__traceback__)
    return [Path(frame.filename).name for frame in traceback.extract_tb(caught.value.__traceback__)]


@pytest.mark.parametrize("name", WATCHING)
def test_a_line_that_watches_is_not_shown(name: str) -> None:
    assert lines_left(lambda: through(MODES / name)(fails)) == [Path(__file__).name] * 3


@pytest.mark.parametrize("file", [MODES / "guard.py", MODES.parent / "diagnose_mine" / "train.py"])
def test_every_other_line_is(file: Path) -> None:
    here = Path(__file__).name
    assert lines_left(lambda: through(file)(fails)) == [here, here, file.name, here]


def test_nor_is_the_wrapper_that_older_pytorch_needs() -> None:
    machinery = SimpleNamespace(set_eval_frame=lambda compiler: compiler)
    alone = compiling._uncompiled(fails, machinery)
    assert lines_left(alone) == [Path(__file__).name] * 2
