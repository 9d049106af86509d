"""Differences -> groups that a person can read: one per way in which records differ, with the rule and its reason."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from harness.expectations.compare import Check, Difference, Kind, error_line, is_reached
from harness.expectations.document import Expectations, Expected
from harness.model import Device, Outcome, Record, Settings, Variant
from harness.quoting import one_line


@dataclass(frozen=True, slots=True)
class Group:
    """Differences of one kind that expected the same and saw the same."""

    kind: Kind
    device: Device
    expected: str
    seen: str
    rule: str
    variants: tuple[Variant, ...]
    records: int


def groups(check: Check, expectations: Expectations, settings: Settings) -> list[Group]:
    """The differences of ``check`` in groups, in the order of their kinds, large groups first."""
    found: dict[tuple[Kind, Device, str, str, str], list[Difference]] = defaultdict(list)
    for difference in check.differences:
        rule = None if difference.rule is None else expectations.rules[difference.rule]
        expected = expected_words(rule.expect, settings) if rule else ""
        where = "" if difference.rule is None else f"line {expectations.line(difference.rule)}"
        reason = f"{where}: {one_line(rule.reason)}" if rule else ""
        found[difference.kind, difference.device, expected, seen_words(difference.record), reason].append(difference)
    made = [
        Group(*key, tuple({d.variant.key: d.variant for d in members}.values()), len(members))
        for key, members in found.items()
    ]
    order = list(Kind)
    return sorted(made, key=lambda group: (order.index(group.kind), group.device, -group.records))


def expected_words(expected: Expected, settings: Settings) -> str:
    """``backward-error in backward, epoch 1, step 4 (after-middle)``."""
    epoch, step = expected.place(settings)
    words = [str(expected.outcome) + (f" in {expected.phase}" if expected.phase else "")]
    words += [f"epoch {epoch}"] if epoch else []
    words += [f"step {step}"] if step else []
    said = ", ".join(words) + (f" ({expected.step})" if isinstance(expected.step, str) else "")
    if expected.error:
        said += f": {one_line(expected.error)}"
    if expected.outcome is not Outcome.OK and not is_reached(expected, settings):
        return f"ok (this run is too short for: {said})"
    return said


def seen_words(record: Record | None) -> str:
    """What a record says happened, in the same words."""
    if record is None:
        return "no record"
    if record.outcome is Outcome.OK:
        return "ok"
    words = [str(record.outcome) + (f" in {record.phase}" if record.phase else "")]
    words += [f"epoch {record.epoch}"] if record.epoch else []
    words += [f"step {record.step}"] if record.step else []
    said = ", ".join(words)
    return f"{said}: {one_line(error_line(record))}" if error_line(record) else said
