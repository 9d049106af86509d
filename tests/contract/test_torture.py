"""A sample of what ``make torture`` does: a few runs on the CPU, until a coordinator and an attempt were killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.rounds import Torture
from tests.torture.tally import Tally
from tests.torture.victims import Victim

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated:DeprecationWarning")

SEED = 5
KILLS = 12
MOST_ROUNDS = 8
"""A fast machine may be through with a run before anybody is killed."""


def enough(tally: Tally) -> bool:
    """Zygotes are left to chance."""
    return tally.all_kills >= KILLS and min(tally.kills[Victim.COORDINATOR], tally.kills[Victim.ATTEMPT]) > 0


@pytest.mark.timeout(280)
def test_runs_that_are_killed_again_and_again_are_whole_in_the_end(tmp_path: Path) -> None:
    tally = Tally()
    torture = Torture(tmp_path, SEED, tally, "cpu")
    while not enough(tally) and tally.rounds < MOST_ROUNDS:
        torture.round(tally.rounds + 1)
    assert enough(tally), tally.line
    assert tally.records >= tally.planned
