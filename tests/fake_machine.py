"""A machine with a clock of its own making: seeded, and with the faults that real ones have."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from builders import STEP_SECONDS, make_record

from harness.measured import MachineState, Sample
from harness.model import Device, Outcome, Plan, Record, Variant

BLOCKS = 6


@dataclass
class FakeMachine:
    """Every process is a little faster or slower than the last (``noise``), every block of it too (``jitter``).

    ``drift`` is by how much it slows down over 100 attempts, ``outliers`` the share of processes that are disturbed and
    take half as long again.
    """

    seed: int
    noise: float = 0.01
    jitter: float = 0.003
    drift: float = 0.0
    outliers: float = 0.0
    attempts: int = 0
    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def blocks(self, seconds: float) -> list[float]:
        """Seconds per step of the blocks of one more process whose step ought to take ``seconds``."""
        self.attempts += 1
        seconds *= 1 + self.chance.gauss(0, self.noise) + self.drift * self.attempts / 100
        if self.chance.random() < self.outliers:
            seconds *= 1.5
        return [seconds * (1 + self.chance.gauss(0, self.jitter)) for _ in range(BLOCKS)]

    def medians(self, count: int, seconds: float = 0.005) -> list[float]:
        """The step times of ``count`` processes."""
        return [statistics.median(self.blocks(seconds)) for _ in range(count)]

    def run(self, plan: Plan, slower: Callable[[Variant], float] = lambda _: 1.0) -> list[Record]:
        """The records of ``plan``, replicates being the outer loop, each with the times of one process."""
        records = [
            make_record(plan, variant, device, replicate)
            for device in plan.devices
            for replicate in range(plan.replicates_on(device))
            for variant in plan.variants
        ]
        variants = {variant.key: variant for variant in plan.variants}
        return [self._timed(record, slower(variants[record.key]), variants[record.key]) for record in records]

    def _timed(self, record: Record, slower: float, variant: Variant) -> Record:
        if record.outcome is not Outcome.OK or not record.device.computes:
            return record
        return replace(record, samples=self._samples(STEP_SECONDS[str(variant["cell"])] * slower, record.device))

    def _samples(self, seconds: float, device: Device) -> tuple[Sample, ...]:
        gpu = device is Device.CUDA
        state = MachineState(load=0.5, sm_mhz=1980 if gpu else None, throttled=() if gpu else None)
        first = Sample(1, 6, 60 * seconds, 60 * seconds if gpu else None, warmup=True)
        return (first, *(self._sample(each, gpu, state) for each in self.blocks(seconds)))

    def _sample(self, seconds: float, gpu: bool, state: MachineState) -> Sample:
        return Sample(2, 6, 6.1 * seconds, 6 * seconds if gpu else None, steady=True, machine=state)


def one_more(plan: Plan, **changes: object) -> Plan:
    """``plan`` run again, under another id."""
    return replace(plan, **({"run": f"{plan.run}-again"} | changes))  # type: ignore[arg-type]


def replicated(plan: Plan, count: int) -> Plan:
    """``plan`` with ``count`` attempts of each variant where kernels run."""
    return replace(plan, settings=replace(plan.settings, replicates=count))


def without(records: Sequence[Record], key: str) -> list[Record]:
    """``records`` but those of a variant."""
    return [record for record in records if record.key != key]
