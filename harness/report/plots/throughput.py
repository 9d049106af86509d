"""Training throughput by cell and by the kernel path that was seen, on one device that computes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness.blocks import step_seconds
from harness.model import Device, KernelPath
from harness.report.evidence import Evidence
from harness.report.plots.style import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    SKY,
    VERMILION,
    WHITE,
    bare,
    device_words,
    headroom,
    new_figure,
    titled,
)
from harness.report.steps import train_steps
from harness.results import Result
from harness.statistics import Interval, median, median_interval

LOOKS = {
    KernelPath.CUDNN: ("o", BLUE, "cuDNN"),
    KernelPath.NATIVE: ("s", ORANGE, "native"),
    KernelPath.MKLDNN: ("^", SKY, "MKLDNN"),
    KernelPath.MIOPEN: ("D", VERMILION, "MIOpen"),
}
"""Marker, colour and name of a path; with cuDNN off a marker is hollow."""

ROW, GAP, BELOW = 0.2, 0.22, 0.5
"""Inches."""


@dataclass(frozen=True)
class Point:
    """The throughput of one cell and direction with one path and setting of cuDNN."""

    cell: str
    path: KernelPath
    flag: str
    middle: float
    low: float
    high: float
    interval: Interval | None


def throughput(evidence: Evidence, device: Device) -> tuple[Figure, str] | None:
    """A point per cell, path and setting of cuDNN; None where nothing was timed, hence always on a stub."""
    points = list(_points(evidence, device)) if device.computes else []
    if not points:
        return None
    cells: dict[str, list[Point]] = {}
    for point in points:
        cells.setdefault(point.cell, []).append(point)
    lines = _lines(evidence, device, points)
    inches = sum(GAP + ROW * len(each) for each in cells.values())
    height = headroom(lines) + inches + BELOW
    figure = new_figure(8.2, height)
    axes = figure.add_axes((0.2, BELOW / height, 0.77, inches / height))
    at = 0.0
    for each in cells.values():
        for number, point in enumerate(each):
            _draw(axes, point, at + GAP / 2 + ROW * (number + 0.5))
        at += GAP + ROW * len(each)
        axes.axhline(at, color=GREY, linewidth=0.4)
    _frame(axes, cells, at)
    axes.set_xlabel(f"training sequences per second on {device}", fontsize=8)
    titled(figure, f"Throughput of a train step on {device}", lines)
    return figure, f"Throughput by cell and kernel path on {device}"


def _lines(evidence: Evidence, device: Device, points: list[Point]) -> list[str]:
    whiskers = (
        "95 % interval of the median over replicates"
        if all(point.interval for point in points)
        else "smallest and largest attempt, which is no interval (fewer than six replicates)"
    )
    lines = [
        f"{device_words(evidence, device)}.",
        "Marks: medians, of all placements that do the same train step.",
        f"Whiskers: {whiskers}.",
    ]
    if device is Device.CPU:
        lines.append("The cuDNN flag has no effect on a CPU: what differs between on and off is noise.")
    return lines


def _frame(axes: Axes, cells: dict[str, list[Point]], height: float) -> None:
    ends = [0.0]
    for each in cells.values():
        ends.append(ends[-1] + GAP + ROW * len(each))
    axes.set_yticks([(low + high) / 2 for low, high in pairwise(ends)], list(cells))
    axes.set_ylim(height, 0)
    axes.set_xlim(0, 1.3 * max(point.high for each in cells.values() for point in each))
    axes.grid(axis="x", color=GREY, alpha=0.25)
    bare(axes)


def _points(evidence: Evidence, device: Device) -> Iterator[Point]:
    for (cell, flag, path), results in train_steps(evidence, device).items():
        values = _per_replicate(results)
        every = [value for each in values.values() for value in each]
        medians = [middle for each in values.values() if (middle := median(each)) is not None]
        middle = median(medians)
        if middle is not None:
            interval = median_interval(medians)
            low, high = (interval.low, interval.high) if interval else (min(every), max(every))
            yield Point(cell, path, flag, middle, low, high, interval)


def _per_replicate(results: list[Result]) -> dict[int, list[float]]:
    """The replicate is the process: steps of one are no replicates, and variants are pooled within it."""
    values: dict[int, list[float]] = {}
    for record in (record for result in results for record in result.records):
        seconds = step_seconds(record)
        if seconds and record.sequences_per_step:
            values.setdefault(record.replicate, []).append(record.sequences_per_step / seconds)
    return values


def _draw(axes: Axes, point: Point, y: float) -> None:
    marker, colour, name = LOOKS[point.path]
    axes.plot([point.low, point.high], [y, y], color=BLACK, linewidth=1, marker="|", markersize=5, zorder=2)
    face = colour if point.flag == "on" else WHITE
    axes.plot(point.middle, y, marker, color=face, markeredgecolor=BLACK, markersize=6.5, zorder=3)
    said = f"{name}, cuDNN {point.flag}" if point.path is not KernelPath.CUDNN else name
    axes.annotate(
        said, (point.high, y), xytext=(7, 0), textcoords="offset points", va="center", fontsize=7.5, color=BLACK
    )
