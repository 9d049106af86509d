"""What a person is told to do, and what a seed program's training came to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from builders import make_plan, make_records

from harness.model import Device, KernelPath, Outcome, Plan, Record, Settings, Sighting, Variant
from harness.report import render
from harness.report.compare import Rules, compare
from harness.report.compare.markdown import to_markdown
from harness.report.evidence import Evidence
from harness.report.sections.advice import advice

PLAN = make_plan(cells=("lstm", "gru"))


def told(plan: Plan, records: list[Record]) -> list[str]:
    return advice(Evidence.of(plan, records)).splitlines()[2:]


def test_three_lines_say_why_it_dies_and_what_cures_it() -> None:
    why, train, gradient = told(PLAN, make_records(PLAN))
    assert (
        "a forward that records a graph runs through cuDNN with the RNN in eval mode and a gradient reaches its output"
        in why
    )
    assert "comes too late: `train-before-backward` raised in 4 of 4 variants" in why
    assert "(`train-each-epoch`: raised in 0 of 4 variants on `stub`, modes as wanted on `cpu`" in train
    assert "`rnn-train-dropout-zero`: raised in 0 of 4 variants on `stub`, exact gradient on `cpu`" in gradient
    assert "price on a GPU not measured" in gradient


def test_a_gpu_prices_the_advice() -> None:
    plan = replace(make_plan(cells=("lstm",), devices=(Device.CUDA,)), settings=Settings(replicates=2))
    assert "the throughput of a cuDNN train step" in told(plan, make_records(plan))[2]


def test_an_eval_gradient_that_nobody_looked_at_is_not_advised() -> None:
    plan = make_plan(cells=("lstm",), devices=(Device.STUB,))
    _, train, gradient = told(plan, make_records(plan))
    assert "`train-each-epoch`" in train and "gradient not measured" in train
    assert "`rnn-train-rest-eval`" in gradient and "nobody looked at their gradients" in gradient


def test_where_every_candidate_is_wrong_there_is_no_cure() -> None:
    plan = make_plan(cells=("lstm",), placements=("eval-always", "train-for-gradient"))
    assert "this run shows no cure" in told(plan, make_records(plan))[1]


def test_a_cpu_alone_advises_where_to_look() -> None:
    plan = make_plan(devices=(Device.CPU,))
    (line,) = told(plan, make_records(plan))
    assert "says nothing about a GPU" in line and "--device stub" in line


def test_where_nothing_raised_there_is_nothing_to_cure() -> None:
    plan = make_plan(placements=("train-always",))
    assert told(plan, make_records(plan)) == ["1. Nothing raised on `stub`: there is nothing to cure here."]
    assert told(plan, []) == []


def test_a_wrong_fix_that_did_not_run_is_not_mentioned() -> None:
    plan = make_plan(placements=("train-each-epoch", "eval-after-epoch"))
    assert "too late" not in told(plan, make_records(plan))[0]


# --- seed programs

EPOCHS = [
    {"epoch": 1, "train_loss": 0.44283, "test_loss": 0.249, "test_accuracy": 0.912},
    {"epoch": 2, "train_loss": 0.21, "test_loss": None, "test_accuracy": 0.93},
]
RESULTS: dict[str, Any] = {
    "program": "simple-rnn",
    "variant": "as-written",
    "summary": "eval() before training",
    "dataset": "random sequences",
    "dataset_reason": "Made for this program: 20 random numbers; is their sum above zero?",
    "training_samples": 2000,
    "test_samples": 500,
    "epochs": EPOCHS,
}


def seed(results: dict[str, Any] = RESULTS) -> tuple[Plan, list[Record]]:
    variant = Variant({"program": "simple-rnn", "form": "as-written"}, "program=simple-rnn,form=as-written")
    plan = replace(PLAN, matrix="seed simple-rnn", variants=(variant,), exclusions=())
    stub = Record(plan.run, variant.key, variant.label, Device.STUB, Outcome.BACKWARD_ERROR, epoch=1, step=1)
    cpu = Record(plan.run, variant.key, variant.label, Device.CPU, Outcome.OK, results=results)
    return plan, [replace(stub, results=results), cpu]


def section(report: str) -> str:
    return report.partition("\n## Training\n")[2].partition("\n## ")[0]


def test_a_seed_program_shows_losses_accuracy_and_data_of_what_computed() -> None:
    shown = section(render(*seed(), "md"))
    assert "On `cpu`: simple-rnn, as-written (eval() before training)." in shown and "`stub`" not in shown
    assert "Data: random sequences (2,000 for training and 500 for testing). Made for this program" in shown
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in shown.splitlines() if line[:1] == "|"]
    assert cells[0] == ["epoch", "training loss", "test loss", "test accuracy"]
    assert cells[2:] == [["1", "0.4428", "0.2490", "91.2%"], ["2", "0.2100", "not a number", "93.0%"]]


def test_a_program_that_failed_says_where() -> None:
    plan, (stub, cpu) = seed()
    failed = replace(cpu, outcome=Outcome.BACKWARD_ERROR, epoch=2, step=1)
    assert "It ended in epoch 2, step 1 with `backward-error`." in section(render(plan, [stub, failed], "md"))


@pytest.mark.parametrize("results", [{}, {"epochs": "none"}, {"epochs": [1, {}]}, {"dataset": "<script>"}])
def test_a_program_that_reports_nonsense_breaks_no_report(results: dict[str, Any]) -> None:
    assert "<script>" not in section(render(*seed(results), "md")).replace("`<script>`", "")


def test_a_seed_program_that_raises_is_told_where_fixes_are_compared() -> None:
    plan, records = seed()
    _, helps, cured = told(plan, records)
    assert helps == "2. **What helps**: this run compares no fixes; `harness run matrix fixes` does."
    assert cured == "3. **The same program, cured**: `harness run seed simple-rnn --fixed`."


def test_a_program_has_no_section_that_has_nothing_to_say() -> None:
    plan, records = seed()
    report = render(plan, records, "md")
    headings = [line.removeprefix("## ") for line in report.splitlines() if line.startswith("## ")]
    wanted = ["What to do", "Training", "Outcomes", "Where it raised", "The articles' claims", "Other errors"]
    assert headings == [*wanted, "Environment", "Caveats"]
    assert "the outcome comes from `stub`, losses and accuracy from `cpu`" in report and "speed" not in report
    assert "Of the others" not in report and "ratio of two" not in report and "settled" not in report


def test_one_program_that_raised_is_explained_by_what_it_saw() -> None:
    plan, (stub, cpu) = seed()
    saw = Sighting(1, 1, training=False, path=KernelPath.CUDNN, gradient_reached=True)
    why = told(plan, [replace(stub, sightings=(saw,)), cpu])[0]
    assert "what raised was seen to send a gradient back through a forward that ran through cuDNN" in why
    assert "these records do not tell by themselves" in told(plan, [stub, cpu])[0]


def test_two_forms_of_a_program_compared_say_what_came_of_each() -> None:
    plan, records = seed()
    fixed = Variant({"program": "simple-rnn", "form": "fixed"}, "program=simple-rnn,form=fixed")
    other = replace(plan, run="other", variants=(fixed,))
    ok = [replace(r, run="other", key=fixed.key, label=fixed.label, outcome=Outcome.OK) for r in records]
    said = to_markdown(compare((plan, records), (other, ok), Rules()))
    assert "- A, program=simple-rnn,form=as-written: backward-error on stub and ok on cpu." in said
    assert "- B, program=simple-rnn,form=fixed: ok on stub and ok on cpu." in said
    assert "## Time of a training step" not in said


def test_a_matrix_has_no_training_section() -> None:
    assert "## Training" not in render(PLAN, make_records(PLAN), "md")
