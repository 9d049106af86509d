"""What a seed program reported of its training: losses, accuracy and data; only from devices that compute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from harness.model import Outcome, Record
from harness.report import text
from harness.report.evidence import Evidence

NUMBERS = {"train_loss": "training loss", "test_loss": "test loss"}


def training(evidence: Evidence) -> str:
    """One paragraph and table per attempt; empty where the plan is no seed program's."""
    if not evidence.plan.is_program:
        return ""
    parts = [_attempt(record) for record in evidence.counted if record.device.computes]
    if not any(parts):
        parts = ["No attempt on a device that computes has reported anything, so there are no losses."]
    return "\n\n".join(("## Training", *(part for part in parts if part)))


def _attempt(record: Record) -> str:
    results = record.results
    if not results:
        return ""
    said = [f"On `{record.device}`: {_program(results)}.", *_data(results), _end(record)]
    rows = [_epoch(number, epoch) for number, epoch in enumerate(_epochs(results), 1)]
    return "\n\n".join(part for part in (" ".join(said), text.table(pd.DataFrame(rows)) if rows else "") if part)


def _program(results: Mapping[str, Any]) -> str:
    words = (results.get(name) for name in ("program", "variant", "remedy"))
    named = ", ".join(text.plain(str(word)) for word in words if word)
    summary = results.get("summary")
    return f"{named} ({text.plain(str(summary))})" if summary else named or "a program without a name"


def _data(results: Mapping[str, Any]) -> Iterator[str]:
    if results.get("dataset"):
        amounts = [
            f"{results[name]:,} for {use}"
            for name, use in (("training_samples", "training"), ("test_samples", "testing"))
            if isinstance(results.get(name), int)
        ]
        yield f"Data: {text.plain(str(results['dataset']))}{f' ({text.listed(amounts)})' if amounts else ''}."
    if results.get("dataset_reason"):
        yield text.plain(str(results["dataset_reason"]), limit=400)


def _end(record: Record) -> str:
    if record.outcome is Outcome.OK:
        return "It ran to the end."
    where = f" in epoch {record.epoch}, step {record.step}" if record.epoch else ""
    return f"It ended{where} with `{record.outcome}`."


def _epochs(results: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    epochs = results.get("epochs")
    return [epoch for epoch in epochs if isinstance(epoch, dict)] if isinstance(epochs, list) else []


def _epoch(number: int, epoch: Mapping[str, Any]) -> dict[str, str]:
    row = {"epoch": text.plain(str(epoch.get("epoch", number)))}
    for name, heading in NUMBERS.items():
        row[heading] = _number(epoch.get(name), "{:.4f}")
    row["test accuracy"] = _number(epoch.get("test_accuracy"), "{:.1%}")
    return row


def _number(value: object, form: str) -> str:
    return form.format(value) if isinstance(value, int | float) else "not a number"
