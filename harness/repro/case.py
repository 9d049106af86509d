"""What a script is made from: a variant, how often it loops, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass

from harness.model import Device, Outcome, Plan, Record, Settings, Variant
from harness.results import decisive_first, results_of


@dataclass(frozen=True, slots=True)
class Case:
    """A variant with its settings, its records (at most one a device, the GPU's first), and where it was planned."""

    variant: Variant
    settings: Settings
    origin: str
    records: tuple[Record, ...] = ()

    @property
    def device(self) -> Device:
        """Where the script shows what there is to show: the first device that did not end well, else the first."""
        failed = [record for record in self.records if record.outcome is not Outcome.OK]
        return (*failed, *self.records)[0].device if self.records else Device.CUDA


def case_of(plan: Plan, variant: Variant, records: tuple[Record, ...]) -> Case:
    """The case of a variant of ``plan``; ``records`` are all that the run has, of whatever variant."""
    mine = [record for record in records if record.key == variant.key and record.run == plan.run]
    decisive = tuple(record for _, record in decisive_first(results_of(plan, variant, mine)))
    return Case(variant, plan.settings, f"Run {plan.run}", decisive)
