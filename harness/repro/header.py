"""The comment at the top of a script: what it shows, and what was seen where."""

from __future__ import annotations

from collections.abc import Iterable

from harness.model import Device, Outcome, Record
from harness.placements import Placement
from harness.quoting import one_line
from harness.repro.case import Case

NOT_SEEN = "Nobody has run this variant here yet: what it does is not known from a record."

_WHERE = {
    Device.CUDA: "a GPU",
    Device.STUB: "a stub (PyTorch's own CUDA code with no GPU behind it; kernels do nothing, so that only "
    "PyTorch's own checks are real)",
    Device.CPU: "a CPU, where no forward takes the cuDNN path",
}


def header(case: Case, placement: Placement, device: str) -> Iterable[str]:
    """Paragraphs: the placement in words, what every record says, and the variant's name."""
    yield f"{placement.name}: {placement.summary}."
    yield ""
    if not case.records:
        yield NOT_SEEN
    for record in case.records:
        yield f"Seen on {_WHERE[record.device]}, {_versions(record)}: {_ending(record)}"
    if device == "cuda":
        yield "Without a GPU: `harness stub run -- python repro.py` runs it on the stub."
    yield ""
    yield f"{case.origin}, variant {case.variant.key}: {case.variant.label.replace(',', ', ')}"


def _versions(record: Record) -> str:
    """``NVIDIA H200, torch 2.14.1+cu130, cuDNN 9.24.0``, as far as the record knows."""
    facts = record.facts
    words = [str(facts["device_name"])] if facts.get("device_name") and record.device is not Device.STUB else []
    words += [f"torch {facts['torch']}"] if facts.get("torch") else ["an unknown version of torch"]
    words += [f"cuDNN {cudnn_version(facts['cudnn'])}"] if facts.get("cudnn") else []
    return one_line(", ".join(words))


def cudnn_version(number: object) -> str:
    """cuDNN's version as people write it; it counts major releases in ten thousands, and did in thousands before 9."""
    if not isinstance(number, int):
        return str(number)
    major, rest = divmod(number, 10_000 if number >= 90_000 else 1_000)
    return f"{major}.{rest // 100}.{rest % 100}"


def _ending(record: Record) -> str:
    if record.outcome is Outcome.OK:
        return "ok, no error."
    what = f"{record.error_type}: {record.error_message}" if record.error_type else record.reason or ""
    where = f" in {record.phase}" if record.phase else ""
    where += f", epoch {record.epoch}" if record.epoch else ""
    where += f", step {record.step}" if record.step else ""
    return f"{record.outcome}{where}: {one_line(what)}"
