"""Where the error was raised: phase, epoch and step, the ones that occurred most first."""

from __future__ import annotations

import pandas as pd

from harness.model import Outcome
from harness.report import text
from harness.report.evidence import Evidence

PLACE = ["device", "phase", "epoch", "step"]


def where(evidence: Evidence) -> str:
    """One row per place; empty where nothing raised."""
    frame = evidence.frame
    raising = frame[frame["outcome"] == Outcome.BACKWARD_ERROR.value]
    if raising.empty:
        return ""
    rows = [
        {
            **{name: _shown(value) for name, value in zip(PLACE, place, strict=True)},
            "variants": f"{len(group):,}",
            "attempts": f"{int(group['attempts'].sum()):,}",
            **_placements(group),
        }
        for place, group in _grouped(raising)
    ]
    rows.sort(key=lambda row: -int(row["variants"].replace(",", "")))
    first = "Epochs and steps count from 1: an error at epoch 2, step 1 comes after a whole epoch without a sign of it."
    return "\n\n".join(("## Where it raised", first, text.table(pd.DataFrame(rows))))


def _grouped(raising: pd.DataFrame) -> list[tuple[tuple[object, ...], pd.DataFrame]]:
    return list(raising.groupby(PLACE, dropna=False, sort=True))


def _shown(value: object) -> str:
    return "not seen" if pd.isna(value) else text.plain(str(value))  # type: ignore[call-overload]


def _placements(group: pd.DataFrame) -> dict[str, str]:
    if "placement" not in group:
        return {}
    return {"placements": text.listed((text.plain(str(name)) for name in group["placement"].unique()), limit=30)}
