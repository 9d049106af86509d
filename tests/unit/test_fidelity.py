"""The comparison of GPU and stub, on made records: it must find each kind of disagreement, and no sham."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.model import Device, Outcome, Phase, Record
from tests.fidelity.__main__ import keep, report
from tests.fidelity.compare import COMPARED, compare

GPU = Record(
    "run",
    "0123456789ab",
    "cell=lstm",
    Device.CUDA,
    Outcome.BACKWARD_ERROR,
    phase=Phase.BACKWARD,
    epoch=2,
    step=1,
    error_type="RuntimeError",
    facts={"stub": False, "device_name": "a GPU"},
)
STUB = replace(GPU, device=Device.STUB, facts={"stub": True, "device_name": "harness stub (no GPU)"})

CHANGES = {
    "outcome": Outcome.OK,
    "error_type": "ValueError",
    "phase": Phase.FORWARD,
    "epoch": 1,
    "step": 2,
}


def test_equal_records_agree() -> None:
    fidelity = compare([GPU], [STUB])
    assert (fidelity.compared, fidelity.differences, fidelity.holds) == (1, (), True)


@pytest.mark.parametrize("field", COMPARED)
def test_each_compared_field_is_compared(field: str) -> None:
    fidelity = compare([GPU], [replace(STUB, **{field: CHANGES[field]})])
    assert [difference.fields for difference in fidelity.differences] == [(field,)]
    assert not fidelity.holds


def test_a_variant_that_one_device_lacks_is_named() -> None:
    other = replace(STUB, key="ba9876543210", label="cell=gru")
    fidelity = compare([GPU], [STUB, other])
    assert fidelity.only_one == ("cell=gru",)
    assert not fidelity.holds


def test_nothing_compared_is_not_agreement() -> None:
    assert not compare([], []).holds


@pytest.mark.parametrize(
    ("gpu", "stub"),
    [
        (STUB, STUB),
        (GPU, GPU),
        (replace(GPU, facts=STUB.facts), STUB),
        (GPU, replace(STUB, facts=GPU.facts)),
    ],
    ids=["stub for GPU", "GPU for stub", "stub in disguise", "GPU in disguise"],
)
def test_a_record_of_the_wrong_device_is_refused(gpu: Record, stub: Record) -> None:
    with pytest.raises(ValueError, match="is not from"):
        compare([gpu], [stub])


def test_the_compact_result_names_the_gpu_and_every_variant(tmp_path: Path) -> None:
    other = replace(STUB, outcome=Outcome.OK)
    file = keep("quick", {"cuda": (GPU,), "stub": (other,)}, compare([GPU], [other]), tmp_path)
    content = json.loads(file.read_text())
    assert content["facts"]["device_name"] == "a GPU"
    assert (content["compared"], content["agree"]) == (1, 0)
    (variant,) = content["variants"]
    assert variant["outcome"] == "backward-error"
    assert (variant["epoch"], variant["step"], variant["stub_agrees"]) == (2, 1, False)


def test_the_printed_comparison_shows_both_sides(capsys: pytest.CaptureFixture[str]) -> None:
    report(compare([GPU], [replace(STUB, step=3)]))
    printed = capsys.readouterr().out
    assert "cell=lstm: step differ" in printed
    assert "step=1" in printed
    assert "step=3" in printed
    assert "0 of 1 variants agree" in printed
