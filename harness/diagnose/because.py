"""Which calls of ``train()`` there were, and why none of them helped."""

from __future__ import annotations

from harness.diagnose.facts import Chain, Fact, Place, TrainCall
from harness.diagnose.findings import TrainedAt


def shown(chain: Chain) -> Place | None:
    """The line of a chain to show: the innermost of the person's own, or else the innermost."""
    return next((place for place in chain if place.own), chain[0] if chain else None)


def where(place: Place | None) -> str:
    """``train.py:12`` in words that fit into a sentence."""
    return f"{place.file}:{place.line}" if place else "an unknown line"


def train_calls(fact: Fact) -> tuple[TrainedAt, ...]:
    """Every call that could have helped, each with the reason why it did not."""
    found = []
    for call in fact.train_calls:
        place = shown(call.chain)
        if place is not None:
            found.append(TrainedAt(place, call.on, call.when, _why(fact, call)))
    return tuple(dict.fromkeys(found))


def _why(fact: Fact, call: TrainCall) -> str:
    if call.when == "before-switch":
        return "it was before the switch to eval mode, which undid it"
    match call.holds:
        case "other":
            return f"that {call.on} does not contain the {fact.kind}"
        case "copy":
            return f"that {call.on} contains a copy of the {fact.kind}, not the one that ran"
    if call.when == "after-forward":
        return "it was after the forward, which is too late: the mode counts while the forward runs"
    return f"the train() of that {call.on} does not reach the {fact.kind}"


def sentence(fact: Fact) -> str:
    """Whether anything called ``train()`` since the switch, and why that did not help."""
    calls = train_calls(fact)
    since = [call for call in calls if call.when != "before-switch"]
    if since:
        told = dict.fromkeys(f"train() on {call.on} at {where(call.place)}: {call.why}" for call in since)
        return f"Since the switch: {'; '.join(list(told)[-3:])}."
    if fact.what == "gradient" and fact.seen.root_training and _set_alone(fact):
        return f"`training` of {fact.root} alone was set: an assignment does not reach the modules in it, train() does."
    if fact.switch is not None and fact.switch.how == "train(False)":
        return "train(False) is eval(). No train() was called since."
    before = [call for call in calls if call.when == "before-switch"]
    if before:
        return f"train() was called at {where(before[-1].place)}, before the switch, and not since."
    return "No train() was called, before or since."


def _set_alone(fact: Fact) -> bool:
    return not fact.seen.rest_training and fact.switch is not None and fact.switch.through == fact.root
