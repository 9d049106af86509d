"""What report.md claims."""

from __future__ import annotations

import re
from dataclasses import replace

import pandas as pd
import pytest
from builders import MESSAGE, make_plan, make_record, make_records, spoil, with_numbers
from hypothesis import given
from hypothesis import strategies as st

from harness.model import Caveat, Device, KernelPath, Outcome, Plan, Record, Settings, Sighting
from harness.placements import PLACEMENTS
from harness.report import render, summary
from harness.report.evidence import Evidence
from harness.report.sections.throughput import pairs
from harness.rule import rule_says

PLAN = make_plan()
RECORDS = make_records(PLAN)
SMALL = make_plan(placements=("train-always", "eval-always", "eval-cudnn-off-process"), cells=("lstm", "gru"))


def section(report: str, title: str) -> str:
    return re.split(r"^## ", report.partition(f"\n## {title}\n")[2], flags=re.MULTILINE)[0]


def cells_of(report: str, heading: str) -> dict[str, list[str]]:
    """The rows of the table whose first heading is ``heading``, as a reader of markdown sees them."""
    rows: dict[str, list[str]] = {}
    lines = iter(report.splitlines())
    for line in lines:
        if re.match(rf"\| {heading} +\|", line):
            rows["heading"] = [cell.strip() for cell in line.strip("|").split("|")][1:]
            next(lines)
            for body in lines:
                if not body.startswith("|"):
                    return rows
                first, *rest = (cell.strip() for cell in body.strip("|").split("|"))
                rows[first] = rest
    return rows


def change(records: list[Record], plan: Plan, index: int, device: Device, **changes: object) -> list[Record]:
    """``records``, with the fields of one of them changed."""
    key = plan.variants[index].key
    return [replace(r, **changes) if (r.key, r.device) == (key, device) else r for r in records]  # type: ignore[arg-type]


# --- headline


def test_the_headline_counts_what_raises_and_names_the_stub_as_evidence() -> None:
    told = summary(PLAN, RECORDS)
    assert told.headline.startswith("72 of 384 planned variants raise") and "on stub" in told.headline
    assert "not yet been compared with a GPU" in told.meaning
    assert told.counts[Device.STUB] == {Outcome.OK: 296, Outcome.BACKWARD_ERROR: 72, Outcome.ERROR: 16}
    assert told.attempts == {Device.STUB: 384, Device.CPU: 384} and told.complete


def test_a_cpu_run_says_that_the_error_cannot_occur_there() -> None:
    plan = make_plan(devices=(Device.CPU,))
    report = render(plan, make_records(plan), "md")
    assert "The error cannot occur on this device" in report.split("##")[0]
    assert Caveat.CPU_CANNOT_RAISE in report and "cudnn" not in section(report, "Where it raised")
    assert "stub" not in report.replace("`--device stub`", "")


def test_a_gpu_run_names_the_gpu() -> None:
    plan = make_plan(devices=(Device.CUDA,))
    report = render(plan, make_records(plan), "md")
    assert "on cuda (NVIDIA H200)" in report.split("##")[0]
    assert Caveat.STUB_EVIDENCE not in report and Caveat.CPU_CANNOT_RAISE not in report


def test_a_run_without_records_claims_nothing() -> None:
    told = summary(PLAN, [])
    assert told.headline == "Nothing has run on stub yet: all 384 planned variants are without a record."
    assert not told.complete
    report = render(PLAN, [], "md")
    assert "explains 0 of the 0 records" in report and Caveat.INCOMPLETE in report
    assert "384 on `stub`, `not-run`: no record" in report


def test_an_interrupted_run_says_of_how_many_it_speaks() -> None:
    raised = [r for r in RECORDS if r.device is Device.STUB and r.outcome is Outcome.BACKWARD_ERROR]
    fine = [r for r in RECORDS if r.device is Device.STUB and r.outcome is Outcome.OK]
    told = summary(PLAN, [*raised[:17], *fine[:51]]).headline
    assert told.startswith(f'So far, 17 of the 68 variants that ran (384 are planned) raise "{MESSAGE}" on stub')
    assert "So far, 0 of the 1 variant that ran (384 are planned) raises" in summary(PLAN, fine[:1]).headline
    skipped = replace(fine[0], outcome=Outcome.SKIPPED)
    assert summary(PLAN, [skipped]).headline.endswith("yet: of 384 planned variants 1 was skipped.")
    on_cpu = summary(make_plan(devices=(Device.CPU,)), [r for r in RECORDS if r.device is Device.CPU][:9]).headline
    assert on_cpu.endswith("384 variants planned on cpu, of which 9 ran so far, 0 raise.")


@pytest.mark.parametrize("amount", [0, 1])
def test_one_planned_variant_raises(amount: int) -> None:
    whole = make_plan(devices=(Device.STUB,))
    outcome = Outcome.BACKWARD_ERROR if amount else Outcome.OK
    (record, *_) = [r for r in make_records(whole) if r.outcome is outcome]
    plan = replace(whole, variants=tuple(v for v in whole.variants if v.key == record.key))
    assert summary(plan, [record]).headline.startswith(f"{amount} of 1 planned variant raises ")
    assert "yet: the only planned variant is without" in summary(plan, []).headline


def test_a_program_states_only_the_settings_that_apply() -> None:
    plan = replace(PLAN, matrix="seed simple-rnn")
    assert plan.is_program and not PLAN.is_program
    stated = section(render(plan, RECORDS, "md"), "Environment")
    assert "each attempt: as the program has it; deadline 60 s; 1 replicate" in stated
    assert "learning rate" not in stated and "warm-up" not in stated and "seed 0" not in stated


def test_what_raises_is_only_explained_where_its_records_bear_it_out() -> None:
    assert "ran a forward through cuDNN" in summary(PLAN, RECORDS).meaning
    blind = [replace(r, sightings=()) if r.outcome is Outcome.BACKWARD_ERROR else r for r in RECORDS]
    assert "ran a forward through cuDNN" not in summary(PLAN, blind).meaning


# --- the outcome map


def test_the_map_shows_each_placement_with_cudnn_on_and_off() -> None:
    rows = cells_of(render(PLAN, RECORDS, "md"), "placement")
    assert rows.pop("heading") == ["predicted", "rnn-tanh", "rnn-relu", "lstm", "gru"]
    assert list(rows) == list(PLACEMENTS)
    for name, (predicted, *entries) in rows.items():
        assert set(entries) == {predicted}, name
    assert rows["eval-always"][1] == "RAISES / ok"
    assert rows["eval-no-grad"][1] == "error" and rows["train-always"][1] == "ok"


@pytest.mark.parametrize(("flag", "word"), [("on", "RAISES"), ("off", "ok")])
def test_with_one_setting_of_cudnn_neither_entry_nor_prediction_has_another_side(flag: str, word: str) -> None:
    plan = make_plan(flags=(flag,))
    report = render(plan, make_records(plan), "md")
    rows = cells_of(report, "placement")
    del rows["heading"]
    assert rows["eval-always"][:2] == [word, word] and rows["eval-no-grad"][0] == "error"
    assert not [name for name, cells in rows.items() if any("/" in cell for cell in cells)]
    assert {cells[0] for cells in rows.values()} <= {word, "ok", "error"}
    assert f"cuDNN is {flag} in all of them." in report and "Left of the slash" not in report


def test_an_entry_counts_when_directions_differ_and_says_what_sets_them_apart() -> None:
    records = change(RECORDS, PLAN, 0, Device.STUB, outcome=Outcome.TIMEOUT)
    report = render(PLAN, records, "md")
    assert cells_of(report, "placement")["train-always"][1] == "1 timeout + 1 ok / ok"
    assert (
        "(1 side), 1 variant came out unlike the majority beside them:\n\n- `bidirectional` false: 1 timeout" in report
    )


def test_a_dtype_that_takes_another_path_is_named_as_what_sets_variants_apart() -> None:
    plans = [make_plan(placements=("eval-always",), fixed={"dtype": d}) for d in ("float32", "float16", "bfloat16")]
    plan = replace(plans[0], variants=tuple(variant for each in plans for variant in each.variants))
    records = [
        replace(r, outcome=Outcome.OK, path=KernelPath.NATIVE, sightings=()) if "bfloat16" in r.label else r
        for r in make_records(plan)
    ]
    report = render(plan, records, "md")
    assert cells_of(report, "placement")["eval-always"][1] == "4 RAISES + 2 ok / ok"
    assert "- `path` native: 8 ok\n- `dtype` bfloat16: 8 ok\n\n" in report


def test_a_plan_without_placements_lists_its_variants() -> None:
    variants = tuple(replace(v, axes={"program": v.label}) for v in SMALL.variants[:2])
    plan = replace(SMALL, variants=variants)
    report = render(plan, [], "md")
    assert variants[0].label in section(report, "Outcomes")


# --- prediction and rule


def test_an_outcome_that_differs_from_the_prediction_is_listed_and_marked() -> None:
    index = next(i for i, v in enumerate(PLAN.variants) if v["placement"] == "eval-always" and v["cudnn"] == "on")
    report = render(PLAN, change(RECORDS, PLAN, index, Device.STUB, outcome=Outcome.OK), "md")
    outcomes = section(report, "Outcomes")
    assert f"- {PLAN.variants[index].label}: `ok` on path `cudnn`" in outcomes
    assert cells_of(report, "placement")["eval-always"][1].endswith("(!)")
    assert "1 of them contradict it" in outcomes and "but saw all three facts" in outcomes
    assert "Nothing." not in outcomes
    assert "did not follow the rule" in report.split("##")[0]


def test_without_a_difference_the_report_says_so() -> None:
    outcomes = section(render(PLAN, RECORDS, "md"), "Outcomes")
    assert "Nothing." in outcomes and "explains 384 of the 384 records on `stub`" in outcomes


@pytest.mark.parametrize(
    ("sightings", "verdict"),
    [
        ((), None),
        ((Sighting(1, 1, False, KernelPath.CUDNN, True),), True),
        ((Sighting(1, 1, True, KernelPath.CUDNN, True),), False),
        ((Sighting(1, 1, False, KernelPath.NATIVE, True),), False),
        ((Sighting(1, 1, False, KernelPath.CUDNN, False),), False),
        ((Sighting(1, 1, False, KernelPath.CUDNN, None),), None),
        ((Sighting(1, 1, False, None, True),), None),
        ((Sighting(1, 1, True, KernelPath.CUDNN, True), Sighting(2, 1, False, KernelPath.CUDNN, True)), True),
    ],
)
def test_the_rule_speaks_only_where_the_three_facts_were_seen(
    sightings: tuple[Sighting, ...], verdict: bool | None
) -> None:
    assert rule_says(replace(RECORDS[0], sightings=sightings)) is verdict


def test_a_cpu_record_that_claims_cudnn_is_not_let_pass() -> None:
    report = render(PLAN, change(RECORDS, PLAN, 0, Device.CPU, path=KernelPath.CUDNN), "md")
    assert "A CPU record claims the cuDNN path" in report


def test_where_it_raised_groups_phase_epoch_and_step() -> None:
    where = section(render(PLAN, RECORDS, "md"), "Where it raised")
    assert re.search(r"\| stub +\| backward +\| +2 \| +1 \| +8 \| +8 \| eval-after-epoch +\|", where)
    assert re.search(r"\| stub +\| backward +\| +1 \| +1 \| +48 \|", where)


# --- throughput


OUTCOMES = st.lists(st.sampled_from(Outcome), min_size=len(SMALL.variants) * 3, max_size=len(SMALL.variants) * 3)


@given(OUTCOMES)
def test_no_ratio_involves_a_stub_or_anything_that_is_not_ok(outcomes: list[Outcome]) -> None:
    plan = replace(SMALL, devices=(Device.CUDA, Device.STUB, Device.CPU))
    places = [(variant, device) for variant in plan.variants for device in plan.devices]
    records = [
        replace(with_numbers(make_record(plan, variant, device), variant), outcome=outcome)
        for (variant, device), outcome in zip(places, outcomes, strict=True)
    ]
    fate = {(variant.label, device): outcome for (variant, device), outcome in zip(places, outcomes, strict=True)}
    evidence = Evidence.of(plan, records)
    assert pairs(evidence, Device.STUB).empty
    for device in (Device.CUDA, Device.CPU):
        for label in pairs(evidence, device).get("label", pd.Series(dtype=object)):
            for side in (label, label.replace("cudnn=on", "cudnn=off")):
                assert fate[side, device] is Outcome.OK
                assert Outcome.BACKWARD_ERROR not in {fate[side, other] for other in plan.devices}


def test_on_a_gpu_a_pair_needs_the_path_and_not_only_the_flag() -> None:
    plan = replace(SMALL, devices=(Device.CUDA,))
    found = pairs(Evidence.of(plan, make_records(plan)), Device.CUDA)
    assert set(found["placement"]) == {"train-always"}  # the other ones raise, or run without cuDNN whatever the flag
    assert found["ratio"].between(3, 6).all()


def test_throughput_names_its_device_and_says_what_a_cpu_cannot_say() -> None:
    report = section(render(PLAN, RECORDS, "md"), "Throughput")
    heading = cells_of(report, "cell")["heading"]
    assert heading[1] == "cuDNN on, sequences/s (cpu)" and heading[2] == "cuDNN off, sequences/s (cpu)"
    assert "On a CPU the cuDNN flag has no effect" in report and "no throughput for `stub`" in report
    assert len(re.findall(r"^\| (?:rnn|lstm|gru)", report, flags=re.MULTILINE)) == 8 + 16


def test_a_train_step_is_told_whole_in_parts_and_with_its_first() -> None:
    plan = make_plan(
        placements=("train-always", "train-each-step", "eval-always"), cells=("lstm",), directions=(False,)
    )
    records = make_records(plan)
    rows = cells_of(section(render(plan, records, "md"), "Throughput"), r"train step \(cpu\)")
    assert rows["heading"] == [
        *("path", "cuDNN", "sequences/s", "time steps/s", "step, ms", "forward", "backward", "optimizer"),
        *("first step, ms", "variants", "attempts"),
    ]
    path, _, sequences, steps, whole, *rest = rows["lstm"]
    forward, backward, optimizer, first, variants, attempts = map(float, rest)
    assert (path, variants, attempts) == ("mkldnn", 2, 2), "what raises elsewhere is no train step"
    number = [float(text.replace(",", "")) for text in (sequences, steps, whole)]
    assert number[1] == pytest.approx(24 * number[0], rel=0.01)
    assert number[0] == pytest.approx(16 / number[2] * 1000, rel=0.01)
    assert forward + backward + optimizer == pytest.approx(number[2], rel=0.05)
    assert first > 2 * number[2]


def test_pairs_of_equal_work_that_differ_wildly_discredit_the_times_of_a_cpu() -> None:
    doubt = "the times cannot be believed"
    plan = make_plan(placements=("train-always",), devices=(Device.CPU,))
    assert doubt not in render(plan, make_records(plan), "md")
    slow = {v.key for v in plan.variants[::4]}
    records = [
        replace(r, samples=tuple(replace(s, wall_s=3 * s.wall_s) for s in r.samples)) if r.key in slow else r
        for r in make_records(plan)
    ]
    assert doubt in render(plan, records, "md")


def test_outcome_and_speed_are_joined_per_variant_and_columns_name_their_device() -> None:
    plan = make_plan(placements=("train-always", "eval-always"), cells=("lstm",), directions=(False,))
    every = section(render(plan, make_records(plan), "md"), "Every variant")
    heading, _, *lines = (line for line in every.splitlines() if line.startswith("|"))
    names = [name.strip() for name in heading.strip("|").split("|")]
    assert names[2:] == [
        "outcome (stub)",
        "attempts (stub)",
        "outcome (cpu)",
        "sequences/s (cpu)",
        "step ms (cpu)",
        "attempts (cpu)",
    ]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [row[2] for row in rows] == ["ok", "ok", "backward-error", "ok"]
    assert all(float(row[6]) == pytest.approx(6.4, rel=0.06) for row in rows)


# --- the rest


def test_other_errors_are_grouped_by_fingerprint_and_device() -> None:
    errors = section(render(PLAN, RECORDS, "md"), "Other errors")
    assert errors.count("\n- **") == 2
    assert "**16 variants on `stub`: `error` `RuntimeError`** in backward at epoch 1 step 1, 16 attempts" in errors


def test_everything_that_went_wrong_is_somewhere_in_the_report() -> None:
    report = render(PLAN, spoil(RECORDS), "md")
    for words in (
        "`oom`",
        "ended by SIGSEGV",
        "still running after its deadline",
        "1 on `cpu`, `not-run`: interrupted",
        "1 on `stub`, `not-run`: no record",
        "threads on `cpu`: MIXED: 2 (382) and 1 (1)",
        "1 earlier attempt was made again and does not count here",
        "1 variant ended `ok` with a loss that is not finite",
    ):
        assert words in report


def test_exclusions_come_with_reason_and_count() -> None:
    assert "- 2: a projection (proj_size) exists for the LSTM only" in section(render(PLAN, [], "md"), "Exclusions")


@pytest.mark.parametrize(("replicates", "caveat"), [(1, Caveat.SINGLE), (3, Caveat.TOO_FEW), (6, None)])
def test_the_caveat_fits_the_number_of_attempts(replicates: int, caveat: Caveat | None) -> None:
    plan = replace(SMALL, devices=(Device.CUDA,), settings=Settings(replicates=replicates))
    caveats = section(render(plan, make_records(plan), "md"), "Caveats")
    assert [c for c in (Caveat.SINGLE, Caveat.TOO_FEW) if c in caveats] == ([caveat] if caveat else [])


def test_a_dirty_tree_is_a_caveat() -> None:
    assert Caveat.DIRTY_TREE in render(replace(SMALL, environment={"git_dirty": True}), [], "md")
    assert Caveat.DIRTY_TREE not in render(SMALL, [], "md")
