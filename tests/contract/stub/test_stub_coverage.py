"""Everything a training script does around a recurrent layer, under the stub, case by case."""

from __future__ import annotations

from typing import Any

import pytest
from stub_expectations import ANY, EXPECTED, Ok, Raises

Outcomes = dict[str, dict[str, Any]]


def test_every_case_has_an_expectation(outcomes: Outcomes) -> None:
    assert {case for case in outcomes if not case.startswith("recurrent.")} == set(EXPECTED)


@pytest.mark.parametrize("case", EXPECTED)
def test_case_ends_as_expected(case: str, outcomes: Outcomes, torch_under_test: Any) -> None:
    outcome, expected = outcomes[case], EXPECTED[case]
    assert "crash" not in outcome, outcome
    if isinstance(expected, Raises):
        has_newer_types = torch_under_test.release >= (2, 8)
        assert outcome.get("error") == (expected.kind if has_newer_types or not expected.older else expected.older)
        assert expected.fragment in outcome["message"]
    else:
        assert isinstance(expected, Ok)
        assert "error" not in outcome, outcome.get("traceback")
        assert expected.value is ANY or outcome["value"] == expected.value


def test_an_empty_graph_is_noticed_and_a_full_one_is_not(outcomes: Outcomes) -> None:
    assert "The CUDA Graph is empty" in outcomes["runtime.graph_capture_of_nothing"]["value"]


def test_waiting_inside_a_capture_is_the_first_error(outcomes: Outcomes) -> None:
    """On the way out PyTorch raises a second one; the reader sees both."""
    trace = outcomes["runtime.graph_capture_with_item"]["traceback"]
    assert "operation not permitted when stream is capturing" in trace


def test_eight_gib_on_the_device_cost_the_host_almost_nothing(outcomes: Outcomes) -> None:
    assert outcomes["memory.large_memory_is_not_touched"]["value"] < 200, "in MiB"


def test_pytorch_keeps_its_own_check_on_forks(outcomes: Outcomes) -> None:
    assert "Cannot re-initialize CUDA in forked subprocess" in outcomes["runtime.fork_after_cuda"]["value"]
