"""What MLflow is told about a run and its variants, as plain values: names, params, metrics, tags, files.

A pure function of plan and records, so that a replay tells it exactly the same. Params and metrics are what MLflow's
Compare can use as axes, so the outcome, the device and the kernel path are params as well as tags. One child may hold
what several devices showed, so every metric's name ends in the device it was observed on.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.blocks import block_seconds
from harness.model import PROGRAM_SETTINGS, Device, Outcome, Plan, Record, Variant, format_value
from harness.results import Result, collect, count_outcomes, count_variants, decisive_first, results_of
from harness.store import notes
from harness.store.times import span_ms

CONTENT_SCHEME = 3
"""Version of what is told: when it changes, a replay replaces the children written before."""

RUN_TAG, KEY_TAG, KIND_TAG, DIGEST_TAG = "harness.run", "harness.key", "harness.kind", "harness.digest"
KIND_RUN, KIND_VARIANT = "run", "variant"
PARENT_TAG, NOTE_TAG = "mlflow.parentRunId", "mlflow.note.content"

LONGEST_TAG = 4000
LONGEST_PARAM = 500
MOST_POINTS = 2000
"""Points of one metric's history that are told; the journal has them all."""

STATUS = {
    Outcome.OK: "FINISHED",
    Outcome.TIMEOUT: "KILLED",
    Outcome.NOT_RUN: "KILLED",
    Outcome.SKIPPED: "KILLED",
}
"""MLflow's status of a child: KILLED is what was not allowed to end by itself; what is not named here is FAILED."""

Recorded = Sequence[tuple[Result, Record]]
"""The results of one variant that have a record, each with its decisive one; the device that decides comes first."""

FACT_PARAMS = ("outcome", "device", "path", "phase", "timed-on", "program", "dataset")


@dataclass(frozen=True, slots=True)
class Point:
    """One value of a metric; ``step`` orders its history, ``at_ms`` is in milliseconds since 1970."""

    name: str
    value: float
    at_ms: int
    step: int = 0


@dataclass(frozen=True, slots=True)
class Content:
    """All that one MLflow run holds."""

    name: str
    status: str
    started_ms: int
    ended_ms: int
    tags: Mapping[str, str]
    params: Mapping[str, str]
    metrics: tuple[Point, ...] = ()
    files: tuple[Path, ...] = field(default=())

    @property
    def digest(self) -> str:
        """The same for the same content."""
        plain = {"scheme": CONTENT_SCHEME, **asdict(self), "files": [str(path) for path in self.files]}
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]


def child_content(plan: Plan, variant: Variant, records: Sequence[Record]) -> Content:
    """What the child of ``variant`` holds; ``records`` are all it has on planned devices, at least one."""
    recorded = decisive_first(results_of(plan, variant, records))
    # When the attempts ran that count: a run that went on a week later has not taken a week for this variant.
    started, ended = span_ms((record for result, _ in recorded for record in result.records), plan.created)
    numbers = _numbers(recorded, ended)
    return Content(
        name=f"{variant.label} [{_devices(recorded)}]",
        status=STATUS.get(recorded[0][1].outcome, "FAILED"),
        started_ms=started,
        ended_ms=ended,
        tags=_clipped(_child_tags(plan, variant, recorded, len(records)), LONGEST_TAG),
        params=_clipped(_child_params(variant, recorded), LONGEST_PARAM),
        metrics=tuple(point for point in numbers if math.isfinite(point.value)),
        files=tuple(_files(recorded)),
    )


def axis_param(axis: str) -> str:
    """The param of ``axis``: its own name, unless a fact has it already."""
    return f"axis_{axis}" if axis in FACT_PARAMS else axis


def metric_name(name: str, device: Device) -> str:
    """The name of a metric that was observed on ``device``."""
    return f"{name}.{device}"


def _devices(recorded: Recorded) -> str:
    return "+".join(result.device for result, _ in recorded)


def _child_params(variant: Variant, recorded: Recorded) -> dict[str, str | None]:
    decisive = recorded[0][1]
    facts: dict[str, str | None] = {
        "outcome": decisive.outcome,
        "device": decisive.device,
        "path": decisive.path,
        "phase": decisive.phase,
        "timed-on": "+".join(result.device for result, _ in recorded if result.step_ms is not None) or None,
        "program": _text(decisive.results.get("program")),
        "dataset": _text(decisive.results.get("dataset")),
    }
    for result, _ in recorded:
        facts[f"outcome.{result.device}"] = result.outcome
        facts[f"gradient.{result.device}"] = result.gradient.verdict if result.gradient else None
    return {axis_param(axis): format_value(value) for axis, value in variant.axes.items()} | facts


def _child_tags(plan: Plan, variant: Variant, recorded: Recorded, attempts: int) -> dict[str, str | int | None]:
    decisive = recorded[0][1]
    tags: dict[str, str | int | None] = {
        RUN_TAG: plan.run,
        KEY_TAG: variant.key,
        KIND_TAG: KIND_VARIANT,
        "harness.label": variant.label,
        "harness.device": _devices(recorded),
        "harness.attempts": attempts,
        "harness.outcome": decisive.outcome,
        "harness.phase": decisive.phase,
        "harness.epoch": decisive.epoch,
        "harness.step": decisive.step,
        "harness.path": decisive.path,
        "harness.error_type": decisive.error_type,
        "harness.error": decisive.error_message,
        "harness.fingerprint": decisive.fingerprint,
        "harness.reason": decisive.reason,
        "harness.timeout": decisive.stall,
        "harness.dataset_reason": _text(decisive.results.get("dataset_reason")),
        "mlflow.source.name": "harness",
        "mlflow.source.type": "LOCAL",
        NOTE_TAG: notes.variant_note(variant, recorded),
    }
    for result, _ in recorded:
        tags[f"harness.outcome.{result.device}"] = result.outcome
        tags[f"harness.memory_source.{result.device}"] = _memory_source(result)
    return tags


def _memory_source(result: Result) -> str | None:
    """What the peak of a device that computes counts."""
    peak = result.peak_memory_bytes if result.device.computes else None
    found = (record for record in result.records if record.peak_memory_bytes == peak is not None)
    return next((record.memory_source for record in found), None)


def _numbers(recorded: Recorded, at_ms: int) -> Iterator[Point]:
    """All metrics: what was measured, on devices that compute only; then how far the attempt came on every device."""
    for result, decisive in recorded:
        if result.device.computes:
            for name, value in _measured(result, decisive):
                if value is not None:
                    yield Point(metric_name(name, result.device), float(value), at_ms)
            for name, step, value in _histories(decisive, timed=result.timed):
                yield Point(metric_name(name, result.device), value, at_ms, step)
    for result, decisive in recorded:
        for name, reached in (("epoch_reached", decisive.epoch), ("step_reached", decisive.step)):
            if reached is not None:
                yield Point(metric_name(name, result.device), float(reached), at_ms)


def _measured(result: Result, decisive: Record) -> Iterator[tuple[str, float | None]]:
    """The numbers of one device. MLflow's comparison offers the first that all variants have: speed leads."""
    yield "sequences_per_second", result.sequences_per_second
    yield "timesteps_per_second", result.timesteps_per_second
    yield "step_ms_median", result.step_ms
    yield "first_step_ms", result.first_step_ms
    yield "forward_ms", result.part_ms("forward")
    yield "backward_ms", result.part_ms("backward")
    yield "optimizer_ms", result.part_ms("optimizer")
    if result.gradient is not None:
        yield "gradient_error_weights", result.gradient.gradient_error_weights
        yield "gradient_error_input", result.gradient.gradient_error_input
    yield "first_loss", decisive.first_loss
    yield "last_loss", decisive.last_loss
    yield "peak_memory_bytes", result.peak_memory_bytes
    yield "attempt_s", result.attempt_s


def _histories(record: Record, *, timed: bool) -> Iterator[tuple[str, int, float]]:
    """Name, step and value of what is told over time: block times, and the losses that a seed program reported."""
    if timed:
        for name, warmup in (("step_ms", False), ("step_ms_warmup", True)):
            for number, seconds in enumerate(block_seconds(record, warmup=warmup), start=1):
                yield name, number, 1000 * seconds
    losses = record.results.get("step_losses")
    for number, loss in enumerate(losses[:MOST_POINTS] if isinstance(losses, list) else (), start=1):
        if isinstance(loss, int | float):
            yield "step_loss", number, float(loss)
    epochs = record.results.get("epochs")
    for number, epoch in enumerate(epochs if isinstance(epochs, list) else (), start=1):
        yield from _epoch_history(epoch, number)


def _epoch_history(epoch: Any, number: int) -> Iterator[tuple[str, int, float]]:
    if isinstance(epoch, Mapping):
        step = epoch.get("epoch", number)
        for name, value in epoch.items():
            if name != "epoch" and isinstance(value, int | float) and isinstance(step, int):
                yield str(name), step, float(value)


def _files(recorded: Recorded) -> Iterator[Path]:
    """The plot and the checkpoint that a seed program left, as far as they are still there."""
    for _, decisive in recorded:
        for name in ("plot", "checkpoint"):
            path = decisive.results.get(name)
            if isinstance(path, str) and Path(path).is_file():
                yield Path(path)


def parent_content(plan: Plan, records: Sequence[Record], *, status: str) -> Content:
    """What the parent of the run holds. Its metrics are the counts per outcome; their step is the number of records.

    MLflow shows the value of the highest step, so a resumed run's counts replace the earlier ones.
    """
    results = collect(plan, records).results
    on_device = count_outcomes(plan, results)
    counts = {str(outcome): n for outcome, n in count_variants(results).items()}
    counts |= {f"{outcome}.{device}": n for device, found in on_device.items() for outcome, n in found.items()}
    started, ended = span_ms(records, plan.created)
    return Content(
        name=f"{plan.matrix} {plan.run}",
        status=status,
        started_ms=min(started, span_ms((), plan.created)[0]),
        ended_ms=ended,
        tags=_clipped(_parent_tags(plan) | {NOTE_TAG: notes.run_note(plan, on_device)}, LONGEST_TAG),
        params=_clipped(_parent_params(plan), LONGEST_PARAM),
        metrics=tuple(Point(f"outcome.{name}", count, ended, len(records)) for name, count in sorted(counts.items())),
    )


def _parent_tags(plan: Plan) -> dict[str, str | int | None]:
    facts = dict(flat(plan.environment))
    commit = next((facts[name] for name in ("git_commit", "git.commit", "commit") if facts.get(name)), None)
    return {
        RUN_TAG: plan.run,
        KIND_TAG: KIND_RUN,
        "harness.matrix": plan.matrix,
        "harness.device": "+".join(plan.devices),
        "harness.command": " ".join(plan.command) or None,
        "harness.selection": plan.selection or None,
        "harness.stub": "true" if Device.STUB in plan.devices else None,
        "mlflow.source.git.commit": commit,
        "mlflow.source.name": " ".join(plan.command[:3]) or "harness",
        "mlflow.source.type": "LOCAL",
    }


def _parent_params(plan: Plan) -> dict[str, str | None]:
    settings = {
        f"settings.{name}": format_value(value)
        for name, value in asdict(plan.settings).items()
        if name in PROGRAM_SETTINGS or not plan.is_program
    }
    environment = {f"environment.{name}": value for name, value in flat(plan.environment)}
    return {
        "matrix": plan.matrix,
        "device": "+".join(plan.devices),
        "variants": str(len(plan.variants)),
        "exclusions": str(len(plan.exclusions)),
        "command": " ".join(plan.command) or None,
        **settings,
        **environment,
    }


def flat(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested facts as ``outer.inner`` and text, without the absent ones; keys are made of what MLflow allows."""
    for name, value in facts.items():
        key = prefix + "".join(letter if letter.isalnum() or letter in "_-. /" else "_" for letter in str(name))
        if isinstance(value, Mapping):
            yield from flat(value, f"{key}.")
        elif isinstance(value, list | tuple):
            yield key, ", ".join(str(item) for item in value)
        elif value is not None:
            yield key, format_value(value) if isinstance(value, str | int | float) else str(value)


def _clipped(values: Mapping[str, str | int | None], limit: int) -> dict[str, str]:
    """``values`` as text of at most ``limit`` characters; the absent ones are left out."""
    texts = {name: str(value) for name, value in values.items() if value is not None}
    return {name: text if len(text) <= limit else f"{text[: limit - 1]}…" for name, text in texts.items()}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
