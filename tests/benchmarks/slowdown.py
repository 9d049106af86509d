"""``python -m tests.benchmarks.slowdown [ATTEMPTS]``: does `harness compare` find a real slow-down, and nothing else?

Three real runs of the same variants on the CPU, each in a store of its own: A, B by the same code, C by a copy of the
harness in which every timed step of one cell takes 5 % longer, because it spins for so long. B against A must come out
`same` or `ambiguous` everywhere; C against A must find that cell and no other. On a machine that is busy with something
else, neither can be expected: what it was doing is printed beside the verdicts. Printed, not asserted.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import harness

SLOW_CELL, SLOWER = "lstm", 1.05
"""Its steps are the steadier ones, where a change of this size can be told from noise at all."""
ATTEMPTS = 15
PLACEMENTS = "train-always,train-each-epoch,eval-cudnn-off-forward,rnn-train-dropout-zero"
AXES = ("cell=lstm,gru", "dropout=0.0", "norm=none", f"placement={PLACEMENTS}")
WORDS = ("run", "matrix", "fixes", *(word for axis in AXES for word in ("-a", axis)))

WHOLE = "        run(steps)\n"
SPINS = f"""\
        for _ in range(steps):
            began = time.perf_counter()
            run(1)
            if self._rig.variant["cell"] == "{SLOW_CELL}":
                until = began + {SLOWER} * (time.perf_counter() - began)
                while time.perf_counter() < until:
                    pass
"""


def main() -> None:
    """Run the three, compare, print."""
    attempts = int(sys.argv[1]) if len(sys.argv) > 1 else ATTEMPTS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copies = {"A": None, "B": None, "C": slower_copy(folder)}
        runs = {side: run(folder / side, attempts, copy) for side, copy in copies.items()}
        for side, what in (
            ("B", "the same code again"),
            ("C", f"every timed step of {SLOW_CELL} {SLOWER - 1:.0%} longer"),
        ):
            tell(f"{side} against A: {what}", compare(folder / "A", runs["A"], runs[side]))


def slower_copy(folder: Path) -> Path:
    """A folder with a copy of the package whose timed steps of one cell spin."""
    copy = folder / "slower" / "harness"
    shutil.copytree(Path(harness.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(Path(harness.__file__).parent.parent / "experiments", copy.parent / "experiments")
    timing = copy / "trial" / "timing.py"
    text = timing.read_text()
    assert text.count(WHOLE) == 1
    timing.write_text(text.replace(WHOLE, SPINS).replace("import math\n", "import math\nimport time\n"))
    return copy.parent


def run(store: Path, attempts: int, package: Path | None) -> Path:
    """The folder of a run of ``attempts`` per variant, by the package in that folder, or by this one."""
    environment = dict(os.environ) | ({} if package is None else {"PYTHONPATH": str(package)})
    words = [*WORDS, "--device", "cpu", "--replicates", str(attempts), "--no-tracking", "--quiet"]
    harness_command(["--store", str(store), *words], environment)
    (folder,) = (store / "mlruns" / "runs").iterdir()
    return folder


def compare(store: Path, a: Path, b: Path) -> Any:
    """What `harness compare` says, as JSON."""
    return json.loads(
        harness_command(["--store", str(store), "compare", str(a), str(b), "--format", "json"], dict(os.environ))
    )


def harness_command(words: list[str], environment: dict[str, str]) -> str:
    """What the command prints; its complaints are shown if it fails."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from harness.cli import main; sys.exit(main())", *words],
        env=environment, capture_output=True, text=True, check=False, cwd=tempfile.gettempdir(),
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"harness {' '.join(words)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def tell(title: str, found: Any) -> None:
    """The verdicts, what they rest on, and what the machine did meanwhile."""
    print(f"\n{title}: {', '.join(f'{amount} {verdict}' for verdict, amount in found['verdict_counts'].items())}")
    for cell in found["timings"]:
        axes = dict(part.split("=") for part in cell["label"].split(","))
        size = f"{cell['ratio']:.3f} [{cell['low']:.3f}, {cell['high']:.3f}], needs {cell['needs']:.3f}"
        print(f"  {axes['cell']:5} {axes['placement']:24} {cell['verdict']:10} {size}  {cell['reason'] or ''}")
    for shift in found["common_shifts"].values():
        print(f"  common shift: {'found' if shift['found'] else 'none'}, factor {shift['factor']:.3f}")
    for row in found["machine"]:
        print(f"  {row['name']}: {row['a']} and {row['b']}")


if __name__ == "__main__":
    main()
