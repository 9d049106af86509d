"""What a run did, written into the expectations on purpose: the fewest rules that say it, with a person's reason.

A rule is changed in place where everything that it decided in this run differs in the same way; else a narrower rule
is put in front of it, so that nothing changes for variants and devices that this run says nothing about.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.errors import HarnessError
from harness.expectations.box import Box, boxes
from harness.expectations.compare import Check, Difference, check, error_line
from harness.expectations.document import Expectations, Expected, parse_expectations
from harness.expectations.edit import Edit, NewRule, apply
from harness.model import Device, Outcome, Plan, Record, Settings, Value, Variant
from harness.results import collect

NO_FINDING = frozenset({Outcome.TIMEOUT, Outcome.CRASH, Outcome.OOM, Outcome.NOT_RUN, Outcome.SKIPPED})
"""Outcomes that say more about the machine or the moment than about the variant: nobody gets to expect them here."""

LONGEST_ERROR = 160
"""Characters of an error's first line that a new rule repeats."""

Wanted = dict[str, Value]
"""What a new rule expects, as the file spells it."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The new text of the file, and the differences that remain because they cannot be accepted."""

    text: str
    accepted: tuple[Difference, ...]
    refused: tuple[Difference, ...]


Findings = Mapping[tuple[str, Device], Wanted]
"""By the key of a variant and its device."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Variants that one rule decides, or none, and that did the same on the same devices."""

    rule: int | None
    said: Wanted
    devices: tuple[Device, ...]
    variants: tuple[Variant, ...]


def accept(plan: Plan, records: Sequence[Record], expectations: Expectations, reason: str) -> Accepted:
    """``expectations`` changed so that they say what ``records`` say.

    Raises:
        ExpectationsFileError: the file is written in a way that cannot be edited piecemeal.
        HarnessError: the edited file would not say what it should; nothing is to be written then.
    """
    before = check(plan, records, expectations)
    wanted = _acceptable(plan, records, expectations, before)
    refused = tuple(d for d in before.differences if (d.variant.key, d.device) not in wanted)
    edits = _edits(plan, expectations, wanted, reason)
    text = apply(expectations, edits)
    after = check(plan, records, parse_expectations(text, expectations.source))
    if _names(after.differences) != _names(refused):
        raise HarnessError(
            f"{expectations.source} cannot be edited to say what this run did",
            "Edit it by hand: the first rule that speaks of a variant decides. The file is unchanged.",
        )
    accepted = tuple(d for d in before.differences if (d.variant.key, d.device) in wanted)
    return Accepted(text, accepted, refused)


def _names(differences: Iterable[Difference]) -> set[tuple[str, Device]]:
    return {(difference.variant.key, difference.device) for difference in differences}


def _acceptable(plan: Plan, records: Sequence[Record], expectations: Expectations, found: Check) -> Findings:
    """What is to be expected of each variant and device that differs: where all its replicates say the same."""
    differing = _names(found.differences)
    wanted: dict[tuple[str, Device], Wanted] = {}
    for result in collect(plan, records).results:
        if (result.key, result.device) not in differing or not result.complete:
            continue
        rule = expectations.deciding(result.variant, result.device)
        before = None if rule is None else expectations.rules[rule].expect
        said = [_as_expected(record, before, plan.settings) for record in result.records]
        if all(each == said[0] for each in said) and not any(r.outcome in NO_FINDING for r in result.records):
            wanted[result.key, result.device] = said[0]
    return wanted


def _as_expected(record: Record, before: Expected | None, settings: Settings) -> Wanted:
    """What ``record`` did, as an expectation spells it; words and a pattern that still hold stay what they were."""
    if record.outcome is Outcome.OK:
        return {"outcome": str(record.outcome)}
    epoch, step = before.place(settings) if before else (None, None)
    found: dict[str, Value | None] = {
        "phase": record.phase and str(record.phase),
        "epoch": before.epoch if before and epoch == record.epoch else record.epoch,
        "step": before.step if before and step == record.step else record.step,
    }
    named: Wanted = {name: value for name, value in found.items() if value is not None}
    pattern = before.error if before and before.error else None
    holds = pattern is not None and re.search(pattern, error_line(record))
    return {"outcome": str(record.outcome), **named, "error": pattern if pattern and holds else _pattern(record)}


def _pattern(record: Record) -> str:
    """The first line of the error as a regular expression; numbers in it may be others the next time."""
    first = next(iter(error_line(record).splitlines()), "")[:LONGEST_ERROR]
    return "^" + re.sub(r"\d+", r"\\d+", re.sub(r"([\\.^$*+?{}\[\]|()])", r"\\\1", first))


def _edits(plan: Plan, expectations: Expectations, wanted: Findings, reason: str) -> list[Edit]:
    """The edits after which every variant in ``wanted`` comes to what it is to, and all others to what they did."""
    deciding = {(v.key, d): expectations.deciding(v, d) for d in plan.devices for v in plan.variants}
    edits: list[Edit] = []
    for group in _groups(plan, deciding, wanted):
        mine = {variant.key for variant in group.variants}
        others = [
            variant
            for variant in plan.variants
            if variant.key not in mine and any(deciding[variant.key, d] == group.rule for d in group.devices)
        ]
        edits += _edits_for(expectations, group, others, reason)
    return edits


def _groups(plan: Plan, deciding: Mapping[tuple[str, Device], int | None], wanted: Findings) -> list[_Group]:
    alike: dict[tuple[int | None, tuple[tuple[str, Value], ...], Device], list[Variant]] = defaultdict(list)
    for device in plan.devices:
        for variant in plan.variants:
            if said := wanted.get((variant.key, device)):
                alike[deciding[variant.key, device], tuple(said.items()), device].append(variant)
    groups: dict[tuple[object, ...], _Group] = {}
    for (rule, items, device), variants in alike.items():
        name = (rule, items, tuple(variant.key for variant in variants))
        known = groups.get(name)
        devices = (*known.devices, device) if known else (device,)
        groups[name] = _Group(rule, dict(items), devices, tuple(variants))
    return list(groups.values())


def _edits_for(expectations: Expectations, group: _Group, others: Sequence[Variant], reason: str) -> list[Edit]:
    """The edits that make a group come to what it did, and leave ``others``, decided by the same rule, alone."""
    if group.rule is None:
        named = ("placement",) if "placement" in group.variants[0].axes else tuple(group.variants[0].axes)
        found = [_with_axes(box, named, group.variants) for box in boxes(group.variants, others)]
        return [Edit(None, NewRule(group.devices, box, group.said, reason)) for box in found]
    known = expectations.rules[group.rule]
    if not others and set(known.devices) <= set(group.devices):
        return [Edit(group.rule, NewRule(group.devices, known.match, group.said, reason), replaces=True)]
    # Narrower also where that distinguishes nothing in this run: of other variants it has shown nothing.
    narrower = [_with_axes(box, known.match, group.variants) for box in boxes(group.variants, others)]
    return [Edit(group.rule, NewRule(group.devices, match, group.said, reason)) for match in narrower]


def _with_axes(box: Box, axes: Iterable[str], variants: Sequence[Variant]) -> Box:
    """``box`` with the values of ``variants`` on ``axes``, also where they distinguish nothing."""
    named = {axis: tuple(dict.fromkeys(variant.axes[axis] for variant in variants)) for axis in axes}
    return named | box
