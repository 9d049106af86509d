"""The rule that records teach: hidden rules are found, whatever they are made of, and no rule is invented."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
from builders import RUN, make_plan, make_records
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness.matrix.axes import make_variant
from harness.model import Device, KernelPath, Outcome, Plan, Record, Sighting, Variant
from harness.report import render
from harness.report.evidence import Evidence
from harness.report.learning import EXCEPTION, FACTS, Case, Learnt, Literal, Term, learn
from harness.report.sections.learnt import in_words
from harness.results import Result, collect

FACT_SPACE = tuple(product(("cudnn", "native", "mkldnn"), (True, False), (True, False)))
AXES = {"cell": ("lstm", "gru", "rnn-tanh"), "dtype": ("float32", "float16", "bfloat16"), "packed": ("true", "false")}
RULE = (Literal("path", "cudnn"), Literal("training", False), Literal("gradient_reached", True))


def result(variant: Variant, forwards: list[tuple[str, bool, bool]], *outcomes: Outcome) -> Result:
    seen = tuple(Sighting(1, 1, training, KernelPath(path), reached) for path, training, reached in forwards)
    records = (
        Record(RUN, variant.key, variant.label, Device.STUB, outcome, replicate, sightings=seen)
        for replicate, outcome in enumerate(outcomes)
    )
    return Result(variant, variant.key, Device.STUB, tuple(records), replicates=len(outcomes))


FORWARD = "a forward that records a graph runs"


def made(raises: Callable[[dict[str, str], tuple[str, bool, bool]], bool]) -> list[Result]:
    """Every combination of facts and axis values, each once, raising as ``raises`` says."""
    results = []
    for number, (facts, values) in enumerate(product(FACT_SPACE, product(*AXES.values()))):
        axes = dict(zip(AXES, values, strict=True))
        outcome = Outcome.BACKWARD_ERROR if raises(axes, facts) else Outcome.OK
        results.append(result(Variant(axes, f"variant {number}"), [facts], outcome))
    return results


def meets(term: Term, axes: dict[str, str], facts: tuple[str, bool, bool]) -> bool:
    said = [(facts[FACTS.index(literal.name)] == literal.value) is literal.is_ for literal in term.facts]
    return all(said) and all((axes[literal.name] == literal.value) is literal.is_ for literal in term.axes)


def _literal(name: str, values: tuple[str | bool, ...]) -> st.SearchStrategy[Literal]:
    return st.builds(
        Literal, st.just(name), st.sampled_from(values), st.booleans() if len(values) > 2 else st.just(True)
    )


def _some(space: dict[str, tuple[str | bool, ...]], most: int) -> st.SearchStrategy[tuple[Literal, ...]]:
    names = st.lists(st.sampled_from(list(space)), unique=True, max_size=most)
    return names.flatmap(lambda chosen: st.tuples(*(_literal(name, space[name]) for name in sorted(chosen))))


FACT_VALUES: dict[str, tuple[str | bool, ...]] = {
    "path": ("cudnn", "native", "mkldnn"),
    "training": (True, False),
    "gradient_reached": (True, False),
}
TERMS = st.builds(Term, _some(FACT_VALUES, 3), _some(dict(AXES), 2)).filter(lambda term: term.cost > 0)


@settings(max_examples=30, deadline=None)
@given(TERMS)
def test_a_hidden_rule_is_recovered(hidden: Term) -> None:
    results = made(lambda axes, facts: meets(hidden, axes, facts))
    assume(
        EXCEPTION * sum(r.outcome is Outcome.BACKWARD_ERROR for r in results) > hidden.cost
    )  # else it is not worth it
    found = learn(results)
    assert found.unexplained == ()
    assert found.score() <= hidden.cost
    assert {x for term in found.terms for x in (*term.facts, *term.axes)} == {*hidden.facts, *hidden.axes}


@settings(max_examples=15, deadline=None)
@given(TERMS, TERMS)
def test_what_is_found_is_never_larger_nor_less_true_than_what_is_hidden(one: Term, two: Term) -> None:
    """Of one term, and of two that ask for facts alone, nothing better is missed; of two with axes it may be."""
    found = learn(made(lambda axes, facts: meets(one, axes, facts) or meets(two, axes, facts)))
    if not found.terms:
        return
    for alone in (one, two):
        assert found.score() <= Learnt((alone,), found.cases, found.unseen).score()
    if not one.axes and not two.axes:
        assert found.score() <= one.cost + two.cost


def test_three_facts_suffice_for_records_that_follow_them() -> None:
    plan = make_plan(devices=(Device.STUB,))
    found = learn(collect(plan, make_records(plan)).results)
    assert found.terms == (Term(RULE),)
    assert (found.records, found.raising, found.unexplained, found.unseen) == (384, 72, (), 0)


def test_facts_of_different_forwards_are_not_mixed_up() -> None:
    """An eval forward elsewhere and a train forward through cuDNN are no eval forward through cuDNN."""
    both = [("cudnn", True, True), ("native", False, True)]
    variants = [Variant({"n": str(n)}, f"n={n}") for n in range(6)]
    results = [
        *(result(v, both, Outcome.OK) for v in variants[:2]),
        *(result(v, [("cudnn", False, True), ("cudnn", True, True)], Outcome.BACKWARD_ERROR) for v in variants[2:4]),
        result(variants[4], [("native", False, True)], Outcome.OK),
        result(variants[5], [("cudnn", True, True)], Outcome.OK),
    ]
    assert learn(results).terms == (Term((Literal("path", "cudnn"), Literal("training", False))),)


def _with_dtypes() -> tuple[Plan, list[Record]]:
    plans = [
        make_plan(devices=(Device.STUB,), cells=("lstm", "gru"), fixed={"dtype": d}) for d in ("float32", "bfloat16")
    ]
    plan = replace(plans[0], variants=tuple(variant for each in plans for variant in each.variants))
    records = [replace(r, outcome=Outcome.OK) if "bfloat16" in r.label else r for r in make_records(plan)]
    return plan, records


def test_an_axis_that_matters_although_the_facts_say_otherwise_surfaces() -> None:
    plan, records = _with_dtypes()
    evidence = Evidence.of(plan, records)
    found = evidence.learnt[Device.STUB]
    assert found.axes == ["dtype"] and found.unexplained == ()
    report = render(plan, records, "md")
    assert "a gradient reaches its output and `dtype` is `float32`" in report
    assert "Beyond what the forwards saw, it needs `dtype`" in report


def test_axis_values_that_say_the_same_are_named() -> None:
    variants = [
        make_variant({"cell": "lstm", "placement": p, "dtype": d, "packed": d == "bfloat16", "batch": b})
        for p in ("eval-always", "train-always")
        for d in ("float32", "bfloat16")
        for b in (1, 2, 3)
    ]
    plan = make_plan(devices=(Device.STUB,), variants=variants)
    records = [
        replace(
            Record(RUN, v.key, v.label, Device.STUB, Outcome.OK),
            sightings=(Sighting(1, 1, v["placement"] == "train-always", KernelPath.CUDNN, True),),
            outcome=Outcome.BACKWARD_ERROR
            if (v["placement"], v["dtype"]) == ("eval-always", "float32")
            else Outcome.OK,
        )
        for v in variants
    ]
    report = render(plan, records, "md")
    assert "In this run `packed` is `false` would have said the same" in report


def test_one_exception_is_listed_and_moves_no_axis_into_the_rule() -> None:
    plan = make_plan(devices=(Device.STUB,))
    records = make_records(plan)
    odd = next(i for i, record in enumerate(records) if record.outcome is Outcome.BACKWARD_ERROR)
    records[odd] = replace(records[odd], outcome=Outcome.OK)
    found = Evidence.of(plan, records).learnt[Device.STUB]
    assert found.terms == (Term(RULE),) and found.unexplained == (records[odd],)
    report = render(plan, records, "md")
    assert f"**Not explained: 1 record.**\n\n- {records[odd].label}: `ok`" in report
    assert "a variant raises when a forward" in report and "explains 383 of 384 records" in report


def test_twins_with_different_outcomes_are_unexplained_and_teach_nothing() -> None:
    results = made(lambda _, facts: facts == ("cudnn", False, True))
    twin = result(Variant({"cell": "twin"}, "twin"), [("cudnn", False, True)], Outcome.OK, Outcome.BACKWARD_ERROR)
    found = learn([*results, twin])
    assert found.terms == (Term(RULE),)
    assert found.unexplained == (twin.records[0],)


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        ((Outcome.OK, Outcome.OK), "none of 4 records raised, so nothing can be learnt"),
        ((Outcome.BACKWARD_ERROR, Outcome.BACKWARD_ERROR), "all 4 records raised, so nothing can be learnt"),
        ((Outcome.CRASH, Outcome.OOM), "no record says what its forwards saw"),
    ],
)
def test_of_one_class_nothing_is_learnt(outcomes: tuple[Outcome, Outcome], words: str) -> None:
    plan = make_plan(devices=(Device.STUB,), placements=("train-always", "eval-always"), cells=("lstm",), flags=("on",))
    records = [replace(record, outcome=outcomes[n % 2]) for n, record in enumerate(make_records(replace(plan)))]
    assert Evidence.of(plan, records).learnt[Device.STUB].terms == ()
    assert words in render(plan, records, "md")


def test_a_fact_without_a_counter_example_is_named_as_not_tested() -> None:
    plan = make_plan(devices=(Device.STUB,), placements=("train-always", "eval-always"))
    report = render(plan, make_records(plan), "md")
    assert "exactly when a forward that records a graph runs through cuDNN with the RNN in eval mode.**" in report
    assert "Not tested by this run: whether a gradient reached its output; it was the same" in report
    full = make_plan(devices=(Device.STUB,))
    assert "Not tested by this run" not in render(full, make_records(full), "md")


def test_records_that_saw_too_little_are_counted_and_not_learnt_from() -> None:
    results = made(lambda _, facts: facts == ("cudnn", False, True))
    first = results[0].records[0]
    results[0] = replace(results[0], records=(replace(first, sightings=()),))
    results[1] = replace(results[1], records=(replace(results[1].records[0], outcome=Outcome.TIMEOUT),))
    found = learn(results)
    assert found.unseen == 2 and found.records == len(results) - 2 and found.terms == (Term(RULE),)


def test_each_device_learns_apart_and_a_cpu_not_at_all() -> None:
    plan = make_plan(devices=(Device.CUDA, Device.STUB, Device.CPU))
    records = [replace(r, outcome=Outcome.OK) if r.device is Device.CUDA else r for r in make_records(plan)]
    learnt = Evidence.of(plan, records).learnt
    assert set(learnt) == {Device.CUDA, Device.STUB}
    assert learnt[Device.CUDA].terms == () and learnt[Device.STUB].terms == (Term(RULE),)


def test_the_same_records_in_another_order_teach_the_same() -> None:
    results = made(lambda axes, facts: facts[0] == "cudnn" and axes["dtype"] != "float16")
    assert learn(results).terms == learn(results[::-1]).terms


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        (
            (Term(RULE),),
            f"{FORWARD} through cuDNN with the RNN in eval mode and a gradient reaches its output",
        ),
        ((Term(RULE[2:]),), "a gradient reaches the output of a forward"),
        ((Term((), (Literal("dtype", "float16", is_=False),)),), "`dtype` is not `float16`"),
        (
            (Term(RULE[:1]), Term((Literal("path", "native", is_=False),), (Literal("cell", "gru"),))),
            f"{FORWARD} through cuDNN, or when {FORWARD} on another path than `native` and `cell` is `gru`",
        ),
        ((Term(),), "anything runs at all"),
    ],
)
def test_a_rule_is_said_in_words(terms: tuple[Term, ...], words: str) -> None:
    assert in_words(terms) == words


def test_a_case_whose_records_disagree_has_no_outcome() -> None:
    case = Case({}, frozenset(), (_record(Outcome.OK), _record(Outcome.BACKWARD_ERROR)))
    assert case.raised is None
    assert Learnt((), (case,), 0).raising == 1


def _record(outcome: Outcome) -> Record:
    return Record(RUN, "0" * 12, "a label", Device.STUB, outcome)
