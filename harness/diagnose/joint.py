"""One cure for all that stands in the way of a backward: where one forward is refused, others would be next."""

from __future__ import annotations

import re
from dataclasses import replace

from harness.diagnose import patterns
from harness.diagnose.cures import cure_of
from harness.diagnose.edits import Edit, EditAction, contradict
from harness.diagnose.facts import Fact
from harness.diagnose.findings import Cure

_WITH = re.compile(r"with (.*):")


def joint_cure(fact: Fact, pattern: str) -> Cure:
    """The cure of ``fact``, and of the forwards in the same graph that are cases of the same pattern."""
    alike = [one for one in fact.also if patterns.pattern_of(one) == pattern]
    cure = cure_of(fact, pattern)
    others = [cure_of(one, pattern) for one in alike]
    if any(set(other.edits) - set(cure.edits) for other in others) and cure.id == "restore-mode":
        # Two changes of one helper would get into each other's way.
        cure, *others = (cure_of(one, pattern, helper=False) for one in (fact, *alike))
    for one, other in zip(alike, others, strict=True):
        edits = _joined(cure.edits, other.edits)
        if edits != cure.edits:
            also = f"The same for the {one.kind} {one.module!r} of {one.root}."
            cure = replace(cure, edits=edits, sentence=f"{cure.sentence} {also}")
    return cure


def _joined(edits: tuple[Edit, ...], more: tuple[Edit, ...]) -> tuple[Edit, ...]:
    joined = list(edits)
    for edit in more:
        wraps = [one for one in joined if one.action is EditAction.WRAP and _overlap(one, edit)]
        if edit.action is not EditAction.WRAP or not wraps:
            joined += [] if edit in joined or any(contradict(one, edit) for one in joined) else [edit]
        elif (wraps[0].line, wraps[0].last) == (edit.line, edit.last):
            joined[joined.index(wraps[0])] = replace(wraps[0], code=_both(wraps[0].code, edit.code))
    return tuple(joined)


def _overlap(one: Edit, other: Edit) -> bool:
    return one.file == other.file and one.line <= other.last and other.line <= one.last


def _both(one: str, other: str) -> str:
    """``with a:`` and ``with b:`` in one."""
    first, second = _WITH.fullmatch(one), _WITH.fullmatch(other)
    if first is None or second is None or second[1] in first[1]:
        return one
    return f"with {first[1]}, {second[1]}:"
