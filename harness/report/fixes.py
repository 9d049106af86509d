"""Which placements reach the same goal as one that raises, what each costs, and whether its gradient is the right one.

A placement's evidence is gathered over all variants of the plan whose cuDNN flag is on: with it off nothing raises, and
nothing would have to be cured. Outcomes come from devices where the error can occur, prices and gradients from devices
that compute. What a run did not see stays absent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import groupby

from harness.blocks import part_seconds, step_seconds
from harness.exactness import Judgement
from harness.exactness import Verdict as Gradient
from harness.model import Device, KernelPath, Outcome, Plan, Record, Value, Wants
from harness.placements import PLACEMENTS, Placement
from harness.results import NO_PROCESS, Result
from harness.statistics import Interval, median, median_interval

BASELINES = ("train-always", "train-each-epoch")
"""The train step that prices are relative to: the first of these that the plan has."""


class Advice(StrEnum):
    """What the evidence makes of a candidate, the best first."""

    USE = "use this"
    AS_WANTED = "modes are right, gradient is random"
    SIDE_EFFECTS = "mind the side effects"
    UNMEASURED = "runs, gradient not measured"
    UNREPEATABLE = "runs, but not repeatable"
    WRONG = "runs, but another gradient"
    UNKNOWN = "no evidence on this device"
    FAILS = "fails in another way"
    RAISES = "still raises"


@dataclass(frozen=True, slots=True)
class Price:
    """Candidate over baseline: the median over pairs that differ in the placement alone.

    ``interval`` is the 95 % one over replicates; None with fewer than six. ``smallest`` and ``largest`` are over pairs.
    """

    ratio: float
    smallest: float
    largest: float
    pairs: int
    replicates: int
    interval: Interval | None = None


@dataclass(frozen=True)
class Fix:
    """A candidate with its evidence."""

    placement: Placement
    outcomes: Mapping[Device, Counter[Outcome]]
    """Of devices where the error can occur and that ran it."""
    gradients: Mapping[Device, tuple[Judgement, ...]]
    speed: Mapping[Device, Price]
    """Throughput; of placements that apply no gradient without the optimizer's part, where both sides have it."""
    memory: Mapping[Device, Price]

    @cached_property
    def side_effects(self) -> tuple[str, ...]:
        """What it leaves behind otherwise than it was, as far as anybody looked."""
        every = (j.changed for judged in self.gradients.values() for j in judged)
        return tuple(dict.fromkeys(name for names in every for name in names))

    @property
    def judged(self) -> Counter[Gradient]:
        """How many variants came to which verdict about their gradient."""
        return Counter(j.verdict for judged in self.gradients.values() for j in judged)

    @cached_property
    def advice(self) -> Advice:
        """What to tell a person about it."""
        seen = Counter[Outcome]()
        for counts in self.outcomes.values():
            seen += counts
        if seen[Outcome.BACKWARD_ERROR]:
            return Advice.RAISES
        if not seen.total():
            return Advice.UNKNOWN
        if set(seen) != {Outcome.OK}:
            return Advice.FAILS
        return self._gradient_advice()

    def _gradient_advice(self) -> Advice:
        judged = self.judged
        if judged[Gradient.DIFFERS]:
            return Advice.WRONG
        repeatable = [j.repeatable for each in self.gradients.values() for j in each]
        if judged[Gradient.NOT_REPEATABLE] or False in repeatable:
            return Advice.UNREPEATABLE
        if not judged.total():
            return Advice.UNMEASURED
        if self.side_effects:
            return Advice.SIDE_EFFECTS
        return Advice.USE if judged[Gradient.EXACT] else Advice.AS_WANTED

    @property
    def rank(self) -> tuple[int, float]:
        """The better advice first, then what is clearly faster on a GPU; the rest stays in the order of the plan."""
        price = self.speed.get(Device.CUDA)
        return list(Advice).index(self.advice), -round(price.ratio, 1) if price else 0.0


@dataclass(frozen=True)
class Table:
    """Placements that raise in this run and have the same candidates, and these, the best first."""

    cures: tuple[Placement, ...]
    fixes: tuple[Fix, ...]

    @property
    def usable(self) -> list[Fix]:
        """The candidates that the evidence supports."""
        return [fix for fix in self.fixes if fix.advice is Advice.USE]


def fix_tables(plan: Plan, results: Sequence[Result]) -> list[Table]:
    """One table for all placements that raise and share their candidates; none where none raises."""
    ledger = Ledger(plan, [result for result in results if result.variant.axes.get("cudnn", "on") != "off"])
    raising = [placement for placement in ledger.placements if ledger.raises(placement)]
    raising.sort(key=lambda placement: placement.freeze_rnn or placement.second is not None)  # plain programs first
    alike: dict[tuple[str, ...], list[Placement]] = {}
    for placement in raising:
        names = tuple(other.name for other in ledger.placements if _serves(other, placement))
        alike.setdefault(names, []).append(placement)
    return [
        Table(tuple(cures), tuple(sorted((ledger.fix(PLACEMENTS[name]) for name in names), key=lambda fix: fix.rank)))
        for names, cures in alike.items()
    ]


def _serves(candidate: Placement, raising: Placement) -> bool:
    """Whether ``candidate`` reaches the goal of ``raising`` in a program of the same make."""
    return (
        candidate.wants is raising.wants
        and candidate.freeze_rnn is raising.freeze_rnn
        and (candidate.second is None or raising.second is not None)
    )


class Ledger:
    """The results of a plan by placement, and the prices between them."""

    def __init__(self, plan: Plan, results: Sequence[Result]) -> None:
        self.by_placement: dict[str, list[Result]] = {}
        for result in results:
            self.by_placement.setdefault(str(result.variant.axes.get("placement")), []).append(result)
        self.placements = [PLACEMENTS[name] for name in self.by_placement if name in PLACEMENTS]
        self.raising_devices = [device for device in plan.devices if device is not Device.CPU]
        self.computing_devices = [device for device in plan.devices if device.computes]
        self.baseline = next((name for name in BASELINES if name in self.by_placement), None)
        self.raised = {r.key for r in results if r.outcome is Outcome.BACKWARD_ERROR}
        self._steps = {
            (result.device, elsewhere(result)): result
            for result in self.by_placement.get(self.baseline or "", ())
            if result.timed and _is_train_step(result)
        }

    def raises(self, placement: Placement) -> bool:
        """Whether a variant of it raised."""
        return any(result.key in self.raised for result in self.by_placement[placement.name])

    def fix(self, placement: Placement) -> Fix:
        """All that is known of ``placement``."""
        results = self.by_placement[placement.name]
        on = {device: [r for r in results if r.device is device] for device in self.raising_devices}
        outcomes = {d: Counter(r.outcome for r in each if r.outcome not in NO_PROCESS) for d, each in on.items()}
        gradients = {d: _gradients(results, d) for d in self.computing_devices}
        pairs = {device: self._pairs(results, device) for device in self.computing_devices}
        speed = {device: _price(_speeds(each, placement)) for device, each in pairs.items()}
        memory = {device: _price(_memories(each)) for device, each in pairs.items()}
        return Fix(
            placement,
            {device: counts for device, counts in outcomes.items() if counts},
            {device: each for device, each in gradients.items() if each},
            {device: price for device, price in speed.items() if price},
            {device: price for device, price in memory.items() if price},
        )

    def _pairs(self, results: Sequence[Result], device: Device) -> list[tuple[Result, Result]]:
        """What can be priced, with its baseline: not what raises elsewhere, since nobody can train with it."""
        mine = [r for r in results if r.device is device and r.timed and r.key not in self.raised]
        found = ((result, self._steps.get((device, elsewhere(result)))) for result in mine)
        return [(result, step) for result, step in found if step is not None]


def does_the_same(placement: Placement) -> bool:
    """Whether its steps are the baseline's: how far their price is from one is noise."""
    plain = placement.wants is Wants.TRAIN and not placement.raises and placement.applies
    return plain and not placement.freeze_rnn and placement.second is None and placement.name not in BASELINES[:1]


@dataclass(frozen=True, slots=True)
class Noise:
    """How far placements that do the very work of the baseline are from its price."""

    placements: tuple[str, ...]
    low: float
    high: float


def noise_of(device: Device, fixes: Sequence[Fix]) -> Noise | None:
    """None where no fix that has a price on ``device`` does the baseline's work."""
    alike = [fix for fix in fixes if does_the_same(fix.placement) and device in fix.speed]
    alike = [fix for fix in alike if not fix.speed[device].smallest == fix.speed[device].largest == 1]  # the baseline
    if not alike:
        return None
    prices = [fix.speed[device] for fix in alike]
    names = tuple(dict.fromkeys(fix.placement.name for fix in alike))
    return Noise(names, min(price.smallest for price in prices), max(price.largest for price in prices))


def elsewhere(result: Result) -> tuple[tuple[str, Value], ...]:
    """Every axis value of ``result`` but its placement."""
    return tuple(sorted((name, value) for name, value in result.variant.axes.items() if name != "placement"))


def _is_train_step(result: Result) -> bool:
    """Where cuDNN can run, the baseline has to have run it."""
    paths = {record.path for record in result.records}
    return result.device is Device.CPU or paths == {KernelPath.CUDNN}


def _gradients(results: Sequence[Result], device: Device) -> tuple[Judgement, ...]:
    return tuple(r.gradient for r in results if r.device is device and r.gradient is not None)


# --- prices: (replicate, ratio) of every pair of attempts


Ratios = list[tuple[int, float]]


def _speeds(pairs: Sequence[tuple[Result, Result]], placement: Placement) -> list[Ratios]:
    return [
        [
            (number, base / own)
            for number, record, step in _replicates(result, baseline)
            for own, base in [_like_with_like(record, step, placement)]
            if own and base
        ]
        for result, baseline in pairs
    ]


def _like_with_like(record: Record, step: Record, placement: Placement) -> tuple[float | None, float | None]:
    """Seconds of a step of both; what applies no gradient is held against the baseline without the optimizer's part.

    The parts are timed in fewer blocks than the whole, so most of the number is to come from the whole.
    """
    own, base = step_seconds(record), step_seconds(step)
    own_update, base_update = part_seconds(record, "optimizer"), part_seconds(step, "optimizer")
    if placement.applies or own is None or base is None or own_update is None or base_update is None:
        return own, base
    return max(own - own_update, 0.0), max(base - base_update, 0.0)


def _memories(pairs: Sequence[tuple[Result, Result]]) -> list[Ratios]:
    return [
        [
            (number, record.peak_memory_bytes / step.peak_memory_bytes)
            for number, record, step in _replicates(result, baseline)
            if record.peak_memory_bytes and step.peak_memory_bytes and record.memory_source == step.memory_source
        ]
        for result, baseline in pairs
    ]


def _replicates(result: Result, baseline: Result) -> Iterator[tuple[int, Record, Record]]:
    steps = {record.replicate: record for record in baseline.records}
    for record in result.records:
        if record.replicate in steps:
            yield record.replicate, record, steps[record.replicate]


def _price(pairs: Sequence[Ratios]) -> Price | None:
    ratios = [ratio for each in pairs for _, ratio in each]
    of_pairs = [middle for each in pairs if (middle := median(ratio for _, ratio in each)) is not None]
    if not of_pairs:
        return None
    # The replicate is the process: its median over all pairs is one value, however many pairs there are.
    numbered = sorted((x for each in pairs for x in each), key=lambda x: x[0])
    per_replicate = [median(ratio for _, ratio in same) for _, same in groupby(numbered, key=lambda x: x[0])]
    values = [value for value in per_replicate if value is not None]
    middle = median(ratios)
    assert middle is not None
    return Price(middle, min(of_pairs), max(of_pairs), len(of_pairs), len(values), median_interval(values))
