"""Plots: only of what was measured, the same bytes every time, and readable without colour."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from builders import make_plan, make_records, spoil

from harness.model import Device, Outcome, Plan, Record, Settings
from harness.report import render, write_report
from harness.report.evidence import Evidence
from harness.report.plots import draw
from harness.report.plots.outcome_map import _look

CELLS = ("lstm", "gru")
PLAN = make_plan(cells=CELLS)
RECORDS = make_records(PLAN)


def drawn(plan: Plan, records: list[Record]) -> dict[str, bytes]:
    return draw(Evidence.of(plan, records))


def words(svg: bytes) -> str:
    """All text of an SVG, which is text in it."""
    return " ".join(
        "".join(element.itertext()) for element in ElementTree.fromstring(svg).iter() if "text" in element.tag
    )


@pytest.fixture(scope="module")
def plots() -> dict[str, bytes]:
    return drawn(PLAN, RECORDS)


def test_each_plot_is_there_as_svg_and_png_and_names_its_device(plots: dict[str, bytes]) -> None:
    names = ("outcomes-stub", "prices-cpu", "throughput-cpu")
    assert sorted(plots) == sorted(f"{name}.{form}" for name in names for form in ("svg", "png"))
    for name in names:
        assert plots[f"{name}.png"].startswith(b"\x89PNG")
        title = words(plots[f"{name}.svg"])
        assert re.search(rf"on {name.split('-')[1]}\b", title) and f"Device: {name.split('-')[1]}" in title


def test_the_same_data_give_the_same_bytes_and_no_date(plots: dict[str, bytes]) -> None:
    assert drawn(PLAN, RECORDS) == plots
    for content in plots.values():
        assert b"dc:date" not in content and b"matplotlib.org" not in content.lower()


def test_the_noise_of_equal_work_is_a_band_behind_the_prices(plots: dict[str, bytes]) -> None:
    assert "What differs by less is noise" in words(plots["prices-cpu.svg"])
    alone = make_plan(cells=CELLS, placements=("train-always", "eval-always", "eval-cudnn-off-forward"))
    assert "is noise" not in words(drawn(alone, make_records(alone))["prices-cpu.svg"]), "nothing does equal work there"


def test_every_tile_says_its_outcome_in_words(plots: dict[str, bytes]) -> None:
    text = words(plots["outcomes-stub.svg"])
    assert text.count("RAISES") == 9 * len(CELLS) + 1  # and once in the legend
    assert "PyTorch's CUDA code with no GPU behind it" in text
    assert text.count("error") >= 4


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        (["backward-error"] * 2, "RAISES"),
        (["backward-error", "ok", "ok"], "1 of 3 raise"),
        (["ok", "ok"], "ok"),
        (["not-run"], "not run"),
        (["oom"], "oom"),
        (["oom", "ok"], "mixed"),
        ([], ""),
    ],
)
def test_a_tile_is_told_by_its_words(outcomes: list[str], said: str) -> None:
    assert _look(outcomes).words == said


def test_a_stub_has_no_throughput_and_no_price() -> None:
    plan = make_plan(cells=CELLS, devices=(Device.STUB,))
    assert sorted(drawn(plan, make_records(plan))) == ["outcomes-stub.png", "outcomes-stub.svg"]


def test_what_raises_in_a_variant_has_no_bar_as_it_has_no_row(plots: dict[str, bytes]) -> None:
    name = "eval-cudnn-off-forward"
    assert name in words(plots["prices-cpu.svg"])
    index = next(i for i, r in enumerate(RECORDS) if f"cudnn=on,placement={name}" in r.label and r.device == "stub")
    records = [replace(r, outcome=Outcome.BACKWARD_ERROR) if i == index else r for i, r in enumerate(RECORDS)]
    assert name not in words(drawn(PLAN, records)["prices-cpu.svg"])


def test_a_cpu_has_no_outcome_map_and_says_what_its_prices_are_not(plots: dict[str, bytes]) -> None:
    assert not any(name.startswith("outcomes-cpu") for name in plots)
    assert "a price on a CPU is not a price on a GPU" in words(plots["prices-cpu.svg"])
    assert "has no effect on a CPU" in words(plots["throughput-cpu.svg"])


def test_whiskers_are_intervals_from_six_replicates_on() -> None:
    plan = make_plan(cells=("lstm",), directions=(False,), devices=(Device.CUDA,))
    plan = replace(plan, settings=Settings(replicates=6))
    found = drawn(plan, make_records(plan))
    for name in ("prices-cuda.svg", "throughput-cuda.svg"):
        assert "95 % interval of the median over replicates" in words(found[name])
    few = replace(plan, settings=Settings(replicates=5))
    for name in ("prices-cuda.svg", "throughput-cuda.svg"):
        assert "which is no interval" in words(drawn(few, make_records(few))[name])
    assert "native, cuDNN off" in words(found["throughput-cuda.svg"])


def test_nothing_is_drawn_of_nothing_and_a_spoilt_run_breaks_nothing() -> None:
    assert drawn(PLAN, []) == {}
    assert drawn(PLAN, spoil(RECORDS))
    failed = [replace(record, outcome=Outcome.CRASH, samples=(), sightings=()) for record in RECORDS]
    assert sorted(drawn(PLAN, failed)) == ["outcomes-stub.png", "outcomes-stub.svg"]


def test_a_plan_without_placements_has_no_plot() -> None:
    plan = replace(PLAN, variants=tuple(replace(v, axes={"program": v.label}) for v in PLAN.variants[:2]))
    records = [Record(plan.run, v.key, v.label, device, Outcome.OK) for v in plan.variants for device in plan.devices]
    assert drawn(plan, records) == {}


def test_the_written_report_links_its_plots_and_the_printed_one_has_none(tmp_path: Path) -> None:
    files = write_report(tmp_path, PLAN, RECORDS)
    report = (tmp_path / "report.md").read_text()
    linked = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", report)
    assert sorted(linked) == ["outcomes-stub.svg", "prices-cpu.svg", "throughput-cpu.svg"]
    assert set(linked) < {file.name for file in files}
    assert all((tmp_path / name).is_file() for name in linked)
    assert "![" not in render(PLAN, RECORDS, "md")


def test_a_printed_report_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> dict[str, bytes]:
        raise AssertionError("drawn")

    monkeypatch.setattr("harness.report.draw", refuse)
    for form in ("md", "csv", "json"):
        assert render(PLAN, RECORDS, form)  # type: ignore[arg-type]
