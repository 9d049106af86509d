"""``make bench``: what isolation, journal and MLflow cost, as ratios from one run on one machine.

Nothing here is a test: a slow machine must not fail a build. Bars are printed beside the figures.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from harness.errors import StubUnavailableError
from harness.stub import ensure
from tests.benchmarks.matrices import cpu_matrix, stub_matrix

HERE = Path(__file__).parent
HARNESS = Path(sys.executable).with_name("harness")
ROUNDS = 3
LOOKS = 5
NAIVE_SAMPLES = 6


def main() -> None:
    """Print every figure with its bar."""
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print("Whole-process wall times, the median of several rounds in turn.\n")
    bench_help()
    with tempfile.TemporaryDirectory() as name:
        bench_cpu(Path(name))
    try:
        environment = ensure().environment(os.environ)
    except StubUnavailableError as error:
        print(f"\nno stub here: {error}")
        return
    with tempfile.TemporaryDirectory() as name:
        bench_stub(Path(name), environment)


def bench_help() -> None:
    """What looking costs: the start of the command, with no heavy import behind it."""
    looks = [wall([str(HARNESS), "--help"]) for _ in range(LOOKS)]
    print(f"harness --help                      {median(looks):7.2f} s    bar 0.3 s\n")


def bench_cpu(folder: Path) -> None:
    """The fixed cost of an attempt on the CPU, against a bare loop and against the naive way."""
    matrix, count = cpu_matrix(folder), 96
    bare, run = [], []
    for number in range(ROUNDS):
        bare.append(wall([sys.executable, str(HERE / "bare.py"), str(matrix), "cpu"]))
        run.append(wall(harness(folder / f"store{number}", matrix, "cpu")))
    uri = f"sqlite:///{folder / 'naive.db'}"
    naive_command = [sys.executable, str(HERE / "naive.py"), str(matrix)]
    wall([*naive_command, "0", uri], folder)  # creates the database; not counted
    every = count // NAIVE_SAMPLES
    naive = [wall([*naive_command, str(index * every), uri], folder) for index in range(NAIVE_SAMPLES)]
    fixed = (median(run) - median(bare)) / count
    naive_each = median(naive) - median(bare) / count
    print(f"{count} variants on the CPU")
    print(f"  bare loop, one warm process       {median(bare):7.2f} s")
    print(f"  harness run                       {median(run):7.2f} s")
    print(f"  fixed cost of an attempt          {fixed * 1000:7.0f} ms   bar 120, aim 60")
    print(f"  of the naive way, per variant     {naive_each * 1000:7.0f} ms   ({NAIVE_SAMPLES} sampled)")
    print(f"  naive / harness                   {naive_each / fixed:7.1f} x    bar 20")


def bench_stub(folder: Path, environment: dict[str, str]) -> None:
    """Stub attempts, isolated, journaled, in MLflow and reported."""
    thousand = stub_matrix(folder, 1000)
    warm = float(output([sys.executable, str(HERE / "bare.py"), str(thousand), "stub"], environment))
    whole = {
        count: wall(harness(folder / f"store{count}", stub_matrix(folder, count), "stub"))
        for count in (500, 1000, 4000)
    }
    each = {count: seconds / count for count, seconds in whole.items()}
    print("\nvariants on the stub, two attempts at once")
    print(f"  1,000 in one warm process         {warm:7.2f} s    {1000 / warm:6.0f} a second")
    print(f"  1,000 with harness run            {whole[1000]:7.2f} s    {1000 / whole[1000]:6.0f} a second   bar 45 s")
    print(f"  per variant, 4,000 against 500    {each[4000] / each[500]:7.2f} x    bar 1.2")
    print(f"  ({each[500] * 1000:.1f} ms at 500, {each[1000] * 1000:.1f} at 1,000, {each[4000] * 1000:.1f} at 4,000)")


def harness(store: Path, matrix: Path, device: str) -> list[str]:
    """The command line of a quiet run in a store of its own."""
    return [str(HARNESS), "--store", str(store), "run", "matrix", str(matrix), "--device", device, "--quiet"]


def wall(command: Sequence[str], folder: Path | None = None) -> float:
    """Seconds from start to end of ``command``, which must succeed."""
    began = time.perf_counter()
    output(command, dict(os.environ), folder)
    return time.perf_counter() - began


def output(command: Sequence[str], environment: dict[str, str], folder: Path | None = None) -> str:
    """What ``command`` prints; its complaints are shown if it fails."""
    done = subprocess.run(
        command, env=environment | {"PYTHONPATH": ""}, cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def median(values: Sequence[float]) -> float:
    """The middle one."""
    return sorted(values)[len(values) // 2]


if __name__ == "__main__":
    main()
