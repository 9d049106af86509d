"""From the facts that a watched process left behind to findings."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace

from harness.diagnose import because, patterns
from harness.diagnose.facts import Fact, Place
from harness.diagnose.findings import Finding, Kind, SwitchedAt
from harness.diagnose.joint import joint_cure
from harness.placements import PLACEMENTS

_SUMMARIES = {
    patterns.THEN_USE: "a gradient of a network in eval mode, and an optimizer applies it (dynamic evaluation, "
    "test-time training, or train() forgotten)",
    patterns.NOT_RESTORED: "a line that trained in train mode goes on training in eval mode: no device raises, since "
    "cuDNN does not run it (turned off, an empty batch, or a dtype that it does not take), but dropout and batch "
    "statistics are off as well",
    "train-in-forward": "train() is called inside forward(), and undoes every eval(): never an error, always wrong in "
    "inference",
    "frozen-dropout-on": "no weight of the RNN is trained, but it is in train mode and its own dropout is on: what it "
    "says is random",
    "rnn-train-rest-eval": "the RNN alone is in train mode, and its own dropout is on: the gradient is not eval's",
}
_ON_CPU = "; on a CPU it goes on in silence, without the dropout and batch statistics of training"
_WANTS_TRAIN = (patterns.AFTER_EPOCH, patterns.BY_HELPER, patterns.BEFORE_BACKWARD)


def findings_of(facts: list[Fact], times: dict[int, int]) -> tuple[Finding, ...]:
    """What the facts come to, what was raised first; ``times`` says how often each happened."""
    found = _merged(_finding(fact, times.get(fact.number, 1)) for fact in facts)
    order = list(Kind)
    return tuple(sorted(found, key=lambda finding: order.index(finding.kind)))


def _merged(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for all that name the same lines and the same cure: only who called those lines differed."""
    merged: dict[Hashable, Finding] = {}
    for one in findings:
        switch = one.switch and (_line(one.switch.place), one.switch.how, one.switch.through)
        rnn = one.module, one.kind_of_rnn, one.root, one.path
        key = one.kind, one.pattern, *rnn, _line(one.forward), _line(one.call), switch, one.cure
        first = merged.setdefault(key, one)
        if first is not one:
            merged[key] = replace(first, times=first.times + one.times)
    return list(merged.values())


def _line(place: Place | None) -> tuple[str, int] | None:
    return None if place is None else (place.file, place.line)


def _finding(fact: Fact, times: int) -> Finding:
    pattern = patterns.pattern_of(fact)
    entry = patterns.entry_chain(fact)
    kind = _kind(fact)
    return Finding(
        kind=kind,
        pattern=pattern,
        summary=_summary(fact, kind, pattern),
        module=fact.module,
        kind_of_rnn=fact.kind,
        root=fact.root,
        path=fact.path,
        forward=because.shown(fact.chain),
        call=because.shown(entry) or because.shown(fact.chain),
        switch=_switch(fact),
        nth_forward=fact.forward_count,
        nth_backward=fact.backward_count,
        times=times,
        train_calls=because.train_calls(fact),
        train_since=because.sentence(fact),
        cure=joint_cure(fact, pattern),
    )


def _kind(fact: Fact) -> Kind:
    if fact.what == "no-graph":
        return Kind.ERROR
    if fact.what != "gradient" or not fact.raises:
        return Kind.WARNING
    return Kind.ERROR if fact.on_gpu else Kind.WOULD_RAISE


def _summary(fact: Fact, kind: Kind, pattern: str) -> str:
    silently = kind is Kind.WOULD_RAISE and pattern in _WANTS_TRAIN
    general = _SUMMARIES.get(pattern) or PLACEMENTS[pattern].summary
    return (_after_epoch(fact) if pattern == patterns.AFTER_EPOCH else general) + (_ON_CPU if silently else "")


def _after_epoch(fact: Fact) -> str:
    """The placement says ``train()`` once; a program may have called it often, or never."""
    if fact.switch is None:
        return "in eval mode since a validation, and nobody switches back"
    trained = any(call.when == "before-switch" for call in fact.train_calls)
    return f"{'train()' if trained else 'no train()'} before; eval() for a validation, and nobody switches back"


def _switch(fact: Fact) -> SwitchedAt | None:
    place = because.shown(fact.switch.chain) if fact.switch else None
    if place is None or fact.switch is None:
        return None
    inner = fact.switch.chain[0]
    library = None if inner.own or inner == place else inner
    return SwitchedAt(place, fact.switch.how, fact.switch.through, fact.switch.name, library)
