"""The rows of a report: one per planned variant and device, nothing invented, and CSV that can be trusted."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from builders import HOSTILE, RUN, die, fail, make_plan, make_record, make_records, spoil, with_numbers, with_parts
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import StoreError
from harness.model import Device, Outcome, Plan, Record, Sample, Settings
from harness.report import read_results, render, results_frame, summary, write_report
from harness.report.columns import COLUMNS, FIXED_NAMES, Kind, axis_column
from harness.report.frame import to_csv

SMALL = make_plan(placements=("train-always", "eval-always"), cells=("lstm",), directions=(False,))
PROMISED = [
    "run",
    "key",
    "label",
    "device",
    "outcome",
    "phase",
    "epoch",
    "step",
    "path",
    "error_type",
    "error_message",
    "sequences_per_second",
    "timesteps_per_second",
    "step_ms_median",
    "peak_memory_bytes",
    "memory_source",
    "attempts",
    "first_loss",
    "last_loss",
    "first_step_ms",
    "forward_ms",
    "backward_ms",
    "optimizer_ms",
    "steadiness",
    "gradient",
    "gradient_reason",
    "gradient_error_weights",
    "gradient_error_input",
    "repeatable",
    "side_effects",
    "wall_s",
    "fingerprint",
    "reason",
    "device_name",
    "torch_version",
    "cudnn_version",
]


def row(frame: pd.DataFrame, record: Record) -> pd.Series:
    found = frame[(frame["key"] == record.key) & (frame["device"] == record.device.value)]
    assert len(found) == 1
    return found.iloc[0]


def timed(plan: Plan = SMALL, device: Device = Device.CPU, **changes: object) -> Record:
    return replace(make_record(plan, plan.variants[0], device), **changes)  # type: ignore[arg-type]


def test_the_price_and_the_exactness_of_a_row() -> None:
    found = timed(samples=tuple(with_parts(Sample(2, 4, wall_s=0.4, steady=True)) for _ in range(6)))
    assert found.exactness is not None
    seen = replace(found.exactness, changed=("rnn.training", "norm.running_mean"), outputs_equal_eval=False)
    plan = replace(SMALL, settings=Settings(replicates=2))
    records = [replace(found, exactness=seen), replace(found, exactness=seen, replicate=1)]
    line = row(results_frame(plan, records), found)
    assert [line[f"{part}_ms"] for part in ("forward", "backward", "optimizer")] == pytest.approx([30, 60, 10])
    assert (line["steadiness"], line["gradient"], line["repeatable"]) == ("steady", "not comparable", "yes")
    assert line["gradient_reason"] == "dropout is random in the gradient that is wanted"
    assert (line["eval_outputs"], line["side_effects"]) == ("no", "rnn.training, norm.running_mean")
    assert pd.isna(line["gradient_error_weights"])
    exact = replace(seen, not_comparable=None, gradient_error_weights=2e-7, gradient_error_input=3e-7)
    line = row(results_frame(SMALL, [replace(found, exactness=exact)]), found)
    assert (line["gradient"], line["gradient_error_weights"], line["gradient_error_input"]) == ("exact", 2e-7, 3e-7)
    assert pd.isna(line["repeatable"])


# --- any record at all, of a planned variant or not


def _records() -> st.SearchStrategy[list[Record]]:
    text = (
        st.none() | st.text(max_size=30) | st.sampled_from([HOSTILE, "=1+1", "'=1", "-2", "@x", "NA", "nan", "\ud800"])
    )
    number = st.none() | st.floats()
    sample = st.builds(
        Sample,
        epoch=st.integers(1, 3),
        steps=st.integers(-1, 4),
        wall_s=st.floats(),
        device_s=number,
        warmup=st.booleans(),
    )
    return st.lists(
        st.builds(
            Record,
            run=st.sampled_from([RUN, RUN, RUN, "another"]),
            key=st.sampled_from([*(v.key for v in SMALL.variants), "0" * 12]),
            label=st.just("a label"),
            device=st.sampled_from(Device),
            outcome=st.sampled_from(Outcome),
            replicate=st.integers(0, 2),
            attempt=st.integers(1, 3),
            epoch=st.none() | st.integers(0, 99),
            error_type=text,
            error_message=text,
            fingerprint=text,
            reason=text,
            samples=st.lists(sample, max_size=3).map(tuple),
            sequences_per_step=st.none() | st.integers(0, 64),
            timesteps_per_step=st.none() | st.integers(0, 64),
            peak_memory_bytes=st.none() | st.integers(0, 2**40),
            first_loss=number,
            last_loss=number,
            wall_s=number,
        ),
        max_size=12,
    )


@given(_records())
def test_rows_are_the_planned_variants_and_devices_whatever_the_records_say(records: list[Record]) -> None:
    frame = results_frame(SMALL, records)
    planned = [(v.key, d.value) for v in SMALL.variants for d in SMALL.devices]
    assert list(zip(frame["key"], frame["device"], strict=True)) == planned
    known = {(r.key, r.device.value) for r in records if r.run == RUN}
    for place, outcome in zip(planned, frame["outcome"], strict=True):
        assert place in known or outcome == "not-run"


@given(_records())
def test_no_speed_is_claimed_for_a_stub_or_for_what_did_not_end_well(records: list[Record]) -> None:
    frame = results_frame(SMALL, records)
    silent = frame[(frame["device"] == "stub") | (frame["outcome"] != "ok")]
    for name in ("sequences_per_second", "timesteps_per_second", "step_ms_median", "first_step_ms", "step_clock"):
        assert silent[name].isna().all()
    assert frame.loc[frame["device"] == "stub", ["first_loss", "last_loss"]].isna().all(axis=None)


@given(_records())
def test_csv_comes_back_as_it_was_and_holds_no_formula(records: list[Record]) -> None:
    frame = results_frame(SMALL, records)
    text = to_csv(frame)
    back = read_results(text)
    pd.testing.assert_frame_equal(back.astype(object).fillna("absent"), frame.astype(object).fillna("absent"))
    raw = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    for name in ("label", "error_type", "error_message", "fingerprint", "reason", "note"):
        assert not raw[name].str.match(r"[=+\-@\t\r]").any()


@settings(max_examples=30, deadline=None)
@given(_records())
def test_every_format_renders_whatever_the_records_say(records: list[Record]) -> None:
    assert render(SMALL, records, "md").startswith("# ")
    assert len(json.loads(render(SMALL, records, "json"))) == len(SMALL.variants) * len(SMALL.devices)


# --- the columns


def test_the_columns_are_declared_once_and_documented() -> None:
    names = [column.name for column in COLUMNS]
    assert len(set(names)) == len(names)
    for column in COLUMNS:
        assert column.doc and column.name == column.name.lower()
        # A measured number has a unit; counts, places, losses and relative errors have none.
        if column.kind is Kind.NUMBER:
            assert column.unit or column.name.endswith("_loss") or column.name.startswith("gradient_error_")
    assert set(PROMISED) <= FIXED_NAMES


def test_the_frame_has_every_promised_column_and_every_axis() -> None:
    frame = results_frame(SMALL, make_records(SMALL))
    assert set(PROMISED) | set(SMALL.variants[0].axes) <= set(frame.columns)
    assert frame["run"].eq(RUN).all()
    assert frame["layers"].eq(2).all() and frame["dropout"].eq(0.2).all()
    assert frame["bidirectional"].eq("false").all()


def test_an_axis_cannot_displace_a_column() -> None:
    assert axis_column("device") == "axis_device"
    variant = replace(SMALL.variants[0], axes={"device": "mine", "cell": "lstm"})
    frame = results_frame(replace(SMALL, variants=(variant,)), [])
    assert list(frame["device"]) == ["stub", "cpu"] and list(frame["axis_device"]) == ["mine", "mine"]


def test_every_column_shows_an_absent_value_as_nothing() -> None:
    frame = results_frame(SMALL, [])
    for column in COLUMNS:
        if frame[column.name].isna().all():
            assert column.show(frame[column.name].iloc[0]) == ""


# --- absent is absent


def test_a_variant_without_a_record_is_not_run_and_empty() -> None:
    line = results_frame(SMALL, []).iloc[0]
    assert line["outcome"] == "not-run" and line["attempts"] == 0
    for name in ("epoch", "path", "error_type", "sequences_per_second", "peak_memory_bytes", "last_loss", "wall_s"):
        assert pd.isna(line[name])


def test_a_nan_loss_is_told_from_an_absent_one() -> None:
    record = timed(last_loss=math.nan)
    frame = results_frame(SMALL, [record])
    assert row(frame, record)["note"] == "last loss is nan"
    assert frame["note"].notna().sum() == 1
    assert json.loads(render(SMALL, [record], "json"))[1]["last_loss"] is None


def test_records_of_nothing_planned_do_not_count_but_are_mentioned() -> None:
    stranger = timed(key="0" * 12)
    foreign = timed(run="another-run")
    assert results_frame(SMALL, [stranger, foreign])["outcome"].eq("not-run").all()
    assert "2 records of the journal belong to no planned variant" in render(SMALL, [stranger, foreign], "md")


# --- what the rows say of replicates; the rules themselves are tested in test_results.py


def test_a_row_says_what_a_retry_replaced() -> None:
    first, second = timed(outcome=Outcome.CRASH, samples=()), timed(attempt=2)
    line = row(results_frame(SMALL, [first, second]), second)
    assert (line["outcome"], line["attempts"], line["superseded"]) == ("ok", 1, 1)


@pytest.mark.parametrize("worst", [outcome for outcome in Outcome if outcome is not Outcome.OK])
def test_one_replicate_that_failed_is_never_outvoted(worst: Outcome) -> None:
    plan = replace(SMALL, settings=Settings(replicates=3))
    bad = die(timed(replicate=1), worst, "why")
    records = [timed(), bad, timed(replicate=2)]
    line = row(results_frame(plan, records), bad)
    assert line["outcome"] == worst.value
    assert line["note"] == f"replicates disagree: 1 {worst}, 2 ok"
    assert pd.isna(line["sequences_per_second"])
    assert summary(plan, records).counts[Device.CPU][worst] >= 1


def test_missing_replicates_are_noted() -> None:
    plan = replace(SMALL, settings=Settings(replicates=3))
    line = row(results_frame(plan, [timed()]), timed())
    assert line["outcome"] == "ok" and line["note"] == "1 of 3 replicates recorded"
    assert "The run did not finish" in render(plan, [*make_records(SMALL)], "md")


def test_each_number_stands_in_its_own_column() -> None:
    record = timed(
        samples=(Sample(2, 2, 0.8),), sequences_per_step=10, timesteps_per_step=100, first_step_s=3.0, wall_s=7.0
    )
    line = row(results_frame(SMALL, [record]), record)
    names = ("step_ms_median", "sequences_per_second", "timesteps_per_second", "first_step_ms", "wall_s")
    assert [line[name] for name in names] == pytest.approx([400, 25, 250, 3000, 7])
    assert (line["step_clock"], line["peak_memory_bytes"]) == ("wall", 300 << 20)


def test_a_stub_that_claims_a_speed_is_not_believed() -> None:
    record = with_numbers(make_record(SMALL, SMALL.variants[0], Device.STUB), SMALL.variants[0])
    assert record.samples and record.first_loss
    line = row(results_frame(SMALL, [record]), record)
    assert line["outcome"] == "ok"
    assert pd.isna(line["sequences_per_second"]) and pd.isna(line["first_loss"])


# --- CSV, JSON and files


def test_a_hostile_message_is_disarmed_in_csv_and_whole_again_when_read() -> None:
    record = fail(timed(), Outcome.ERROR, HOSTILE)
    frame = results_frame(SMALL, [record])
    text = to_csv(frame)
    assert "\x1b" not in text and "\x00" not in text and "\"'=cmd|" in text
    assert row(read_results(text), record)["error_message"] == row(frame, record)["error_message"]


def test_a_negative_number_stays_a_number() -> None:
    record = timed(first_loss=-1.5)
    text = to_csv(results_frame(SMALL, [record]))
    assert ",-1.5," in text and "'-1.5" not in text


def test_json_is_one_object_per_row_with_null_for_absent() -> None:
    rows = json.loads(render(SMALL, [], "json"))
    assert [r["outcome"] for r in rows] == ["not-run"] * 8
    assert rows[0]["sequences_per_second"] is None and rows[0]["path"] is None
    assert rows[0]["layers"] == 2


def test_write_report_leaves_its_files_and_nothing_else(tmp_path: Path) -> None:
    records = spoil(make_records(make_plan()))
    for _ in range(2):
        written = write_report(tmp_path / "run", make_plan(), records, ["said from outside"])
    assert [path.name for path in written[:2]] == ["report.md", "results.csv"]
    assert {path.suffix for path in written[2:]} == {".svg", ".png"}
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == sorted(path.name for path in written)
    assert "- said from outside\n" in written[0].read_text(encoding="utf-8")
    assert len(read_results(written[1])) == 768


def test_an_unwritable_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="cannot write"):
        write_report(tmp_path / "file", SMALL, [])
