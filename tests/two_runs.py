"""A run and the same run again, to be compared."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from builders import make_plan
from fake_machine import FakeMachine, one_more, replicated

from harness.model import Device, Plan, Record
from harness.report.compare import Comparison, Rules, compare
from harness.report.compare.transitions import Change

GPU = replicated(make_plan(devices=(Device.CUDA,), placements=("train-always",), cells=("lstm", "gru")), 15)
MIXED = replicated(make_plan(placements=("train-always", "eval-always", "eval-after-epoch", "eval-no-grad")), 6)


def compared(a: list[Record], b: list[Record], plan: Plan = MIXED, **changes: Any) -> Comparison:
    again = one_more(plan, **changes)
    return compare((plan, a), (again, [replace(record, run=again.run) for record in b]), Rules())


def alike(plan: Plan = MIXED, seed: int = 1, **faults: float) -> tuple[list[Record], list[Record]]:
    machine = FakeMachine(seed, **faults)  # type: ignore[arg-type]
    return machine.run(plan), machine.run(plan)


def kinds(comparison: Comparison) -> Counter[Change]:
    return Counter(transition.change for transition in comparison.transitions)


def with_facts(records: list[Record], **facts: Any) -> list[Record]:
    return [replace(record, facts={**record.facts, **facts}) for record in records]
