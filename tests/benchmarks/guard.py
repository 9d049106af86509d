"""What the guard costs: ``python -m tests.benchmarks.guard``. Prints a table.

Blocks of training steps, bare and guarded, alternate in one process, in a random order within each pair; the ratio is
taken pair by pair, so that a drift of the machine falls on both. A third kind of block, bare again, shows the noise.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn

import harness

PAIRS = 200
BLOCK_S = 0.02
SMALL = {"batch": 4, "seq": 8, "size": 16}


class Net(nn.Module):
    def __init__(self, cell: str) -> None:
        super().__init__()
        self.rnn = getattr(nn, cell)(SMALL["size"], SMALL["size"], batch_first=True)
        self.head = nn.Linear(SMALL["size"], 4)

    def forward(self, sequence: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(sequence)[0][:, -1])


def make_step(cell: str) -> Callable[[], None]:
    net = Net(cell)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    inputs = torch.randn(SMALL["batch"], SMALL["seq"], SMALL["size"])
    targets = torch.randint(4, (SMALL["batch"],))

    def step() -> None:
        net.train()
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs), targets).backward()
        optimizer.step()

    return step


def block(step: Callable[[], None], steps: int, context: AbstractContextManager[object]) -> float:
    with context:
        started = time.process_time()
        for _ in range(steps):
            step()
        return (time.process_time() - started) / steps


def interval(values: list[float]) -> tuple[float, float, float]:
    """The median and a distribution-free 95 % interval of it."""
    ordered, half = sorted(values), 0.98 * len(values) ** 0.5
    low, high = max(0, int(len(values) / 2 - half)), min(len(values) - 1, int(len(values) / 2 + half))
    return statistics.median(values), ordered[low], ordered[high]


CONTEXTS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "bare again (noise)": nullcontext,
    "guard()": harness.guard,
    "guard(when='forward')": lambda: harness.guard("forward"),
}


def compare(cell: str, context: Callable[[], AbstractContextManager[object]]) -> str:
    step = make_step(cell)
    block(step, 200, context())
    steps = max(1, int(BLOCK_S / block(step, 200, nullcontext())))
    ratios, bare = [], []
    for _ in range(PAIRS):
        times: dict[bool, float] = {}
        for guarded in random.sample([False, True], 2):
            times[guarded] = block(step, steps, context() if guarded else nullcontext())
        ratios.append(100 * (times[True] / times[False] - 1))
        bare.append(times[False])
    median, low, high = interval(ratios)
    return f"{median:+.2f} % [{low:+.2f}, {high:+.2f}] of a step of {1e6 * statistics.median(bare):.0f} us"


def main() -> None:
    torch.set_num_threads(1)
    print(f"Overhead of CPU time, median and 95 % interval of {PAIRS} alternating pairs of blocks of {BLOCK_S} s")
    for cell in ("RNN", "GRU", "LSTM"):
        for name, context in CONTEXTS.items():
            print(f"  {cell:<5}{name:<24}{compare(cell, context)}", flush=True)


if __name__ == "__main__":
    main()
