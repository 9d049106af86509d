"""A run against expectations: every way to differ, in both directions, and what fails closed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from builders import MESSAGE, NO_GRAPH, die, fail, make_plan, make_record, make_records

from harness.expectations.compare import Kind, check, difference_of
from harness.expectations.document import Expectations, Expected, parse_expectations
from harness.expectations.shelf import read_expectations
from harness.expectations.words import expected_words, groups, seen_words
from harness.model import Device, Outcome, Phase, Plan, Record, Settings

BOTH = (Device.STUB, Device.CPU)
RAISES: dict[str, Any] = {
    "outcome": "backward-error",
    "phase": "backward",
    "epoch": 1,
    "step": 1,
    "error": "^RuntimeError: cudnn",
}


def plan_of(*placements: str, **more: Any) -> Plan:
    return make_plan(placements=placements, cells=["lstm"], directions=[False], flags=["on"], **more)


@pytest.fixture(scope="module")
def shipped() -> Expectations:
    return read_expectations("experiments/expected.yaml")


@pytest.fixture
def raised() -> Record:
    plan = plan_of("eval-always")
    return make_record(plan, plan.variants[0], Device.STUB)


def kind(record: Record, settings: Settings | None = None, **expected: Any) -> Kind | None:
    return difference_of(record, Expected.model_validate(expected), settings or Settings())


def test_records_as_the_rule_says_are_as_expected(shipped: Expectations) -> None:
    plan = make_plan()
    records = [
        replace(record, phase=Phase.EVALUATE, step=1)
        if record.outcome is Outcome.BACKWARD_ERROR and "inner-loop" in record.label
        else record
        for record in make_records(plan)
    ]
    found = check(plan, records, shipped)
    assert found.differences == ()
    assert found.held == dict.fromkeys(BOTH, len(plan.variants))
    assert len(found.decided[Device.CPU]) < len(found.decided[Device.STUB])


def test_both_directions(raised: Record) -> None:
    fine = replace(raised, outcome=Outcome.OK, error_type=None, error_message=None, phase=Phase.EVALUATE)
    assert kind(raised, **RAISES) is None
    assert kind(fine, outcome="ok") is None
    assert kind(fine, **RAISES) is Kind.GONE
    assert kind(raised, outcome="ok") is Kind.NEW


def test_other_failures(raised: Record) -> None:
    assert kind(fail(raised, Outcome.ERROR, MESSAGE), **RAISES) is Kind.CHANGED
    assert kind(fail(raised, Outcome.BACKWARD_ERROR, "miopen RNN"), **RAISES) is Kind.CHANGED
    assert kind(fail(raised, Outcome.BACKWARD_ERROR, MESSAGE, "OSError"), **RAISES) is Kind.CHANGED
    assert kind(die(raised, Outcome.TIMEOUT, "too long"), **RAISES) is Kind.CHANGED
    assert kind(die(raised, Outcome.TIMEOUT, "too long"), outcome="timeout", error="^too") is None


@pytest.mark.parametrize("change", [{"phase": Phase.FORWARD}, {"epoch": 2}, {"step": 2}, {"step": None}])
def test_moved_failures(raised: Record, change: dict[str, Any]) -> None:
    assert kind(replace(raised, **change), **RAISES) is Kind.MOVED


def test_what_a_rule_does_not_name_may_be_anywhere(raised: Record) -> None:
    assert kind(replace(raised, epoch=7, step=9), outcome="backward-error") is None


def test_relative_steps(raised: Record) -> None:
    expected = RAISES | {"step": "after-middle"}
    assert kind(replace(raised, step=4), Settings(steps=6), **expected) is None
    assert kind(replace(raised, step=2), Settings(steps=3), **expected) is None
    assert kind(replace(raised, step=2), Settings(steps=6), **expected) is Kind.MOVED


def test_a_run_too_short_to_get_there_has_to_be_ok(raised: Record) -> None:
    fine = replace(raised, outcome=Outcome.OK, error_type=None, error_message=None)
    later = RAISES | {"epoch": 2}
    assert kind(fine, Settings(epochs=1, warmup_epochs=0), **later) is None
    assert kind(raised, Settings(epochs=1, warmup_epochs=0), **later) is Kind.NEW
    assert "too short" in expected_words(Expected.model_validate(later), Settings(epochs=1))
    assert kind(fine, Settings(steps=3), **(RAISES | {"step": 4})) is None


def test_the_missing_fail_closed(shipped: Expectations) -> None:
    plan = plan_of("train-always", "eval-always", devices=BOTH)
    records = make_records(plan)
    assert [d.kind for d in check(plan, records[1:], shipped).differences] == [Kind.MISSING]
    unrun = replace(records[0], outcome=Outcome.NOT_RUN, reason="interrupted")
    assert [d.kind for d in check(plan, [unrun, *records[1:]], shipped).differences] == [Kind.MISSING]
    nothing = check(plan, [], shipped)
    assert len(nothing.differences) == plan.attempts
    assert set(nothing.held.values()) == {0}


def test_every_replicate_counts(shipped: Expectations) -> None:
    plan = plan_of("eval-no-grad", devices=[Device.CPU])
    plan = replace(plan, settings=replace(plan.settings, replicates=3))
    records = make_records(plan)
    assert all(record.error_message == NO_GRAPH for record in records)
    assert check(plan, records, shipped).differences == ()
    other = fail(records[1], Outcome.ERROR, "another one")
    assert [d.kind for d in check(plan, [records[0], other], shipped).differences] == [Kind.MISSING, Kind.CHANGED]


def test_a_device_or_variant_without_a_rule_fails_closed() -> None:
    plan = plan_of("train-always", "eval-always", devices=BOTH)
    only = parse_expectations("rules: [{devices: [cpu], expect: {outcome: ok}, reason: x}]", "x")
    found = check(plan, make_records(plan), only)
    assert [(d.kind, d.device) for d in found.differences] == [(Kind.UNKNOWN, Device.STUB)] * 2
    assert found.held == {Device.STUB: 0, Device.CPU: 2}


def test_strays_are_counted(shipped: Expectations) -> None:
    plan = plan_of("train-always")
    stray = replace(make_records(plan)[0], key="0" * 12)
    assert check(plan, [*make_records(plan), stray], shipped).strays == 1


def test_groups_say_what_differs_and_which_rule(shipped: Expectations) -> None:
    plan = plan_of("eval-always", "eval-then-use", "train-always", devices=[Device.STUB])
    records = [replace(r, outcome=Outcome.OK, error_type=None) for r in make_records(plan)][:2]
    gone, missing = groups(check(plan, records, shipped), shipped, plan.settings)
    assert (gone.kind, gone.records, len(gone.variants)) == (Kind.GONE, 2, 2)
    assert gone.expected.startswith("backward-error in backward, epoch 1, step 1: ")
    assert gone.seen == "ok"
    assert gone.rule.startswith("line ")
    assert "from the start" in gone.rule
    assert (missing.kind, missing.seen) == (Kind.MISSING, "no record")


def test_words_for_what_was_seen(raised: Record) -> None:
    assert seen_words(raised) == f"backward-error in backward, epoch 1, step 1: RuntimeError: {MESSAGE}"
    assert seen_words(die(raised, Outcome.CRASH, "SIGSEGV")) == "crash in forward, epoch 1, step 3: SIGSEGV"
