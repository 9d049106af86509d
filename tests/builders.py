"""Plans and records that look like real ones: what the rule says, plus whatever fault a test asks for."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from harness.matrix.axes import make_variant
from harness.measured import Exactness
from harness.model import (
    Device,
    Exclusion,
    KernelPath,
    Outcome,
    Phase,
    Plan,
    Record,
    Sample,
    Settings,
    Sighting,
    Value,
    Variant,
    Wants,
)
from harness.placements import PLACEMENTS, Around, Second

RUN = "20260301-101500-matrix"
CELLS = ("rnn-tanh", "rnn-relu", "lstm", "gru")
MESSAGE = "cudnn RNN backward can only be called in training mode"
NO_GRAPH = "element 0 of tensors does not require grad and does not have a grad_fn"
HOSTILE = (
    "=cmd|' /C calc'!A0 | pipe `tick` ``two`` <script>alert(1)</script> <!-- \\| [x](http://evil.example) **b** _i_\n"
    "# heading\n| a | b |\n|---|---|\n```\nfence\x1b[31m\x00\u202e end\\"
)
RAISED_AT = {"eval-after-epoch": (2, 1), "eval-by-helper": (1, 4), "inner-loop-in-eval": (1, 2)}
STEP_SECONDS = {"rnn-tanh": 0.0021, "rnn-relu": 0.0022, "lstm": 0.0064, "gru": 0.0058}

HOST = {"python": "3.11.9", "torch": "2.14.1", "cpu": "Imaginary 8-Core", "threads": 2}
GPU = {"capability": "9.0", "cuda": "13.0", "cudnn": 91900, "tf32": True, "deterministic": False, "benchmark": False}
FACTS: dict[Device, dict[str, Any]] = {
    Device.CPU: HOST | {"device_name": "Imaginary 8-Core"},
    Device.STUB: HOST | GPU | {"device_name": "harness stub (no GPU)"},
    Device.CUDA: HOST | GPU | {"device_name": "NVIDIA H200", "driver": "580.10"},
}


def make_plan(
    *,
    devices: Sequence[Device] = (Device.STUB, Device.CPU),
    placements: Iterable[str] = PLACEMENTS,
    cells: Iterable[str] = CELLS,
    directions: Iterable[bool] = (False, True),
    flags: Iterable[str] = ("on", "off"),
    fixed: dict[str, Value] | None = None,
    **changes: Any,
) -> Plan:
    cells, directions, flags = tuple(cells), tuple(directions), tuple(flags)
    axes: list[dict[str, Value]] = [
        {"cell": cell, "bidirectional": both, "cudnn": flag, "placement": placement, "layers": 2, "dropout": 0.2}
        for placement in placements
        for cell in cells
        for both in directions
        for flag in flags
    ]
    plan = Plan(
        run=RUN,
        matrix="matrix",
        description="Every cell and direction, cuDNN on and off, under all placements.",
        created="2026-03-01T10:15:00+00:00",
        devices=tuple(devices),
        settings=Settings(),
        variants=tuple(make_variant(a | (fixed or {})) for a in axes),
        exclusions=(
            Exclusion("cell=gru,proj-size=8", "a projection (proj_size) exists for the LSTM only"),
            Exclusion("cell=rnn-tanh,proj-size=8", "a projection (proj_size) exists for the LSTM only"),
        ),
        command=("harness", "run", "matrix"),
        environment={
            "harness": "0.1.0",
            "system": "Linux x86_64",
            "cores": 2,
            "git_commit": "0123abc",
            "git_dirty": False,
        },
    )
    return replace(plan, **changes)


def sightings_of(variant: Variant, path: KernelPath) -> tuple[Sighting, ...]:
    """What an attempt at ``variant`` sees; written out here, so that it shares no code with the report."""
    placement = PLACEMENTS[str(variant["placement"])]
    if placement.around_forward is Around.NO_GRAD:
        return (Sighting(1, 1, False, None, False),)
    if placement.second is not None:
        reached = placement.second is Second.SPLICED
        return (Sighting(1, 1, False, path, reached, "kept"), Sighting(1, 1, True, path, True))
    if placement.name == "eval-cudnn-off-forward" or placement.cudnn_off_process:
        return (Sighting(1, 1, False, KernelPath.NATIVE, True),)
    if placement.raises:
        epoch, step = RAISED_AT.get(placement.name, (1, 1))
        early = () if (epoch, step) == (1, 1) else (Sighting(1, 1, True, path, True),)
        return (*early, Sighting(epoch, step, False, path, True))
    return (Sighting(1, 1, True, path, True),)


def path_of(variant: Variant, device: Device) -> KernelPath:
    if device is Device.CPU:
        return KernelPath.MKLDNN if variant["cell"] == "lstm" else KernelPath.NATIVE
    return KernelPath.CUDNN if variant["cudnn"] == "on" else KernelPath.NATIVE


def make_record(plan: Plan, variant: Variant, device: Device, replicate: int = 0, attempt: int = 1) -> Record:
    """The record of an attempt that went as the rule says."""
    sightings = sightings_of(variant, path_of(variant, device))
    record = Record(
        run=plan.run,
        key=variant.key,
        label=variant.label,
        device=device,
        outcome=Outcome.OK,
        replicate=replicate,
        attempt=attempt,
        phase=Phase.EVALUATE,
        epoch=3,
        step=2,
        sightings=sightings,
        path=sightings[-1].path,
        facts=FACTS[device],
        wall_s=0.25,
        peak_memory_bytes=300 << 20,
        memory_source="stub allocator accounting, without cuDNN's workspaces" if device is Device.STUB else "allocator",
    )
    if PLACEMENTS[str(variant["placement"])].around_forward is Around.NO_GRAD:
        return fail(record, Outcome.ERROR, NO_GRAPH)
    if any(s.path is KernelPath.CUDNN and not s.training and s.gradient_reached for s in sightings):
        epoch, step = RAISED_AT.get(str(variant["placement"]), (1, 1))
        return replace(fail(record, Outcome.BACKWARD_ERROR, MESSAGE), epoch=epoch, step=step)
    return with_numbers(record, variant) if device is not Device.STUB else record


def with_numbers(record: Record, variant: Variant, slower: float = 1.0) -> Record:
    noise = random.Random(f"{record.key}/{record.device}/{record.replicate}")
    seconds = STEP_SECONDS[str(variant["cell"])] * (1.8 if variant["bidirectional"] else 1.0) * slower
    if record.device is Device.CUDA:
        seconds *= 0.2 if record.path is KernelPath.CUDNN else 0.9
    samples = [
        Sample(
            epoch=epoch,
            steps=6,
            wall_s=6 * seconds * noise.uniform(0.97, 1.05) * (4 if epoch == 1 else 1),
            device_s=6 * seconds * noise.uniform(0.96, 1.0) if record.device is Device.CUDA else None,
            warmup=epoch == 1,
        )
        for epoch in (1, 2, 3)
    ]
    samples = [with_parts(sample) for sample in samples]
    return replace(
        record,
        samples=tuple(samples),
        first_step_s=20 * seconds,
        sequences_per_step=16,
        timesteps_per_step=384,
        first_loss=2.31,
        last_loss=2.27,
        losses_digest="ab" * 8,
        weights_digest="cd" * 8,
        exactness=exactness_of(variant, record.device),
    )


def with_parts(sample: Sample) -> Sample:
    """``sample`` with three parts of its time forward, six backward, one for the optimizer."""
    seconds = sample.wall_s if sample.device_s is None else sample.device_s
    return replace(sample, forward_s=0.3 * seconds, backward_s=0.6 * seconds, optimizer_s=0.1 * seconds)


def exactness_of(variant: Variant, device: Device) -> Exactness:
    """What is seen of the gradient where dropout is all that can go wrong."""
    placement = PLACEMENTS[str(variant["placement"])]
    on = sightings_of(variant, KernelPath.NATIVE)[-1].training and placement.name != "rnn-train-dropout-zero"
    drops, trains = ("rnn", "dropout") if variant["dropout"] else (), placement.wants is Wants.TRAIN
    tf32 = device is Device.CUDA and variant["cudnn"] == "on"
    seen = Exactness(
        precision="tf32" if tf32 else "float32",
        tolerance=5e-2 if tf32 else 1e-4,
        outputs_equal_eval=not (on and drops),
        gradient_digest="ef" * 8,
        train_wanted=("rnn", "dropout") if trains else (),
        active_dropout=drops if on else (),
        inactive_dropout=() if on else drops,
        changed=("rnn.training",) if on and not trains else (),
    )
    if trains and drops:
        return replace(seen, not_comparable="dropout is random in the gradient that is wanted")
    wrong = on and drops
    return replace(seen, gradient_error_weights=0.05 if wrong else 1e-7, gradient_error_input=0.6 if wrong else 3e-7)


def fail(record: Record, outcome: Outcome, message: str, kind: str = "RuntimeError") -> Record:
    """``record``, ended by an exception at its first backward."""
    return replace(
        record,
        outcome=outcome,
        phase=Phase.BACKWARD,
        epoch=1,
        step=1,
        error_type=kind,
        error_message=message,
        fingerprint=hashlib.sha256(message.encode()).hexdigest()[:8],
        samples=(),
        first_loss=None,
        last_loss=None,
    )


def die(record: Record, outcome: Outcome, reason: str) -> Record:
    """``record`` as the supervisor writes it for a process that left none."""
    bare = Record(record.run, record.key, record.label, record.device, outcome, record.replicate, record.attempt)
    return replace(bare, phase=Phase.FORWARD, epoch=1, step=3, reason=reason, wall_s=60.0)


def make_records(plan: Plan) -> list[Record]:
    """One record per replicate of everything planned, each as the rule says."""
    return [
        make_record(plan, variant, device, replicate)
        for variant in plan.variants
        for device in plan.devices
        for replicate in range(plan.replicates_on(device))
    ]


def spoil(records: list[Record]) -> list[Record]:
    """``records`` with one of each thing that goes wrong in real life, at fixed places."""
    spoilt = list(records)
    stub = [i for i, r in enumerate(spoilt) if r.device is not Device.CPU and r.outcome is Outcome.OK]
    cpu = [i for i, r in enumerate(spoilt) if r.device is Device.CPU and r.outcome is Outcome.OK]
    spoilt[stub[0]] = fail(
        spoilt[stub[0]], Outcome.OOM, "CUDA out of memory. Tried to allocate 2.00 GiB.", "OutOfMemory"
    )
    spoilt[stub[1]] = die(spoilt[stub[1]], Outcome.TIMEOUT, "still running after its deadline of 60 s")
    spoilt[stub[2]] = die(spoilt[stub[2]], Outcome.CRASH, "ended by SIGSEGV; it left no record")
    spoilt[stub[3]] = fail(spoilt[stub[3]], Outcome.ERROR, HOSTILE, "evil|`Error`")
    spoilt[cpu[0]] = replace(spoilt[cpu[0]], last_loss=float("nan"))
    spoilt[cpu[1]] = replace(die(spoilt[cpu[1]], Outcome.NOT_RUN, "interrupted"), phase=None, epoch=None, step=None)
    spoilt[cpu[2]] = replace(spoilt[cpu[2]], attempt=2, facts=FACTS[Device.CPU] | {"threads": 1})
    spoilt.append(die(spoilt[cpu[2]], Outcome.CRASH, "ended by SIGKILL"))
    spoilt[-1] = replace(spoilt[-1], attempt=1)
    del spoilt[stub[4]]
    return spoilt
