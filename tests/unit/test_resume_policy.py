"""Which attempts a resume makes: a pure function of plan, records and what the person asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import die, make_plan, make_record, make_records

from harness.campaign.orders import orders_of
from harness.campaign.policy import FAILED, RETRIED, Policy, Todo, remaining
from harness.errors import UsageError
from harness.model import Device, Outcome, Plan, Record, Settings

PLAN = make_plan(placements=("train-each-epoch", "eval-always", "eval-no-grad"), cells=("lstm", "gru"))
RECORDS = make_records(PLAN)


def ended(outcome: Outcome, number: int = 0) -> list[Record]:
    """All records of the plan, of which one ended otherwise."""
    return [die(record, outcome, "why") if n == number else record for n, record in enumerate(RECORDS)]


def place(todo: Todo) -> tuple[str, Device, int, int]:
    return todo.order.variant.key, todo.order.device, todo.order.replicate, todo.order.attempt


def test_of_a_complete_run_nothing_is_left() -> None:
    assert remaining(PLAN, RECORDS, Policy()) == []


def test_of_a_run_without_records_everything_is_left_in_the_plans_order() -> None:
    todo = remaining(PLAN, [], Policy())
    assert [each.order for each in todo] == [order for device in PLAN.devices for order in orders_of(PLAN, device)]
    assert {each.before for each in todo} == {None}


def test_exactly_the_missing_ones_are_made_as_first_attempts() -> None:
    lost = RECORDS[3::7]
    todo = remaining(PLAN, [record for record in RECORDS if record not in lost], Policy(), sitting=4)
    assert {place(each) for each in todo} == {(record.key, record.device, 0, 1) for record in lost}
    assert {each.order.sitting for each in todo} == {4}


def test_a_missing_replicate_is_made_though_the_others_are_there() -> None:
    plan = replace(PLAN, settings=Settings(replicates=3))
    lost = next(record for record in make_records(plan) if record.device is Device.CPU and record.replicate == 1)
    (todo,) = remaining(plan, [record for record in make_records(plan) if record != lost], Policy())
    assert place(todo) == (lost.key, Device.CPU, 1, 1)


@pytest.mark.parametrize("outcome", Outcome)
def test_what_may_be_the_machines_doing_is_made_again_by_itself(outcome: Outcome) -> None:
    todo = remaining(PLAN, ended(outcome), Policy())
    if outcome in RETRIED:
        assert [(place(each), each.before) for each in todo] == [((RECORDS[0].key, RECORDS[0].device, 0, 2), outcome)]
    else:
        assert todo == []


@pytest.mark.parametrize("outcome", Outcome)
def test_all_is_whatever_did_not_end_well_and_none_is_nothing(outcome: Outcome) -> None:
    plan, records = replace(PLAN, variants=PLAN.variants[:1]), ended(outcome)[:2]
    records[1] = replace(records[1], outcome=Outcome.OK)
    assert len(remaining(plan, records, Policy.parse("all"))) == (outcome in FAILED)
    assert remaining(plan, records, Policy.parse("none")) == []


def test_a_list_names_what_is_made_again_and_nothing_else() -> None:
    policy = Policy.parse(" OOM, error")
    assert policy.retry == {Outcome.OOM, Outcome.ERROR}
    assert len(remaining(PLAN, ended(Outcome.OOM), policy)) == 1 + sum(r.outcome is Outcome.ERROR for r in RECORDS[1:])
    crashed = remaining(PLAN, ended(Outcome.CRASH), policy)
    assert RECORDS[0].key not in {each.order.variant.key for each in crashed if each.order.device is RECORDS[0].device}


def test_only_failed_leaves_the_missing_ones_out() -> None:
    records = ended(Outcome.CRASH)[:-5]
    policy = Policy.parse(None, only_failed=True)
    assert [place(each) for each in remaining(PLAN, records, policy)] == [(RECORDS[0].key, RECORDS[0].device, 0, 2)]
    assert len(remaining(PLAN, records, Policy())) == 1 + 5


def test_the_latest_attempt_decides_whatever_the_order_of_the_lines() -> None:
    first = die(RECORDS[0], Outcome.CRASH, "why")
    second = replace(RECORDS[0], attempt=2)
    rest = RECORDS[1:]
    assert remaining(PLAN, [first, *rest, second], Policy()) == []
    assert remaining(PLAN, [second, *rest, first], Policy()) == []
    (todo,) = remaining(PLAN, [first, *rest, replace(first, attempt=2)], Policy())
    assert todo.order.attempt == 3


def test_records_of_another_run_or_of_no_planned_variant_count_for_nothing() -> None:
    strange: Plan = make_plan(placements=("eval-after-epoch",), cells=("rnn-tanh",))
    strays = [*(replace(record, run="another") for record in RECORDS), *make_records(strange)]
    assert len(remaining(PLAN, strays, Policy())) == PLAN.attempts


@pytest.mark.parametrize(
    "text", ["", "ok", "skipped", "crash,", "everything", "all,none", "all,crash", "crash;oom", "🙂"]
)
def test_what_cannot_be_tried_again_is_refused_with_what_can(text: str) -> None:
    with pytest.raises(UsageError, match="--retry takes outcomes") as caught:
        Policy.parse(text)
    assert "backward-error, error, oom, timeout, crash, not-run" in caught.value.advice
    assert caught.value.exit_code == 2


def test_only_failed_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="leaves nothing"):
        Policy.parse("none", only_failed=True)


def test_the_record_of_a_retry_is_one_more_of_the_same_place() -> None:
    """What the fold of records does with it: the newest counts, and planned is recorded."""
    from harness.results import collect

    crashed = die(RECORDS[0], Outcome.CRASH, "why")
    again = make_record(PLAN, PLAN.variants[0], RECORDS[0].device, attempt=2)
    collection = collect(PLAN, [crashed, *RECORDS[1:], again])
    assert collection.complete
    assert sum(len(result.records) for result in collection.results) == PLAN.attempts
    assert (collection.results[0].outcome, collection.results[0].superseded) == (again.outcome, 1)
