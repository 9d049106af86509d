"""The short markdown that MLflow shows as the description of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.model import Caveat, Device, Outcome, Plan, Record, Variant
from harness.store.evidence import OnDevice

_LONGEST_MESSAGE = 1500


def run_note(plan: Plan, counts: Mapping[str, int]) -> str:
    """The run in a few lines: what was planned, what came of it on which device, what to know about it."""
    lines = [f"**{len(plan.variants):,} variants** of the matrix {fenced(plan.matrix)}, run {fenced(plan.run)}.", ""]
    if plan.description:
        lines += [fenced(" ".join(plan.description.split())), ""]
    lines += ["| device | " + " | ".join(_present(counts)) + " |", "|---|" + "---:|" * len(_present(counts))]
    for device in plan.devices:
        cells = [f"{counts.get(f'{outcome}.{device}', 0):,}" for outcome in _present(counts)]
        lines.append(f"| {device} | " + " | ".join(cells) + " |")
    if plan.command:
        lines += ["", f"Command: {fenced(' '.join(plan.command))}"]
    lines += ["", *(f"- {caveat}" for caveat in _caveats(plan))]
    lines += ["", "The whole story is in the artifact `report.md`; one nested run per variant holds its evidence."]
    return "\n".join(lines)


def variant_note(variant: Variant, devices: tuple[OnDevice, ...]) -> str:
    """What became of one variant on each device, with the error's message."""
    lines = [fenced(variant.label), ""]
    for evidence in devices:
        lines.append(f"- on **{evidence.device}**: {_fate(evidence.decisive)}")
        if not evidence.device.computes:
            lines.append(f"  - {Caveat.STUB_EVIDENCE}")
    return "\n".join(lines)


def fenced(text: str) -> str:
    """``text`` as a code span that it cannot leave."""
    line = " ".join(text.split())[:_LONGEST_MESSAGE] or " "
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    pad = " " if "`" in line else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def _present(counts: Mapping[str, int]) -> list[Outcome]:
    return [outcome for outcome in Outcome if any(name.startswith(f"{outcome}.") for name in counts)]


def _caveats(plan: Plan) -> list[Caveat]:
    caveats = []
    if Device.STUB in plan.devices:
        caveats.append(Caveat.STUB_EVIDENCE)
    if Device.CPU in plan.devices:
        caveats.append(Caveat.CPU_CANNOT_RAISE)
    return caveats


def _fate(record: Record) -> str:
    where = [str(record.phase)] if record.phase else []
    where += [f"epoch {record.epoch}"] if record.epoch is not None else []
    where += [f"step {record.step}"] if record.step is not None else []
    place = f" ({', '.join(where)})" if where and record.outcome is not Outcome.OK else ""
    path = f", path {record.path}" if record.path else ""
    said = record.error_message or record.reason
    message = f": {fenced(f'{record.error_type}: {said}' if record.error_type else said)}" if said else ""
    return f"{record.outcome}{place}{path}{message}"
