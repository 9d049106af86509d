"""The main job where there is no GPU: outcomes from the stub, speed from the CPU, no number unmeasured."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from command import Ended, MlflowView, kept, only_run

from harness.model import Device, KernelPath, Outcome, Phase, Record, Variant
from harness.placements import PLACEMENTS

pytestmark = [
    pytest.mark.usefixtures("stub_device"),
    pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated:DeprecationWarning"),
]

REACHED = ["epoch_reached.stub", "step_reached.stub"]
MESSAGE = "cudnn RNN backward can only be called in training mode"


@pytest.fixture(scope="module")
def root(auto_root: Path, auto_run: Ended) -> Path:
    assert auto_run.code == 0, auto_run.err
    if kept(auto_root)[0].devices == (Device.CUDA,):
        pytest.skip("this machine has a GPU, which `auto` prefers")
    return auto_root


@pytest.fixture(scope="module")
def pairs(root: Path) -> list[tuple[Variant, Record, Record]]:
    """Every variant with its record on the stub and that on the CPU."""
    plan, records = kept(root)
    found = {(record.key, record.device): record for record in records}
    assert len(found) == len(records) == plan.attempts
    return [(v, found[v.key, Device.STUB], found[v.key, Device.CPU]) for v in plan.variants]


def raises(variant: Variant) -> bool:
    """What the rule predicts where cuDNN is on."""
    return PLACEMENTS[str(variant["placement"])].raises and variant["cudnn"] == "on"


def test_the_error_is_raised_exactly_where_it_is_predicted(pairs: list[tuple[Variant, Record, Record]]) -> None:
    assert {raises(variant) for variant, _, _ in pairs} == {True, False}
    for variant, on_stub, on_cpu in pairs:
        assert (on_stub.outcome is Outcome.BACKWARD_ERROR) is raises(variant), variant.label
        assert on_cpu.outcome is not Outcome.BACKWARD_ERROR
        if raises(variant):
            assert on_stub.error_message == MESSAGE
            late = variant["placement"] == "eval-after-epoch"
            assert (on_stub.phase, on_stub.epoch, on_stub.step) == (Phase.BACKWARD, 2 if late else 1, 1)
        else:
            assert on_stub.outcome is on_cpu.outcome


def test_the_kernel_path_is_what_ran_and_not_what_was_asked_for(pairs: list[tuple[Variant, Record, Record]]) -> None:
    for variant, on_stub, on_cpu in pairs:
        assert on_cpu.path in {KernelPath.NATIVE, KernelPath.MKLDNN, None}
        if variant["placement"] in {"eval-always", "train-each-epoch"}:
            assert on_stub.path is (KernelPath.CUDNN if variant["cudnn"] == "on" else KernelPath.NATIVE)
        if variant["placement"] == "eval-cudnn-off-forward":
            assert on_stub.path is KernelPath.NATIVE


def test_a_stub_record_claims_no_number(pairs: list[tuple[Variant, Record, Record]]) -> None:
    for _, on_stub, on_cpu in pairs:
        assert on_stub.samples == ()
        for name in ("first_step_s", "first_loss", "last_loss", "losses_digest", "weights_digest"):
            assert getattr(on_stub, name) is None, name
        assert "stub" in str(on_stub.facts["device_name"])
        assert "stub" in str(on_stub.memory_source)
        if on_cpu.outcome is Outcome.OK:
            assert on_cpu.samples
            assert on_cpu.last_loss is not None


def test_results_join_outcome_and_speed(root: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(only_run(root).results.read_text())))
    plan, _ = kept(root)
    assert sorted((row["key"], row["device"]) for row in rows) == sorted(
        (variant.key, device) for variant in plan.variants for device in ("stub", "cpu")
    )
    for row in rows:
        numbers = [
            row[name] for name in ("sequences_per_second", "timesteps_per_second", "step_ms_median", "last_loss")
        ]
        if row["device"] == "stub":
            assert numbers == ["", "", "", ""]
        elif row["outcome"] == "ok":
            assert all(map(float, numbers[:3]))


def test_the_report_names_its_evidence(root: Path, auto_run: Ended) -> None:
    plan, records = kept(root)
    raising = sum(record.outcome is Outcome.BACKWARD_ERROR for record in records)
    text = only_run(root).report.read_text()
    headline = f'{raising} of {len(plan.variants)} planned variants raise "{MESSAGE}" on stub'
    assert headline in text
    assert auto_run.out.startswith(headline)
    assert "have not yet been compared with a GPU" in text
    assert "outcomes come from `stub`, speed from `cpu`" in text
    assert "| eval-after-epoch " in text.split("## Outcomes")[1]
    assert f"explains {len(plan.variants)} of the {len(plan.variants)} records on `stub`" in text
    assert "not written to MLflow" not in text


def test_every_child_says_that_it_is_of_the_stub(root: Path) -> None:
    view, (plan, records) = MlflowView(root), kept(root)
    (parent,) = view.parents
    assert parent.info.status == "FINISHED"
    assert parent.data.tags["harness.stub"] == "true"
    assert len(view.children) == len(plan.variants) == len({c.data.tags["harness.key"] for c in view.children})
    outcomes = {(record.key, record.device): record.outcome for record in records}
    for child in view.children:
        key = child.data.tags["harness.key"]
        assert "stub" in child.data.tags["harness.device"]
        assert child.data.params["device"] == "stub"
        assert child.data.tags["harness.outcome"] == outcomes[key, Device.STUB]
        assert child.data.tags["harness.outcome.cpu"] == outcomes[key, Device.CPU]
        assert child.info.status == ("FINISHED" if outcomes[key, Device.STUB] is Outcome.OK else "FAILED")
        timed = outcomes[key, Device.CPU] is Outcome.OK
        assert ("sequences_per_second.cpu" in child.data.metrics) is timed
        assert child.data.params.get("timed-on") == ("cpu" if timed else None)
        assert child.data.params["outcome.cpu"] == outcomes[key, Device.CPU]
        assert {name.rpartition(".")[2] for name in child.data.metrics} == {"stub", "cpu"}
        assert [name for name in sorted(child.data.metrics) if "stub" in name] == REACHED
