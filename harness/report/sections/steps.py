"""What a train step takes: throughput, the whole step, its parts, and the very first one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from harness.model import Device
from harness.report import text
from harness.report.evidence import Evidence
from harness.report.steps import Kind, train_steps
from harness.results import Result
from harness.statistics import median

NUMBERS: dict[str, Callable[[Result], float | None]] = {
    "sequences/s": lambda result: result.sequences_per_second,
    "time steps/s": lambda result: result.timesteps_per_second,
    "step, ms": lambda result: result.step_ms,
    "forward": lambda result: result.part_ms("forward"),
    "backward": lambda result: result.part_ms("backward"),
    "optimizer": lambda result: result.part_ms("optimizer"),
    "first step, ms": lambda result: result.first_step_ms,
}


def step_table(evidence: Evidence, device: Device) -> str:
    """One row per cell, direction, cuDNN flag and path; empty where no plain train step was timed."""
    groups = train_steps(evidence, device)
    if not groups:
        return ""
    rows = [_row(device, *each) for each in groups.items()]
    return "\n\n".join((_caption(evidence, device), text.table(pd.DataFrame(rows))))


def _row(device: Device, kind: Kind, results: Sequence[Result]) -> dict[str, str]:
    cell, flag, path = kind
    attempts = sum(result.attempts for result in results)
    return {
        f"train step ({device})": text.plain(cell),
        "path": path.value,
        "cuDNN": text.plain(flag),
        **{name: text.number(median(map(read, results))) for name, read in NUMBERS.items()},
        "variants": f"{len(results):,}",
        "attempts": f"{attempts:,}",
    }


def _caption(evidence: Evidence, device: Device) -> str:
    pooled = [name for name in evidence.varying if name not in ("cell", "bidirectional", "cudnn")]
    over = f" ({text.listed(f'`{name}`' for name in pooled)} taken together)" if pooled else ""
    return (
        f"What a plain train step takes on `{device}`, by the placements whose steps do the same work (at most they "
        f"switch modes besides): medians over attempts, then over variants{over}. Forward, backward and optimizer are "
        "in ms. The very first step pays for what is set up only once."
    )
