"""What each placement of the plan does, in one line: the map names them, few readers know them."""

from __future__ import annotations

from harness.placements import PLACEMENTS
from harness.report.evidence import Evidence


def glossary(evidence: Evidence) -> str:
    """The placements that occur, in the order of the map; empty where none is known."""
    names = dict.fromkeys(str(variant.axes.get("placement")) for variant in evidence.plan.variants)
    known = [PLACEMENTS[name] for name in names if name in PLACEMENTS]
    if not known:
        return ""
    lines = (f"- `{placement.name}`: {placement.summary}" for placement in known)
    return "\n".join(("## The placements in words", "", *lines))
