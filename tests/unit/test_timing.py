"""Timed blocks: the same steps as in the epochs, whole and in parts; and which of them a step's time is read from."""

from dataclasses import replace

import pytest
import torch

from harness import blocks
from harness.matrix.axes import make_variant
from harness.measured import Sample
from harness.model import Device, Order, Outcome, Record, Settings, Value
from harness.placements import PLACEMENTS
from harness.trial.digest import digest
from harness.trial.loop import Loop
from harness.trial.timing import PARTS_EVERY, Timing
from harness.wire import BREADCRUMB_SIZE, Breadcrumb

AXES: dict[str, Value] = {"layers": 2, "dropout": 0.2, "norm": "batch-norm", "batch": 4, "seq-len": 3}
TRAINABLE = [name for name in PLACEMENTS if name != "eval-no-grad"]


def timing_of(**axes: Value) -> tuple[Loop, Timing]:
    settings = Settings(epochs=1, steps=1, evaluation_steps=0)
    loop = Loop(
        Order("run", make_variant({**AXES, **axes}), Device.CPU, settings), Breadcrumb(bytearray(BREADCRUMB_SIZE))
    )
    loop.run()
    loop.time_steadily()  # no blocks; takes the watch away
    return loop, Timing(loop._rig, loop._optimizer, loop.clock)


def state_after(kind: str, **axes: Value) -> str:
    """What three steps of a kind of block make of weights, statistics and modes."""
    enabled = torch.backends.cudnn.enabled
    try:
        loop, timing = timing_of(**axes)
        torch.manual_seed(1)
        getattr(timing, kind)(2, 3)
        net = loop._rig.net
        modes = [module.training for module in net.modules()]
        return digest([value.double().reshape(-1) for value in net.state_dict().values()] + [torch.tensor(modes)])
    finally:
        torch.backends.cudnn.enabled = enabled


@pytest.mark.parametrize("autocast", ["none", "bfloat16"])
@pytest.mark.parametrize("name", TRAINABLE)
def test_a_whole_block_takes_the_very_steps_that_a_block_in_parts_takes(name: str, autocast: str) -> None:
    """One of them is written out for speed: for every placement it has to come to the same, to the bit."""
    axes: dict[str, Value] = {"placement": name, "autocast": autocast}
    assert state_after("whole", **axes) == state_after("parts", **axes)


def test_the_comparison_above_can_fail() -> None:
    assert state_after("whole", placement="train-always") != state_after("whole", placement="eval-then-use")
    assert state_after("whole", placement="train-always") != state_after("whole", placement="eval-output-reused")


def test_what_a_placement_does_within_a_step_is_in_the_timed_step() -> None:
    loop, timing = timing_of(placement="train-each-step")
    loop._rig.net.eval()
    timing.whole(2, 1)
    assert loop._rig.net.training


@pytest.mark.parametrize(("amount", "in_parts"), [(0, 0), (1, 1), (2, 1), (PARTS_EVERY, 1), (6, 2), (8, 3)])
def test_blocks_in_parts_come_between_the_whole_ones(amount: int, in_parts: int) -> None:
    loop, timing = timing_of()
    timing.blocks(2, amount, 0.0, lambda: False)
    steady = [sample for sample in loop.clock.samples if sample.steady]
    assert sum(sample.forward_s is None for sample in steady) == amount
    assert sum(sample.forward_s is not None for sample in steady) == in_parts
    assert [sample.epoch for sample in steady] == list(range(2, 2 + amount + in_parts))


def test_no_block_begins_when_it_is_late() -> None:
    loop, timing = timing_of()
    answers = iter([False, False, True])
    timing.blocks(2, 8, 0.0, lambda: next(answers))
    assert sum(sample.steady for sample in loop.clock.samples) == 2


# --- which blocks count

EPOCH = Sample(2, 10, 10.0, forward_s=4.0, backward_s=5.0, optimizer_s=1.0)
IN_PARTS = Sample(3, 10, 30.0, steady=True, forward_s=12.0, backward_s=15.0, optimizer_s=3.0)
WHOLE = Sample(4, 10, 20.0, steady=True)


def record_of(*samples: Sample) -> Record:
    return Record("run", "key", "label", Device.CPU, Outcome.OK, samples=samples)


@pytest.mark.parametrize(
    ("samples", "step", "forward"),
    [
        ([EPOCH], 1.0, 0.4),
        ([EPOCH, IN_PARTS], 3.0, 1.2),
        ([EPOCH, IN_PARTS, WHOLE], 2.0, 1.2),
        ([EPOCH, WHOLE], 2.0, 0.4),
        ([EPOCH, replace(WHOLE, wall_s=float("nan"))], 1.0, 0.4),
        ([replace(EPOCH, forward_s=None)], 1.0, None),
        ([], None, None),
    ],
    ids=["epochs", "all in parts, as older records have it", "both", "whole only", "no time", "first version", "none"],
)
def test_a_step_is_read_from_whole_blocks_and_its_parts_from_the_others(
    samples: list[Sample], step: float | None, forward: float | None
) -> None:
    record = record_of(*samples)
    assert (blocks.step_seconds(record), blocks.part_seconds(record, "forward")) == (step, forward)


def test_warm_up_is_read_apart() -> None:
    record = record_of(replace(EPOCH, warmup=True, wall_s=90.0), EPOCH)
    assert list(blocks.block_seconds(record)) == [1.0]
    assert list(blocks.block_seconds(record, warmup=True)) == [9.0]
