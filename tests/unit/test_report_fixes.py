"""The fix table: recommends only what the evidence supports, names its devices, and invents no price."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_plan, make_record, make_records
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model import Device, KernelPath, Outcome, Plan, Record, Sample, Settings, Wants
from harness.placements import PLACEMENTS
from harness.report import render
from harness.report.evidence import Evidence
from harness.report.fixes import Advice, Fix, Table, fix_tables

PLAN = make_plan(cells=("lstm", "gru"))
RECORDS = make_records(PLAN)


def tables(plan: Plan, records: list[Record]) -> list[Table]:
    return fix_tables(plan, Evidence.of(plan, records).results)


def fixes(plan: Plan, records: list[Record]) -> dict[str, Fix]:
    return {fix.placement.name: fix for table in tables(plan, records) for fix in table.fixes}


def unseen(records: list[Record]) -> list[Record]:
    """The records, as they were before anybody looked at gradients."""
    return [replace(record, exactness=None) for record in records]


def section(report: str) -> str:
    return report.partition("\n## What to use instead\n")[2].partition("\n## ")[0]


def change(placement: str, device: Device, **changes: object) -> list[Record]:
    chosen = f"placement={placement},"
    return [
        replace(r, **changes) if chosen in r.label and r.device is device else r  # type: ignore[arg-type]
        for r in RECORDS
    ]


# --- which tables there are


def test_placements_that_share_their_candidates_share_a_table() -> None:
    cured = [[placement.name for placement in table.cures] for table in tables(PLAN, RECORDS)]
    assert cured == [
        ["eval-after-epoch", "eval-by-helper", "train-before-backward"],
        ["eval-always", "eval-then-use", "inner-loop-in-eval", "eval-cudnn-off-backward"],
        ["rnn-eval-rest-train"],
        ["eval-output-reused"],
    ]


def test_candidates_have_the_same_goal_and_fit_the_program() -> None:
    for table in tables(PLAN, RECORDS):
        for fix in table.fixes:
            assert {fix.placement.wants} == {placement.wants for placement in table.cures}
    plain = tables(PLAN, RECORDS)[0]
    assert "eval-output-detached" not in {fix.placement.name for fix in plain.fixes}  # there is no such output here


def test_where_nothing_raises_there_is_nothing_to_fix() -> None:
    plan = make_plan(placements=("train-always", "eval-cudnn-off-forward"))
    assert tables(plan, make_records(plan)) == []
    cpu = make_plan(devices=(Device.CPU,))
    assert section(render(cpu, make_records(cpu), "md")) == ""
    assert tables(PLAN, []) == []


# --- advice


def test_only_what_is_exact_and_leaves_nothing_behind_is_recommended() -> None:
    advice = {name: fix.advice for name, fix in fixes(PLAN, RECORDS).items()}
    use = {name for name, said in advice.items() if said is Advice.USE}
    assert use == {"rnn-train-dropout-zero", "eval-cudnn-off-forward", "eval-cudnn-off-process"}
    assert advice["rnn-train-rest-eval"] is advice["train-for-gradient"] is Advice.WRONG
    assert advice["train-each-epoch"] is Advice.AS_WANTED
    for wrong in ("train-before-backward", "eval-cudnn-off-backward", "eval-always"):
        assert advice[wrong] is Advice.RAISES


def test_what_leaves_something_behind_is_not_simply_recommended() -> None:
    flag = ("torch.backends.cudnn.enabled", "rnn.training")
    records = [
        replace(r, exactness=replace(r.exactness, changed=flag))
        if r.exactness and "cudnn-off-process" in r.label
        else r
        for r in RECORDS
    ]
    assert fixes(PLAN, records)["eval-cudnn-off-process"].advice is Advice.SIDE_EFFECTS
    report = section(render(PLAN, records, "md"))
    assert "Leaves torch.backends.cudnn.enabled changed. Afterwards the mode of rnn is not as before." in report
    assert re.search(r"\| eval-cudnn-off-process .*\| cuDNN flag, modes +\|", report)


def test_without_a_look_at_gradients_nothing_is_recommended() -> None:
    found = fixes(PLAN, unseen(RECORDS))
    assert {fix.advice for fix in found.values()} == {Advice.RAISES, Advice.UNMEASURED}
    report = render(PLAN, unseen(RECORDS), "md")
    assert "**use this**" not in report and "Nothing in this run is shown to be a cure" in report


def test_what_has_not_run_where_the_error_can_occur_has_no_evidence() -> None:
    records = [r for r in RECORDS if "placement=eval-cudnn-off-forward," not in r.label or r.device is Device.CPU]
    assert fixes(PLAN, records)["eval-cudnn-off-forward"].advice is Advice.UNKNOWN


@pytest.mark.parametrize("outcome", [Outcome.OOM, Outcome.ERROR, Outcome.CRASH])
def test_what_fails_in_another_way_is_no_cure(outcome: Outcome) -> None:
    records = change("eval-cudnn-off-forward", Device.STUB, outcome=outcome)
    assert fixes(PLAN, records)["eval-cudnn-off-forward"].advice is Advice.FAILS


def test_one_variant_that_raises_is_enough() -> None:
    records = list(RECORDS)
    index = next(
        i
        for i, r in enumerate(records)
        if "cudnn=on,placement=eval-cudnn-off-forward" in r.label and r.device == "stub"
    )
    records[index] = replace(records[index], outcome=Outcome.BACKWARD_ERROR)
    assert fixes(PLAN, records)["eval-cudnn-off-forward"].advice is Advice.RAISES
    assert "`eval-cudnn-off-forward` (1 of 4 variants on `stub`)" in section(render(PLAN, records, "md"))


def test_two_attempts_that_differ_are_not_repeatable() -> None:
    plan = replace(PLAN, settings=Settings(replicates=2))
    records = [
        replace(r, exactness=replace(r.exactness, gradient_digest=f"{r.replicate}" * 16))
        if r.exactness and "dropout-zero" in r.label
        else r
        for r in make_records(plan)
    ]
    assert fixes(plan, records)["rnn-train-dropout-zero"].advice is Advice.UNREPEATABLE
    assert "no, in 4 of 4" in section(render(plan, records, "md"))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(Outcome), min_size=48, max_size=48), st.booleans())
def test_use_this_always_has_its_evidence(outcomes: list[Outcome], looked: bool) -> None:
    plan = make_plan(cells=("lstm",), directions=(False,), flags=("on",))
    places = [(variant, device) for variant in plan.variants for device in plan.devices]
    records = [
        replace(make_record(plan, variant, device), outcome=outcome)
        for (variant, device), outcome in zip(places, outcomes, strict=True)
    ]
    records = records if looked else unseen(records)
    for table in tables(plan, records):
        for fix in table.usable:
            assert set(fix.outcomes[Device.STUB]) == {Outcome.OK} and looked
            assert fix.placement.wants is not Wants.TRAIN and not fix.side_effects
    assert render(plan, records, "md")


# --- prices


def test_prices_come_from_devices_that_compute_and_never_from_what_raises() -> None:
    for name, fix in fixes(PLAN, RECORDS).items():
        assert set(fix.speed) == set(fix.memory) == (set() if PLACEMENTS[name].raises else {Device.CPU})
    assert "throughput (stub)" not in section(render(PLAN, RECORDS, "md"))


def test_on_a_gpu_the_price_is_relative_to_a_step_that_ran_cudnn() -> None:
    plan = make_plan(cells=("lstm",), devices=(Device.CUDA,))
    records = make_records(plan)
    price = fixes(plan, records)["eval-cudnn-off-forward"].speed[Device.CUDA]
    assert price.ratio == pytest.approx(0.2 / 0.9, rel=0.1) and price.pairs == 2 and price.interval is None
    elsewhere = [replace(r, path=KernelPath.NATIVE) if "placement=train-always," in r.label else r for r in records]
    assert fixes(plan, elsewhere)["eval-cudnn-off-forward"].speed == {}
    assert "not a price on a GPU" not in render(plan, records, "md")


def test_without_train_always_the_other_train_step_is_the_baseline() -> None:
    plan = make_plan(placements=("train-each-epoch", "eval-always", "eval-cudnn-off-forward"), cells=("lstm",))
    records = make_records(plan)
    assert "the train step of `train-each-epoch`" in section(render(plan, records, "md"))
    without = make_plan(placements=("eval-always", "eval-cudnn-off-forward"), cells=("lstm",))
    assert fixes(without, make_records(without))["eval-cudnn-off-forward"].speed == {}


def test_six_replicates_give_an_interval_and_fewer_a_range() -> None:
    plan = replace(make_plan(cells=("lstm",), devices=(Device.CUDA,)), settings=Settings(replicates=6))
    records = make_records(plan)
    price = fixes(plan, records)["eval-cudnn-off-forward"].speed[Device.CUDA]
    assert price.interval is not None and price.interval.low <= price.ratio <= price.interval.high
    assert "In brackets: 95 % interval" in render(plan, records, "md")
    assert "which is no interval" in render(PLAN, RECORDS, "md")


def test_a_gradient_that_is_not_applied_is_compared_without_the_optimizer() -> None:
    plan = make_plan(cells=("lstm",), devices=(Device.CPU, Device.STUB), directions=(False,), flags=("on",))
    whole = {"eval-cudnn-off-forward": 3.0}
    records = []
    for variant in plan.variants:
        for device in plan.devices:
            record, seconds = make_record(plan, variant, device), whole.get(str(variant["placement"]), 6.0)
            block = Sample(2, 1, seconds, forward_s=1.0, backward_s=2.0, optimizer_s=seconds - 3)
            records.append(replace(record, samples=(block,) if record.samples else ()))
    found = fixes(plan, records)
    assert found["eval-cudnn-off-forward"].speed[Device.CPU].ratio == 1
    assert found["eval-before-backward"].speed[Device.CPU].ratio == 1
    assert "1.00x¹" in section(render(plan, records, "md"))
    # Where one side has no parts, both are taken whole.
    untold = [replace(r, samples=tuple(replace(s, optimizer_s=None) for s in r.samples)) for r in records]
    lacking = [u if "placement=eval-cudnn-off-forward," in u.label else r for u, r in zip(untold, records, strict=True)]
    assert fixes(plan, lacking)["eval-cudnn-off-forward"].speed[Device.CPU].ratio == 2


# --- the section


def test_the_section_says_what_a_cpu_price_is_not_and_names_every_device() -> None:
    report = section(render(PLAN, RECORDS, "md"))
    assert "a price on `cpu` is not a price on a GPU" in report
    heading = next(line for line in report.splitlines() if line.startswith("| placement"))
    names = [name.strip() for name in heading.strip("|").split("|")]
    assert names == [
        "placement",
        "verdict",
        "raises? (stub)",
        "exact? (cpu)",
        "repeatable? (cpu)",
        "throughput (cpu)",
        "memory (cpu)",
        "side effects",
    ]
    assert "differs: dropout active (rnn, dropout)" in report


def test_every_candidate_has_a_row_and_a_line_that_says_how_in_the_same_order() -> None:
    for part in section(render(PLAN, RECORDS, "md")).split("\n### ")[1:]:
        rows = re.findall(r"^\| ([a-z-]+) +\| ", part, flags=re.MULTILINE)[1:]
        lines = re.findall(r"^- `([a-z-]+)`: `(.+?)`\.", part, flags=re.MULTILINE)
        assert rows and [name for name, _ in lines] == rows
        assert all(PLACEMENTS[name].recipe.replace("  #", " #") == recipe for name, recipe in lines)
        raising = part.partition("After the same goal, but raising: ")[2].partition("\n")[0]
        assert raising and not set(re.findall(r"`([a-z-]+)`", raising)) & set(rows)


def test_what_has_no_row_is_told_where_it_belongs() -> None:
    report = section(render(PLAN, RECORDS, "md"))
    stands = [line for line in report.splitlines() if "`harness.eval_gradients(model)`" in line]
    assert len(stands) == 1 and stands[0].startswith("- `rnn-train-dropout-zero`: ")
    assert "it has no row of its own." in stands[0] and "eval_gradients" not in PLACEMENTS
    untold = make_plan(placements=("eval-always", "eval-cudnn-off-forward"))
    assert "eval_gradients" not in section(render(untold, make_records(untold), "md"))


@pytest.mark.parametrize("looked", [True, False])
def test_only_the_table_of_frozen_rnns_points_to_the_cure_it_did_not_try(looked: bool) -> None:
    report = section(render(PLAN, RECORDS if looked else unseen(RECORDS), "md"))
    parts = {part.partition("\n")[0]: part for part in report.split("\n### ")[1:]}
    told = {heading for heading, part in parts.items() if "`harness.eval_gradients(model.rnn)`" in part}
    frozen = {heading for heading in parts if "through a frozen RNN" in heading}
    assert len(frozen) == 1 and told == frozen
    page = Path(__file__).parents[2] / "docs" / "fix-it.md"
    assert "with harness.eval_gradients(model.rnn):" in page.read_text().partition("### Frozen RNNs")[2]


def test_one_attempt_is_no_test_of_repeatability() -> None:
    rows = [line for line in section(render(PLAN, RECORDS, "md")).splitlines() if line.startswith("| train-each-epoch")]
    assert rows and all("| not tested " in row for row in rows)
    plan = replace(PLAN, settings=Settings(replicates=2))
    twice = section(render(plan, make_records(plan), "md"))
    assert "| not tested " not in twice and re.search(r"\| train-each-epoch .*\| yes +\|", twice)


@pytest.mark.parametrize("replicates", [1, 2])
@pytest.mark.parametrize("looked", [True, False])
def test_a_cell_is_explained_exactly_where_there_is_one(replicates: int, looked: bool) -> None:
    plan = replace(PLAN, settings=Settings(replicates=replicates))
    records = make_records(plan)
    report = section(render(plan, records if looked else unseen(records), "md"))
    rows = [line for line in report.splitlines() if line.startswith("| ")]
    cells = {cell.strip() for line in rows for cell in line.strip("|").split("|")}
    assert ("*not tested*: " in report) == ("not tested" in cells) == (looked and replicates == 1)
    assert ("An empty cell: " in report) == ("" in cells) == (not looked)


def test_noise_of_equal_work_is_told() -> None:
    report = section(render(PLAN, RECORDS, "md"))
    assert "Noise on `cpu`: the steps of " in report
    assert "cannot be believed" not in report
    slow = change("train-each-step", Device.CPU)
    slow = [
        replace(r, samples=tuple(replace(s, wall_s=2 * s.wall_s) for s in r.samples))
        if "train-each-step" in r.label
        else r
        for r in slow
    ]
    assert "A difference smaller than that cannot be believed" in section(render(PLAN, slow, "md"))
