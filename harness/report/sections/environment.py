"""What the evidence was made with: the machine, the versions, and facts that are not the same throughout."""

from __future__ import annotations

from collections import Counter

import pandas as pd

from harness.model import Device, Plan
from harness.report import text
from harness.report.evidence import Evidence
from harness.report.sections.sittings import sittings_table
from harness.sittings import word

FACTS = {
    "device_name": "device",
    "capability": "compute capability",
    "driver": "driver",
    "torch": "PyTorch",
    "cuda": "CUDA",
    "cudnn": "cuDNN",
    "python": "Python",
    "cpu": "processor",
    "threads": "threads",
    "tf32": "TF32",
    "deterministic": "deterministic algorithms",
    "benchmark": "cuDNN benchmark mode",
}
"""Facts of a record that have to be the same throughout one table, with the words for them."""


def environment(evidence: Evidence) -> str:
    """The plan's environment, then what the attempts of each device say."""
    known = [
        f"- {text.plain(name.replace('_', ' '))}: {text.plain(word(value))}"
        for name, value in evidence.plan.environment.items()
        if value is not None and value != ""
    ]
    known.append(f"- each attempt: {_settings(evidence.plan)}")
    parts = ["## Environment", "\n".join(known), _facts_table(evidence), sittings_table(evidence)]
    return "\n\n".join(part for part in parts if part)


def _settings(plan: Plan) -> str:
    """The settings that apply."""
    s = plan.settings
    if plan.is_program:
        return (
            f"as the program has it; deadline {s.deadline:g} s; "
            f"{text.count(s.replicates, 'replicate')} on devices that compute"
        )
    timed = (
        f"{text.count(s.timed_blocks, 'timed block')} of about {s.block_ms:g} ms"
        if s.timed_blocks
        else "no timed blocks"
    )
    return (
        f"{text.count(s.epochs, 'epoch')} of {text.count(s.steps, 'step')}, "
        f"{text.count(s.evaluation_steps, 'evaluation step')} after each; warm-up: the first "
        f"{text.count(s.warmup_epochs, 'epoch')}; learning rate {s.learning_rate:g}, seed {s.seed}, "
        f"deadline {s.deadline:g} s; {text.count(s.replicates, 'replicate')} where time is taken, with {timed} "
        "after the epochs"
    )


def mixed_facts(evidence: Evidence) -> list[str]:
    """The facts that differ among the attempts of one device, in words; the first thing to look at in odd numbers."""
    counts = _facts(evidence)
    return [
        f"{FACTS[fact]} on `{device}`: {_values(values)}"
        for (fact, device), values in counts.items()
        if len(values) > 1
    ]


def _facts(evidence: Evidence) -> dict[tuple[str, Device], Counter[str]]:
    counts: dict[tuple[str, Device], Counter[str]] = {}
    for record in evidence.counted:
        for fact in FACTS:
            value = record.facts.get(fact)
            if value is not None:
                counts.setdefault((fact, record.device), Counter())[word(value)] += 1
    return counts


def _values(values: Counter[str]) -> str:
    if len(values) == 1:
        return text.plain(next(iter(values)))
    return "MIXED: " + text.listed(f"{text.plain(value)} ({amount:,})" for value, amount in values.most_common())


def _facts_table(evidence: Evidence) -> str:
    counts = _facts(evidence)
    rows = [
        {
            "as the attempts saw it": words,
            **{
                device.value: _values(counts[fact, device]) if (fact, device) in counts else ""
                for device in evidence.plan.devices
            },
        }
        for fact, words in FACTS.items()
        if any((fact, device) in counts for device in evidence.plan.devices)
    ]
    return text.table(pd.DataFrame(rows)) if rows else ""
