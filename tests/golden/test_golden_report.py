"""The rendered report, held against files that a person has read.

After a change that is meant: ``HARNESS_GOLDEN=write pytest tests/golden``; read the difference before committing it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_plan, make_records, spoil

from harness.model import Device, Plan, Record, Settings
from harness.report import Format, render

HERE = Path(__file__).parent
PLACEMENTS = ("train-each-epoch", "eval-after-epoch", "eval-always", "eval-cudnn-off-forward", "eval-no-grad")


def _auto() -> tuple[Plan, list[Record]]:
    plan = make_plan(placements=PLACEMENTS, cells=("lstm", "gru"))
    return plan, spoil(make_records(plan))


def _cpu() -> tuple[Plan, list[Record]]:
    plan = make_plan(placements=PLACEMENTS, cells=("lstm",), devices=(Device.CPU,))
    return plan, make_records(plan)


def _cuda() -> tuple[Plan, list[Record]]:
    plan = make_plan(placements=PLACEMENTS, cells=("lstm", "gru"), devices=(Device.CUDA,))
    plan = replace(plan, settings=Settings(replicates=6))
    return plan, make_records(plan)


@pytest.mark.parametrize(
    ("name", "made", "format"),
    [
        ("stub-and-cpu.md", _auto, "md"),
        ("stub-and-cpu.csv", _auto, "csv"),
        ("cpu.md", _cpu, "md"),
        ("cuda.md", _cuda, "md"),
    ],
)
def test_the_report_is_what_was_read_and_approved(name: str, made: object, format: Format) -> None:
    assert callable(made)
    rendered = render(*made(), format)
    golden = HERE / "report" / name
    if os.environ.get("HARNESS_GOLDEN") == "write":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(rendered, encoding="utf-8", newline="")
    assert rendered == golden.read_text(encoding="utf-8")
