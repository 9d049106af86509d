"""What every section of a report is made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd

from harness.model import Device, Outcome, Plan, Record
from harness.report.columns import axis_column
from harness.report.fixes import Table, fix_tables
from harness.report.frame import axes_of, frame_of
from harness.report.learning import Learnt, learn
from harness.results import Result, collect
from harness.rule import RuleCheck, check_rule
from harness.sittings import Sitting, first_sitting


@dataclass(frozen=True)
class Evidence:
    """A plan, what its records say, and the tables made of both."""

    plan: Plan
    results: tuple[Result, ...]
    strays: int = 0
    extra_caveats: tuple[str, ...] = ()
    sittings: tuple[Sitting, ...] = ()
    pictures: dict[str, str] = field(default_factory=dict)
    """Plots that lie beside the report, by name without suffix, with what they show; filled in once they are drawn."""

    @classmethod
    def of(
        cls,
        plan: Plan,
        records: Sequence[Record],
        extra_caveats: Sequence[str] = (),
        sittings: Sequence[Sitting] = (),
    ) -> Evidence:
        """Gather ``records`` under ``plan``; of ``sittings`` the first is known from the plan."""
        collection = collect(plan, records)
        known = tuple(sittings) or (first_sitting(plan),)
        return cls(plan, collection.results, collection.strays, tuple(extra_caveats), known)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row per planned variant and device."""
        return frame_of(self.plan, self.results)

    @cached_property
    def varying(self) -> list[str]:
        """The columns of axes that have more than one value in this plan."""
        columns = [axis_column(axis) for axis in axes_of(self.plan)]
        return [column for column in columns if self.frame[column].nunique(dropna=False) > 1]

    @cached_property
    def counted(self) -> tuple[Record, ...]:
        """Every record that counts."""
        return tuple(record for result in self.results for record in result.records)

    @cached_property
    def rule(self) -> RuleCheck:
        """How the rule fared against the records."""
        return check_rule(self.results)

    @cached_property
    def learnt(self) -> dict[Device, Learnt]:
        """The smallest rule that the records of each device teach; only of devices on which the error can occur."""
        return {device: learn(self.results_on(device)) for device in self.raising_devices}

    @cached_property
    def fixes(self) -> list[Table]:
        """What to use instead of that which raises."""
        return fix_tables(self.plan, self.results)

    @cached_property
    def placements(self) -> list[str]:
        """The placements of the plan, in its order."""
        return list(dict.fromkeys(str(v["placement"]) for v in self.plan.variants if "placement" in v.axes))

    def picture(self, kind: str, device: Device) -> str:
        """The plot of this kind and device as markdown; empty where there is none."""
        name = f"{kind}-{device}"
        return f"![{self.pictures[name]}]({name}.svg)" if name in self.pictures else ""

    def results_on(self, device: Device) -> list[Result]:
        """The results of ``device``."""
        return [result for result in self.results if result.device is device]

    def ran_on(self, device: Device) -> bool:
        """Whether anything of this plan has run on ``device``."""
        return any(result.attempts for result in self.results_on(device))

    @property
    def ran(self) -> bool:
        """Whether anything of this plan has run."""
        return any(result.attempts for result in self.results)

    def on(self, device: Device) -> pd.DataFrame:
        """The rows of ``device``."""
        return self.frame[self.frame["device"] == device.value]

    @property
    def raising_devices(self) -> list[Device]:
        """The devices of this plan on which the error can occur at all."""
        return [device for device in self.plan.devices if device is not Device.CPU]

    @cached_property
    def raising_keys(self) -> frozenset[str]:
        """Variants that raise on some device of this run."""
        return frozenset(r.key for r in self.results if r.outcome is Outcome.BACKWARD_ERROR)
