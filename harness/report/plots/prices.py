"""What each fix costs: its throughput relative to the baseline's train step, on one device."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness.model import Device, Wants
from harness.report import text
from harness.report.evidence import Evidence
from harness.report.fixes import BASELINES, Advice, Fix, noise_of
from harness.report.plots.style import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    SKY,
    WHITE,
    bare,
    device_words,
    headroom,
    new_figure,
    titled,
)

HEADINGS = {Wants.TRAIN: "for a train gradient", Wants.EVAL: "for an eval gradient"}
LOOKS = {
    Advice.USE: (BLUE, ""),
    Advice.AS_WANTED: (SKY, "//"),
    Advice.UNMEASURED: (WHITE, ""),
}
TRAP = (ORANGE, "xx")
"""Colour and hatch of a bar; the verdict stands behind it in words."""

ROW, BELOW = 0.28, 0.5
"""Inches."""


def prices(evidence: Evidence, device: Device) -> tuple[Figure, str] | None:
    """A bar per fix that does not raise and has a price on ``device``; None where there is none."""
    every = (fix for table in evidence.fixes for fix in table.fixes if fix.advice is not Advice.RAISES)
    fixes = {fix.placement.name: fix for fix in every if device in fix.speed}
    rows = _rows(list(fixes.values()))
    if not device.computes or not fixes:
        return None
    lines = _lines(evidence, device, list(fixes.values()))
    height = headroom(lines) + ROW * len(rows) + BELOW
    figure = new_figure(8.6, height)
    axes = figure.add_axes((0.2, BELOW / height, 0.5, ROW * len(rows) / height))
    most = 0.0
    for y, row in enumerate(rows):
        if isinstance(row, str):
            axes.text(0, y + 0.15, row, fontsize=8.5, fontweight="bold", va="center")
        else:
            most = max(most, _bar(axes, y, row, device))
    axes.set_xlim(0, max(1.15, 1.05 * most))
    for y, row in enumerate(rows):
        if isinstance(row, Fix):
            said = f"{row.speed[device].ratio:.2f}x  {row.advice}"
            axes.annotate(said, (1.02, y), xycoords=("axes fraction", "data"), fontsize=8, va="center")
    noise = noise_of(device, list(fixes.values()))
    if noise is not None:
        axes.axvspan(noise.low, noise.high, color=GREY, alpha=0.22, linewidth=0, zorder=0)
    axes.axvline(1, color=BLACK, linewidth=1, linestyle="--", zorder=0)
    named = [(y, row.placement.name) for y, row in enumerate(rows) if isinstance(row, Fix)]
    axes.set_yticks([y for y, _ in named], [name for _, name in named])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    bare(axes)
    baseline = next(name for name in BASELINES if name in evidence.placements)
    axes.set_xlabel(f"throughput relative to the train step of {baseline} on {device} (dashed line)", fontsize=8)
    titled(figure, f"What each fix costs on {device}", lines)
    return figure, f"Price of each fix on {device}, relative to the train step of {baseline}; the tables say the same"


def _lines(evidence: Evidence, device: Device, fixes: list[Fix]) -> list[str]:
    whiskers = (
        "95 % interval of the median over replicates"
        if all(fix.speed[device].interval for fix in fixes)
        else "smallest and largest pair, which is no interval (fewer than six replicates)"
    )
    amounts = sorted({fix.speed[device].replicates for fix in fixes})
    lines = [
        f"{device_words(evidence, device)}.",
        f"Whiskers: {whiskers}. Replicates: {text.listed(map(str, amounts))}.",
    ]
    if noise_of(device, fixes):
        lines.append("Grey: as far as steps equal to the baseline's are from it. What differs by less is noise.")
    if device is Device.CPU:
        lines.append("No cuDNN here: a price on a CPU is not a price on a GPU.")
    return lines


def _rows(fixes: list[Fix]) -> list[str | Fix]:
    """Headings and fixes, from top to bottom."""
    rows: list[str | Fix] = []
    for wants, heading in HEADINGS.items():
        mine = [fix for fix in fixes if fix.placement.wants is wants]
        rows += [heading, *sorted(mine, key=lambda fix: fix.rank)] if mine else []
    return rows


def _bar(axes: Axes, y: int, fix: Fix, device: Device) -> float:
    """Draw the bar; returns how far it reaches."""
    price = fix.speed[device]
    colour, hatch = LOOKS.get(fix.advice, TRAP)
    axes.barh(y, price.ratio, height=0.62, color=colour, hatch=hatch, edgecolor=BLACK, linewidth=0.7)
    low, high = (price.interval.low, price.interval.high) if price.interval else (price.smallest, price.largest)
    if high > low:
        axes.plot([low, high], [y, y], color=BLACK, linewidth=1.1, marker="|", markersize=6, zorder=3)
        axes.plot([low, high], [y, y], color=WHITE, linewidth=3, zorder=2, solid_capstyle="butt", alpha=0.8)
    axes.axhline(y, color=GREY, linewidth=0.2, zorder=0)
    return high
