"""The outcome map: a tile for each placement, cell and setting of cuDNN, with the outcome written in it."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from harness.model import Device, Outcome
from harness.report import text
from harness.report.evidence import Evidence
from harness.report.plots.style import (
    BLACK,
    GREY,
    PALE,
    SKY,
    VERMILION,
    WHITE,
    device_words,
    headroom,
    new_figure,
    titled,
)

NEEDED = {"placement", "cell", "cudnn"}
ROW, COLUMN, LEFT, HEAD, LINE = 0.26, 0.82, 1.75, 0.45, 0.17
"""Inches: of a tile, of the names on the left, of the heads of columns, and of a line of the legend."""


class Look(NamedTuple):
    """A tile: what is written in it, which tells it apart without colour, and its colours."""

    words: str
    fill: str
    ink: str = BLACK
    bold: bool = False


def outcome_map(evidence: Evidence, device: Device) -> tuple[Figure, str] | None:
    """Placements by cells on ``device``; None on a CPU, where the error cannot occur, or without these axes."""
    rows = evidence.on(device)
    if device is Device.CPU or not set(rows.columns) >= NEEDED or not evidence.ran_on(device):
        return None
    placements, cells = (list(dict.fromkeys(rows[name].dropna())) for name in ("placement", "cell"))
    flags = [flag for flag in ("on", "off") if (rows["cudnn"] == flag).any()]
    if not placements or not flags:
        return None
    raising = int((rows["outcome"] == Outcome.BACKWARD_ERROR.value).sum())
    counted = f"{raising:,} of {text.count(len(rows), 'variant')} raise"
    lines = [f"{device_words(evidence, device)}.", f"{counted}."]
    legend = _legend(rows, sparse=len(rows.groupby(["placement", "cell"])) < len(placements) * len(cells))
    wide, high = COLUMN * len(cells) * len(flags), ROW * len(placements)
    width, below = max(LEFT + wide + 0.1, 6.2), 0.2 + LINE * len(legend)
    height = headroom(lines) + HEAD + high + below
    figure = new_figure(width, height)
    axes = figure.add_axes((LEFT / width, below / height, wide / width, high / height))
    _tiles(axes, rows, placements, cells, flags)
    _frame(axes, placements, cells, flags)
    titled(figure, f"Which mode-switch placements raise on {device}", lines)
    for number, line in enumerate(reversed(legend)):
        figure.text(0.1 / width, (0.1 + LINE * number) / height, line, fontsize=7.5, color=BLACK)
    return figure, f"Outcome map on {device}: {counted}; the table below says the same"


def _tiles(axes: Axes, rows: pd.DataFrame, placements: list[str], cells: list[str], flags: list[str]) -> None:
    outcomes = {place: list(group) for place, group in rows.groupby(["placement", "cell", "cudnn"])["outcome"]}
    for y, placement in enumerate(placements):
        for x, (cell, flag) in enumerate((cell, flag) for cell in cells for flag in flags):
            look = _look(outcomes.get((placement, cell, flag), []))
            axes.add_patch(Rectangle((x, y), 1, 1, facecolor=look.fill, edgecolor=GREY, linewidth=0.5))
            axes.text(
                x + 0.5,
                y + 0.53,
                look.words,
                ha="center",
                va="center",
                fontsize=7.5,
                color=look.ink,
                fontweight="bold" if look.bold else "normal",
            )


def _look(outcomes: list[str]) -> Look:
    if not outcomes:
        return Look("", WHITE)
    raised = outcomes.count(Outcome.BACKWARD_ERROR.value)
    kinds = set(outcomes)
    if raised == len(outcomes):
        return Look("RAISES", VERMILION, WHITE, bold=True)
    if raised:
        return Look(f"{raised} of {len(outcomes)} raise", SKY)
    if kinds == {Outcome.OK.value}:
        return Look("ok", WHITE)
    if kinds == {Outcome.NOT_RUN.value}:
        return Look("not run", PALE, GREY)
    return Look(kinds.pop() if len(kinds) == 1 else "mixed", PALE)


def _frame(axes: Axes, placements: list[str], cells: list[str], flags: list[str]) -> None:
    columns = len(cells) * len(flags)
    axes.set_xlim(0, columns)
    axes.set_ylim(len(placements), 0)
    axes.set_yticks([y + 0.5 for y in range(len(placements))], placements, fontsize=8)
    axes.set_xticks([x + 0.5 for x in range(columns)], [f"cuDNN {flag}" for flag in flags] * len(cells), fontsize=7)
    axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.spines[:].set_color(GREY)
    for index, cell in enumerate(cells):
        middle = (index + 0.5) * len(flags)
        axes.annotate(
            cell,
            (middle, 0),
            xytext=(0, 16),
            textcoords="offset points",
            annotation_clip=False,
            ha="center",
            fontsize=8.5,
            fontweight="bold",
        )
        if index:
            axes.axvline(index * len(flags), color=BLACK, linewidth=1.4)


def _legend(rows: pd.DataFrame, *, sparse: bool) -> list[str]:
    sides = rows.groupby(["placement", "cell", "cudnn"])["outcome"].agg(set)
    lines = ["RAISES: a backward pass stopped with the error. ok: ran to the end."]
    if any(Outcome.BACKWARD_ERROR.value in kinds and len(kinds) > 1 for kinds in sides):
        lines.append("n of m raise: of the m variants that share the tile; the others do not.")
    if Outcome.ERROR.value in set(rows["outcome"]):
        lines[0] += " error: another exception."
    if sparse:
        lines.append("Empty: not planned.")
    return lines
