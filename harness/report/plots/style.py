"""How plots look: the colours of Okabe and Ito, and never a colour alone; the same bytes for the same data."""

from __future__ import annotations

import io
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness.model import Device
from harness.report.evidence import Evidence
from harness.report.text import DEVICE_WORDS

BLACK, WHITE, GREY, PALE = "#222222", "#ffffff", "#767676", "#f1f1f1"
VERMILION, BLUE, SKY, ORANGE = "#D55E00", "#0072B2", "#56B4E9", "#E69F00"

DPI = 110

_SETTINGS: Any = {  # the stubs name every setting there is
    "svg.hashsalt": "harness",
    "svg.fonttype": "none",
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 9.0,
    "hatch.linewidth": 0.7,
}


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches, that no graphical backend knows of."""
    return Figure(figsize=(width, height), dpi=DPI)


def rendered(figure: Figure) -> dict[str, bytes]:
    """``figure`` as SVG and PNG, without a date or a version in them."""
    files = {}
    with mpl.rc_context(_SETTINGS):
        for form, metadata in (("svg", {"Date": None, "Creator": None}), ("png", {"Software": None})):
            stream = io.BytesIO()
            figure.savefig(stream, format=form, metadata=metadata)
            files[form] = stream.getvalue()
    return files


TITLE, LINE = 0.24, 0.165
"""Inches of a title and of each line below it."""


def headroom(lines: list[str]) -> float:
    """The inches that a title with ``lines`` under it needs above the axes."""
    return 0.1 + TITLE + LINE * len(lines) + 0.12


def titled(figure: Figure, title: str, lines: list[str]) -> None:
    """A bold title, and smaller lines under it, at the upper left corner of ``figure``."""
    width, height = figure.get_size_inches()
    figure.text(0.1 / width, 1 - 0.1 / height, title, va="top", fontsize=11, fontweight="bold", color=BLACK)
    for number, line in enumerate(lines):
        y = 1 - (0.1 + TITLE + LINE * number) / height
        figure.text(0.1 / width, y, line, va="top", fontsize=8, color=BLACK)


def bare(axes: Axes) -> None:
    """No frame but the axis that is read from."""
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False, labelsize=8)


def device_words(evidence: Evidence, device: Device) -> str:
    """What the device is, what its attempts call it, and the versions that they saw."""
    rows = evidence.on(device)
    if device is Device.STUB:
        rows = rows.assign(device_name=DEVICE_WORDS[device])  # what it is says more than its name
    facts = [
        f"{word}{', '.join(sorted(rows[column].dropna().unique()))}"
        for column, word in (("device_name", ""), ("torch_version", "PyTorch "), ("cudnn_version", "cuDNN "))
        if rows[column].notna().any()
    ]
    return f"Device: {device} ({'; '.join(facts)})" if facts else f"Device: {device}"
