"""The two articles' claims, and what the records of this run say about them."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from harness.model import Device, Record
from harness.report import text
from harness.report.claims import CLAIMS, Claim, Standing, Tested
from harness.report.evidence import Evidence

KEYS = 3
"""Variants that are named for each kind of evidence; the rest is counted."""


def claims(evidence: Evidence) -> str:
    """A table of verdicts, one column per device, then the evidence for each."""
    devices = [device for device in evidence.plan.devices if evidence.ran_on(device)]
    if not devices:
        return ""
    tested = [{d: claim.test(evidence.results_on(d)) for d in devices} for claim in CLAIMS]
    if all(one.standing is Standing.UNTESTED for each in tested for one in each.values()):
        return ""
    rows = [
        {"": str(number), "claim": claim.text, **{f"on {d}": _verdict(one) for d, one in each.items()}}
        for number, (claim, each) in enumerate(zip(CLAIMS, tested, strict=True), 1)
    ]
    intro = (
        "Two widely read articles explain the error. What they claim, held against what the attempts of this run saw:"
    )
    details = [_details(n, claim, each) for n, (claim, each) in enumerate(zip(CLAIMS, tested, strict=True), 1)]
    return "\n\n".join(("## The articles' claims", intro, text.table(pd.DataFrame(rows)), "\n".join(details)))


def _verdict(tested: Tested) -> str:
    return str(tested.standing) if tested.standing is Standing.UNTESTED else f"**{tested.standing}**"


def _details(number: int, claim: Claim, tested: dict[Device, Tested]) -> str:
    lines = [f"{number}. Would support it: {claim.supports}. Would refute it: {claim.refutes}."]
    for device, one in tested.items():
        if one.standing is not Standing.UNTESTED:
            lines.append(f"   - `{device}`: {_evidence(claim, one)}")
    if all(one.standing is Standing.UNTESTED for one in tested.values()):
        lines.append("   - This run has neither.")
    return "\n".join(lines)


def _evidence(claim: Claim, tested: Tested) -> str:
    parts = [
        _said(records, verb) for records, verb in ((tested.shows, "support"), (tested.contradicts, "refute")) if records
    ]
    truth = f" {claim.truth} {_said(tested.true_half, 'show')}." if tested.true_half else ""
    return f"{text.listed(parts)}.{truth}"


def _said(records: Sequence[Record], verb: str) -> str:
    """``12 records refute it``, with the keys of a few variants."""
    keys = list(dict.fromkeys(record.key for record in records))
    named = ", ".join(f"`{key}`" for key in keys[:KEYS])
    more = f" and {text.count(len(keys) - KEYS, 'more variant')}" if len(keys) > KEYS else ""
    return f"{text.count(len(records), 'record')} {verb}{'s' if len(records) == 1 else ''} it ({named}{more})"
