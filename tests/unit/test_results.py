"""How records become outcomes and numbers: by the plan, whatever order and number they come in."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from store_samples import FINE, PLAN, RAISES, RECORDS, cpu_record

from harness.blocks import Part, block_seconds
from harness.exactness import Verdict
from harness.measured import Exactness, Sample
from harness.model import Device, Outcome, Plan, Record, Settings
from harness.results import (
    WORST_FIRST,
    Result,
    by_variant,
    collect,
    count_outcomes,
    count_variants,
    decisive_first,
    results_of,
)
from harness.statistics import Steadiness

THRICE = replace(PLAN, settings=Settings(replicates=3))


def on_cpu(*records: Record, plan: Plan = THRICE) -> Result:
    (result,) = (result for result in results_of(plan, FINE, records) if result.device is Device.CPU)
    return result


def on_gpu(**changes: Any) -> Result:
    record = replace(cpu_record(FINE), device=Device.CUDA, **changes)
    (result,) = results_of(replace(PLAN, devices=(Device.CUDA,)), FINE, [record])
    return result


# --- the plan is walked


def test_there_is_one_result_per_planned_variant_and_device_in_the_plans_order() -> None:
    for records in (RECORDS, RECORDS[::-1], RECORDS[:1], ()):
        found = collect(PLAN, records)
        places = [(variant.key, device) for variant in PLAN.variants for device in PLAN.devices]
        assert [(result.key, result.device) for result in found.results] == places
        assert found.strays == 0


def test_without_a_record_nothing_is_claimed() -> None:
    result = on_cpu()
    assert (result.outcome, result.decisive, result.attempts, result.complete) == (Outcome.NOT_RUN, None, 0, False)
    for value in (result.step_ms, result.step_clock, result.peak_memory_bytes, result.attempt_s):
        assert value is None


@pytest.mark.parametrize("change", [{"run": "another"}, {"key": "0" * 12}, {"device": Device.CUDA}])
def test_what_was_not_planned_is_a_stray(change: dict[str, Any]) -> None:
    stray = replace(RECORDS[0], **change)
    assert collect(PLAN, [stray, *RECORDS]).strays == 1
    assert [len(records) for _, records in by_variant(PLAN, [stray, *RECORDS])] == [2, 2, 2]


# --- replicates and retries


def test_the_latest_attempt_of_a_replicate_counts_wherever_it_stands() -> None:
    first, second = cpu_record(FINE, Outcome.CRASH), cpu_record(FINE, attempt=2)
    for records in ((first, second), (second, first)):
        result = on_cpu(*records)
        assert (result.records, result.superseded, result.outcome) == ((second,), 1, Outcome.OK)


def test_a_retry_replaces_and_the_worst_replicate_counts() -> None:
    result = on_cpu(
        cpu_record(FINE, Outcome.CRASH),
        cpu_record(FINE, attempt=2),
        cpu_record(FINE, replicate=2),
        cpu_record(FINE, Outcome.ERROR, replicate=1),
    )
    assert [(record.replicate, record.attempt) for record in result.records] == [(0, 2), (1, 1), (2, 1)]
    assert result.outcome is Outcome.ERROR
    assert result.decisive is result.records[1]
    assert result.complete and not result.timed


def test_every_outcome_has_its_place_and_a_good_one_never_hides_a_bad_one() -> None:
    assert sorted(WORST_FIRST) == sorted(Outcome)
    for place, worst in enumerate(WORST_FIRST):
        for other in WORST_FIRST[place:]:
            assert on_cpu(cpu_record(FINE, other), cpu_record(FINE, worst, replicate=1)).outcome is worst


def test_what_never_started_is_no_attempt() -> None:
    result = on_cpu(cpu_record(FINE), cpu_record(FINE, Outcome.SKIPPED, replicate=1))
    assert (len(result.records), result.attempts) == (2, 1)


# --- numbers


def test_a_speed_is_the_median_of_medians_without_warm_up() -> None:
    blocks = ((0.1, 0.2, 0.9), (0.4, 0.4, 0.4), (8.0, 8.0, 8.0))
    result = on_cpu(
        *(
            cpu_record(FINE, replicate=number, sequences_per_step=10, timesteps_per_step=100, first_step_s=number,
                       samples=(Sample(1, 2, 99.0, warmup=True), *(Sample(2, 2, 2 * s) for s in seconds)))
            for number, seconds in enumerate(blocks)
        )
    )  # fmt: skip
    assert result.step_ms == pytest.approx(400)
    assert result.first_step_ms == pytest.approx(1000)
    assert result.sequences_per_second == pytest.approx(25)
    assert result.timesteps_per_second == pytest.approx(250)
    assert result.step_clock == "wall"


def test_blocks_timed_after_the_epochs_count_alone() -> None:
    epochs = (Sample(1, 1, 9.0, warmup=True), Sample(2, 4, 8.0))
    steady = tuple(Sample(number, 10, 10.0 + number / 100, steady=True) for number in range(3, 10))
    record = cpu_record(FINE, samples=(*epochs, *steady))
    result = on_cpu(record)
    assert result.step_ms == pytest.approx(1006)
    assert result.steadiness is Steadiness.STEADY
    assert list(block_seconds(record, warmup=True)) == [9.0]
    assert on_cpu(replace(record, samples=epochs)).step_ms == 2000


def test_the_parts_of_a_step_are_summarised_like_the_step() -> None:
    blocks = [Sample(2, 4, 4.0, forward_s=1.0 * n, backward_s=2.0 * n, optimizer_s=0.4) for n in (1, 2, 3)]
    result = on_cpu(cpu_record(FINE, samples=tuple(blocks)))
    parts: tuple[Part, ...] = ("forward", "backward", "optimizer")
    assert [result.part_ms(part) for part in parts] == pytest.approx([500, 1000, 100])
    assert on_cpu(cpu_record(FINE)).part_ms("forward") is None, "a record of the first version"
    assert on_cpu(cpu_record(FINE), cpu_record(FINE, Outcome.CRASH, replicate=1)).part_ms("forward") is None


def test_the_worst_replicate_says_whether_times_have_settled() -> None:
    def of(*seconds: float, replicate: int) -> Record:
        return cpu_record(FINE, replicate=replicate, samples=tuple(Sample(2, 1, s, steady=True) for s in seconds))

    steady, drifting, few = of(*[1.0] * 6, replicate=0), of(1, 2, 3, 4, 5, 6, replicate=1), of(1.0, replicate=2)
    assert on_cpu(steady).steadiness is Steadiness.STEADY
    assert on_cpu(steady, few).steadiness is Steadiness.TOO_FEW
    assert on_cpu(steady, few, drifting).steadiness is Steadiness.DRIFTS
    assert on_cpu().steadiness is None


def test_an_interval_of_the_median_needs_six_processes() -> None:
    six = [cpu_record(FINE, replicate=n, samples=(Sample(2, 1, 1.0 + n),)) for n in range(6)]
    plan = replace(PLAN, settings=Settings(replicates=6))
    found = on_cpu(*six, plan=plan).step_ms_interval
    assert found is not None
    assert (found.low, found.high) == (1000, 6000)
    assert on_cpu(*six[:5], plan=plan).step_ms_interval is None


def test_a_gradient_is_judged_over_all_replicates_and_only_where_all_are_ok() -> None:
    seen = Exactness(1e-7, 2e-7, "float32", 1e-4, outputs_equal_eval=True, gradient_digest="aa")
    first, second = cpu_record(FINE, exactness=seen), cpu_record(FINE, exactness=seen, replicate=1)
    both = on_cpu(first, second).gradient
    assert both is not None
    assert (both.verdict, both.repeatable) == (Verdict.EXACT, True)
    other = on_cpu(first, replace(second, exactness=replace(seen, gradient_digest="bb"))).gradient
    assert other is not None
    assert other.verdict is Verdict.NOT_REPEATABLE
    assert on_cpu(first, replace(second, outcome=Outcome.CRASH)).gradient is None
    assert on_cpu(cpu_record(FINE)).gradient is None


def test_device_time_is_preferred_to_wall_time() -> None:
    result = on_gpu(samples=(Sample(2, 4, wall_s=9.0, device_s=4.0),))
    assert (result.step_ms, result.step_clock) == (1000, "device")


@pytest.mark.parametrize(
    "sample",
    [
        Sample(1, 2, 1.0, warmup=True),
        Sample(2, 0, 1.0),
        Sample(2, 2, math.nan),
        Sample(2, 2, math.inf),
        Sample(2, 2, 0.0),
        Sample(2, 2, -1.0),
    ],
)
def test_what_is_no_time_is_no_throughput(sample: Sample) -> None:
    result = on_cpu(cpu_record(FINE, samples=(sample,)))
    assert result.timed
    assert result.step_ms is result.sequences_per_second is None


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.OK])
def test_what_did_not_end_well_has_no_speed_but_a_duration(outcome: Outcome) -> None:
    result = on_cpu(cpu_record(FINE), cpu_record(FINE, outcome, replicate=1))
    assert result.step_ms is result.first_step_ms is result.timesteps_per_second is result.step_clock is None
    assert (result.attempt_s, result.peak_memory_bytes) == (4.0, 1000)


def test_a_stub_that_claims_a_speed_is_not_believed() -> None:
    (result,) = results_of(replace(PLAN, devices=(Device.STUB,)), FINE, [replace(cpu_record(FINE), device=Device.STUB)])
    assert result.outcome is Outcome.OK
    assert result.step_ms is result.sequences_per_second is None


# --- counts


def test_counts_walk_the_plan() -> None:
    results = collect(PLAN, RECORDS[:3]).results
    assert count_variants(results) == {Outcome.BACKWARD_ERROR: 1, Outcome.OK: 1, Outcome.NOT_RUN: 1}
    assert count_outcomes(PLAN, results) == {
        Device.STUB: {Outcome.BACKWARD_ERROR: 1, Outcome.OK: 1, Outcome.NOT_RUN: 1},
        Device.CPU: {Outcome.OK: 1, Outcome.NOT_RUN: 2},
    }
    foreign = replace(RECORDS[2], run="another")
    assert count_variants(collect(PLAN, [*RECORDS[:2], foreign]).results)[Outcome.NOT_RUN] == 2


def test_a_gpu_decides_before_the_stub_and_the_stub_before_a_cpu() -> None:
    plan = replace(PLAN, devices=(Device.CPU, Device.STUB, Device.CUDA))
    gpu = replace(RECORDS[1], device=Device.CUDA)
    assert [r.device for r, _ in decisive_first(results_of(plan, RAISES, [*RECORDS[:2], gpu]))] == [
        Device.CUDA, Device.STUB, Device.CPU,
    ]  # fmt: skip
    recorded = decisive_first(results_of(plan, RAISES, RECORDS[:2]))
    assert [decisive for _, decisive in recorded] == list(RECORDS[:2])


def test_a_run_is_complete_when_every_planned_attempt_has_a_record() -> None:
    assert collect(PLAN, RECORDS).complete
    assert not collect(PLAN, RECORDS[:-1]).complete
    twice = replace(PLAN, settings=Settings(replicates=2))
    assert not collect(twice, RECORDS).complete
    again = [replace(r, replicate=1) for r in RECORDS if r.device is Device.CPU]
    assert collect(twice, [*RECORDS, *again]).complete
    assert not collect(twice, [*RECORDS, *(replace(r, replicate=2) for r in again)]).complete
