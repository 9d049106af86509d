"""Every reader of records counts the newest attempt of each replicate, and no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from builders import die, fail, make_plan, make_records

from harness.campaign.policy import Policy, remaining
from harness.console.variant import variant_lines
from harness.expectations.compare import check
from harness.expectations.shelf import read_expectations
from harness.model import Device, Outcome, Plan, Record, Settings
from harness.report import render, summary
from harness.report.compare import Rules, compare
from harness.report.compare.document import to_json
from harness.report.evidence import Evidence
from harness.repro.case import case_of
from harness.results import collect
from harness.store.content import child_content, parent_content
from harness.store.tracking import Ending

PLAN = replace(
    make_plan(placements=("train-each-epoch", "eval-after-epoch", "eval-always"), cells=("lstm", "gru")),
    settings=Settings(replicates=2),
)
GOOD = [replace(record, attempt=2, sitting=2) for record in make_records(PLAN)]
MESSAGE = "something else altogether"


def earlier(record: Record) -> Record:
    """A first attempt that ended otherwise, in each of several ways."""
    first = replace(record, attempt=1, sitting=1)
    if record.outcome is Outcome.OK:
        return (
            fail(first, Outcome.ERROR, MESSAGE) if record.device is Device.STUB else die(first, Outcome.CRASH, MESSAGE)
        )
    return replace(first, outcome=Outcome.OK, error_message=None, error_type=None)


REPEATED = {
    "before": [*map(earlier, GOOD), *GOOD],
    "among": [each for record in GOOD for each in (earlier(record), record)],
    "after": [*GOOD, *map(earlier, GOOD)],
}
"""Whatever the order of the lines."""


def counted(plan: Plan, records: Sequence[Record]) -> object:
    return [result.records for result in collect(plan, records).results]


def csv(plan: Plan, records: Sequence[Record]) -> object:
    rows = Evidence.of(plan, records).frame
    return rows.drop(columns="superseded").to_csv()


def report(plan: Plan, records: Sequence[Record]) -> object:
    text = render(plan, records, "md")
    return [line for line in text.splitlines() if "made again" not in line]


def plots(plan: Plan, records: Sequence[Record]) -> object:
    evidence = Evidence.of(plan, records)
    return evidence.learnt, evidence.fixes, evidence.rule


def expectations(plan: Plan, records: Sequence[Record]) -> object:
    return check(plan, records, read_expectations())


def comparison(plan: Plan, records: Sequence[Record]) -> object:
    other = replace(plan, run="20260301-101500-other")
    return to_json(compare((other, [replace(r, run=other.run) for r in GOOD]), (plan, list(records)), Rules()))


def scripts(plan: Plan, records: Sequence[Record]) -> object:
    return [case_of(plan, variant, tuple(records)) for variant in plan.variants]


def lines(plan: Plan, records: Sequence[Record]) -> object:
    shown = [line for variant in plan.variants for line in variant_lines(plan, variant, tuple(records))]
    return [line for line in shown if "made again" not in line]


def children(plan: Plan, records: Sequence[Record]) -> object:
    found = [child_content(plan, v, [r for r in records if r.key == v.key]) for v in plan.variants]
    return [replace(child, tags={k: v for k, v in child.tags.items() if k != "harness.attempts"}) for child in found]


def parent(plan: Plan, records: Sequence[Record]) -> object:
    found = parent_content(plan, records, status=Ending.of(plan, records))
    return replace(found, metrics=tuple((point.name, point.value) for point in found.metrics))  # type: ignore[arg-type]


def left(plan: Plan, records: Sequence[Record]) -> object:
    return remaining(plan, records, Policy.parse("all"))


READERS = (
    counted, summary, csv, report, plots, expectations, comparison, scripts, lines, children, parent, left,
)  # fmt: skip


@pytest.mark.parametrize("order", REPEATED)
@pytest.mark.parametrize("read", READERS)
def test_an_earlier_attempt_changes_nothing(read: Callable[[Plan, Sequence[Record]], object], order: str) -> None:
    assert read(PLAN, REPEATED[order]) == read(PLAN, GOOD)


@pytest.mark.parametrize("read", READERS)
def test_and_would_change_something_if_it_counted(read: Callable[[Plan, Sequence[Record]], object]) -> None:
    first = [replace(earlier(record), attempt=2, sitting=2) for record in GOOD]
    assert read(PLAN, first) != read(PLAN, GOOD)


def test_the_report_says_how_often_something_was_tried_again() -> None:
    assert f"{len(GOOD)} earlier attempts were made again and do not count here" in render(
        PLAN, REPEATED["among"], "md"
    )
