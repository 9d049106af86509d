"""A comparison as JSON: everything in it, what is absent as null, nothing that is not a number as one."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from typing import Any

from harness.report.compare import Comparison
from harness.report.compare.sides import Side
from harness.report.compare.timings import Cell
from harness.report.compare.words import caveats, sentences


def to_json(comparison: Comparison) -> str:
    """The whole comparison as one object."""
    content = {
        "a": _side(comparison.a),
        "b": _side(comparison.b),
        "threshold": comparison.rules.threshold,
        "summary": sentences(comparison),
        "caveats": caveats(comparison),
        "differences": [asdict(difference) for difference in comparison.differences],
        "machine": [asdict(row) for row in comparison.machine],
        "transition_counts": dict(Counter(transition.change.value for transition in comparison.transitions)),
        "transitions": [asdict(transition) for transition in comparison.transitions],
        "common_shifts": {device.value: asdict(shift) for device, shift in comparison.timings.common.items()},
        "verdict_counts": dict(Counter(cell.verdict.value for cell in comparison.timings.cells)),
        "timings": [_cell(cell) for cell in comparison.timings.cells],
    }
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _side(side: Side) -> dict[str, Any]:
    return {
        "run": side.plan.run,
        "matrix": side.plan.matrix,
        "created": side.plan.created,
        "variants": len(side.plan.variants),
        "records": sum(len(result.records) for result in side.results),
        "strays": side.strays,
    }


def _cell(cell: Cell) -> dict[str, Any]:
    """``ratio`` is time of b over time of a, with its interval; ``needs`` the factor that a change has to reach."""
    numbers = dict.fromkeys(("ratio", "low", "high", "p", "q", "needs"))
    if cell.judged is not None:
        numbers = {name: getattr(cell.judged, name) for name in numbers}
    return {
        "key": cell.key,
        "label": cell.label,
        "device": cell.device.value,
        "verdict": cell.verdict.value,
        "reason": cell.reason or None,
        "step_seconds_a": cell.a or None,
        "step_seconds_b": cell.b or None,
        **numbers,
        "notes": cell.notes,
    }
