"""The head of a report: what happened, on which device, in a sentence a person can repeat."""

from __future__ import annotations

import pandas as pd

from harness.model import Device, Outcome
from harness.report import text
from harness.report.evidence import Evidence
from harness.report.summary import summarise


def headline(evidence: Evidence) -> str:
    """Title, headline, and the counts per device."""
    plan = evidence.plan
    summary = summarise(plan, evidence.results)
    devices = " and ".join(f"`{device}`" for device in plan.devices)
    origin = f"Matrix {text.code(plan.matrix)}, run {text.plain(plan.run)}, {text.plain(plan.created)}; on {devices}."
    return "\n\n".join(
        part
        for part in (
            "# Which variants raise the cuDNN RNN backward error",
            f"**{summary.headline}**",
            summary.meaning,
            _counts(evidence),
            _joined(evidence),
            origin,
            _selection(evidence),
            text.plain(plan.description, limit=1000) if plan.description else "",
        )
        if part
    )


def _counts(evidence: Evidence) -> str:
    summary = summarise(evidence.plan, evidence.results)
    occurred = [o for o in Outcome if any(o in counts for counts in summary.counts.values())]
    rows = [
        {
            "device": device.value,
            "what it is": text.DEVICE_WORDS[device],
            "variants": f"{summary.planned:,}",
            **{outcome.value: f"{counts.get(outcome, 0):,}" for outcome in occurred},
            "attempts": f"{summary.attempts[device]:,}",
        }
        for device, counts in summary.counts.items()
    ]
    return text.table(pd.DataFrame(rows)) if rows else ""


def _joined(evidence: Evidence) -> str:
    if set(evidence.plan.devices) != {Device.STUB, Device.CPU}:
        return ""
    if evidence.plan.is_program:
        return "There was no GPU: the outcome comes from `stub`, losses and accuracy from `cpu`."
    return (
        "There was no GPU: outcomes come from `stub`, speed from `cpu`, joined per variant. Every column says which. "
        "What `cpu` says about outcomes is only that the variant runs."
    )


def _selection(evidence: Evidence) -> str:
    plan = evidence.plan
    parts = [f"Selected: {text.code(plan.selection)}." if plan.selection else ""]
    parts += [f"Command: {text.code(' '.join(plan.command))}." if plan.command else ""]
    return " ".join(part for part in parts if part)
