"""The fix table: for what raises, everything that reaches the same goal, with outcome, gradient, price and recipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from harness.model import Device, Outcome, Wants
from harness.report import text
from harness.report.evidence import Evidence
from harness.report.fixes import BASELINES, Advice, Fix, Price, Table, noise_of
from harness.report.sections.fix_words import NOT_TESTED, how, marks, row

NOISY = 1.1
"""Where equal work differs by more than this factor, a reader is warned."""

UNTRIED = (
    " `harness.eval_gradients(model.rnn)` around the forward is no part of this run; `docs/fix-it.md` shows it under "
    '"Frozen RNNs", with code that is tested on the stub.'
)
"""A frozen RNN with dropout: of no placement for it is the dropout off and does the gradient pass, as in this."""

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
    return "\n\n".join(part for part in (*parts, _notes(evidence, tables), *images) if part)


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
    untried = UNTRIED if table.cures[0].freeze_rnn else ""
    if any(fix.advice is Advice.AS_WANTED for fix in table.fixes):
        return (
            f" No gradient of theirs could be compared, since dropout is random; with `-a dropout=0.0` it can.{untried}"
        )
    return f" **Nothing in this run is shown to be a cure.**{untried}"


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
        said.append("Memory on `cpu` is the whole process's, PyTorch included, in which the network's own drowns.")
    return " ".join(said)


def _prices(tables: Iterable[Table]) -> list[Price]:
    every = [fix for table in tables for fix in table.fixes]
    return [price for fix in every for prices in (fix.speed, fix.memory) for price in prices.values()]


def _table(evidence: Evidence, table: Table) -> str:
    """The candidates that do not raise, then how each is done and what is wrong with it; what raises in a sentence."""
    useful = [fix for fix in table.fixes if fix.advice is not Advice.RAISES]
    parts = [text.table(pd.DataFrame([row(evidence, fix) for fix in useful])) if useful else ""]
    parts.append("\n".join(f"- {line}" for line in map(how, useful)))
    parts.append(_useless([fix for fix in table.fixes if fix.advice is Advice.RAISES]))
    return "\n\n".join(part for part in parts if part)


def _useless(fixes: Sequence[Fix]) -> str:
    """What raises itself, though it is after the same."""
    if not fixes:
        return ""
    told = text.listed(
        (f"`{fix.placement.name}` ({_raised(fix)})" for fix in fixes),
        limit=len(fixes),
    )
    return f"After the same goal, but raising: {told}."


def _raised(fix: Fix) -> str:
    return ", ".join(
        f"{counts[Outcome.BACKWARD_ERROR]} of {counts.total()} variants on `{device}`"
        for device, counts in fix.outcomes.items()
        if counts[Outcome.BACKWARD_ERROR]
    )


def _notes(evidence: Evidence, tables: list[Table]) -> str:
    every = [fix for table in tables for fix in table.fixes]
    lines = [f"*{advice}* - {MEANINGS[advice]}" for advice in _in_tables(every)]
    priced = [fix for fix in every if fix.speed and fix.advice is not Advice.RAISES]
    if any("¹" in marks(fix) for fix in priced):
        lines.append("¹ applies no gradient: both sides without the optimizer's part, where that was timed apart.")
    if any("²" in marks(fix) for fix in priced):
        lines.append("² does other work than the baseline: a second forward, or a layer in front of a frozen RNN.")
    lines += [_noise(device, priced) for device in dict.fromkeys(device for fix in priced for device in fix.speed)]
    lines.append(_cells(evidence, every))
    return "\n".join(f"- {line}" for line in lines if line)


def _cells(evidence: Evidence, fixes: list[Fix]) -> str:
    """What cells mean that say little, where there are such cells."""
    shown = {cell for fix in fixes if fix.advice is not Advice.RAISES for cell in row(evidence, fix).values()}
    said = []
    if NOT_TESTED in shown:
        said.append(f"*{NOT_TESTED}*: with one attempt nothing can be said about repeatability.")
    if "" in shown:
        said.append("An empty cell: not measured.")
    return " ".join(said)


def _in_tables(fixes: list[Fix]) -> list[Advice]:
    return [advice for advice in Advice if advice is not Advice.RAISES and any(fix.advice is advice for fix in fixes)]


def _noise(device: Device, priced: list[Fix]) -> str:
    """How far placements that do the baseline's work are from its price."""
    noise = noise_of(device, priced)
    if noise is None:
        return ""
    names = text.listed(f"`{name}`" for name in noise.placements)
    said = (
        f"Noise on `{device}`: the steps of {names} are the baseline's, and come out at {noise.low:.2f}x to "
        f"{noise.high:.2f}x."
    )
    quiet = max(noise.high, 1 / noise.low) < NOISY
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
}
