"""What a reader must know before believing a number of the report."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model import Caveat, Outcome
from harness.report import text
from harness.report.evidence import Evidence
from harness.report.machine import machine_caveats, unsettled
from harness.report.notes import note_of
from harness.report.sections.environment import mixed_facts
from harness.report.sections.sittings import changed_sittings

ENOUGH = 6
"""Attempts below which a median has no distribution-free 95 % interval."""


def caveats(evidence: Evidence) -> str:
    """A list: caveats computed from plan and records, then those that the caller adds."""
    lines = [*dict.fromkeys((*_computed(evidence), *map(text.sentence, evidence.extra_caveats), *_notes(evidence)))]
    return "\n".join(("## Caveats", "", *(f"- {line}" for line in lines or ["None known."])))


def _computed(evidence: Evidence) -> Iterator[str]:
    yield from Caveat.of_devices(evidence.plan.devices)
    yield from _too_few(evidence)
    yield from _times(evidence)
    if any(sitting.environment.get("git_dirty") for sitting in evidence.sittings):
        yield Caveat.DIRTY_TREE
    mixed = mixed_facts(evidence)
    if mixed:
        yield f"{Caveat.MIXED_FACTS} {'; '.join(mixed)}."
    yield from changed_sittings(evidence)
    if any(r.outcome is Outcome.NOT_RUN or not r.complete for r in evidence.results):
        yield Caveat.INCOMPLETE


def _too_few(evidence: Evidence) -> Iterator[str]:
    attempts = [result.attempts for result in evidence.results if result.step_ms is not None]
    if attempts and max(attempts) == 1:
        yield Caveat.SINGLE
    elif attempts and min(attempts) < ENOUGH:
        yield Caveat.TOO_FEW


def _times(evidence: Evidence) -> Iterator[str]:
    """What stands against the times of each device that computes."""
    for device in (device for device in evidence.plan.devices if device.computes):
        timed = [result for result in evidence.results_on(device) if result.step_ms is not None]
        yield from filter(None, [unsettled(device, [result.steadiness for result in timed])])
        records = (record for result in timed for record in result.records)
        yield from machine_caveats(device, records, evidence.plan.environment.get("cores"))


def _notes(evidence: Evidence) -> Iterator[str]:
    yield from map(text.sentence, evidence.plan.notes)
    replaced = sum(result.superseded for result in evidence.results)
    if replaced:
        verb = "was made again and does" if replaced == 1 else "were made again and do"
        yield f"{text.count(replaced, 'earlier attempt')} {verb} not count here (`superseded` in results.csv)."
    if evidence.strays:
        yield f"{text.count(evidence.strays, 'record')} of the journal belong to no planned variant or to another run."
    disagree = [r for r in evidence.results if len({record.outcome for record in r.records}) > 1]
    for result in disagree[:10]:
        where = f"{text.plain(result.variant.label)} on `{result.device}`"
        yield f"{where}: {note_of(result)}; it counts as `{result.outcome}`."
    if len(disagree) > 10:
        yield f"Replicates disagree about {len(disagree) - 10} more variants: see `note` in results.csv."
    odd = sum("loss is" in note_of(result) for result in evidence.results if result.outcome is Outcome.OK)
    if odd:
        yield f"{text.count(odd, 'variant')} ended `ok` with a loss that is not finite: see `note` in results.csv."
