"""A small plan and records of every kind, for the tests of the store."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from builders import MESSAGE

from harness.model import Device, KernelPath, Outcome, Phase, Plan, Record, Sample, Settings, Variant

RUN = "20250131-093000-aaaaa"


def variant(cell: str = "lstm", placement: str = "eval-always", cudnn: str = "on", **more: Any) -> Variant:
    axes = {"cell": cell, "bidirectional": True, "cudnn": cudnn, "placement": placement, "layers": 2, **more}
    return Variant(axes, f"cell={cell},bidirectional=true,cudnn={cudnn},placement={placement}")


RAISES, FINE, HANGS = variant(), variant(cudnn="off"), variant(cell="gru", placement="train-always")

PLAN = Plan(
    run=RUN,
    matrix="quick",
    description="A | `small` one",
    created="2025-01-31T09:30:00+00:00",
    devices=(Device.STUB, Device.CPU),
    settings=Settings(),
    variants=(RAISES, FINE, HANGS),
    command=("harness", "run", "matrix", "quick"),
    environment={"torch": "2.9", "git_commit": "0123abc", "cuda": {"version": None, "devices": ["a", "b"]}},
)


def stub_record(of: Variant, outcome: Outcome = Outcome.OK, **more: Any) -> Record:
    record = Record(
        RUN, of.key, of.label, Device.STUB, outcome, phase=Phase.BACKWARD, epoch=2, step=1, path=KernelPath.CUDNN,
        started="2025-01-31T09:30:01.500+00:00", wall_s=0.25, **more,
    )  # fmt: skip
    if outcome is Outcome.BACKWARD_ERROR:
        return replace(record, error_type="RuntimeError", error_message=MESSAGE, fingerprint="f00")
    return record


def cpu_record(of: Variant, outcome: Outcome = Outcome.OK, seconds: float = 0.5, **more: Any) -> Record:
    values: dict[str, Any] = {
        "phase": Phase.EVALUATE, "epoch": 3, "step": 6, "path": KernelPath.MKLDNN, "first_loss": 2.5, "last_loss": 1.5,
        "started": "2025-01-31T09:30:02+00:00", "wall_s": 4.0, "sequences_per_step": 16, "timesteps_per_step": 320,
        "peak_memory_bytes": 1000, "memory_source": "process RSS", "first_step_s": 0.75,
        "samples": (
            Sample(1, 5, 5 * 9 * seconds, warmup=True), Sample(2, 6, 6 * seconds), Sample(3, 6, 6 * 2 * seconds),
            Sample(3, 6, 6 * seconds),
        ),
    }  # fmt: skip
    return Record(RUN, of.key, of.label, Device.CPU, outcome, **(values | more))


def records() -> Iterator[Record]:
    yield stub_record(RAISES, Outcome.BACKWARD_ERROR)
    yield cpu_record(RAISES)
    yield stub_record(FINE)
    yield cpu_record(FINE, last_loss=float("nan"))
    yield stub_record(HANGS, Outcome.TIMEOUT, reason="no sign of life")
    yield cpu_record(HANGS, Outcome.CRASH, signal="SIGSEGV")


RECORDS = tuple(records())
