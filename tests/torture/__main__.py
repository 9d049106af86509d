"""``make torture``: runs that are killed again and again, gone on with, and then looked at.

``python -m tests.torture [--kills N] [--rounds N] [--first N] [--seed N] [--device stub|cpu|auto]``. Each round runs a
small matrix and sends SIGKILL to coordinator, zygote or attempt at seeded instants until it is complete; some rounds
also cut the journal's last line at a random byte. Without ``--device`` each round draws one; ``auto`` is a GPU where
there is one, else stub and CPU. Prints what it did. Exit code 1 with the seed and the round if anything is wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.torture.rounds import CHOICES, Torture
from tests.torture.tally import Tally
from tests.torture.wrong import WrongError


def main() -> int:
    """Torture until enough kills or rounds are through."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=200, help="stop after so many kills [200]")
    parser.add_argument("--rounds", type=int, default=10**6, help="stop after so many rounds [no limit]")
    parser.add_argument("--first", type=int, default=1, help="the round to begin with, to see one again [1]")
    parser.add_argument("--seed", type=int, default=0, help="gives every choice and every instant [0]")
    parser.add_argument("--device", choices=CHOICES, help="[drawn for each round]")
    asked = parser.parse_args()
    tally, began = Tally(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="torture") as folder:
        torture = Torture(Path(folder), asked.seed, tally, asked.device)
        for number in range(asked.first, asked.first + asked.rounds):
            try:
                torture.round(number)
            except WrongError as error:
                print(f"WRONG in round {number} with seed {asked.seed}: {error}", file=sys.stderr)
                print(f"again: python -m tests.torture --seed {asked.seed} --first {number} --rounds 1")
                return 1
            print(f"round {number}: {tally.line} ({time.monotonic() - began:.0f} s)", flush=True)
            if tally.all_kills >= asked.kills:
                break
    print("\n".join(tally.lines(asked.seed, time.monotonic() - began)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
