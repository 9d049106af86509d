"""pytest plugin: ``pytest --rnn-mode-guard`` runs every test under ``harness.guard``, CPU-only CI included.

``--rnn-mode-guard-when=forward`` makes it strict. A test marked ``no_rnn_mode_guard`` runs without it. The fixture
``rnn_mode_guard`` guards one test, whatever the options. PyTorch is imported when a guard is entered, never before.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

import harness

if TYPE_CHECKING:
    from harness.modes import Guard

_MARKER = "no_rnn_mode_guard"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the two options."""
    group = parser.getgroup("rnn-mode-guard", "RNNs in eval mode")
    group.addoption(
        "--rnn-mode-guard",
        action="store_true",
        help="raise where cuDNN would refuse a backward through an RNN in eval mode, on any device",
    )
    group.addoption(
        "--rnn-mode-guard-when",
        choices=("backward", "forward"),
        default="backward",
        help="raise at the backward (default), or already at the forward that records a graph in eval mode",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", f"{_MARKER}: run this test without --rnn-mode-guard")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Guard the whole of a test, its fixtures included, if the option asks for it."""
    if not item.config.getoption("rnn_mode_guard") or item.get_closest_marker(_MARKER):
        return (yield)
    with harness.guard(when=item.config.getoption("rnn_mode_guard_when")):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """End the traceback of what a guard raised in the line that led to it, unless --full-trace asks for all."""
    if call.excinfo is not None and _of_a_guard(call.excinfo.value) and not item.config.getoption("fulltrace"):
        _end_outside_the_machinery(call.excinfo.tb)
    return (yield)


def _of_a_guard(error: BaseException) -> bool:
    module = sys.modules.get("harness.modes.error")  # not imported: then nobody has entered a guard
    return module is not None and isinstance(error, module.EvalModeBackwardError)


def _end_outside_the_machinery(trace: TracebackType | None) -> None:
    """Cut off the frames of PyTorch and the guard at the end of a traceback."""
    from harness.modes.sites import is_machinery

    last = None
    while trace is not None:
        if not is_machinery(trace.tb_frame.f_code):
            last = trace
        trace = trace.tb_next
    if last is not None:
        last.tb_next = None


@pytest.fixture
def rnn_mode_guard(request: pytest.FixtureRequest) -> Generator[Guard, None, None]:
    """Guard this test."""
    with harness.guard(when=request.config.getoption("rnn_mode_guard_when")) as guard:
        yield guard
