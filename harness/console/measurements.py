"""What was measured of a variant, in lines that a person can read: blocks, the machine, the gradient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.measured import Exactness, MachineState, Sample
from harness.model import format_value
from harness.quoting import one_line
from harness.results import Result
from harness.statistics import Steadiness

DIGITS = 4
"""Significant digits of a measured number; the journal has all of them."""


SETTLED = {
    Steadiness.STEADY: "; the times are steady",
    Steadiness.DRIFTS: "; the times have not settled, or the machine was noisy",
    Steadiness.TOO_FEW: "; too few blocks to say whether the times have settled",
}


def measured_lines(result: Result) -> Iterator[str]:
    """What all attempts of one variant on one device say together; nothing where there is nothing to say."""
    step, sequences, first = result.step_ms, result.sequences_per_second, result.first_step_ms
    if step is not None:
        clock = {"device": " by CUDA events", "wall": " by the clock on the wall"}.get(result.step_clock or "", "")
        rate = f", {sequences:,.0f} sequences/s" if sequences is not None else ""
        settled = SETTLED[result.steadiness] if result.steadiness else ""
        yield f"  step           {number(step)} ms{clock}{rate}{settled}"
        parts = {part: result.part_ms(part) for part in ("forward", "backward", "optimizer")}
        told = ", ".join(f"{part} {number(ms)} ms" for part, ms in parts.items() if ms is not None)
        if told:
            yield f"  of it          {told}"
    if first is not None:
        yield f"  first step     {number(first)} ms"
    if result.gradient is not None:
        repeatable = {True: "repeatable", False: "not repeatable", None: "repeatability not tested"}
        gradient = result.gradient
        yield f"  gradient       {gradient.verdict}: {one_line(gradient.reason)}; {repeatable[gradient.repeatable]}"


def block_line(sample: Sample) -> str:
    """``epoch 3, steady: 19 steps in 50.03 ms, 2.633 ms each (forward ...); load 1.38``."""
    kind = "steady" if sample.steady else "warm-up" if sample.warmup else "in the epoch"
    seconds = sample.wall_s if sample.device_s is None else sample.device_s
    each = f", {number(1000 * seconds / sample.steps)} ms each" if sample.steps > 1 else ""
    wall = (
        ""
        if sample.device_s is None
        else f" on the device ({number(1000 * sample.wall_s)} ms by the clock on the wall)"
    )
    steps = "1 step" if sample.steps == 1 else f"{sample.steps} steps"
    parts = {"forward": sample.forward_s, "backward": sample.backward_s, "optimizer": sample.optimizer_s}
    told = ", ".join(f"{name} {number(1000 * part / sample.steps)}" for name, part in parts.items() if part is not None)
    said = f"epoch {sample.epoch}, {kind}: {steps} in {number(1000 * seconds)} ms{wall}{each}"
    return f"{said}{f' ({told})' if told else ''}{_machine(sample.machine)}"


def _machine(state: MachineState | None) -> str:
    if state is None:
        return ""
    words = {
        "load": (state.load, ""),
        "CPU": (state.cpu_mhz, " MHz"),
        "GPU": (state.sm_mhz, " MHz"),
        "at": (state.temperature_c, " °C"),
        "drawing": (state.power_w, " W"),
        "other processes on the GPU:": (state.foreign_processes, ""),
    }
    said = [f"{name} {number(value)}{unit}" for name, (value, unit) in words.items() if value is not None]
    said += [f"held down by {one_line(', '.join(state.throttled))}"] if state.throttled else []
    return f"; {', '.join(said)}" if said else ""


def exactness_lines(seen: Exactness) -> Iterator[str]:
    """Everything that was seen of one gradient, a line for each."""
    errors = {"weights": seen.gradient_error_weights, "input": seen.gradient_error_input}
    told = [f"{name} {value:.2g}" for name, value in errors.items() if value is not None]
    if told:
        within = f"; {seen.precision} explains up to {seen.tolerance:g}" if seen.tolerance is not None else ""
        yield f"relative error against float64 on the CPU: {', '.join(told)}{within}"
    if seen.not_comparable is not None:
        yield f"not comparable: {one_line(seen.not_comparable, 1000)}"
    for what, names in (
        ("wanted in train mode", seen.train_wanted),
        ("dropout active in", seen.active_dropout),
        ("dropout off in", seen.inactive_dropout),
        ("batch statistics used by", seen.batch_statistics),
        ("running statistics used by", seen.running_statistics),
        ("left changed", seen.changed),
    ):
        if names:
            yield f"{what}: {one_line(', '.join(names), 1000)}"
    if seen.outputs_equal_eval is not None:
        yield f"outputs {'are' if seen.outputs_equal_eval else 'are not'}, to the bit, those in eval mode"
    if seen.gradient_digest is not None:
        yield f"digest {one_line(seen.gradient_digest)}"


def number(value: float) -> str:
    """With as many digits as mean something, and whole where it is large."""
    return f"{value:,.0f}" if abs(value) >= 10 ** (DIGITS - 1) else format_value(float(f"{value:.{DIGITS}g}"))


def plain(value: Any) -> str:
    """A field of a record on one line; losses and seconds with the digits that a person compares."""
    return f"{value:.6g}" if isinstance(value, float) else one_line(format_value(value), 1000)
