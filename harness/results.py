"""Plan + records -> one ``Result`` per planned variant and device: the one place where records become an outcome.

The plan is walked, never the records: a variant without a record is a result that says ``not-run``. The latest attempt
of a replicate replaces its earlier ones; of replicates that disagree the worst outcome counts; a speed is claimed only
where kernels really run and every replicate ended well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from harness.blocks import Part, part_seconds, settled, step_seconds
from harness.exactness import Judgement, judge
from harness.model import Device, Outcome, Plan, Record, Variant
from harness.statistics import Interval, Steadiness, median, median_interval

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

DECISIVE_FIRST = (Device.CUDA, Device.STUB, Device.CPU)
"""Where devices disagree, the first of these says whether the error occurs: it cannot on a CPU."""


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
    def complete(self) -> bool:
        """Whether every planned replicate has a record."""
        return {record.replicate for record in self.records}.issuperset(range(self.replicates))

    @property
    def timed(self) -> bool:
        """Whether a speed may be claimed: every replicate ended well, on a device whose kernels really run."""
        return self.device.computes and self.outcome is Outcome.OK

    @property
    def step_ms(self) -> float | None:
        """The time of a training step: the median of its blocks, then over the replicates."""
        return _thousandfold(self._speed(step_seconds))

    def part_ms(self, part: Part) -> float | None:
        """The time of one part of a training step, the same way; the parts' medians need not add up to the step's."""
        return _thousandfold(self._speed(lambda record: part_seconds(record, part)))

    @property
    def step_ms_interval(self) -> Interval | None:
        """A 95 % interval of the median over processes, in milliseconds; None with fewer than six of them."""
        seconds = [step_seconds(record) for record in self.records] if self.timed else []
        return median_interval([1000 * value for value in seconds if value is not None])

    @property
    def steadiness(self) -> Steadiness | None:
        """Whether the times of every replicate have settled; the worst of them counts."""
        found = {settled(record) for record in self.records} if self.timed else set()
        return next((one for one in (Steadiness.DRIFTS, Steadiness.TOO_FEW, Steadiness.STEADY) if one in found), None)

    @cached_property
    def gradient(self) -> Judgement | None:
        """What is said of the placement's gradient here; only where every replicate ended well and kernels run."""
        return judge(self.records) if self.timed else None

    @property
    def first_step_ms(self) -> float | None:
        """The time of the very first step, median over the replicates."""
        return _thousandfold(self._speed(lambda record: record.first_step_s))

    @property
    def step_clock(self) -> str | None:
        """Which clock timed the steps: ``device`` or ``wall``."""
        return _clock(self.records[0]) if self.timed else None

    @property
    def sequences_per_second(self) -> float | None:
        """Training throughput, median over the replicates."""
        return self._speed(lambda record: _per_second(record.sequences_per_step, record))

    @property
    def timesteps_per_second(self) -> float | None:
        """The same in time steps."""
        return self._speed(lambda record: _per_second(record.timesteps_per_step, record))

    @property
    def peak_memory_bytes(self) -> int | None:
        """The highest peak of all replicates."""
        return max((r.peak_memory_bytes for r in self.records if r.peak_memory_bytes is not None), default=None)

    @property
    def attempt_s(self) -> float | None:
        """How long an attempt took, however it ended; median over the replicates."""
        return median(record.wall_s for record in self.records)

    def _speed(self, measure: Callable[[Record], float | None]) -> float | None:
        return median(map(measure, self.records)) if self.timed else None


@dataclass(frozen=True)
class Collection:
    """The results of a plan, in its order, and how many records belong to none of them."""

    results: tuple[Result, ...]
    strays: int

    @property
    def complete(self) -> bool:
        """Whether every planned attempt has a record."""
        return all(result.complete for result in self.results)


def collect(plan: Plan, records: Iterable[Record]) -> Collection:
    """Sort ``records`` into the planned variants and devices."""
    records = tuple(records)
    found = by_variant(plan, records)
    results = tuple(result for variant, mine in found for result in results_of(plan, variant, mine))
    claimed = sum(len(result.records) + result.superseded for result in results)
    return Collection(results, len(records) - claimed)


def by_variant(plan: Plan, records: Iterable[Record]) -> list[tuple[Variant, list[Record]]]:
    """Every planned variant, in the plan's order, with all its records on planned devices, in theirs."""
    keys = [variant.key for variant in plan.variants]
    found: dict[str, list[Record]] = {key: [] for key in keys}
    for record in records:
        if record.run == plan.run and record.key in found and record.device in plan.devices:
            found[record.key].append(record)
    return [(variant, found[key]) for variant, key in zip(plan.variants, keys, strict=True)]


def results_of(plan: Plan, variant: Variant, records: Sequence[Record]) -> list[Result]:
    """One result per planned device; ``records`` are all that ``variant`` has."""
    return [
        _result(plan, variant, device, [record for record in records if record.device is device])
        for device in plan.devices
    ]


def _result(plan: Plan, variant: Variant, device: Device, records: Sequence[Record]) -> Result:
    latest: dict[int, Record] = {}
    for record in records:
        known = latest.get(record.replicate)
        if known is None or record.attempt >= known.attempt:
            latest[record.replicate] = record
    return Result(
        variant,
        variant.key,
        device,
        records=tuple(latest[number] for number in sorted(latest)),
        superseded=len(records) - len(latest),
        replicates=plan.replicates_on(device),
    )


def decisive_first(results: Iterable[Result]) -> list[tuple[Result, Record]]:
    """The results of one variant that have a record, with the decisive one; the device that decides comes first."""
    recorded = [(result, result.decisive) for result in results if result.decisive]
    return sorted(recorded, key=lambda pair: DECISIVE_FIRST.index(pair[0].device))


def count_outcomes(plan: Plan, results: Iterable[Result]) -> dict[Device, Counter[Outcome]]:
    """How many planned variants came to each outcome on each planned device; each device's add up to the plan."""
    counts: dict[Device, Counter[Outcome]] = {device: Counter() for device in plan.devices}
    for result in results:
        counts[result.device][result.outcome] += 1
    return counts


def count_variants(results: Iterable[Result]) -> Counter[Outcome]:
    """How many planned variants came to each outcome, where of several devices the decisive one counts."""
    counts: Counter[Outcome] = Counter()
    for _, mine in groupby(results, key=lambda result: result.key):
        recorded = decisive_first(mine)
        counts[recorded[0][0].outcome if recorded else Outcome.NOT_RUN] += 1
    return counts


def _per_second(work: int | None, record: Record) -> float | None:
    seconds = step_seconds(record)
    return None if work is None or seconds is None else work / seconds


def _clock(record: Record) -> str | None:
    kinds = {"wall" if sample.device_s is None else "device" for sample in record.samples if not sample.warmup}
    return "+".join(sorted(kinds)) or None


def _thousandfold(value: float | None) -> float | None:
    return None if value is None else 1000 * value
