"""A comparison for people: what differs around the runs, then outcomes, then times."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import pandas as pd

from harness.model import Device
from harness.report import text
from harness.report.compare import Comparison
from harness.report.compare.facts import Difference, Effect
from harness.report.compare.sides import Side
from harness.report.compare.timings import Cell
from harness.report.compare.transitions import Change, Transition
from harness.report.compare.verdicts import DRIFTS, SPREADS, Verdict
from harness.report.compare.words import caveats, sentences

MOST_NAMED = 8
"""How many variants of a group are named; the rest is counted."""

MOST_ROWS = 40
"""How many cells the table of times has; the rest is counted."""

SHOWN_FIRST = (Verdict.WORSE, Verdict.BETTER, Verdict.AMBIGUOUS, Verdict.SINGLE, Verdict.SAME)


def to_markdown(comparison: Comparison) -> str:
    """The whole comparison."""
    parts = [
        f"# Run {comparison.b.plan.run} against {comparison.a.plan.run}",
        _runs(comparison),
        "\n".join(sentences(comparison)),
        *_around(comparison),
        *_outcomes(comparison.transitions),
        *(_times(comparison) if comparison.timings.cells else ()),
        *_caveats(comparison),
    ]
    return "\n\n".join(parts) + "\n"


def _runs(comparison: Comparison) -> str:
    return "\n".join(_run(name, side) for name, side in (("A", comparison.a), ("B", comparison.b)))


def _run(name: str, side: Side) -> str:
    plan, records = side.plan, sum(len(result.records) for result in side.results)
    return (
        f"- {name}: {text.plain(plan.run)}, {text.plain(plan.matrix)}, {text.plain(plan.created)}: "
        f"{text.count(len(plan.variants), 'variant')} on {text.listed(plan.devices)}, {text.count(records, 'record')}"
    )


# --- what differs around the runs


def _around(comparison: Comparison) -> Iterator[str]:
    yield "## What differs around them"
    found = comparison.differences
    if found:
        yield text.table(pd.DataFrame([_difference(difference) for difference in found]))
    yield _barriers([difference for difference in found if difference.effect is Effect.BARRIER], anything=bool(found))
    if comparison.machine:
        yield "While steps were timed (medians over blocks):"
        rows = [{"machine": f"{row.name} ({row.device})", "A": row.a, "B": row.b} for row in comparison.machine]
        yield text.table(pd.DataFrame(rows))


def _difference(difference: Difference) -> dict[str, str]:
    where = f" ({difference.device})" if difference.device else ""
    return {
        "fact": text.plain(difference.name) + where,
        "A": text.plain(difference.a),
        "B": text.plain(difference.b),
        "what it means": difference.effect.value,
    }


def _barriers(barriers: Sequence[Difference], *, anything: bool) -> str:
    if not barriers:
        nothing = "Nothing that is recorded differs" if not anything else "None of it makes timings not comparable"
        return f"{nothing}. What is not recorded (another host of the same kind, other programs on it) may."
    names = text.listed(dict.fromkeys(text.plain(difference.name) for difference in barriers))
    return f"**Timings are not comparable where these differ: {names}.** Outcomes are compared all the same."


# --- outcomes


def _outcomes(transitions: Sequence[Transition]) -> Iterator[str]:
    yield "## Outcomes, from A to B"
    if transitions:
        yield _counts(transitions)
    groups: dict[tuple[Change, Device, str, str], list[str]] = defaultdict(list)
    for t in transitions:
        if t.change is not Change.SAME:
            groups[t.change, t.device, t.a or "not planned", t.b or "not planned"].append(t.label)
    order = list(Change)
    for place, labels in sorted(groups.items(), key=lambda item: (order.index(item[0][0]), item[0][1], -len(item[1]))):
        yield _group(*place, labels)


def _counts(transitions: Sequence[Transition]) -> str:
    counts = Counter((t.device, t.change) for t in transitions)
    devices = dict.fromkeys(t.device for t in transitions)
    changes = [change for change in Change if any(counts[device, change] for device in devices)]
    rows = [
        {"device": device.value, **{change.value: f"{counts[device, change]:,}" for change in changes}}
        for device in devices
    ]
    return text.table(pd.DataFrame(rows))


def _group(change: Change, device: Device, a: str, b: str, labels: Sequence[str]) -> str:
    lines = [
        f"**{change}** on {device}: {text.count(len(labels), 'variant')}",
        "",
        f"- A: {text.plain(a)}",
        f"- B: {text.plain(b)}",
        *(f"- {text.plain(label)}" for label in labels[:MOST_NAMED]),
    ]
    rest = len(labels) - MOST_NAMED
    return "\n".join([*lines, f"- and {text.count(rest, 'variant')} more"] if rest > 0 else lines)


# --- times


def _times(comparison: Comparison) -> Iterator[str]:
    yield "## Time of a training step, B over A"
    timings = comparison.timings
    judged = sorted(timings.judged, key=lambda cell: (SHOWN_FIRST.index(cell.verdict), -_away(cell)))
    if judged:
        yield _legend(comparison)
        yield text.table(pd.DataFrame([_row(cell) for cell in judged[:MOST_ROWS]]))
    if len(judged) > MOST_ROWS:
        counts = Counter(cell.verdict for cell in judged[MOST_ROWS:])
        told = text.listed(f"{amount:,} {verdict}" for verdict, amount in counts.most_common())
        yield f"Not shown: {told}. `--format json` has every cell."
    unjudged = Counter((c.device, c.verdict, c.reason) for c in timings.cells if c.judged is None)
    if unjudged:
        yield "\n".join(
            f"- no ratio on {device} for {text.count(amount, 'cell')}: {verdict}, {text.plain(reason)}"
            for (device, verdict, reason), amount in unjudged.most_common()
        )
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        if Device.STUB in side.plan.devices:
            yield f"There are no times for `stub` in {name}: its kernels do nothing."


def _legend(comparison: Comparison) -> str:
    return (
        "Above 1, B is slower. One number per process, the median of its timed blocks; the estimate is the median of "
        "all ratios of a process of B to one of A (Hodges-Lehmann), with the 95 % interval of Mann-Whitney's test. "
        f"*worse* and *better* take evidence (false-discovery rate 5 % over a device's cells) and the size in *needs*: "
        f"{100 * comparison.rules.threshold:.3g} %, {SPREADS} times what processes alike differ by, or {DRIFTS} times "
        "what the machine moved by within a run. *same* takes an interval inside the first."
    )


def _away(cell: Cell) -> float:
    """How far a ratio is from 1, either way."""
    ratio = cell.judged.ratio if cell.judged else 1.0
    return max(ratio, 1 / ratio)


def _row(cell: Cell) -> dict[str, str]:
    judged = cell.judged
    assert judged is not None
    note = "; ".join(part for part in (judged.reason, *cell.notes) if part)
    known = judged.low is not None and judged.high is not None
    return {
        "variant": text.plain(cell.label),
        "device": cell.device.value,
        "verdict": judged.verdict.value,
        "B / A": f"{judged.ratio:.3f}",
        "95 % interval": f"{judged.low:.3f} to {judged.high:.3f}" if known else "",
        "needs": "" if judged.needs is None else f"{judged.needs:.3f}",
        "attempts A, B": f"{len(cell.a)}, {len(cell.b)}",
        "note": text.plain(note) if note else "",
    }


def _caveats(comparison: Comparison) -> Iterator[str]:
    told = caveats(comparison)
    if told:
        yield "## Caveats"
        yield "\n".join(f"- {text.sentence(line)}" for line in told)
