"""What a diagnosis says of the limits of its evidence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.diagnose.collected import Collected
from harness.diagnose.facts import Count
from harness.diagnose.limits import ended_unseen, limits
from harness.model import Device
from tests.watched import PRELUDE, seen

REFUSED = "Failed in the TorchScript interpreter.\ncudnn RNN backward can only be called in training mode"


def ended(exception: str | None = None, message: str = "", counts: dict[Count, int] | None = None) -> Collected:
    every = dict.fromkeys(range(Count.TIMES), 0) | {Count.ATTACHED: 1} | (counts or {})
    return Collected(counts=every, exception=exception, message=message)


@pytest.mark.parametrize("forwards", [0, 3])
def test_cudnns_error_of_an_rnn_that_was_not_seen_is_told_as_such(forwards: int) -> None:
    found = ended("RuntimeError", REFUSED, {Count.FORWARDS: forwards})
    first, *others = limits(found, Device.STUB)
    assert "an RNN ran that is not watched: in TorchScript" in first
    assert not any("the *Cell" in one or "kept its RNNs" in one or "zeros that" in one for one in others)
    (first,) = limits(ended("RuntimeError", "another"), Device.CPU)
    assert first.startswith("No nn.RNN, nn.LSTM or nn.GRU ran in the script's own process")


def test_an_error_whose_rnn_was_seen_is_no_unseen_one(tmp_path: Path) -> None:
    found = seen(tmp_path, PRELUDE + "Net().eval()(x).sum().backward()\n")
    found.exception, found.message = "RuntimeError", REFUSED
    assert ended_unseen(found), "on the CPU it cannot have been that one"
    fact = found.facts[0]
    found.facts[0] = replace(fact, on_gpu=True)
    assert not ended_unseen(found)


@pytest.mark.parametrize(
    ("exception", "told"),
    [
        *((name, False) for name in ("NameError", "ModuleNotFoundError", "KeyboardInterrupt", None)),
        *((name, True) for name in ("ValueError", "AttributeError", "UnboundLocalError", "MyOwnError")),
    ],
)
def test_the_stubs_zeros_are_suspected_only_of_what_they_can_do(exception: str | None, told: bool) -> None:
    notes = limits(ended(exception, "words", {Count.FORWARDS: 1, Count.GPU_FORWARDS: 1}), Device.STUB)
    assert any(f"zeros that the script ended of ({exception})" in one for one in notes) is told
    assert not any("zeros that" in one for one in limits(ended(exception, "words"), Device.CPU))
