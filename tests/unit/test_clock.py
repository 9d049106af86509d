"""The block clock: raw samples whose parts add up, CUDA by events with one synchronisation, nothing on the stub."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from harness.measured import MachineState
from harness.trial import clock as clock_module
from harness.trial.clock import BlockClock, Part


class Time:
    """A monotonic clock, and a GPU that runs behind it, both moved by hand (in seconds)."""

    def __init__(self) -> None:
        self.now = 100.0
        self.device = 7.0
        self.log: list[str] = []

    def perf_counter(self) -> float:
        return self.now

    def synchronize(self) -> None:
        self.log.append("synchronize")

    def event(self, *, enable_timing: bool) -> Any:
        assert enable_timing
        self.log.append("event")
        return Event(self)


class Event:
    def __init__(self, time: Time) -> None:
        self.time = time
        self.at = 0.0

    def record(self) -> None:
        self.time.log.append("record")
        self.at = self.time.device

    def elapsed_time(self, other: "Event") -> float:
        return 1000 * (other.at - self.at)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Iterator[Time]:
    time = Time()
    monkeypatch.setattr(clock_module.time, "perf_counter", time.perf_counter)
    monkeypatch.setattr(torch.cuda, "synchronize", time.synchronize)
    monkeypatch.setattr(torch.cuda, "Event", time.event)
    return time


def block(clock: BlockClock, time: Time, steps: int, *, epoch: int = 1, steady: bool = False) -> None:
    """``steps`` steps of 2 + 3 + 1 ms on the host and 20 + 30 + 10 ms on the device."""
    clock.start()
    for _ in range(steps):
        for part, ms in ((Part.FORWARD, 2), (Part.BACKWARD, 3), (Part.OPTIMIZER, 1)):
            time.now += ms / 1000
            time.device += ms / 100
            clock.lap(part)
    clock.stop(epoch, steps, steady=steady)


def test_on_a_cpu_the_parts_are_wall_time_and_add_up(time: Time) -> None:
    clock = BlockClock(cuda=False, keep=True, warmup_epochs=1)
    block(clock, time, 1)
    time.now += 5  # an evaluation between two blocks
    block(clock, time, 4, epoch=2)
    first, second = clock.samples
    assert (first.epoch, first.steps, first.warmup, first.device_s) == (1, 1, True, None)
    assert (second.epoch, second.steps, second.warmup, second.device_s) == (2, 4, False, None)
    parts = [second.forward_s, second.backward_s, second.optimizer_s]
    assert parts == pytest.approx([0.008, 0.012, 0.004])
    assert second.wall_s == pytest.approx(0.024)
    assert time.log == []


def test_on_a_gpu_the_parts_are_device_time_and_add_up(time: Time) -> None:
    clock = BlockClock(cuda=True, keep=True, warmup_epochs=0)
    block(clock, time, 5)
    (sample,) = clock.samples
    assert sample.wall_s == pytest.approx(0.03)
    assert sample.device_s == pytest.approx(0.3)
    assert [sample.forward_s, sample.backward_s, sample.optimizer_s] == pytest.approx([0.1, 0.15, 0.05])


@pytest.mark.parametrize("cuda", [False, True])
def test_a_block_without_laps_has_no_parts_and_two_looks_at_the_clock(time: Time, cuda: bool) -> None:
    clock = BlockClock(cuda=cuda, keep=True, warmup_epochs=0)
    block(clock, time, 1)  # with laps: what it left must not be taken for this block's
    time.log.clear()
    clock.start()
    time.now += 0.03
    time.device += 0.3
    clock.stop(2, 5, steady=True)
    sample = clock.samples[-1]
    assert (sample.forward_s, sample.backward_s, sample.optimizer_s) == (None, None, None)
    assert sample.wall_s == pytest.approx(0.03)
    assert sample.device_s == (pytest.approx(0.3) if cuda else None)
    assert time.log == (["synchronize", "record", "record", "synchronize"] if cuda else [])


def test_a_gpu_is_waited_for_once_before_and_once_after_a_block(time: Time) -> None:
    clock = BlockClock(cuda=True, keep=True, warmup_epochs=0)
    block(clock, time, 7)
    assert time.log[0] == time.log[-1] == "synchronize"
    assert time.log.count("synchronize") == 2
    assert time.log.count("record") == 1 + 3 * 7


def test_events_are_made_once_and_used_again(time: Time) -> None:
    clock = BlockClock(cuda=True, keep=True, warmup_epochs=0)
    block(clock, time, 7)
    time.log.clear()
    block(clock, time, 7)
    block(clock, time, 2)
    assert "event" not in time.log
    assert [sample.device_s for sample in clock.samples] == pytest.approx([0.42, 0.42, 0.12])


def test_the_machine_is_read_when_a_block_is_over_and_never_inside_one(time: Time) -> None:
    read_at: list[float] = []

    def read() -> MachineState:
        read_at.append(time.now)
        time.now += 50
        return MachineState(load=float(len(read_at)))

    clock = BlockClock(cuda=False, keep=True, warmup_epochs=0, read=read)
    block(clock, time, 2)
    block(clock, time, 2, epoch=2, steady=True)
    assert read_at == pytest.approx([100.012, 150.024])
    assert [sample.wall_s for sample in clock.samples] == pytest.approx([0.012, 0.012])
    assert [sample.machine for sample in clock.samples] == [MachineState(load=1.0), MachineState(load=2.0)]
    assert [sample.steady for sample in clock.samples] == [False, True]


@pytest.mark.parametrize("cuda", [False, True])
def test_where_no_kernel_runs_nothing_is_timed_or_asked(time: Time, cuda: bool) -> None:
    def read() -> MachineState:
        raise AssertionError("asked")

    clock = BlockClock(cuda=cuda, keep=False, warmup_epochs=0, read=read)
    block(clock, time, 3)
    assert clock.samples == []
    assert time.log == []


def test_a_block_without_steps_is_none(time: Time) -> None:
    clock = BlockClock(cuda=False, keep=True, warmup_epochs=0)
    clock.start()
    clock.stop(1, 0)
    assert clock.samples == []
