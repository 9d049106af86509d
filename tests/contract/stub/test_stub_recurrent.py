"""The rule of this project against 1,600 recurrent layers: backward raises exactly after an eval forward through cuDNN.

The kernel family is what the autograd graph shows, so the rule could fail; that the family is the right one for the
switches that were set is a test of its own.
"""

from __future__ import annotations

from typing import Any

import pytest

EVAL_ERROR = "RuntimeError: cudnn RNN backward can only be called in training mode"
SWEEPS = {"shapes_and_packing": 720, "precision": 640, "autocast": 160, "batch_first_and_norm": 80}


def sweep(outcomes: dict[str, dict[str, Any]], name: str) -> list[dict[str, Any]]:
    outcome = outcomes[f"recurrent.{name}"]
    assert "value" in outcome, outcome
    variants: list[dict[str, Any]] = outcome["value"]
    return variants


@pytest.mark.parametrize("name", SWEEPS)
def test_backward_raises_exactly_after_an_eval_forward_through_cudnn(name: str, outcomes: Any) -> None:
    variants = sweep(outcomes, name)
    assert len(variants) == SWEEPS[name]
    for variant in variants:
        must_raise = variant["kernels"] == "cudnn" and variant["mode"] == "eval"
        assert variant["error"] == (EVAL_ERROR if must_raise else None), variant
    assert {variant["error"] for variant in variants} == {EVAL_ERROR, None}


@pytest.mark.parametrize("name", SWEEPS)
def test_the_kernels_are_those_the_switches_ask_for(name: str, outcomes: Any, torch_under_test: Any) -> None:
    for variant in sweep(outcomes, name):
        # In torch 2.5 a bfloat16 layer takes the native kernels, while one under bfloat16 autocast takes cuDNN.
        is_old_bfloat16 = variant.get("dtype") == "bfloat16" and torch_under_test.release < (2, 6)
        assert variant["kernels"] == ("cudnn" if variant["cudnn"] and not is_old_bfloat16 else "native"), variant
