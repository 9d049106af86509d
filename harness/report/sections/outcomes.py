"""The outcome map: placement by cell, with cuDNN on and off, and what the prediction makes of it."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from harness.model import Device, KernelPath, Outcome
from harness.report import text
from harness.report.evidence import Evidence
from harness.results import WORST_FIRST
from harness.rule import check_rule, differs, prediction

WORDS = {Outcome.BACKWARD_ERROR.value: "RAISES"}
"""How the map spells outcomes: the one that matters loudly, the others by their names."""

LEGEND = {
    Outcome.OK: "`ok`: ran to the end",
    Outcome.BACKWARD_ERROR: "`RAISES`: a backward pass stopped with the error (outcome `backward-error`)",
    Outcome.ERROR: "`error`: another exception",
    Outcome.OOM: "`oom`: out of memory",
    Outcome.TIMEOUT: "`timeout`: not done by its deadline, and stopped; its reason says whether it hung or was slow",
    Outcome.CRASH: "`crash`: the process died",
    Outcome.SKIPPED: "`skipped`: left out on purpose, with a reason",
    Outcome.NOT_RUN: "`not-run`: planned, but there is no record",
}
MARK = " (!)"
LIMIT = 20


def outcomes(evidence: Evidence) -> str:
    """One map per device on which the error can occur; the CPU's only where there is no other."""
    devices = evidence.raising_devices or list(evidence.plan.devices)
    parts = ["## Outcomes", *(_map(evidence, device) for device in devices)]
    if Device.CPU in evidence.plan.devices and Device.CPU not in devices:
        parts.append(_cpu_in_short(evidence))
    return "\n\n".join(part for part in parts if part)


def _map(evidence: Evidence, device: Device) -> str:
    rows = evidence.on(device)
    if rows.empty:
        return ""
    if not {"placement", "cell", "cudnn"} <= set(rows.columns):
        return _plain_list(rows, device)
    odd = {result.key for result in evidence.results if result.device is device and differs(result)}
    rows = rows.assign(word=rows["outcome"].replace(WORDS), odd=rows["key"].isin(odd))
    parts = [_caption(evidence, rows, device), text.table(_entries(rows)), _legend(rows), _mixed(evidence, rows)]
    parts.insert(0, evidence.picture("outcomes", device))
    return "\n\n".join(part for part in (*parts, _prediction(evidence, device)) if part)


def _caption(evidence: Evidence, rows: pd.DataFrame, device: Device) -> str:
    pooled = [c for c in evidence.varying if c not in ("placement", "cell", "cudnn")]
    over = f" An entry speaks for every value of {text.listed(f'`{name}`' for name in pooled)}." if pooled else ""
    flags = list(dict.fromkeys(rows["cudnn"].dropna()))
    sides = " *Left of the slash: cuDNN on; right: cuDNN off; one word where both agree.*"
    if len(flags) == 1:
        sides = f" cuDNN is {text.plain(str(flags[0]))} in all of them."
    return (
        f"On `{device}` ({text.DEVICE_WORDS[device]}), {text.count(len(rows), 'variant')}, "
        f"{text.count(int(rows['attempts'].sum()), 'attempt')}.{sides}{over}"
    )


def _entries(rows: pd.DataFrame) -> pd.DataFrame:
    placements = list(dict.fromkeys(rows["placement"]))
    cells = list(dict.fromkeys(rows["cell"]))
    flags = rows["cudnn"].dropna().unique()
    both, only = len(flags) > 1, str(flags[0]) if len(flags) == 1 else None
    groups = rows.groupby(["placement", "cell"], sort=False)
    entries = {place: _entry(group, both_sides=both) for place, group in groups}
    return pd.DataFrame(
        {
            "placement": [text.plain(str(name)) for name in placements],
            "predicted": [prediction(str(name), only) for name in placements],
            **{text.plain(str(cell)): [entries.get((name, cell), "") for name in placements] for cell in cells},
        }
    )


def _entry(rows: pd.DataFrame, *, both_sides: bool) -> str:
    sides = {flag: _side(group) for flag, group in rows.groupby("cudnn")}
    on, off = sides.pop("on", ""), sides.pop("off", "")
    words = [word for word in (on, off, *sides.values()) if word]
    entry = (
        words[0] if len(set(words)) == 1 and (both_sides is False or (on and off)) else f"{on or '-'} / {off or '-'}"
    )
    return entry + (MARK if rows["odd"].any() else "")


def _side(rows: pd.DataFrame) -> str:
    counts = rows["word"].value_counts()
    if len(counts) == 1:
        return str(counts.index[0])
    return " + ".join(f"{amount} {word}" for word, amount in counts.items())


def _legend(rows: pd.DataFrame) -> str:
    present = set(rows["outcome"])
    words = [sentence for outcome, sentence in LEGEND.items() if outcome.value in present]
    words += ["`(!)`: not as predicted, see below"] if rows["odd"].any() else []
    return (
        f"In words - {'; '.join(words)}. *Predicted*: with cuDNN on, what the rule says of a forward that takes the "
        "cuDNN path; with cuDNN off there is none."
    )


def _mixed(evidence: Evidence, rows: pd.DataFrame) -> str:
    """What the variants have in common whose outcome is not the majority's of their side of an entry."""
    place = ["placement", "cell", "cudnn"]
    sides = rows.groupby(place)["outcome"]
    mixed = rows[sides.transform("nunique") > 1]
    if mixed.empty:
        return ""
    odd = mixed[mixed["outcome"] != mixed.groupby(place)["outcome"].transform(_majority)]
    amount, where = text.count(len(odd), "variant"), text.count(mixed.groupby(place).ngroups, "side")
    head = f"Where an entry counts outcomes ({where}), {amount} came out unlike the majority beside them:"
    names = ["path", *(name for name in evidence.varying if name not in place)]
    common = [line for name in names for line in _always_odd(mixed, odd, name)]
    return "\n".join((head, "", *(common or _each(odd))))


def _each(odd: pd.DataFrame) -> Iterator[str]:
    """``odd`` one by one, since no value of an axis is common to them."""
    for label, word in odd[["label", "word"]].head(LIMIT).itertuples(index=False):
        yield f"- {text.plain(str(label))}: {word}"
    if len(odd) > LIMIT:
        yield f"- and {len(odd) - LIMIT:,} more, with nothing in common; `results.csv` has every variant"


def _majority(outcomes: pd.Series) -> str:
    """The most frequent outcome; among equals the better one."""
    counts = outcomes.value_counts()
    return str(max(counts.index, key=lambda outcome: (counts[outcome], WORST_FIRST.index(Outcome(outcome)))))


def _always_odd(mixed: pd.DataFrame, odd: pd.DataFrame, name: str) -> Iterator[str]:
    """The values of ``name`` with which no variant came out like the majority."""
    every = mixed[name].value_counts()
    for value, group in odd.groupby(name, sort=False):
        if len(group) == every[value]:
            words = ", ".join(f"{amount:,} {word}" for word, amount in group["word"].value_counts().items())
            yield f"- `{name}` {text.plain(str(value))}: {words}"


def _plain_list(rows: pd.DataFrame, device: Device) -> str:
    listing = pd.DataFrame(
        {
            "variant": rows["label"].map(text.plain),
            f"outcome ({device})": rows["outcome"].replace(WORDS),
            "attempts": rows["attempts"].map(str),
        }
    )
    return text.table(listing)


def _cpu_in_short(evidence: Evidence) -> str:
    rows = evidence.on(Device.CPU)
    counts = rows["outcome"].value_counts()
    said = text.listed(f"{amount:,} `{outcome}`" for outcome, amount in counts.items())
    paths = set(rows["path"].dropna())
    through = f", every path seen is {text.listed(f'`{path}`' for path in sorted(paths))}" if paths else ""
    warning = " **A CPU record claims the cuDNN path: do not trust it.**" if KernelPath.CUDNN.value in paths else ""
    return f"On `cpu`, where the error cannot occur: {said}{through}.{warning}"


def _prediction(evidence: Evidence, device: Device) -> str:
    odd = [result for result in evidence.results if result.device is device and differs(result)]
    wrong = [record for record in evidence.rule.contradictions if record.device is device]
    lines = [f"### Differs from the prediction (`{device}`)", ""]
    lines += [
        f"- {text.plain(result.variant.label)}: `{result.outcome}` on path `{result.decisive.path}`"
        for result in odd[:LIMIT]
        if result.decisive
    ]
    lines += [f"- and {len(odd) - LIMIT:,} more"] if len(odd) > LIMIT else []
    lines += [] if odd else ["Nothing."]
    lines += ["", _rule_line(evidence, device)]
    lines += ["", *(_contradiction(record.label, record.outcome) for record in wrong[:LIMIT])] if wrong else []
    return "\n".join(lines)


def _contradiction(label: str, outcome: Outcome) -> str:
    had_to = "saw nothing that must raise" if outcome is Outcome.BACKWARD_ERROR else "saw all three facts"
    return f"- contradicts the rule: {text.plain(label)}: `{outcome}`, but {had_to}"


def _rule_line(evidence: Evidence, device: Device) -> str:
    rule = check_rule(result for result in evidence.results if result.device is device)
    blind = f" {rule.unjudged:,} did not see enough." if rule.unjudged else ""
    judged = rule.explained + len(rule.contradictions)
    return (
        "The rule - forward through cuDNN, RNN in eval mode at that moment, gradient reaches its output - "
        f"explains {rule.explained:,} of the {text.count(judged, 'record')} on `{device}` that saw enough to judge, "
        f"and {len(rule.contradictions):,} of them contradict it.{blind}"
    )
