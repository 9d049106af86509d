"""The variants of a run that take the same train step: what a throughput by cell is read from."""

from __future__ import annotations

from harness.model import Device, KernelPath
from harness.placements import PLACEMENTS
from harness.report.evidence import Evidence
from harness.report.fixes import BASELINES, does_the_same
from harness.results import Result

Kind = tuple[str, str, KernelPath]
"""A cell with its direction, the cuDNN flag, and the path that was seen."""


def train_steps(evidence: Evidence, device: Device) -> dict[Kind, list[Result]]:
    """The timed variants of ``device`` whose placement does a plain train step, by kind, in the order of the plan.

    What raises on some device of the run is not among them: nobody can train with it.
    """
    groups: dict[Kind, list[Result]] = {}
    for result in evidence.results_on(device):
        paths = {record.path for record in result.records}
        if result.timed and result.key not in evidence.raising_keys and _is_train_step(result) and len(paths) == 1:
            path = paths.pop()
            if path is not None:
                flag = str(result.variant.axes.get("cudnn", "on"))
                groups.setdefault((_cell(result), flag, path), []).append(result)
    return groups


def _is_train_step(result: Result) -> bool:
    placement = PLACEMENTS.get(str(result.variant.axes.get("placement")))
    return placement is not None and (placement.name in BASELINES or does_the_same(placement))


def _cell(result: Result) -> str:
    both = result.variant.axes.get("bidirectional")
    return f"{result.variant.axes.get('cell', 'rnn')}{', bidirectional' if both is True else ''}"
