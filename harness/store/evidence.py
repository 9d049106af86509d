"""What the records of one variant say together, by the rules that the report follows too.

The latest attempt of a replicate replaces its earlier ones; of replicates that disagree the worst outcome counts; a
speed is claimed only where kernels really run and every replicate ended well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median

from harness.model import Device, Outcome, Plan, Record

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

DECISIVE_FIRST = (Device.CUDA, Device.STUB, Device.CPU)
"""Where devices disagree, the first of these says whether the error occurs: it cannot on a CPU."""

TIMED_FIRST = (Device.CUDA, Device.CPU)
"""Where several devices compute, the first of these gives the numbers."""


@dataclass(frozen=True, slots=True)
class OnDevice:
    """The latest attempt of each replicate of one variant on one device; never empty."""

    device: Device
    records: tuple[Record, ...]

    @property
    def decisive(self) -> Record:
        """The first record with the worst outcome."""
        return min(self.records, key=lambda record: WORST_FIRST.index(record.outcome))

    @property
    def timed(self) -> bool:
        """Whether a speed may be claimed."""
        return self.device.computes and self.decisive.outcome is Outcome.OK

    def typical(self, measure: Callable[[Record], float | None]) -> float | None:
        """The median of ``measure`` over the replicates that have it."""
        values = [value for record in self.records if (value := measure(record)) is not None]
        return median(values) if values else None


def by_device(records: Iterable[Record]) -> tuple[OnDevice, ...]:
    """``records`` of one variant, sorted by device, the decisive device first."""
    latest: dict[Device, dict[int, Record]] = {}
    for record in records:
        replicates = latest.setdefault(record.device, {})
        known = replicates.get(record.replicate)
        if known is None or record.attempt >= known.attempt:
            replicates[record.replicate] = record
    return tuple(
        OnDevice(device, tuple(found[number] for number in sorted(found)))
        for device in DECISIVE_FIRST
        if (found := latest.get(device))
    )


def by_variant(plan: Plan, records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records of every planned variant by its key, in the plan's order; an empty list where there are none."""
    found: dict[str, list[Record]] = {variant.key: [] for variant in plan.variants}
    for record in records:
        if record.run == plan.run and record.key in found:
            found[record.key].append(record)
    return found


def count_outcomes(plan: Plan, records: Iterable[Record]) -> dict[str, int]:
    """How many planned variants came to each outcome: ``ok`` over all devices, ``ok.cpu`` on one.

    A planned variant (on a planned device) without a record counts as ``not-run``, so each set adds up to the plan.
    """
    counts: Counter[str] = Counter()
    for found in by_variant(plan, records).values():
        devices = by_device(found)
        counts[devices[0].decisive.outcome if devices else Outcome.NOT_RUN] += 1
        outcomes = {evidence.device: evidence.decisive.outcome for evidence in devices}
        for device in plan.devices:
            counts[f"{outcomes.get(device, Outcome.NOT_RUN)}.{device}"] += 1
    return dict(counts)


def is_complete(plan: Plan, records: Iterable[Record]) -> bool:
    """Whether every planned attempt has a record."""
    made = {(record.key, record.device, record.replicate) for record in records if record.run == plan.run}
    return all(
        (variant.key, device, replicate) in made
        for variant in plan.variants
        for device in plan.devices
        for replicate in range(plan.settings.replicates if device.computes else 1)
    )


def block_seconds(record: Record, *, warmup: bool = False) -> Iterator[float]:
    """Seconds per step of each block: device time where there is one, else wall time."""
    for sample in record.samples:
        if sample.warmup is warmup and sample.steps > 0:
            seconds = (sample.wall_s if sample.device_s is None else sample.device_s) / sample.steps
            if math.isfinite(seconds) and seconds > 0:
                yield seconds


def step_seconds(record: Record) -> float | None:
    """The median time of a step over the blocks that are no warm-up."""
    blocks = list(block_seconds(record))
    return median(blocks) if blocks else None


def per_second(amount: Callable[[Record], int | None]) -> Callable[[Record], float | None]:
    """A measure of throughput: ``amount`` of work per step, over the time of a step."""

    def measure(record: Record) -> float | None:
        work, seconds = amount(record), step_seconds(record)
        return None if work is None or seconds is None else work / seconds

    return measure


def moment(text: str | None) -> datetime | None:
    """``text`` in ISO 8601 as a time (UTC where it names no zone); None where there is none to be read."""
    try:
        read = datetime.fromisoformat(text or "")
        return read if read.tzinfo else read.replace(tzinfo=UTC)
    except ValueError:
        return None


def span_ms(records: Iterable[Record], otherwise: str) -> tuple[int, int]:
    """Milliseconds since 1970 at which the first of ``records`` started and the last ended.

    ``otherwise`` is the time (ISO 8601) that stands in where no record has one.
    """
    begun = moment(otherwise) or datetime.fromtimestamp(0, UTC)
    spans = [
        (start, start + timedelta(seconds=_finite(record.wall_s)))
        for record in records
        if (start := moment(record.started)) is not None
    ] or [(begun, begun)]
    return _ms(min(start for start, _ in spans)), _ms(max(end for _, end in spans))


def _finite(seconds: float | None) -> float:
    return seconds if seconds is not None and 0 <= seconds < 1e8 else 0.0


def _ms(when: datetime) -> int:
    return int(when.timestamp() * 1000)
