"""What is on disk stays readable, and what is written stays what it was: one golden line for every noun and schema.

A line of an older schema is never rewritten: it stands for the journals that people have. A change of what is written
today needs a new schema, a new line here, and its sentence in the history of ``harness.wire``. Make the newest line
with ``HARNESS_GOLDEN=write``.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.matrix.axes import make_variant
from harness.model import (
    Device,
    Exclusion,
    KernelPath,
    Order,
    Outcome,
    Phase,
    Plan,
    Record,
    Sample,
    Settings,
    Sighting,
)
from harness.wire import ORDER_SCHEMA, PLAN_SCHEMA, RECORD_SCHEMA, dump, load

FOLDER = Path(__file__).parent / "wire"
VARIANT = make_variant({"cell": "gru", "placement": "eval-after-epoch", "dropout": 0.5, "layers": 2})
ORDER = Order("20260101-000000-abcde", VARIANT, Device.CPU, Settings(epochs=2), replicate=1, attempt=2, sitting=2)
PLAN = Plan(
    run="20260101-000000-abcde",
    matrix="quick",
    description="Ein Beispiel.",
    created="2026-01-01T00:00:00+00:00",
    devices=(Device.STUB, Device.CPU),
    settings=Settings(),
    variants=(VARIANT,),
    exclusions=(Exclusion("cell=gru", "no reason is too short"),),
    environment={"torch": "2.14.1", "git_dirty": False},
    notes=("a note",),
)
RECORD = Record(
    "20260101-000000-abcde",
    VARIANT.key,
    VARIANT.label,
    Device.CUDA,
    Outcome.BACKWARD_ERROR,
    phase=Phase.BACKWARD,
    epoch=2,
    step=1,
    error_type="RuntimeError",
    error_message="cudnn RNN backward can only be called in training mode",
    path=KernelPath.CUDNN,
    sightings=(Sighting(1, 1, True, KernelPath.CUDNN, True), Sighting(2, 1, False, KernelPath.CUDNN, True)),
    samples=(Sample(1, 6, 0.5, 0.25, warmup=True),),
    first_loss=1.5,
    last_loss=float("nan"),
    facts={"stub": False, "device_name": "a GPU", "threads": 1},
    deadline_s=60.0,
    silent_s=0.5,
    sitting=2,
)
NEWEST = {"order": (ORDER, ORDER_SCHEMA), "plan": (PLAN, PLAN_SCHEMA), "record": (RECORD, RECORD_SCHEMA)}


def golden(noun: str, schema: int) -> Path:
    return FOLDER / f"{noun}-{schema}.json"


@pytest.mark.parametrize("noun", NEWEST)
def test_what_is_written_today_is_the_golden_line(noun: str) -> None:
    thing, schema = NEWEST[noun]
    line = dump(thing) + "\n"
    if os.environ.get("HARNESS_GOLDEN") == "write":
        golden(noun, schema).write_text(line, encoding="utf-8")
    assert line == golden(noun, schema).read_text(encoding="utf-8")


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.json")), ids=lambda file: file.stem)
def test_every_schema_that_was_ever_written_is_still_read(file: Path) -> None:
    noun = file.stem.partition("-")[0]
    kind = type(NEWEST[noun][0])
    read = load(kind, file.read_text(encoding="utf-8"))
    assert read.schema == int(file.stem.partition("-")[2])
    if noun == "record":
        assert isinstance(read, Record)
        assert (read.outcome, read.epoch, read.path) == (Outcome.BACKWARD_ERROR, 2, KernelPath.CUDNN)
        assert read.last_loss is not None
        assert read.last_loss != read.last_loss  # NaN stays NaN
        assert [sighting.training for sighting in read.sightings] == [True, False]


def test_no_schema_is_missing() -> None:
    expected = {golden(noun, schema) for noun, (_, newest) in NEWEST.items() for schema in range(1, newest + 1)}
    assert set(FOLDER.glob("*.json")) == expected
