"""pytest plugin: ``pytest --rnn-mode-guard`` runs every test under ``harness.guard``, CPU-only CI included.

``--rnn-mode-guard-when=forward`` makes it strict. A test marked ``no_rnn_mode_guard`` runs without it. The fixture
``rnn_mode_guard`` guards one test, whatever the options. PyTorch is imported when a guard is entered, never before.
"""

from __future__ import annotations

from collections.abc import Generator
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


@pytest.fixture
def rnn_mode_guard(request: pytest.FixtureRequest) -> Generator[Guard, None, None]:
    """Guard this test."""
    with harness.guard(when=request.config.getoption("rnn_mode_guard_when")) as guard:
        yield guard
