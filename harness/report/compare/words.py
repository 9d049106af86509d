"""What a comparison comes to, in sentences, and what must be known before its numbers are believed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import count

from harness.model import Device
from harness.report import text
from harness.report.compare import Comparison
from harness.report.compare.facts import Effect
from harness.report.compare.shift import smallest_p
from harness.report.compare.timings import wander
from harness.report.compare.transitions import Change
from harness.report.compare.verdicts import FALSE_DISCOVERIES, FEWEST, FEWEST_CELLS, CommonShift, Verdict
from harness.report.machine import machine_caveats

DRIFT = (
    "The two runs were not interleaved with each other: a drift of the machine from one to the other looks like a "
    "change of the code, and cannot be excluded. What settles it is a third run like the first."
)


def sentences(comparison: Comparison) -> list[str]:
    """The comparison in a few sentences: outcomes, then times."""
    if not comparison.shared:
        return [
            "The two runs have no variant in common on the same device: there is nothing to compare.",
            *_forms(comparison),
        ]
    counts = Counter(transition.change for transition in comparison.transitions)
    told = text.listed(f"{counts[change]:,} {change}" for change in Change if counts[change])
    return [f"Outcomes, A to B: {told}.", _times(comparison), *common_sentences(comparison)]


def _forms(comparison: Comparison) -> Iterator[str]:
    """Two programs side by side, which never are one variant: each is told what it is and what came of it."""
    if not (comparison.a.plan.is_program and comparison.b.plan.is_program):
        return
    yield "They are programs, and another form of a program is another variant. What came of each:"
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        ended = text.listed(f"{result.outcome} on {result.device}" for result in side.results)
        told = text.listed(dict.fromkeys(text.plain(variant.label) for variant in side.plan.variants))
        yield f"- {name}, {told}: {ended}."


def _times(comparison: Comparison) -> str:
    cells = comparison.timings.cells
    if not cells:
        return "No times: both runs have no device in common whose kernels really run."
    counts = Counter(cell.verdict for cell in cells)
    told = text.listed(f"{counts[verdict]:,} {verdict}" for verdict in Verdict if counts[verdict])
    return f"Step times, A to B: {told}."


def common_sentences(comparison: Comparison) -> list[str]:
    """What nearly all cells of a device have in common, where there is such a thing."""
    found = comparison.timings.common.items()
    return [_common(comparison, device, shift) for device, shift in found if shift.found]


def _common(comparison: Comparison, device: Device, shift: CommonShift) -> str:
    causes = [d.name for d in comparison.differences if d.effect is Effect.CAUSE and d.device in (None, device)]
    otherwise = f", or what all steps share: {text.listed(causes)} differ{'s' * (len(causes) == 1)}" if causes else ""
    return (
        f"On {device}, nearly all steps take {shift.factor:.3f} times as long in B ({shift.moved_alike} of "
        f"{shift.cells} cells; {shift.interval.low:.3f} to {shift.interval.high:.3f}): the machine probably changed "
        f"(clock, load, heat) rather than the code of one variant{otherwise}. Cells are better or worse only beyond "
        "that factor."
    )


def caveats(comparison: Comparison) -> list[str]:
    """What must be known before a number is believed."""
    return list(_caveats(comparison))


def _caveats(comparison: Comparison) -> Iterator[str]:
    if comparison.timings.judged:
        yield DRIFT
        yield from _too_few(comparison)
        yield from _cannot_be_found(comparison)
        yield from _wandered(comparison)
        yield from _disturbed(comparison)
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        if side.plan.environment.get("git_dirty"):
            yield f"{name} was made with uncommitted changes: its commit does not identify the code."
        sittings = {record.sitting for result in side.results for record in result.records}
        if len(sittings) > 1:
            yield f"{name} was made in {len(sittings)} sittings; its report says whether anything changed between them."
        if side.strays:
            yield f"{text.count(side.strays, 'record')} of {name} belong to nothing that it planned, and do not count."


def _too_few(comparison: Comparison) -> Iterator[str]:
    fewest = [min(len(cell.a), len(cell.b)) for cell in comparison.timings.judged]
    few = sum(amount < FEWEST for amount in fewest)
    if few:
        yield (
            f"{text.count(few, 'cell')} of {len(fewest):,} {'has' if few == 1 else 'have'} fewer than {FEWEST} "
            f"attempts on a side: too few for any claim. `--replicates {FEWEST}` or more makes them judgeable."
        )
    for device in {cell.device: None for cell in comparison.timings.judged}:
        if device not in comparison.timings.common:
            yield (
                f"With fewer than {FEWEST_CELLS} cells on {device}, a change of the machine cannot be told from one "
                "of the code."
            )


def _wandered(comparison: Comparison) -> Iterator[str]:
    """Where a machine moved by a size that matters while nothing changed."""
    for device in {cell.device: None for cell in comparison.timings.judged}:
        for name, side in (("A", comparison.a), ("B", comparison.b)):
            factor = wander(side, device)
            if factor is not None and abs(math.log(factor)) >= comparison.rules.matters:
                yield (
                    f"Within {name}, later replicates on {device} took {factor:.3f} times as long as earlier ones, "
                    "though nothing had changed: the machine moves by more than the size that matters here."
                )


def _disturbed(comparison: Comparison) -> Iterator[str]:
    """What the machine under either run was doing besides."""
    for device in {cell.device: None for cell in comparison.timings.judged}:
        for name, side in (("A", comparison.a), ("B", comparison.b)):
            said = machine_caveats(device, side.records_on(device), side.plan.environment.get("cores"))
            yield from (f"In {name}: {sentence[0].lower()}{sentence[1:]}" for sentence in said)


def _cannot_be_found(comparison: Comparison) -> Iterator[str]:
    """Where even the clearest change of one cell would drown among so many."""
    for device in {cell.device: None for cell in comparison.timings.judged}:
        sizes = [(len(c.a), len(c.b)) for c in comparison.timings.judged if c.device is device]
        sizes = [size for size in sizes if min(size) >= FEWEST]
        if not sizes or max(smallest_p(*size) for size in sizes) * len(sizes) <= FALSE_DISCOVERIES:
            continue
        enough = next(n for n in count(FEWEST) if smallest_p(n, n) * len(sizes) <= FALSE_DISCOVERIES)
        yield (
            f"Among {len(sizes):,} cells on {device}, a change of one cell alone cannot be told from chance with so "
            f"few attempts; {enough} on each side could show it."
        )
