"""Accepting: few and narrow rules, nothing else of the file touched, and the check passes afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path

import pytest
from builders import CELLS, die, fail, make_plan, make_records
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import HarnessError
from harness.expectations.accept import Accepted, accept
from harness.expectations.box import boxes
from harness.expectations.compare import check
from harness.expectations.document import Expectations, ExpectationsFileError, parse_expectations
from harness.matrix.axes import make_variant
from harness.model import Device, Outcome, Phase, Plan, Record
from harness.placements import PLACEMENTS

SHIPPED = (Path(__file__).parents[2] / "experiments" / "expected.yaml").read_text()
STUB = [Device.STUB]


def rules(text: str = SHIPPED) -> Expectations:
    return parse_expectations(text, "x.yaml")


def as_expected(plan: Plan) -> list[Record]:
    """Records that the shipped file expects; those of builders put an inner loop's error into the training loop."""
    return [
        replace(r, phase=Phase.EVALUATE, step=1) if r.outcome is not Outcome.OK and "inner-loop" in r.label else r
        for r in make_records(plan)
    ]


def changed(records: list[Record], change: Callable[[Record], Record], *words: str) -> list[Record]:
    return [change(r) if all(word in r.label for word in words) else r for r in records]


def ok(record: Record) -> Record:
    return replace(record, outcome=Outcome.OK, error_type=None, error_message=None)


def boom(record: Record) -> Record:
    return fail(record, Outcome.ERROR, "error 12 (bad)\nand more", "ValueError")


def added(done: Accepted, before: str = SHIPPED) -> list[str]:
    """The lines that are new; a line that was taken away is marked."""
    lines = list(unified_diff(before.splitlines(), done.text.splitlines(), lineterm="", n=0))[2:]
    return [line[1:] if line[0] == "+" else line for line in lines if line[0] in "+-" and line[1:].strip()]


def test_a_rule_in_front_for_the_devices_of_the_run() -> None:
    plan = make_plan(devices=STUB)
    records = changed(as_expected(plan), ok, "placement=eval-after-epoch")
    done = accept(plan, records, rules(), "upstream: fixed")
    assert added(done) == [
        "  - devices: [stub]",
        "    match: {placement: eval-after-epoch}",
        "    expect: {outcome: ok}",
        "    reason: 'upstream: fixed'",
    ]
    assert check(plan, records, rules(done.text)).differences == ()
    assert len(done.accepted) == 8
    assert (
        check(
            make_plan(devices=[Device.CUDA]), as_expected(make_plan(devices=[Device.CUDA])), rules(done.text)
        ).differences
        == ()
    )


def test_only_the_axes_that_tell_the_variants_apart_are_named() -> None:
    plan = make_plan(devices=STUB)
    records = changed(as_expected(plan), boom, "cell=gru,bidirectional=true", "placement=train-always")
    done = accept(plan, records, rules(), "no kernel")
    assert added(done) == [
        "  - devices: [stub]",
        "    match: {cudnn: 'off', cell: gru, bidirectional: true, placement: train-always}",
        r"    expect: {outcome: error, phase: backward, epoch: 1, step: 1, error: '^ValueError: error \d+ \(bad\)'}",
        "    reason: no kernel",
        "  - devices: [stub]",
        "    match: {placement: train-always, cell: gru, bidirectional: true}",
        r"    expect: {outcome: error, phase: backward, epoch: 1, step: 1, error: '^ValueError: error \d+ \(bad\)'}",
        "    reason: no kernel",
    ]


def test_a_rule_that_this_run_refutes_altogether_is_changed_in_place() -> None:
    text = (
        "# mine\nrules:\n  # why\n  - devices: [stub]  # here\n"
        "    expect: {outcome: crash}   # so far\n    reason: old\n\n# end\n"
    )
    plan = make_plan(devices=STUB, placements=["train-always"])
    done = accept(plan, as_expected(plan), rules(text), "new")
    expected = text.replace("{outcome: crash}", "{outcome: ok}").replace("reason: old", "reason: new")
    assert done.text == expected


def test_a_file_with_windows_line_ends_keeps_them() -> None:
    plan = make_plan(devices=STUB, placements=["eval-always"])
    text = SHIPPED.replace("\n", "\r\n")
    done = accept(plan, changed(as_expected(plan), ok), rules(text), "x")
    assert "\n" not in done.text.replace("\r\n", "")
    assert len(done.text.splitlines()) == len(text.splitlines()) + 5


def test_an_empty_file_is_filled_and_speaks_of_no_more_than_it_saw() -> None:
    plan = make_plan(devices=[Device.STUB, Device.CPU])
    done = accept(plan, as_expected(plan), rules("# mine\nrules: []\n"), "first run")
    learnt = rules(done.text)
    assert done.refused == ()
    assert check(plan, as_expected(plan), learnt).differences == ()
    assert len(learnt.rules) < 12
    assert all("placement" in rule.match for rule in learnt.rules)
    unknown = replace(make_variant({}), axes={"placement": "new"})
    assert learnt.deciding(unknown, Device.STUB) is None


def test_what_is_no_finding_is_refused() -> None:
    plan = make_plan(devices=STUB, placements=["train-always", "eval-always"])
    for outcome in (Outcome.TIMEOUT, Outcome.CRASH, Outcome.OOM):
        records = changed(as_expected(plan), lambda r, o=outcome: die(r, o, "bad"), "train-always")  # type: ignore[misc]
        done = accept(plan, records, rules(), "x")
        assert (done.text, len(done.refused), done.accepted) == (SHIPPED, 16, ())
    done = accept(plan, as_expected(plan)[1:], rules(), "x")
    assert (done.text, len(done.refused)) == (SHIPPED, 1)


def test_replicates_that_disagree_are_refused() -> None:
    plan = make_plan(devices=[Device.CPU], placements=["train-always"], cells=["gru"], directions=[True], flags=["on"])
    plan = replace(plan, settings=replace(plan.settings, replicates=2))
    first, second = as_expected(plan)
    done = accept(plan, [first, boom(second)], rules(), "x")
    assert (done.text, len(done.refused)) == (SHIPPED, 1)
    assert len(accept(plan, [boom(first), boom(second)], rules(), "x").accepted) == 2


def test_words_and_patterns_that_still_hold_stay() -> None:
    plan = make_plan(devices=STUB, placements=["eval-by-helper"])
    records = changed(as_expected(plan), lambda r: replace(r, phase=Phase.FORWARD), "cudnn=on")
    (expect,) = [line for line in added(accept(plan, records, rules(), "x")) if "step: " in line or "outcome" in line][
        :1
    ]
    text = accept(plan, records, rules(), "x").text
    position = rules(text).deciding(make_variant({"placement": "eval-by-helper"}), Device.STUB)
    assert position is not None
    moved = rules(text).rules[position].expect
    assert (moved.phase, moved.step) == (Phase.FORWARD, "after-middle")
    assert moved.error == next(r.expect.error for r in rules().rules if r.match.get("placement") == ("eval-by-helper",))
    assert expect


def test_a_file_that_cannot_be_edited_piecemeal_is_refused() -> None:
    plan = make_plan(devices=STUB, placements=["train-always"])
    flow = "rules: [{devices: [stub, cpu], expect: {outcome: crash}, reason: x}]"
    with pytest.raises(ExpectationsFileError, match="one dash a rule"):
        accept(plan, as_expected(plan), rules(flow), "x")


def test_rules_that_share_what_they_expect_are_not_changed_in_place() -> None:
    text = """rules:
  - {devices: [stub], match: {cell: gru}, expect: &e {outcome: crash}, reason: x}
  - {devices: [stub], match: {cell: lstm}, expect: *e, reason: x}
  - {devices: [stub], match: {cell: [rnn-tanh, rnn-relu]}, expect: {outcome: ok}, reason: x}
"""
    plan = make_plan(devices=STUB, placements=["train-always"])
    records = as_expected(plan)
    done = accept(plan, records, rules(text), "x")
    assert all(line in done.text for line in text.splitlines())
    assert check(plan, records, rules(done.text)).differences == ()


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_whatever_a_run_did_can_be_accepted(data: st.DataObject) -> None:
    placements = data.draw(st.lists(st.sampled_from(sorted(PLACEMENTS)), min_size=1, max_size=3, unique=True))
    plan = make_plan(devices=data.draw(st.sampled_from([STUB, [Device.STUB, Device.CPU]])), placements=placements)
    fates: list[Callable[[Record], Record]] = [ok, boom, lambda r: r, lambda r: replace(boom(r), epoch=2)]
    records = [data.draw(st.sampled_from(fates))(record) for record in as_expected(plan)]
    text = data.draw(st.sampled_from([SHIPPED, "rules: []"]))
    try:
        done = accept(plan, records, rules(text), "property")
    except HarnessError as error:
        pytest.fail(str(error))
    assert check(plan, records, rules(done.text)).differences == ()


@settings(max_examples=60, deadline=None)
@given(st.sets(st.integers(0, 31), min_size=1))
def test_boxes_hold_all_that_is_wanted_and_nothing_else(chosen: set[int]) -> None:
    plan = make_plan(placements=["train-always", "eval-always"], cells=CELLS)
    wanted = [plan.variants[i] for i in sorted(chosen)]
    others = [variant for variant in plan.variants if variant not in wanted]
    found = boxes(wanted, others)
    assert len(found) <= len(wanted)

    def held(variant: object) -> bool:
        return any(all(variant[axis] in values for axis, values in box.items()) for box in found)  # type: ignore[index]

    assert all(map(held, wanted))
    assert not any(map(held, others))
