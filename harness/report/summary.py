"""A run in a few plain sentences: for the terminal, for MLflow's note and for the head of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.model import Device, Outcome, Plan, Record
from harness.report.text import DEVICE_WORDS, count
from harness.results import Result, collect, count_outcomes
from harness.rule import check_rule, rule_says

MESSAGE = "cudnn RNN backward can only be called in training mode"


@dataclass(frozen=True, slots=True)
class Summary:
    """``headline`` says how many variants raise and where, ``meaning`` what follows from it; both are plain text.

    ``counts`` has, per device, how many variants had each outcome (outcomes that did not occur are left out);
    ``attempts`` how many attempts these rest on.
    """

    headline: str
    meaning: str
    planned: int
    counts: Mapping[Device, Mapping[Outcome, int]]
    attempts: Mapping[Device, int]

    @property
    def complete(self) -> bool:
        """Whether every planned variant has a record that says what happened."""
        return not any(Outcome.NOT_RUN in outcomes for outcomes in self.counts.values())


def summary(plan: Plan, records: Sequence[Record]) -> Summary:
    """What a person wants to know first about a run."""
    return summarise(plan, collect(plan, records).results)


def summarise(plan: Plan, results: Sequence[Result]) -> Summary:
    """The same, of results that are sorted already."""
    counts = count_outcomes(plan, results)
    attempts = dict.fromkeys(plan.devices, 0)
    for result in results:
        attempts[result.device] += result.attempts
    headlines = [
        _headline(device, counts[device], len(plan.variants), _device_name(device, results))
        for device in _outcome_devices(plan)
    ]
    meanings = [_meaning(device, counts[device], results) for device in _outcome_devices(plan)]
    return Summary(" ".join(headlines), " ".join(meanings), len(plan.variants), counts, attempts)


def _outcome_devices(plan: Plan) -> list[Device]:
    """The devices whose outcomes are the story: a CPU only where there is nothing else."""
    return [device for device in plan.devices if device is not Device.CPU] or list(plan.devices)


def _device_name(device: Device, results: Sequence[Result]) -> str:
    if device is Device.CUDA:
        names = {str(r.facts["device_name"]) for x in results for r in x.records if r.facts.get("device_name")}
        real = {name for name in names if name}
        if len(real) == 1:
            return real.pop()
    return DEVICE_WORDS[device]


def _headline(device: Device, counts: Mapping[Outcome, int], planned: int, name: str) -> str:
    missing, skipped = counts.get(Outcome.NOT_RUN, 0), counts.get(Outcome.SKIPPED, 0)
    if missing == planned:
        without = "the only planned variant is" if planned == 1 else f"all {planned:,} planned variants are"
        return f"Nothing has run on {device} yet: {without} without a record."
    ran = planned - missing - skipped
    if missing and not ran:
        verb = "was" if skipped == 1 else "were"
        return f"Nothing has run on {device} yet: of {planned:,} planned variants {skipped:,} {verb} skipped."
    raising = counts.get(Outcome.BACKWARD_ERROR, 0)
    if device is Device.CPU and not raising:
        so_far = f" of which {ran:,} ran so far," if missing else ""
        planned_on = f"{count(planned, 'variant')} planned on {device},{so_far}"
        return f"The error cannot occur on this device: {planned_on} 0 raise."
    so_far, whole, of_which = "", planned, count(planned, "planned variant")
    if missing:
        so_far, whole, of_which = "So far, ", ran, f"the {count(ran, 'variant')} that ran ({planned:,} are planned)"
    verb = "raises" if 1 in (raising, whole) else "raise"
    return f'{so_far}{raising:,} of {of_which} {verb} "{MESSAGE}" on {device} ({name}).'


def _meaning(device: Device, counts: Mapping[Outcome, int], results: Sequence[Result]) -> str:
    raising, fine = counts.get(Outcome.BACKWARD_ERROR, 0), counts.get(Outcome.OK, 0)
    not_run = counts.get(Outcome.NOT_RUN, 0) + counts.get(Outcome.SKIPPED, 0)
    other = sum(counts.values()) - raising - fine - not_run
    parts = [f"{fine:,} ran to the end"]
    parts += [f"{other:,} failed in another way"] if other else []
    parts += [f"{not_run:,} did not run"] if not_run else []
    rest = f"{', '.join(parts)}."
    if device is Device.CPU:
        return f"{rest} No forward takes the cuDNN path on a CPU, so none of this says what a GPU would do."
    others = "" if raising == sum(counts.values()) else f"Of the others, {rest}" if raising else rest
    sentences = [others, _rule_sentence([r for r in results if r.device is device])]
    if device is Device.STUB:
        compared = Device.CUDA in {result.device for result in results}
        sentences.append(
            "This is stub evidence: PyTorch's own checks fired, but no kernel ran"
            + (", and the GPU columns decide." if compared else ", and it has not yet been compared with a GPU.")
        )
    return " ".join(sentence for sentence in sentences if sentence)


def _rule_sentence(results: Sequence[Result]) -> str:
    """What sets the raising variants apart; said only where the attempts' own sightings bear it out throughout."""
    rule = check_rule(results)
    raised = [r for result in results for r in result.records if r.outcome is Outcome.BACKWARD_ERROR]
    if rule.contradictions:
        return f"{count(len(rule.contradictions), 'attempt')} did not follow the rule: see the report."
    if not raised or not all(map(rule_says, raised)):
        return ""
    return (
        "Those that raise ran a forward through cuDNN with the RNN in eval mode and sent a gradient back through it; "
        "no other attempt that could be judged did all three."
    )
