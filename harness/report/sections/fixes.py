"""The fix table: for what raises, everything that reaches the same goal, with outcome, gradient, price and recipe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pandas as pd

from harness.exactness import Judgement
from harness.exactness import Verdict as Gradient
from harness.model import Device, Outcome, Wants
from harness.report import text
from harness.report.evidence import Evidence
from harness.report.fixes import BASELINES, Advice, Fix, Price, Table, does_the_same

NOISY = 1.1
"""Where equal work differs by more than this factor, a reader is warned."""

GOALS = {
    Wants.TRAIN: "a train gradient (dropout and batch statistics on)",
    Wants.EVAL: "an eval gradient (dropout and batch statistics off)",
    Wants.NOTHING: "no gradient",
}


def fixes(evidence: Evidence) -> str:
    """One table per goal; empty where nothing raises."""
    tables = evidence.fixes
    if not tables:
        return ""
    parts = ["## What to use instead", _intro(evidence, tables)]
    for table in tables:
        parts += [_head(table), _table(evidence, table)]
    images = [evidence.picture("prices", device) for device in evidence.plan.devices]
    return "\n\n".join(part for part in (*parts, _notes(tables), *images) if part)


def _head(table: Table) -> str:
    cured = text.listed(f"`{placement.name}`" for placement in table.cures)
    make = ""
    if table.cures[0].freeze_rnn:
        make = ", through a frozen RNN between trainable parts"
    elif table.cures[0].second:
        make = ", with the output of a second forward in the loss"
    verb = "raises" if len(table.cures) == 1 else "raise"
    return f"### For {GOALS[table.cures[0].wants]}{make}\n\n{cured} {verb}; these reach the same goal.{_doubt(table)}"


def _doubt(table: Table) -> str:
    if table.usable:
        return ""
    if any(fix.advice is Advice.AS_WANTED for fix in table.fixes):
        return " No gradient of theirs could be compared, since dropout is random; with `-a dropout=0.0` it can."
    return " **Nothing in this run is shown to be a cure.**"


def _intro(evidence: Evidence, tables: list[Table]) -> str:
    where = text.listed(f"`{device}`" for device in evidence.raising_devices)
    computing = [device for device in evidence.plan.devices if device.computes]
    baseline = next((name for name in BASELINES if name in evidence.placements), None)
    said = [f"Whether a placement raises was seen on {where}, with cuDNN on."]
    if not computing:
        return f"{said[0]} No device of this run computes, so there is neither a price nor a gradient."
    if baseline:
        said.append(
            f"Prices are relative to the train step of `{baseline}` on the same device, all other axes equal: "
            "1.00x is the same throughput or memory."
        )
    if any(price.interval for price in _prices(tables)):
        said.append("In brackets: 95 % interval of the median over replicates.")
    if any(price.interval is None and price.pairs > 1 for price in _prices(tables)):
        said.append("In parentheses: smallest and largest of the pairs, which is no interval.")
    if Device.CPU in computing and baseline:
        said.append("**On `cpu` the baseline is the native train step: a price on `cpu` is not a price on a GPU.**")
    return " ".join(said)


def _prices(tables: Iterable[Table]) -> list[Price]:
    every = [fix for table in tables for fix in table.fixes]
    return [price for fix in every for prices in (fix.speed, fix.memory) for price in prices.values()]


def _table(evidence: Evidence, table: Table) -> str:
    return text.table(pd.DataFrame([_row(evidence, fix) for fix in table.fixes]))


def _row(evidence: Evidence, fix: Fix) -> dict[str, str]:
    verdict = f"**{fix.advice}**" if fix.advice is Advice.USE else str(fix.advice)
    row = {"placement": fix.placement.name, "verdict": verdict}
    for device in evidence.raising_devices:
        row[f"raises? ({device})"] = _outcomes(fix.outcomes.get(device, Counter()))
    for device in (device for device in evidence.plan.devices if device.computes):
        judged = () if fix.advice is Advice.RAISES else fix.gradients.get(device, ())
        row[f"exact? ({device})"] = _exact(judged)
        row[f"repeatable? ({device})"] = _repeatable(judged)
        mark = _mark(fix)
        row[f"throughput ({device})"] = _price(fix.speed.get(device), mark)
        row[f"memory ({device})"] = _price(fix.memory.get(device))
    row["side effects"] = _side_effects(fix)
    row["recipe"] = text.code(fix.placement.recipe) if fix.placement.recipe else ""
    return row


def _outcomes(counts: Counter[Outcome]) -> str:
    total = counts.total()
    if not total:
        return ""
    raised = counts[Outcome.BACKWARD_ERROR]
    others = [f"{amount} {o}" for o, amount in counts.items() if o not in (Outcome.OK, Outcome.BACKWARD_ERROR)]
    said = f"RAISES, {raised} of {total}" if raised else f"no, 0 of {total}"
    return ", ".join((said, *others))


def _exact(judged: tuple[Judgement, ...]) -> str:
    if not judged:
        return ""
    counts = Counter(judgement.verdict for judgement in judged)
    parts = []
    for verdict in (Gradient.EXACT, Gradient.DIFFERS, Gradient.NOT_REPEATABLE, Gradient.NOT_COMPARABLE):
        if counts[verdict]:
            amount = "" if counts[verdict] == len(judged) else f" in {counts[verdict]} of {len(judged)}"
            reasons = dict.fromkeys(j.reason for j in judged if j.verdict is verdict and verdict is not Gradient.EXACT)
            why = f": {text.plain('; '.join(reasons))}" if reasons else ""
            parts.append(f"{verdict}{amount}{why}")
    return ". ".join(parts)


def _repeatable(judged: tuple[Judgement, ...]) -> str:
    seen = [judgement.repeatable for judgement in judged if judgement.repeatable is not None]
    if not seen:
        return ""
    return "yes" if all(seen) else f"no, in {seen.count(False)} of {len(seen)}"


def _price(price: Price | None, mark: str = "") -> str:
    if price is None:
        return ""
    said = f"{price.ratio:.2f}x{mark}"
    if price.interval:
        low, high = f"{price.interval.low:.2f}", f"{price.interval.high:.2f}"
        return said if low == high else f"{said} [{low}, {high}]"
    low, high = f"{price.smallest:.2f}", f"{price.largest:.2f}"
    return said if low == high else f"{said} ({low} to {high})"


def _mark(fix: Fix) -> str:
    marks = "" if fix.placement.applies else "¹"
    return f"{marks}²" if fix.placement.freeze_rnn or fix.placement.second else marks


def _side_effects(fix: Fix) -> str:
    if fix.advice is Advice.RAISES or not any(fix.gradients.values()):
        return ""
    names = fix.side_effects
    switched = [name.removesuffix(".training") for name in names if name.endswith(".training")]
    others = [text.plain(name) for name in names if not name.endswith(".training")]
    parts = [f"mode of {text.listed(map(text.plain, switched))} is not as before"] if switched else []
    parts += [f"leaves {text.listed(others)} changed"] if others else []
    return "; ".join(parts) or "none seen"


def _notes(tables: list[Table]) -> str:
    every = [fix for table in tables for fix in table.fixes]
    lines = [f"*{advice}* - {MEANINGS[advice]}" for advice in Advice if any(fix.advice is advice for fix in every)]
    priced = [fix for fix in every if fix.speed]
    if any("¹" in _mark(fix) for fix in priced):
        lines.append("¹ applies no gradient: compared by forward and backward alone, where these were timed apart.")
    if any("²" in _mark(fix) for fix in priced):
        lines.append("² does other work than the baseline: a second forward, or a layer in front of a frozen RNN.")
    lines += [_noise(device, priced) for device in dict.fromkeys(device for fix in priced for device in fix.speed)]
    lines.append("An empty cell was not measured.")
    return "\n".join(f"- {line}" for line in lines if line)


def _noise(device: Device, priced: list[Fix]) -> str:
    """How far placements that do the baseline's work are from its price."""
    alike = [fix for fix in priced if does_the_same(fix.placement) and device in fix.speed]
    alike = [fix for fix in alike if not fix.speed[device].smallest == fix.speed[device].largest == 1]  # the baseline
    if not alike:
        return ""
    low, high = min(fix.speed[device].smallest for fix in alike), max(fix.speed[device].largest for fix in alike)
    names = text.listed(dict.fromkeys(f"`{fix.placement.name}`" for fix in alike))
    said = f"Noise on `{device}`: the steps of {names} are the baseline's, and come out at {low:.2f}x to {high:.2f}x."
    quiet = max(high, 1 / low) < NOISY
    return said if quiet else f"{said} **A difference smaller than that cannot be believed.**"


MEANINGS = {
    Advice.USE: "raised nowhere, its gradient is exact wherever it could be compared, and nothing is left changed.",
    Advice.AS_WANTED: "every module ran in the mode wanted; dropout is random, so there is nothing to compare with.",
    Advice.SIDE_EFFECTS: "the modes are right, but something is not afterwards what it was before.",
    Advice.UNMEASURED: "no device of this run that computes has looked at its gradient.",
    Advice.UNREPEATABLE: "two attempts with one seed gave different gradients.",
    Advice.WRONG: "it runs, and in some variant computes something else than is wanted: a trap.",
    Advice.UNKNOWN: "it has not run where the error can occur.",
    Advice.FAILS: "see the other errors.",
    Advice.RAISES: "a wrong fix, or one of the mistakes themselves.",
}
