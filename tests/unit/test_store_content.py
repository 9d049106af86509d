"""What MLflow is told, without MLflow."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from store_samples import FINE, HANGS, MESSAGE, PLAN, RAISES, RECORDS, RUN, cpu_record, stub_record, variant

from harness.measured import Exactness, Sample
from harness.model import Device, Outcome, Record
from harness.placements import PLACEMENTS
from harness.store import views
from harness.store.content import Content, child_content, parent_content
from harness.store.times import span_ms


def values(content: Content, step: int = 0) -> dict[str, float]:
    return {point.name: point.value for point in content.metrics if point.step == step}


def history(content: Content, name: str) -> list[tuple[int, float]]:
    return [(point.step, point.value) for point in content.metrics if point.name == name]


def test_a_stub_record_alone_has_no_measured_number_and_says_that_it_is_one() -> None:
    record = replace(cpu_record(RAISES), device=Device.STUB)  # even if it came with numbers
    content = child_content(PLAN, RAISES, [record])
    assert values(content) == {"epoch_reached.stub": 3, "step_reached.stub": 6} and len(content.metrics) == 2
    assert not [name for name in content.tags if name.startswith("harness.memory_source")]
    assert content.name.endswith("[stub]")
    assert content.tags["harness.device"] == content.params["device"] == "stub"
    assert "timed-on" not in content.params
    assert "no number of theirs is a measurement" in content.tags["mlflow.note.content"]


def test_the_outcome_is_the_stubs_and_the_numbers_are_the_cpus() -> None:
    content = child_content(PLAN, RAISES, RECORDS[:2])
    assert content.status == "FAILED"
    assert content.name == f"{RAISES.label} [stub+cpu]"
    expected = {"outcome": "backward-error", "device": "stub", "path": "cudnn", "phase": "backward", "timed-on": "cpu"}
    assert expected.items() <= content.params.items()
    assert {"cell": "lstm", "bidirectional": "true", "cudnn": "on", "layers": "2"}.items() <= content.params.items()
    assert content.tags["harness.error"] == MESSAGE
    assert content.tags["harness.outcome.cpu"] == "ok"
    assert (content.tags["harness.epoch"], content.tags["harness.step"]) == ("2", "1")
    assert content.tags["harness.key"] == RAISES.key
    assert values(content) == {
        "sequences_per_second.cpu": 32.0, "timesteps_per_second.cpu": 640.0, "step_ms_median.cpu": 500.0,
        "first_step_ms.cpu": 750.0, "first_loss.cpu": 2.5, "last_loss.cpu": 1.5, "peak_memory_bytes.cpu": 1000,
        "attempt_s.cpu": 4.0, "epoch_reached.stub": 2, "step_reached.stub": 1, "epoch_reached.cpu": 3,
        "step_reached.cpu": 6,
    }  # fmt: skip
    assert content.metrics[0].name == "sequences_per_second.cpu", "Compare offers the first"
    assert (content.params["outcome.stub"], content.params["outcome.cpu"]) == ("backward-error", "ok")
    assert content.tags["harness.memory_source.cpu"] == "process RSS"
    assert "ends in the device it was observed on" in content.tags["mlflow.note.content"]
    assert history(content, "step_ms.cpu") == [(1, 500.0), (2, 1000.0), (3, 500.0)]
    assert history(content, "step_ms_warmup.cpu") == [(1, 4500.0)]


def test_the_parts_of_a_step_and_the_gradient_are_metrics() -> None:
    block = Sample(2, 4, 4.0, forward_s=1.0, backward_s=2.0, optimizer_s=1.0)
    seen = Exactness(1e-7, float("inf"), "float32", 1e-4, gradient_digest="aa")
    content = child_content(PLAN, FINE, [cpu_record(FINE, samples=(block,), exactness=seen)])
    parts = {"forward_ms.cpu": 250.0, "backward_ms.cpu": 500.0, "optimizer_ms.cpu": 250.0}
    assert parts.items() <= values(content).items()
    assert values(content)["gradient_error_weights.cpu"] == 1e-7
    assert "gradient_error_input.cpu" not in values(content), "MLflow knows no infinity"
    assert content.params["gradient.cpu"] == "differs"
    assert "gradient.cpu" not in child_content(PLAN, FINE, [cpu_record(FINE)]).params


def test_what_did_not_end_well_claims_no_speed() -> None:
    content = child_content(PLAN, HANGS, RECORDS[4:])
    assert content.status == "KILLED"
    names = {point.name for point in content.metrics}
    assert not {"sequences_per_second.cpu", "step_ms_median.cpu", "step_ms.cpu"} & names
    assert "timed-on" not in content.params
    assert values(content)["epoch_reached.cpu"] == 3


@pytest.mark.parametrize(("silent_s", "tag"), [(59.0, "hung"), (0.1, "slow"), (None, None)])
def test_a_timeout_is_tagged_as_hung_or_slow(silent_s: float | None, tag: str | None) -> None:
    record = stub_record(HANGS, Outcome.TIMEOUT, deadline_s=60.0, silent_s=silent_s)
    assert child_content(PLAN, HANGS, [record]).tags.get("harness.timeout") == tag


def test_what_timed_no_step_is_not_timed() -> None:
    content = child_content(PLAN, FINE, [cpu_record(FINE, samples=(), first_step_s=None)])
    assert content.params["outcome.cpu"] == "ok"
    assert "timed-on" not in content.params


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        ("ok", "FINISHED"), ("backward-error", "FAILED"), ("error", "FAILED"), ("oom", "FAILED"), ("crash", "FAILED"),
        ("timeout", "KILLED"), ("skipped", "KILLED"), ("not-run", "KILLED"),
    ],
)  # fmt: skip
def test_only_ok_is_finished(outcome: str, status: str) -> None:
    assert child_content(PLAN, FINE, [stub_record(FINE, Outcome(outcome))]).status == status


def test_numbers_that_are_not_finite_are_left_out() -> None:
    content = child_content(PLAN, FINE, [cpu_record(FINE, first_loss=float("inf"), last_loss=float("nan"))])
    assert not {"first_loss.cpu", "last_loss.cpu"} & values(content).keys()


def test_numbers_are_the_medians_of_the_replicates() -> None:
    found = [cpu_record(FINE, seconds=s, replicate=i) for i, s in enumerate((0.5, 0.25, 8.0))]
    assert values(child_content(PLAN, FINE, found))["step_ms_median.cpu"] == 500.0


def test_a_gpus_numbers_come_first_and_all_say_whose_they_are() -> None:
    gpu = replace(cpu_record(FINE, seconds=0.25), device=Device.CUDA)
    plan = replace(PLAN, devices=(Device.CPU, Device.CUDA))
    content = child_content(plan, FINE, [cpu_record(FINE), gpu])
    assert content.metrics[0].name == "sequences_per_second.cuda"
    assert values(content)["step_ms_median.cuda"] == 250.0
    assert values(content)["step_ms_median.cpu"] == 500.0
    assert content.params["timed-on"] == "cuda+cpu"
    assert "metrics.`sequences_per_second.cuda`" in views.table_columns(plan)
    assert "metrics.`sequences_per_second.cpu`" not in views.table_columns(plan)
    assert not [name for name in views.table_columns(replace(PLAN, devices=(Device.STUB,))) if "metrics" in name]


def test_an_axis_that_has_a_facts_name_keeps_its_value() -> None:
    odd = variant(device="mine")
    content = child_content(PLAN, odd, [stub_record(odd)])
    assert (content.params["device"], content.params["axis_device"]) == ("stub", "mine")


def test_a_seed_programs_losses_are_told_by_epoch_and_its_files_go_along(tmp_path: Path) -> None:
    plot = tmp_path / "losses.png"
    plot.write_bytes(b"png")
    results = {
        "program": "brnn-mnist", "dataset": "digits of scikit-learn", "dataset_reason": "MNIST cannot be had",
        "epochs": [{"epoch": 1, "train_loss": 2.0, "test_accuracy": 0.5}, {"epoch": 2, "train_loss": None}],
        "step_losses": [2.5, None, 1.5], "plot": str(plot), "checkpoint": str(tmp_path / "gone.pt"),
    }  # fmt: skip
    content = child_content(PLAN, FINE, [cpu_record(FINE, results=results)])
    assert history(content, "train_loss.cpu") == [(1, 2.0)]
    assert history(content, "test_accuracy.cpu") == [(1, 0.5)]
    assert history(content, "step_loss.cpu") == [(1, 2.5), (3, 1.5)]
    assert content.files == (plot,)
    assert content.params["dataset"] == "digits of scikit-learn"
    assert content.tags["harness.dataset_reason"] == "MNIST cannot be had"


def test_long_text_is_cut_where_mlflow_would_refuse_it() -> None:
    record = replace(stub_record(FINE, Outcome.ERROR), error_message="x" * 20_000)
    assert all(len(text) <= 4000 for text in child_content(PLAN, FINE, [record]).tags.values())


def test_the_digest_changes_with_the_content_alone() -> None:
    first, again = (child_content(PLAN, RAISES, RECORDS[:2]) for _ in range(2))
    assert first.digest == again.digest
    assert child_content(PLAN, RAISES, [RECORDS[0], cpu_record(RAISES, last_loss=1.25)]).digest != first.digest


def test_the_parent_says_what_was_run_and_what_came_of_it() -> None:
    content = parent_content(PLAN, RECORDS, status="FINISHED")
    assert content.tags["harness.run"] == RUN
    assert values(content, step=len(RECORDS)) == {
        "outcome.backward-error": 1, "outcome.ok": 1, "outcome.timeout": 1,
        "outcome.backward-error.stub": 1, "outcome.ok.stub": 1, "outcome.timeout.stub": 1,
        "outcome.ok.cpu": 2, "outcome.crash.cpu": 1,
    }  # fmt: skip
    assert content.tags["mlflow.source.git.commit"] == "0123abc"
    assert content.params["environment.cuda.devices"] == "a, b"
    assert "environment.cuda.version" not in content.params
    assert content.params["settings.learning_rate"] == "0.01"
    note = content.tags["mlflow.note.content"]
    assert "| stub | 1 | 1 | 1 | 0 |" in note
    assert "``A | `small` one``" in note.replace("`` ", "``").replace(" ``", "``")


def test_the_parent_of_a_program_tells_the_settings_that_apply_only() -> None:
    plan = replace(PLAN, matrix="seed simple-rnn", variants=(FINE,))
    content = parent_content(plan, RECORDS[2:4], status="FINISHED")
    settings = {name for name in content.params if name.startswith("settings.")}
    assert settings == {"settings.deadline", "settings.replicates", "settings.threads"}
    assert "**1 variant** of" in content.tags["mlflow.note.content"]


def test_times_are_the_attempts_own() -> None:
    assert span_ms(RECORDS[:2], PLAN.created) == (1738315801500, 1738315806000)
    assert span_ms([Record(RUN, "k", "l", Device.CPU, Outcome.CRASH)], PLAN.created) == (1738315800000, 1738315800000)


def test_a_variant_that_was_tried_again_a_week_later_has_not_taken_a_week() -> None:
    again = replace(RECORDS[3], attempt=2, sitting=2, started="2025-02-07T09:30:00+00:00")
    crashed = replace(RECORDS[3], outcome=Outcome.CRASH, started="2025-01-31T09:00:00+00:00")
    found = child_content(PLAN, FINE, [RECORDS[2], crashed, again])
    assert (found.started_ms, found.ended_ms) == span_ms([RECORDS[2], again], PLAN.created)
    assert found.params["outcome.cpu"] == "ok"
    assert found.tags["harness.attempts"] == "3"


def test_the_prepared_table_shows_the_axes_the_outcome_and_the_speed_of_this_run_only() -> None:
    state = views.view_state(PLAN, "parent-id")
    assert state["searchFilter"] == "tags.mlflow.parentRunId = 'parent-id'"
    assert state["selectedColumns"][:9] == [
        "params.`cell`", "params.`bidirectional`", "params.`cudnn`", "params.`placement`", "params.`outcome`",
        "params.`device`", "params.`path`", "metrics.`sequences_per_second.cpu`", "params.`timed-on`",
    ]  # fmt: skip
    assert "params.`layers`" not in state["selectedColumns"]
    more = replace(PLAN, variants=(*PLAN.variants, variant(layers=3)))
    assert "params.`layers`" in views.table_columns(more)


def test_few_are_compared_with_every_outcome_and_cell_among_them() -> None:
    def child(cell: str, placement: str) -> Any:
        raises = PLACEMENTS[placement].raises
        params = {"cell": cell, "placement": placement, "outcome": "backward-error" if raises else "ok"}
        return SimpleNamespace(data=SimpleNamespace(params=params), info=SimpleNamespace(run_id=params, run_name=""))

    cells = ("gru", "lstm", "rnn-relu", "rnn-tanh")
    children = [child(cell, placement) for cell in cells for placement in PLACEMENTS]
    chosen: list[Any] = views.compared(children)
    assert len(chosen) == views.MOST_COMPARED == 12
    for outcome in ("backward-error", "ok"):
        assert {each["cell"] for each in chosen if each["outcome"] == outcome} == set(cells)
    assert len({each["placement"] for each in chosen}) > 8
    assert len(views.compare_link("http://127.0.0.1:5000", "1", ["0" * 32] * 12)) < 600
    assert len(views.compared(children[:5])) == 5


def test_links_are_whole() -> None:
    assert views.table_link("http://h:1/", "7", RUN) == (
        f"http://h:1/#/experiments/7/runs?workflowType=machine_learning&viewStateShareKey=harness-{RUN}"
    )
    link = views.compare_link("http://h:1", "7", ["a", "b"])
    assert link == "http://h:1/#/compare-runs?runs=%5B%22a%22%2C%22b%22%5D&experiments=%5B%227%22%5D"
