"""The standing proof: over the whole ``full`` matrix, the stub's outcomes are what the rule predicts.

The rule speaks of three facts - the kernel path, the RNN's mode at forward time, and whether a gradient reached its
output - and this test takes all three from what each attempt saw, never from the names of its axes. A stub that let a
forward slip past cuDNN, or a step loop that switched modes at the wrong moment, would break it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from command import kept

from harness.model import KernelPath, Outcome, Record, Variant

NO_GRAPH = "element 0 of tensors does not require grad and does not have a grad_fn"


@pytest.fixture(scope="module")
def variants(full_on_stub: Path) -> tuple[Variant, ...]:
    return kept(full_on_stub)[0].variants


@pytest.fixture(scope="module")
def records(full_on_stub: Path) -> dict[str, Record]:
    return {record.key: record for record in kept(full_on_stub)[1]}


def should_raise(record: Record) -> bool:
    return any(
        sighting.path is KernelPath.CUDNN and not sighting.training and sighting.gradient_reached
        for sighting in record.sightings
    )


def test_every_variant_has_a_record(variants: tuple[Variant, ...], records: dict[str, Record]) -> None:
    assert len(variants) > 1000
    assert set(records) == {variant.key for variant in variants}


def test_the_rule_explains_every_record(records: dict[str, Record]) -> None:
    unexplained = [
        (record.label, record.outcome, record.sightings)
        for record in records.values()
        if should_raise(record) is not (record.outcome is Outcome.BACKWARD_ERROR)
    ]
    assert unexplained == []


def test_the_proof_has_both_kinds_to_tell_apart(records: dict[str, Record]) -> None:
    """A rule that explains a heap of equal records explains nothing."""
    outcomes = Counter(record.outcome for record in records.values())
    assert outcomes[Outcome.BACKWARD_ERROR] > 200
    assert outcomes[Outcome.OK] > 400
    seen = {(s.path, s.training, s.gradient_reached) for record in records.values() for s in record.sightings}
    assert {
        (KernelPath.CUDNN, True, True),
        (KernelPath.CUDNN, False, True),
        (KernelPath.CUDNN, False, False),
        (KernelPath.NATIVE, False, True),
        (KernelPath.NATIVE, True, True),
    } <= seen


def test_other_failures_have_reasons_of_their_own(variants: tuple[Variant, ...], records: dict[str, Record]) -> None:
    """Beyond the error itself only one placement fails: it never had a graph to go backward through."""
    others = [r for r in records.values() if r.outcome not in {Outcome.OK, Outcome.BACKWARD_ERROR}]
    placements = {variant.key: variant["placement"] for variant in variants}
    strange = {record.label: record.error_message for record in others if NO_GRAPH not in str(record.error_message)}
    assert strange == {}
    assert {placements[record.key] for record in others} == {"eval-no-grad"}


def test_a_stub_record_claims_no_measurement(records: dict[str, Record]) -> None:
    for record in records.values():
        assert record.facts["stub"] is True
        assert "stub" in str(record.facts["device_name"])
        assert not record.samples
        claimed = (
            record.first_step_s,
            record.sequences_per_step,
            record.timesteps_per_step,
            record.first_loss,
            record.last_loss,
            record.losses_digest,
            record.weights_digest,
        )
        assert claimed == (None,) * 7
        assert record.memory_source is None or "stub" in record.memory_source
