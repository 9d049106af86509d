"""Every variant on one line: outcome and speed side by side, each column naming the device it comes from."""

from __future__ import annotations

import pandas as pd

from harness.report import text
from harness.report.columns import OBSERVED
from harness.report.evidence import Evidence

LONGEST = 100
"""More variants than this are no longer read by anybody; results.csv has them."""

SPEEDS = [column for column in OBSERVED if column.name in ("sequences_per_second", "step_ms_median")]


def variants(evidence: Evidence) -> str:
    """The table, joined over devices by variant."""
    amount = len(evidence.plan.variants)
    if not amount or evidence.plan.is_program:  # whose only line stands under Outcomes already
        return ""
    if amount > LONGEST:
        return (
            f"## Every variant\n\n{amount:,} variants, too many to read here: `results.csv`, beside this file, has a "
            "row for each variant and device, and `harness show KEY` tells all about one."
        )
    axes = evidence.varying or ["label"]
    first = evidence.on(evidence.plan.devices[0])
    columns = {axis: first[axis].astype("string").fillna("").map(text.plain).to_list() for axis in axes}
    for device in evidence.plan.devices:
        rows = evidence.on(device)
        columns[f"outcome ({device})"] = rows["outcome"].to_list()
        if device.computes:
            for column in SPEEDS:
                unit = "step ms" if column.unit == "ms" else column.unit
                columns[f"{unit} ({device})"] = rows[column.name].map(column.show).to_list()
        columns[f"attempts ({device})"] = rows["attempts"].map(str).to_list()
    return "\n\n".join(("## Every variant", _caption(evidence), text.table(pd.DataFrame(columns))))


def _caption(evidence: Evidence) -> str:
    fixed = [c for c in evidence.frame.columns[3:] if c not in evidence.varying]
    constant = [f"{c}={evidence.frame[c].iloc[0]}" for c in fixed[: list(fixed).index("device")]]
    same = f" All have {text.code(', '.join(constant), limit=600)}." if constant else ""
    return f"The device that a column comes from is in its heading; what was not measured is empty.{same}"
