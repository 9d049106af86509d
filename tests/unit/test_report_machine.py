"""A machine that was not quiet is said to have been so: in the report, and beside the verdicts of a comparison."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from builders import make_plan, make_records
from fake_machine import FakeMachine, one_more, replicated

from harness.measured import MachineState
from harness.model import Device, Plan, Record
from harness.report import render
from harness.report.compare import Rules, compare
from harness.report.compare.words import caveats
from harness.report.machine import machine_caveats, unsettled
from harness.statistics import Steadiness

QUIET = MachineState(load=0.9, cpu_mhz=3000.0)
QUIET_GPU = MachineState(load=0.9, cpu_mhz=3000.0, sm_mhz=1980, throttled=(), foreign_processes=0)
CORES = 2

DISTURBED: dict[str, tuple[Device, MachineState, str]] = {
    "load": (Device.CPU, replace(QUIET, load=4.2), "the load of the host was 4.2 (median over blocks) with 2 cores"),
    "clock of the CPU": (Device.CPU, replace(QUIET, cpu_mhz=2000.0), "CPU's clock moved between 2,000 and 3,000 MHz"),
    "clock of the GPU": (Device.CUDA, replace(QUIET_GPU, sm_mhz=1200), "GPU's clock moved between 1,200 and 1,980 MHz"),
    "throttling": (Device.CUDA, replace(QUIET_GPU, throttled=("hw-thermal",)), "hw-thermal in 67% of the blocks"),
    "strangers": (Device.CUDA, replace(QUIET_GPU, foreign_processes=2), "2 other processes computed on the GPU"),
}


def made(device: Device, states: Sequence[MachineState]) -> tuple[Plan, list[Record]]:
    """A run whose timed blocks saw these states in turn."""
    plan = replicated(make_plan(cells=("lstm",), devices=(device,), placements=("train-always", "eval-always")), 6)
    plan = replace(plan, environment={**plan.environment, "cores": CORES})
    return plan, [with_states(record, states) for record in FakeMachine(1).run(plan)]


def with_states(record: Record, states: Sequence[MachineState]) -> Record:
    samples = (replace(s, machine=states[i % len(states)]) for i, s in enumerate(record.samples))
    return replace(record, samples=tuple(samples))


def usual(device: Device) -> MachineState:
    return QUIET_GPU if device is Device.CUDA else QUIET


@pytest.mark.parametrize("name", DISTURBED)
def test_a_disturbance_is_a_caveat_of_the_report_and_of_a_comparison(name: str) -> None:
    device, state, words = DISTURBED[name]
    plan, records = made(device, [usual(device), state, state])
    assert words in render(plan, records, "md")
    quiet = made(device, [usual(device)])
    (told,) = [c for c in caveats(compare(quiet, (one_more(plan), again(plan, records)), Rules())) if words in c]
    assert told.startswith("In B: ")


@pytest.mark.parametrize("device", [Device.CPU, Device.CUDA])
def test_a_quiet_machine_has_none(device: Device) -> None:
    plan, records = made(device, [usual(device)])
    assert machine_caveats(device, records, CORES) == []
    said = caveats(compare((plan, records), (one_more(plan), again(plan, records)), Rules()))
    assert not any(sentence.startswith(("In A", "In B")) for sentence in said)


@pytest.mark.parametrize("device", [Device.CPU, Device.CUDA])
def test_what_could_not_be_read_is_no_disturbance(device: Device) -> None:
    _, records = made(device, [MachineState()])
    assert machine_caveats(device, records, None) == []
    assert machine_caveats(device, [], CORES) == []


def test_a_single_odd_reading_among_many_is_none() -> None:
    _, records = made(Device.CPU, [QUIET])
    records[0] = with_states(records[0], [*[QUIET] * 6, replace(QUIET, cpu_mhz=900.0)])
    assert machine_caveats(Device.CPU, records[:5], CORES) == []
    assert machine_caveats(Device.CPU, records[:1], CORES) != []


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ([Steadiness.STEADY, None], ""),
        ([Steadiness.STEADY, Steadiness.DRIFTS], "of 1 of 2 variants on `cpu` had not settled"),
        ([Steadiness.TOO_FEW], "1 variant on `cpu` had too few blocks to say"),
        ([], ""),
    ],
)
def test_times_that_have_not_settled_are_counted(found: list[Any], words: str) -> None:
    said = unsettled(Device.CPU, found)
    assert words in said
    assert bool(said) is bool(words)


def test_the_report_says_how_many_have_not_settled() -> None:
    plan = make_plan(devices=(Device.CPU,))
    assert "had too few blocks to say whether their times had settled" in render(plan, make_records(plan), "md")


def again(plan: Plan, records: list[Record]) -> list[Record]:
    return [replace(record, run=one_more(plan).run) for record in records]
