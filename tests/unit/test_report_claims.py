"""The articles' claims: each verdict follows from what attempts saw, and absence of evidence is called that."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import make_plan, make_record, make_records
from hypothesis import given
from hypothesis import strategies as st

from harness.model import Device, KernelPath, Outcome, Plan, Record, Sighting, Variant
from harness.report import render
from harness.report.claims import CLAIMS, Standing
from harness.report.evidence import Evidence

PLAN = make_plan(devices=(Device.STUB, Device.CPU))
RECORDS = make_records(PLAN)
AS_STATED, REFUTED, SUPPORTED, UNTESTED = (
    Standing.REFUTED_AS_STATED,
    Standing.REFUTED,
    Standing.SUPPORTED,
    Standing.UNTESTED,
)


def standings(plan: Plan, records: list[Record], device: Device = Device.STUB) -> list[Standing]:
    results = Evidence.of(plan, records).results_on(device)
    return [claim.test(results).standing for claim in CLAIMS]


def swap(placement: str, outcome: Outcome) -> list[Record]:
    """The records, with every one of a placement ended in another way."""
    return [replace(r, outcome=outcome) if f"placement={placement}," in r.label else r for r in RECORDS]


def test_records_that_follow_the_rule_leave_two_claims_standing() -> None:
    assert standings(PLAN, RECORDS) == [AS_STATED, REFUTED, REFUTED, SUPPORTED, SUPPORTED]


def test_a_cpu_tests_only_what_needs_no_cudnn() -> None:
    assert standings(PLAN, RECORDS, Device.CPU) == [UNTESTED, REFUTED, UNTESTED, UNTESTED, UNTESTED]


def test_nothing_is_tested_without_records() -> None:
    assert standings(PLAN, []) == [UNTESTED] * 5
    assert "The articles' claims" not in render(PLAN, [], "md")


def test_train_before_backward_would_be_supported_by_what_the_first_article_says() -> None:
    plan = make_plan(devices=(Device.STUB,), placements=("train-before-backward",), flags=("on",))
    records = [replace(r, outcome=Outcome.OK) for r in make_records(plan)]
    assert standings(plan, records)[0] is SUPPORTED
    assert standings(plan, make_records(plan))[0] is REFUTED  # nothing shows the true half here


def test_a_late_train_is_known_from_the_declaration_and_not_from_a_name() -> None:
    results = Evidence.of(PLAN, RECORDS).results_on(Device.STUB)
    against = {record.label for record in CLAIMS[0].test(results).contradicts}
    assert {label.split("placement=")[1].split(",")[0] for label in against} == {
        "train-before-backward",
        "eval-output-reused",
    }


def test_train_at_the_top_of_the_epoch_is_refuted_if_it_raises_too() -> None:
    assert standings(PLAN, swap("train-each-epoch", Outcome.BACKWARD_ERROR))[3] is REFUTED
    assert standings(PLAN, swap("eval-after-epoch", Outcome.OK))[3] is UNTESTED  # nothing to cure


def test_the_fifth_claim_holds_both_ways() -> None:
    assert standings(PLAN, swap("eval-always", Outcome.OK))[4] is AS_STATED
    assert standings(PLAN, swap("train-always", Outcome.BACKWARD_ERROR))[4] is AS_STATED


def test_no_grad_is_not_eval_mode() -> None:
    plan = make_plan(devices=(Device.STUB,), placements=("eval-no-grad",))
    records = [replace(r, outcome=Outcome.OK) for r in make_records(plan)]
    assert standings(plan, records)[1] is UNTESTED
    plain = make_plan(devices=(Device.STUB,), placements=("eval-always",))
    blind = [
        replace(r, outcome=Outcome.OK, sightings=(Sighting(1, 1, False, None, False),)) for r in make_records(plain)
    ]
    assert standings(plain, blind)[1] is SUPPORTED


def test_only_the_first_backward_of_a_process_refutes_the_third_claim() -> None:
    plan = make_plan(devices=(Device.STUB,), placements=("eval-after-epoch",))
    assert standings(plan, make_records(plan))[2] is UNTESTED
    trained = (Sighting(1, 1, True, KernelPath.CUDNN, True),)
    odd = [replace(r, sightings=trained) if r.outcome is Outcome.BACKWARD_ERROR else r for r in make_records(plan)]
    assert standings(plan, odd)[2] is SUPPORTED


@pytest.mark.parametrize(
    ("form", "device", "outcome", "standing"),
    [
        ("fixed", Device.STUB, Outcome.OK, SUPPORTED),
        ("fixed", Device.CUDA, Outcome.BACKWARD_ERROR, REFUTED),
        ("fixed", Device.CPU, Outcome.OK, UNTESTED),
        ("as-written", Device.STUB, Outcome.BACKWARD_ERROR, UNTESTED),
    ],
)
def test_the_bidirectional_program_itself_is_evidence_where_the_error_can_occur(
    form: str, device: Device, outcome: Outcome, standing: Standing
) -> None:
    variant = Variant({"program": "brnn-mnist", "form": form}, f"program=brnn-mnist,form={form}")
    plan = replace(PLAN, variants=(variant,), devices=(device,))
    record = Record(plan.run, variant.key, variant.label, device, outcome, epoch=2, step=1)
    assert standings(plan, [record], device)[3] is standing


@given(st.lists(st.sampled_from(Outcome), min_size=24, max_size=24))
def test_evidence_never_speaks_both_for_and_against(outcomes: list[Outcome]) -> None:
    plan = make_plan(devices=(Device.STUB,), cells=("lstm",), directions=(True,), flags=("on",))
    records = [
        replace(make_record(plan, variant, Device.STUB), outcome=outcome)
        for variant, outcome in zip(plan.variants, outcomes, strict=True)
    ]
    results = Evidence.of(plan, records).results
    for claim in CLAIMS:
        tested = claim.test(results)
        assert not {r.key for r in tested.shows} & {r.key for r in tested.contradicts}
        assert (tested.standing is Standing.UNTESTED) == (not tested.shows and not tested.contradicts)


def test_the_section_names_verdicts_counts_and_keys() -> None:
    report = render(PLAN, RECORDS, "md")
    assert "| **refuted as stated** | not tested on this device |" in report
    assert "- `stub`: 16 records refute it (`" in report and "and 13 more variants)" in report
    assert "It does if it comes before the *forward*" in report


def test_attempts_that_saw_nothing_support_no_claim_about_what_was_not_seen() -> None:
    """A record without sightings, of a dead process say, fits every claim that ends in "and saw no such forward"."""
    blind = [
        replace(record, sightings=(), path=None, epoch=2, step=1)
        for record in RECORDS
        if record.outcome is Outcome.BACKWARD_ERROR
    ]
    assert blind
    assert standings(PLAN, blind)[2] is UNTESTED
