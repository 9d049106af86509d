"""Plots of a report, as SVG and PNG. Nothing here is imported before something is drawn: matplotlib takes a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.report.evidence import Evidence


def draw(evidence: Evidence) -> dict[str, bytes]:
    """The contents of every plot that ``evidence`` has the data for, by file name; notes them in its ``pictures``."""
    if not evidence.ran:
        return {}
    from harness.report.plots.outcome_map import outcome_map
    from harness.report.plots.prices import prices
    from harness.report.plots.style import rendered
    from harness.report.plots.throughput import throughput

    files: dict[str, bytes] = {}
    for kind, plot in (("outcomes", outcome_map), ("prices", prices), ("throughput", throughput)):
        for device in evidence.plan.devices:
            drawn = plot(evidence, device)
            if drawn is not None:
                figure, shows = drawn
                name = f"{kind}-{device}"
                files |= {f"{name}.{form}": content for form, content in rendered(figure).items()}
                evidence.pictures[name] = shows
    return files
