"""What cuDNN is worth: throughput with it on and off, of variants that differ in nothing else and are both ok."""

from __future__ import annotations

import pandas as pd

from harness.model import Device, KernelPath, Outcome
from harness.report import text
from harness.report.evidence import Evidence
from harness.report.sections.steps import step_table

SPEED = "sequences_per_second"
NOISY = 1.3
"""Where one pair in ten of equal work differs by more than this factor, the machine was not quiet."""


def pairs(evidence: Evidence, device: Device) -> pd.DataFrame:
    """Variants of ``device`` that differ in ``cudnn`` alone, one row per pair, with the ratio of their throughputs.

    Both sides are ``ok`` there and neither raises on any device of the run: what cannot be trained has no price.
    Where cuDNN can run, the flag alone is not believed: one side took the cuDNN path and the other did not.
    """
    rows = evidence.on(device)
    usable = rows[
        (rows["outcome"] == Outcome.OK.value) & rows[SPEED].notna() & ~rows["key"].isin(evidence.raising_keys)
    ]
    if usable.empty or "cudnn" not in usable or not device.computes:
        return pd.DataFrame()
    same = [name for name in evidence.varying if name != "cudnn"] or ["device"]
    on, off = (usable[usable["cudnn"] == flag] for flag in ("on", "off"))
    if device is not Device.CPU:
        on = on[on["path"] == KernelPath.CUDNN.value]
        off = off[off["path"] != KernelPath.CUDNN.value]
    # Of axes that not every variant has, the absent value pairs with itself: merge takes NA for equal to NA.
    both = on.merge(off[[*same, SPEED, "attempts"]], on=same, suffixes=("_on", "_off"))
    return both.assign(ratio=both[f"{SPEED}_on"] / both[f"{SPEED}_off"])


def throughput(evidence: Evidence) -> str:
    """One table per device that computes; a sentence where there is nothing to compare. A program is not timed."""
    if evidence.plan.is_program:
        return ""
    parts = ["## Throughput"]
    for device in (device for device in evidence.plan.devices if device.computes):
        parts += [evidence.picture("throughput", device), step_table(evidence, device), _of_device(evidence, device)]
    if Device.STUB in evidence.plan.devices:
        parts.append("There is no throughput for `stub`: its kernels do nothing.")
    return "\n\n".join(part for part in parts if part)


def _of_device(evidence: Evidence, device: Device) -> str:
    paired = pairs(evidence, device)
    if paired.empty:
        return (
            f"On `{device}`, no two variants that differ in `cudnn` alone are both `ok` and timed: nothing to compare."
        )
    by = [name for name in ("cell", "bidirectional") if name in paired]
    for name in by:  # in the order of the plan, whichever variants found a partner
        paired[name] = pd.Categorical(paired[name], categories=evidence.frame[name].unique())
    groups = paired.groupby(by, observed=True) if by else [((), paired)]
    rows = [_row(device, by, place, group) for place, group in groups]
    return "\n\n".join((_caption(evidence, device, paired), text.table(pd.DataFrame(rows))))


def _row(device: Device, by: list[str], place: object, group: pd.DataFrame) -> dict[str, str]:
    values = place if isinstance(place, tuple) else (place,)
    shown = {name: text.plain(str(value)) for name, value in zip(by, values, strict=True)}
    direction = shown.pop("bidirectional", None)
    if direction is not None:
        shown["direction"] = {"true": "bidirectional", "false": "unidirectional"}.get(direction, direction)
    ratio, attempts = group["ratio"], group[["attempts_on", "attempts_off"]]
    fewest, most = int(attempts.min().min()), int(attempts.max().max())
    return {
        **shown,
        f"cuDNN on, sequences/s ({device})": text.number(float(group[f"{SPEED}_on"].median())),
        f"cuDNN off, sequences/s ({device})": text.number(float(group[f"{SPEED}_off"].median())),
        "on / off": f"{ratio.median():.2f}x",
        "smallest to largest": f"{ratio.min():.2f} to {ratio.max():.2f}" if len(ratio) > 1 else "",
        "pairs": f"{len(group):,}",
        "attempts per variant": f"{fewest}" if fewest == most else f"{fewest} to {most}",
    }


def _caption(evidence: Evidence, device: Device, paired: pd.DataFrame) -> str:
    pooled = [name for name in evidence.varying if name not in ("cell", "bidirectional", "cudnn")]
    over = f", medians over {text.listed(f'`{name}`' for name in pooled)}" if pooled else ""
    first = (
        f"On `{device}`: {text.count(len(paired), 'pair')} of variants that differ in `cudnn` alone, both `ok`{over}. "
        "*on / off* is the median of the pairs' ratios: above 1, cuDNN is faster."
    )
    if device is not Device.CPU:
        return f"{first} Only pairs whose first side was seen to take the cuDNN path, and whose second was not, count."
    return (
        f"{first} **On a CPU the cuDNN flag has no effect**: both sides ran the same kernels, and how far the ratios "
        f"are from 1 shows how noisy this measurement is, not what cuDNN is worth.{_noise(paired)}"
    )


def _noise(paired: pd.DataFrame) -> str:
    """What pairs that ought to be alike say about the machine."""
    ratio = paired["ratio"]
    apart = float(ratio.where(ratio >= 1, 1 / ratio).quantile(0.9))
    if apart < NOISY:
        return ""
    return (
        f" **Here they say that the times cannot be believed**: one pair in ten differs by a factor of {apart:.1f} or "
        "more, though both sides do the same work. The machine was probably busy with something else."
    )
