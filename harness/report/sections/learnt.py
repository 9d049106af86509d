"""The smallest rule that the records themselves teach, in words; what it explains, and what it does not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from harness.model import Device, KernelPath, Record
from harness.report import text
from harness.report.evidence import Evidence
from harness.report.learning import FACTS, Learnt, Literal, Term, forward_meets

LIMIT = 20

FACT_WORDS = {
    "path": "the kernel path",
    "training": "the RNN's mode at forward time",
    "gradient_reached": "whether a gradient reached its output",
}


def learnt_rule(evidence: Evidence) -> str:
    """One paragraph per device on which the error can occur; empty where there is none, or one program alone ran."""
    devices = [device for device in evidence.raising_devices if evidence.ran_on(device)]
    if not devices or evidence.plan.is_program:
        return ""
    intro = (
        "Learnt from what the attempts of this run saw, without being told what to expect: the smallest rule over "
        "three facts of each forward (kernel path, the RNN's mode then, whether a gradient reached its output) "
        "and every axis of the matrix. Evaluations under `no_grad()` are not among the forwards."
    )
    return "\n\n".join(("## The rule that the records teach", intro, *(_of_device(evidence, d) for d in devices)))


def in_words(terms: Iterable[Term]) -> str:
    """When a variant raises, as the second half of a sentence that begins with ``a variant raises``."""
    return ", or when ".join(map(_term_words, terms))


def _of_device(evidence: Evidence, device: Device) -> str:
    rule = evidence.learnt[device]
    blind = (
        f" {text.count(rule.unseen, 'record')} did not see enough, or did not live long enough, to learn from."
        if rule.unseen and rule.records
        else ""
    )
    if not rule.terms:
        return f"On `{device}`: {_nothing(rule)}{blind}"
    exactly = "when" if rule.unexplained else "exactly when"
    wrong = len(rule.unexplained)
    lines = [
        f"On `{device}`: **a variant raises {exactly} {in_words(rule.terms)}.**",
        f"This explains {rule.records - wrong:,} of {text.count(rule.records, 'record')}, {rule.raising:,} of which "
        f"raised{'' if wrong else '; there is none that it does not explain'}.{blind}",
        _axes(evidence, rule),
        _untested(rule),
    ]
    parts = [" ".join(line for line in lines if line)]
    if wrong:
        parts.append("\n".join((_exceptions_head(wrong), "", *_exceptions(rule.unexplained))))
    return "\n\n".join(parts)


def _nothing(rule: Learnt) -> str:
    if not rule.records:
        return "no record says what its forwards saw, so there is nothing to learn from."
    if rule.raising in (0, rule.records):
        every = text.count(rule.records, "record")
        which = f"all {every} raised" if rule.raising else f"none of {every} raised"
        return f"{which}, so nothing can be learnt about what sets apart those that raise."
    return (
        f"{rule.raising:,} of {text.count(rule.records, 'record')} raised, and no rule over facts and axes explains "
        "more of them than it gets wrong."
    )


# --- words


def _term_words(term: Term) -> str:
    facts = {literal.name: literal for literal in term.facts}
    forward = "a forward that records a graph runs"
    parts = []
    if "path" in facts:
        forward = f"a forward that records a graph runs {_path_words(facts['path'])}"
    if "training" in facts:
        forward += f" with the RNN in {'train' if facts['training'].value else 'eval'} mode"
    if "gradient_reached" in facts:
        reaches = "reaches" if facts["gradient_reached"].value else "does not reach"
        parts.append(f"a gradient {reaches} its output")
    if len(facts) > len(parts):
        parts.insert(0, forward)
    elif parts:
        parts = [parts[0].replace("its output", "the output of a forward")]
    parts += [literal_words(literal) for literal in term.axes]
    return text.listed(parts) or "anything runs at all"


def _path_words(literal: Literal) -> str:
    if literal.value == KernelPath.CUDNN.value:
        return "through cuDNN" if literal.is_ else "elsewhere than through cuDNN"
    return f"on the path `{literal.value}`" if literal.is_ else f"on another path than `{literal.value}`"


def literal_words(literal: Literal) -> str:
    """An axis and its value."""
    return f"{text.code(literal.name)} is {'' if literal.is_ else 'not '}{text.code(str(literal.value))}"


def _axes(evidence: Evidence, rule: Learnt) -> str:
    varying = [axis for axis in evidence.varying if axis not in rule.axes]
    others = text.listed((text.code(axis) for axis in varying), limit=12)
    if not rule.axes:
        return f"No axis adds to it: {others} varied, and would not have made it smaller or truer." if varying else ""
    needed = text.listed(text.code(axis) for axis in rule.axes)
    said = f"**Beyond what the forwards saw, it needs {needed}**: the three facts alone do not explain these records."
    doubles = _doubles(rule)
    return f"{said} {doubles}" if doubles else said


def _doubles(rule: Learnt) -> str:
    """Axis values that would have said the same: this run cannot tell which of them matters."""
    values = sorted({(name, value) for case in rule.cases for name, value in case.axes.items()})
    rivals = [Literal(name, value, is_) for name, value in values for is_ in (True, False)]
    truth = [rule.says(case) for case in rule.cases]
    found: dict[str, str] = {}
    for index, term in enumerate(rule.terms):
        for own in term.axes:
            rest = tuple(literal for literal in term.axes if literal != own)
            for rival in rivals:
                terms = (*rule.terms[:index], replace(term, axes=(*rest, rival)), *rule.terms[index + 1 :])
                other = replace(rule, terms=terms)
                if rival.name not in (*rule.axes, *found) and [other.says(case) for case in rule.cases] == truth:
                    found[rival.name] = literal_words(rival)
    if not found:
        return ""
    rivals_said = text.listed(found.values(), limit=4)
    return f"In this run {rivals_said} would have said the same, so it cannot tell which of them matters."


def _untested(rule: Learnt) -> str:
    """Facts that had one value wherever the rule holds: whether they matter too, this run cannot say."""
    used = {literal.name for term in rule.terms for literal in term.facts}
    speaks_of = [
        facts
        for case in rule.cases
        for facts in case.forwards
        for term in rule.terms
        if forward_meets(facts, term.facts)
    ]
    same = [
        FACT_WORDS[name]
        for index, name in enumerate(FACTS)
        if name not in used and len({facts[index] for facts in speaks_of}) == 1
    ]
    alike = "it was the same in every forward that the rule speaks of"
    return f"Not tested by this run: {text.listed(same)}; {alike}." if same else ""


def _exceptions_head(wrong: int) -> str:
    return f"**Not explained: {text.count(wrong, 'record')}.**"


def _exceptions(records: Iterable[Record]) -> list[str]:
    every = list(records)
    lines = [f"- {text.plain(r.label)}: `{r.outcome}` (key `{r.key}`)" for r in every[:LIMIT]]
    return lines + ([f"- and {len(every) - LIMIT:,} more"] if len(every) > LIMIT else [])
