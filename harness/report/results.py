"""Plan + records -> one ``Result`` per planned variant and device. Everything in a report is derived from these.

The plan is walked, never the records: a variant without a record is a result that says ``not-run``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from harness.model import Device, Outcome, Plan, Record, Variant

WORST_FIRST = (
    Outcome.CRASH,
    Outcome.TIMEOUT,
    Outcome.OOM,
    Outcome.ERROR,
    Outcome.BACKWARD_ERROR,
    Outcome.NOT_RUN,
    Outcome.SKIPPED,
    Outcome.OK,
)
"""Where replicates disagree, the first of these that occurred is the outcome of the variant."""

NO_PROCESS = (Outcome.NOT_RUN, Outcome.SKIPPED)
"""Outcomes of attempts that never started."""


@dataclass(frozen=True)
class Result:
    """What the records say about one planned variant on one planned device.

    ``records`` holds the latest attempt of each replicate; ``superseded`` counts the earlier ones that a retry
    replaced; ``replicates`` is how many the plan asks for on this device.
    """

    variant: Variant
    key: str
    device: Device
    records: tuple[Record, ...]
    superseded: int = 0
    replicates: int = 1

    @cached_property
    def decisive(self) -> Record | None:
        """The record that tells the story: the first one with the worst outcome; None without any."""
        return min(self.records, key=lambda r: WORST_FIRST.index(r.outcome), default=None)

    @property
    def outcome(self) -> Outcome:
        """The worst outcome of all replicates; ``not-run`` where there is no record."""
        return self.decisive.outcome if self.decisive else Outcome.NOT_RUN

    @property
    def attempts(self) -> int:
        """How many attempts the numbers of this result rest on."""
        return sum(record.outcome not in NO_PROCESS for record in self.records)

    @property
    def timed(self) -> bool:
        """Whether a speed may be claimed: every replicate ended well, on a device whose kernels really run."""
        return self.device.computes and self.outcome is Outcome.OK

    def typical(self, measure: Callable[[Record], float | None], *, only_timed: bool = True) -> float | None:
        """The median of ``measure`` over the replicates that have it."""
        if only_timed and not self.timed:
            return None
        values = [value for record in self.records if (value := measure(record)) is not None]
        return median(values) if values else None

    @property
    def note(self) -> str:
        """What a reader of this row must know besides its columns."""
        return "; ".join(_notes(self))


@dataclass(frozen=True)
class Collection:
    """The results of a plan, in its order, and how many records belong to none of them."""

    results: tuple[Result, ...]
    strays: int


def collect(plan: Plan, records: Iterable[Record]) -> Collection:
    """Sort ``records`` into the planned variants and devices."""
    found: dict[tuple[str, Device], dict[int, Record]] = {}
    seen: Counter[tuple[str, Device]] = Counter()
    foreign = 0
    for record in records:
        if record.run != plan.run:
            foreign += 1
            continue
        place = record.key, record.device
        seen[place] += 1
        replicates = found.setdefault(place, {})
        known = replicates.get(record.replicate)
        if known is None or record.attempt >= known.attempt:
            replicates[record.replicate] = record
    results = tuple(_results(plan, found, seen))
    claimed = sum(len(result.records) + result.superseded for result in results)
    return Collection(results, foreign + seen.total() - claimed)


def _results(
    plan: Plan, found: dict[tuple[str, Device], dict[int, Record]], seen: Counter[tuple[str, Device]]
) -> Iterable[Result]:
    for variant in plan.variants:
        key = variant.key
        for device in plan.devices:
            latest = found.get((key, device), {})
            yield Result(
                variant,
                key,
                device,
                records=tuple(latest[number] for number in sorted(latest)),
                superseded=seen[key, device] - len(latest),
                replicates=plan.settings.replicates if device.computes else 1,
            )


def step_seconds(record: Record) -> float | None:
    """The median time of a step over the samples that are no warm-up: device time where there is one."""
    times = [
        (sample.wall_s if sample.device_s is None else sample.device_s) / sample.steps
        for sample in record.samples
        if not sample.warmup and sample.steps > 0
    ]
    usable = [time for time in times if math.isfinite(time) and time > 0]
    return median(usable) if usable else None


def per_second(amount: Callable[[Record], int | None]) -> Callable[[Record], float | None]:
    """A measure of throughput: ``amount`` of work per step, over the time of a step."""

    def measure(record: Record) -> float | None:
        work, seconds = amount(record), step_seconds(record)
        return None if work is None or seconds is None else work / seconds

    return measure


def clock(record: Record) -> str | None:
    """Which clock timed the steps of ``record``."""
    kinds = {"wall" if sample.device_s is None else "device" for sample in record.samples if not sample.warmup}
    return "+".join(sorted(kinds)) or None


def _notes(result: Result) -> Iterable[str]:
    yield from _disagreements(result.records)
    if result.records and len(result.records) < result.replicates:
        yield f"{len(result.records)} of {result.replicates} replicates recorded"
    if result.device.computes:
        yield from _odd_losses(result.records)


def _disagreements(records: Sequence[Record]) -> Iterable[str]:
    outcomes = Counter(record.outcome for record in records)
    if len(outcomes) > 1:
        counts = ", ".join(f"{outcomes[o]} {o}" for o in WORST_FIRST if o in outcomes)
        yield f"replicates disagree: {counts}"
    elif len({(r.phase, r.epoch, r.step, r.fingerprint, r.path) for r in records}) > 1:
        yield "replicates agree on the outcome, but not on where or why"


def _odd_losses(records: Sequence[Record]) -> Iterable[str]:
    for name in ("first_loss", "last_loss"):
        values = (getattr(record, name) for record in records)
        odd = sorted({str(value) for value in values if value is not None and not math.isfinite(value)})
        if odd:
            yield f"{name.replace('_', ' ')} is {' and '.join(odd)}"
