"""Exactness and timed blocks in real processes: the same from one process to the next, and absent on the stub."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from harness import stub
from harness.errors import StubUnavailableError
from harness.exactness import Verdict, judge
from harness.launch.local import LocalExecutor
from harness.launch.stop import StopRequest
from harness.matrix.axes import make_variant
from harness.model import Device, Order, Outcome, Record, Settings, Value

SETTINGS = Settings(epochs=2, steps=3, evaluation_steps=1)
HARD: dict[str, Value] = {"layers": 2, "dropout": 0.5, "norm": "batch-norm"}


@pytest.fixture(scope="module")
def cpu() -> Iterator[LocalExecutor]:
    executor = LocalExecutor(os.environ)
    yield executor
    executor.close()


@pytest.fixture(scope="module")
def on_stub() -> Iterator[LocalExecutor]:
    try:
        executor = LocalExecutor(stub.ensure().environment(os.environ))
    except StubUnavailableError as error:
        pytest.skip(f"no stub device here: {error}")
    yield executor
    executor.close()


def twice(
    executor: LocalExecutor, axes: Mapping[str, Value], settings: Settings = SETTINGS, device: Device = Device.CPU
) -> list[Record]:
    variant = make_variant(axes)
    orders = [Order("run", variant, device, settings, replicate) for replicate in range(2)]
    return list(executor.run(orders, 1, StopRequest()))


@pytest.mark.parametrize("cell", ["rnn-tanh", "rnn-relu", "lstm", "gru"])
@pytest.mark.parametrize(
    ("placement", "axes", "verdict"),
    [
        ("eval-always", HARD, Verdict.EXACT),
        ("eval-cudnn-off-forward", HARD, Verdict.EXACT),
        ("rnn-train-dropout-zero", HARD, Verdict.EXACT),
        ("rnn-train-rest-eval", HARD, Verdict.DIFFERS),
        ("rnn-train-rest-eval", {**HARD, "dropout": 0.0}, Verdict.EXACT),
        ("train-for-gradient", {**HARD, "dropout": 0.0}, Verdict.DIFFERS),
        ("train-in-forward", HARD, Verdict.DIFFERS),
        ("train-each-epoch", {**HARD, "dropout": 0.0}, Verdict.EXACT),
        ("train-each-epoch", HARD, Verdict.NOT_COMPARABLE),
        ("eval-after-epoch", HARD, Verdict.DIFFERS),
    ],
    ids=str,
)
def test_two_processes_take_the_same_gradient_and_agree_on_it(
    cpu: LocalExecutor, placement: str, cell: str, axes: dict[str, Value], verdict: Verdict
) -> None:
    records = twice(cpu, {"cell": cell, "placement": placement, **axes})
    assert [record.outcome for record in records] == [Outcome.OK, Outcome.OK]
    assert records[0].exactness == records[1].exactness
    found = judge(records)
    assert found is not None
    assert (found.verdict, found.repeatable) == (verdict, True)


def test_timed_blocks_change_nothing_but_the_times(cpu: LocalExecutor) -> None:
    axes: dict[str, Value] = {"placement": "train-each-epoch", **HARD}
    plain, _ = twice(cpu, axes)
    timed, again = twice(cpu, axes, replace(SETTINGS, timed_blocks=6, block_ms=5.0))
    for record, (whole, in_parts) in zip((plain, timed, again), ((0, 0), (6, 2), (6, 2)), strict=True):
        steady = [sample for sample in record.samples if sample.steady]
        assert sum(sample.forward_s is None for sample in steady) == whole
        assert sum(sample.forward_s is not None for sample in steady) == in_parts
    for field in ("outcome", "phase", "epoch", "step", "losses_digest", "weights_digest", "exactness", "sightings"):
        assert getattr(timed, field) == getattr(plain, field) == getattr(again, field), field


def test_timing_ends_before_the_deadline_does(cpu: LocalExecutor) -> None:
    """However many blocks are asked for, an attempt that is ok does not become a timeout over them."""
    settings = replace(SETTINGS, timed_blocks=1000, block_ms=50.0, deadline=12.0)
    (record,) = cpu.run([Order("run", make_variant({}), Device.CPU, settings)], 1, StopRequest())
    assert record.outcome is Outcome.OK
    assert 0 < sum(sample.steady for sample in record.samples) < 1000


def test_an_attempt_that_failed_is_not_examined(cpu: LocalExecutor) -> None:
    for record in twice(cpu, {"placement": "eval-no-grad"}):
        assert (record.outcome, record.exactness) == (Outcome.ERROR, None)


def test_the_stub_claims_nothing(on_stub: LocalExecutor) -> None:
    settings = replace(SETTINGS, timed_blocks=6)
    for placement, outcome in (("train-each-epoch", Outcome.OK), ("eval-always", Outcome.BACKWARD_ERROR)):
        for record in twice(on_stub, {"placement": placement, **HARD}, settings, Device.STUB):
            assert (record.outcome, record.exactness, record.samples) == (outcome, None, ())
