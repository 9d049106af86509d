"""What the stub refuses inside an attempt is an error that says so, and never the backward error."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import stub
from harness.launch.local import LocalExecutor
from harness.launch.stop import StopRequest
from harness.matrix.axes import make_variant
from harness.model import Device, Order, Outcome, Record, Settings

PROGRAM = str(Path(__file__).parent / "programs" / "refused.py")
REFUSED = {
    "fourier": "the harness stub does not do cufftCreate: Fourier transforms on the stub device",
    "fourier_in_backward": "the harness stub does not do cufftCreate: Fourier transforms on the stub device",
    "inverse": "the harness stub does not do cusolverDnCreate: linear algebra on the stub device",
}
STICKY = {
    "illegal_access": "CUDA error: an illegal memory access was encountered",
    "device_assert": "CUDA error: device-side assert triggered",
    "launch_failure": "CUDA error: unspecified launch failure",
}
ACTS = (*REFUSED, "backward_in_eval", *STICKY, "nothing")


@pytest.fixture(scope="module")
def records(stub_device: None) -> Iterator[dict[str, Record]]:
    """One attempt for each act of the program, the good one last."""
    executor = LocalExecutor(stub.ensure().environment(os.environ))
    orders = [
        Order("run", make_variant({}), Device.STUB, Settings(), number, program=PROGRAM, arguments=(act,))
        for number, act in enumerate(ACTS)
    ]
    found = {ACTS[record.replicate]: record for record in executor.run(orders, 1, StopRequest())}
    yield found
    executor.close()


@pytest.mark.parametrize("act", REFUSED)
def test_a_refusal_is_an_error_in_the_stubs_own_words(records: dict[str, Record], act: str) -> None:
    record, backward_error = records[act], records["backward_in_eval"]
    assert (record.outcome, record.error_type) == (Outcome.ERROR, "RuntimeError")
    assert str(record.error_message).startswith(REFUSED[act])
    assert backward_error.outcome is Outcome.BACKWARD_ERROR
    assert record.fingerprint
    assert backward_error.fingerprint
    assert record.fingerprint != backward_error.fingerprint


def test_refusals_of_one_function_are_one_failure_and_those_of_two_are_two(records: dict[str, Record]) -> None:
    assert records["fourier"].fingerprint == records["fourier_in_backward"].fingerprint
    assert records["fourier"].fingerprint != records["inverse"].fingerprint


@pytest.mark.parametrize("act", STICKY)
def test_a_sticky_error_says_that_its_process_was_poisoned(records: dict[str, Record], act: str) -> None:
    record = records[act]
    assert (record.outcome, record.error_type) == (Outcome.ERROR, "torch.AcceleratorError")
    assert str(record.error_message).startswith(STICKY[act])
    assert record.facts["process_poisoned"] is True
    assert "sticky CUDA error" in str(record.reason)
    assert [name for name in ACTS if "process_poisoned" in records[name].facts] == list(STICKY)


def test_a_variant_that_loses_its_device_is_an_error_and_poisoned(stub_device: None) -> None:
    executor = LocalExecutor(stub.ensure().environment(os.environ) | {"HARNESS_STUB_FAULT": "700"})
    try:
        (record,) = executor.run([Order("run", make_variant({}), Device.STUB, Settings())], 1, StopRequest())
    finally:
        executor.close()
    assert record.outcome is Outcome.ERROR
    assert "an illegal memory access" in str(record.error_message)
    assert record.facts["process_poisoned"] is True


def test_after_refusals_an_attempt_is_ok(records: dict[str, Record]) -> None:
    assert records["nothing"].outcome is Outcome.OK
