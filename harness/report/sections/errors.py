"""Everything else that went wrong, grouped by fingerprint; what did not run; what was never planned."""

from __future__ import annotations

import pandas as pd

from harness.model import Outcome
from harness.report import text
from harness.report.evidence import Evidence
from harness.results import NO_PROCESS

EXPECTED = (Outcome.OK, Outcome.BACKWARD_ERROR, *NO_PROCESS)
LONGEST_LABEL = 400


def other_errors(evidence: Evidence) -> str:
    """One entry per device, outcome and fingerprint."""
    frame = evidence.frame
    failed = frame[~frame["outcome"].isin([outcome.value for outcome in EXPECTED])]
    if failed.empty:
        return "## Other errors\n\nNone."
    kind = failed["fingerprint"].fillna(failed["error_type"]).fillna(failed["reason"]).fillna("")
    groups = failed.groupby([failed["device"], failed["outcome"], kind], sort=False)
    entries = sorted((group for _, group in groups), key=len, reverse=True)
    return "\n".join(("## Other errors", "", *(_entry(group) for group in entries)))


def _entry(group: pd.DataFrame) -> str:
    first = group.iloc[0]
    kind = "" if pd.isna(first["error_type"]) else f" {text.code(first['error_type'])}"
    amount, attempts = text.count(len(group), "variant"), text.count(int(group["attempts"].sum()), "attempt")
    lines = [f"- **{amount} on `{first['device']}`: `{first['outcome']}`{kind}**{_places(group)}, {attempts}"]
    lines += [f"  {text.code(first[name])}" for name in ("error_message", "reason") if not pd.isna(first[name])]
    if "placement" in group:
        names = (text.plain(str(name)) for name in group["placement"].unique())
        lines.append(f"  placements: {text.listed(names, limit=30)}")
    fingerprint = "" if pd.isna(first["fingerprint"]) else f"fingerprint {text.plain(first['fingerprint'])}, "
    lines.append(f"  {fingerprint}for example {text.plain(first['label'], LONGEST_LABEL)} (key `{first['key']}`)")
    return "  \n".join(lines)


def _places(group: pd.DataFrame) -> str:
    places = group[["phase", "epoch", "step"]].drop_duplicates()
    if len(places) > 1:
        return f" in {len(places)} different places"
    phase, epoch, step = places.iloc[0]
    said = [
        "" if pd.isna(phase) else f" in {text.plain(str(phase))}",
        "" if pd.isna(epoch) else f" at epoch {epoch}",
        "" if pd.isna(step) else f" step {step}",
    ]
    return "".join(said)


def not_run(evidence: Evidence) -> str:
    """Variants that were planned and skipped or not run, by reason; empty where every one ran."""
    frame = evidence.frame
    absent = frame[frame["outcome"].isin([outcome.value for outcome in NO_PROCESS])]
    if absent.empty:
        return ""
    reasons = absent.assign(why=absent["reason"].fillna("no record: the run ended before its turn").map(text.plain))
    counted = reasons.value_counts(["device", "outcome", "why"], sort=True).reset_index()
    lines = [
        f"- {row['count']:,} on `{row['device']}`, `{row['outcome']}`: {row['why']}" for _, row in counted.iterrows()
    ]
    return "\n".join(("## Planned, but not run", "", *lines))


def exclusions(evidence: Evidence) -> str:
    """What the matrix leaves out, with the reasons."""
    left_out = evidence.plan.exclusions
    if evidence.plan.is_program:
        return ""
    if not left_out:
        return "## Exclusions\n\nNone: every combination of the matrix was planned."
    frame = pd.DataFrame(
        {"reason": [text.plain(e.reason) for e in left_out], "label": [text.plain(e.label) for e in left_out]}
    )
    grouped = frame.groupby("reason", sort=False)["label"].agg(["size", "first"]).sort_values("size", ascending=False)
    lines = [f"- {row['size']:,}: {reason}  \n  for example {row['first']}" for reason, row in grouped.iterrows()]
    total = text.count(len(left_out), "combination")
    return "\n".join(
        ("## Exclusions", "", f"{total} of the matrix left out, because they cannot exist or on purpose:", "", *lines)
    )
