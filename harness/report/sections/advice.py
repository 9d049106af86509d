"""What to do, in three lines, for somebody whose training has just died; every word of it is evidence of this run."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model import Device, Outcome, Wants
from harness.placements import Action
from harness.report import text
from harness.report.claims import switches_after_forward
from harness.report.evidence import Evidence
from harness.report.fixes import Advice, Fix, Table
from harness.report.sections.learnt import in_words
from harness.rule import rule_says

CREDIBLE = {
    Wants.TRAIN: (Advice.USE, Advice.AS_WANTED, Advice.UNMEASURED),
    Wants.EVAL: (Advice.USE,),
}
"""What may be advised: a train gradient comes with train mode, an eval gradient nobody looked at may be a trap."""

AIMS = {
    Wants.TRAIN: "To train",
    Wants.EVAL: "For a gradient in eval mode on purpose (saliency, attacks, attribution)",
}


def advice(evidence: Evidence) -> str:
    """Why it dies, how to train, how to get an eval gradient; empty where nothing has run."""
    devices = [device for device in evidence.raising_devices if evidence.ran_on(device)]
    if not devices:
        if not evidence.ran_on(Device.CPU):
            return ""
        said = [
            "This run says nothing about a GPU, since the error cannot occur on a CPU. "
            "`--device stub` shows without a GPU which variants raise."
        ]
    elif not evidence.raising_keys:
        said = [f"Nothing raised on {text.listed(f'`{device}`' for device in devices)}: there is nothing to cure here."]
    else:
        said = [_why(evidence, devices[0]), *_cures(evidence)]
    return "\n".join(("## What to do", "", *(f"{number}. {line}" for number, line in enumerate(said, 1))))


def _why(evidence: Evidence, device: Device) -> str:
    rule = evidence.learnt[device]
    look = "Look for an `eval()` before that forward - a validation, a helper, a callback - with no `train()` after it."
    if not rule.terms:
        return f"**Why it dies** (`{device}`): {_seen(evidence, device)}. {look}"
    return f"**Why it dies** (`{device}`): {in_words(rule.terms)}. {look}{_too_late(evidence, device)}"


def _seen(evidence: Evidence, device: Device) -> str:
    """What every attempt that raised has seen, where too few others ran to learn a rule from."""
    raised = [r for r in evidence.counted if r.device is device and r.outcome is Outcome.BACKWARD_ERROR]
    if raised and all(map(rule_says, raised)):
        return (
            "what raised was seen to send a gradient back through a forward that ran through cuDNN with the RNN in "
            "eval mode"
        )
    return "these records do not tell by themselves"


def _too_late(evidence: Evidence, device: Device) -> str:
    """The wrong fix that the error's message suggests, where it was seen to fail."""
    for table in evidence.fixes:
        for fix in table.fixes:
            counts = fix.outcomes.get(device)
            if counts and counts[Outcome.BACKWARD_ERROR] and switches_after_forward(fix.placement):
                seen = f"`{fix.placement.name}` raised in {counts[Outcome.BACKWARD_ERROR]} of {counts.total()} variants"
                return f" A `train()` between forward and backward comes too late: {seen}."
    return ""


def _cures(evidence: Evidence) -> Iterator[str]:
    if not evidence.fixes:
        yield "**What helps**: this run compares no fixes; `harness run matrix fixes` does."
        if evidence.plan.is_program:
            yield f"**The same program, cured**: {text.code(f'harness run {evidence.plan.matrix} --fixed')}."
        return
    for wants, aim in AIMS.items():
        table = next((t for t in evidence.fixes if _plain(t) and t.cures[0].wants is wants), None)
        if table is not None:
            best = _best(table)
            yield f"**{aim}**: {_cure(best) if best else _no_cure(table)}"


def _plain(table: Table) -> bool:
    return not table.cures[0].freeze_rnn and table.cures[0].second is None


def _best(table: Table) -> Fix | None:
    """The best-ranked fix; of equal ones that which leaves a validation in eval mode its place."""
    credible = CREDIBLE[table.cures[0].wants]
    return min(
        (fix for fix in table.fixes if fix.advice in credible),
        key=lambda fix: (credible.index(fix.advice), Action.EVAL not in fix.placement.before_evaluation),
        default=None,
    )


def _no_cure(table: Table) -> str:
    unmeasured = [f"`{fix.placement.name}`" for fix in table.fixes if fix.advice is Advice.UNMEASURED]
    if not unmeasured:
        return "this run shows no cure; see below what it tried."
    return (
        f"{text.listed(unmeasured)} did not raise, but nobody looked at their gradients; without `--device stub`, "
        "`harness run matrix fixes` does."
    )


def _cure(fix: Fix) -> str:
    outcomes = [f"raised in 0 of {counts.total()} variants on `{device}`" for device, counts in fix.outcomes.items()]
    known = [*outcomes, *_gradient(fix), *_price(fix)]
    return f"{text.code(fix.placement.recipe)} (`{fix.placement.name}`: {', '.join(known)})."


def _gradient(fix: Fix) -> Iterator[str]:
    where = text.listed(f"`{device}`" for device in fix.gradients)
    match fix.advice:
        case Advice.USE:
            yield f"exact gradient on {where}"
        case Advice.AS_WANTED:
            yield f"modes as wanted on {where}, where dropout leaves nothing to compare with"
        case _:
            yield "gradient not measured"


def _price(fix: Fix) -> Iterator[str]:
    for device, price in fix.speed.items():
        if device is Device.CUDA:
            yield f"{price.ratio:.2f}x the throughput of a cuDNN train step"
    if Device.CUDA not in fix.speed:
        yield "price on a GPU not measured"
