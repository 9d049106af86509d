"""What was done to the runs, and what they had to do because of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.torture.victims import Victim


@dataclass(slots=True)
class Tally:
    """Counts over all rounds."""

    kills: Counter[Victim] = field(default_factory=Counter)
    rounds: int = 0
    sittings: int = 0
    unkept: int = 0
    """Commands that were killed before their plan was kept."""
    planned: int = 0
    records: int = 0
    superseded: int = 0
    cut: int = 0
    torn: int = 0
    stores: int = 0
    syncs: int = 0
    closed: int = 0

    @property
    def all_kills(self) -> int:
        """Kills of any victim."""
        return self.kills.total()

    @property
    def line(self) -> str:
        """The counts so far in one line."""
        kills = ", ".join(f"{number} {victim}" for victim, number in sorted(self.kills.items()))
        return f"{self.all_kills} kills ({kills}), {self.sittings} commands, {self.records} records"

    def lines(self, seed: int, seconds: float) -> list[str]:
        """Everything, at the end."""
        return [
            "",
            f"seed                                    {seed}",
            f"duration                                {seconds:.0f} s",
            f"kills                                   {self.all_kills}",
            *(f"  of {victim:36} {self.kills[victim]}" for victim in Victim),
            f"runs that were made whole               {self.rounds}",
            f"MLflow stores                           {self.stores}",
            f"commands killed before a plan was kept  {self.unkept}",
            f"commands                                {self.sittings}",
            f"attempts planned                        {self.planned}",
            f"records in the journals                 {self.records}",
            f"  of them made again later              {self.superseded}",
            f"journals cut at a random byte           {self.cut}",
            f"  of them with half a line left         {self.torn}",
            f"syncs between a kill and the resume     {self.syncs}",
            f"runs that other commands closed         {self.closed}",
            "planned = recorded, outcomes as undisturbed, one MLflow child a variant, none RUNNING, no orphans",
        ]
