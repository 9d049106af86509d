"""The short markdown that MLflow shows as the description of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.model import Caveat, Device, Outcome, Plan, Record, Variant
from harness.quoting import code
from harness.results import Result

SUFFIXES = (
    "the name of every metric ends in the device it was observed on (`.cuda`, `.stub` or `.cpu`); the params "
    "`outcome`, `path` and `phase` are those of the one device that the param `device` names."
)

_LONGEST_MESSAGE = 1500


def run_note(plan: Plan, counts: Mapping[Device, Mapping[Outcome, int]]) -> str:
    """The run in a few lines: what was planned, what came of it on which device, what to know about it."""
    amount = "1 variant" if len(plan.variants) == 1 else f"{len(plan.variants):,} variants"
    lines = [f"**{amount}** of the matrix {_quoted(plan.matrix)}, run {_quoted(plan.run)}.", ""]
    if plan.description:
        lines += [_quoted(plan.description), ""]
    present = [outcome for outcome in Outcome if any(outcome in found for found in counts.values())]
    lines += ["| device | " + " | ".join(present) + " |", "|---|" + "---:|" * len(present)]
    for device, found in counts.items():
        lines.append(f"| {device} | " + " | ".join(f"{found.get(outcome, 0):,}" for outcome in present) + " |")
    if plan.command:
        lines += ["", f"Command: {_quoted(' '.join(plan.command))}"]
    lines += ["", *(f"- {caveat}" for caveat in Caveat.of_devices(plan.devices))]
    lines += ["", "The whole story is in the artifact `report.md`; one nested run per variant holds its evidence."]
    lines += [f"There, {SUFFIXES}"]
    return "\n".join(lines)


def variant_note(variant: Variant, recorded: Sequence[tuple[Result, Record]]) -> str:
    """What became of one variant on each device, with the error's message."""
    lines = [_quoted(variant.label), ""]
    for result, decisive in recorded:
        lines.append(f"- on **{result.device}**: {_fate(decisive)}")
        if not result.device.computes:
            lines.append(f"  - {Caveat.STUB_EVIDENCE}")
    lines += ["", f"Here, {SUFFIXES}"]
    return "\n".join(lines)


def _fate(record: Record) -> str:
    where = [str(record.phase)] if record.phase else []
    where += [f"epoch {record.epoch}"] if record.epoch is not None else []
    where += [f"step {record.step}"] if record.step is not None else []
    place = f" ({', '.join(where)})" if where and record.outcome is not Outcome.OK else ""
    path = f", path {record.path}" if record.path else ""
    said = record.error_message or record.reason
    message = f": {_quoted(f'{record.error_type}: {said}' if record.error_type else said)}" if said else ""
    return f"{record.outcome}{place}{path}{message}"


def _quoted(text: str) -> str:
    return code(text, _LONGEST_MESSAGE)
