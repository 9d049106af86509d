"""``python -m tests.benchmarks.timer``: what the clock and the hooks add to a training step.

Loops over one and the same network: the harness's own, as it runs the timed blocks and as it runs the epochs, and a
bare one that does the same arithmetic and nothing else. (Two equal networks in one process differ by more than what is
sought.) Their blocks alternate, each pair in the order opposite to the
last one's, so that a drift of the machine hits both alike; a figure is the median of the pairs' ratios. On a CPU it is
the processor's time that counts, which other load on the machine disturbs less. Printed, not asserted.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping

import torch
from torch import nn

from harness.matrix.axes import make_variant
from harness.model import Device, Order, Settings, Value
from harness.statistics import median, median_interval
from harness.trial.loop import Loop
from harness.wire import BREADCRUMB_SIZE, Breadcrumb

ROUNDS = 60
BLOCK_SECONDS = Settings().block_ms / 1000

clock = time.perf_counter if torch.cuda.is_available() else time.process_time
DEFAULT: dict[str, Value] = {"layers": 2}
MATRIX: dict[str, Value] = {"layers": 2, "seq-len": 24, "hidden-size": 64}
SMALLEST: dict[str, Value] = {"cell": "rnn-tanh", "batch": 1, "seq-len": 1, "hidden-size": 1, "input-size": 1}

Block = Callable[[int], float]
"""Runs so many steps; returns their seconds."""


def main() -> None:
    """Print the share that measuring takes of a step, for steps of several sizes."""
    torch.set_num_threads(1)
    device = Device.CUDA if torch.cuda.is_available() else Device.CPU
    print(f"{ROUNDS} rounds of blocks of about {BLOCK_SECONDS * 1000:.0f} ms on {device}; bar 1 % of a step\n")
    for name, axes in (("default sizes", DEFAULT), ("those of `matrix`", MATRIX), ("the smallest there are", SMALLEST)):
        for cell in ("rnn-tanh",) if axes is SMALLEST else ("rnn-tanh", "lstm", "gru"):
            report(f"{cell}, {name}", Order("bench", make_variant({**axes, "cell": cell}), device, Settings()))


def report(name: str, order: Order) -> None:
    """A few lines about one network."""
    loop = Loop(order, Breadcrumb(bytearray(BREADCRUMB_SIZE)))
    loop.run()
    loop.time_steadily()  # takes the watch away
    loop.clock.read = None  # it is read between blocks, not in them
    loop._rig.net.train()
    blocks = {
        "bare": bare_block(loop),
        "bare again": bare_block(loop),
        "epochs": epoch_block(loop),
        "timed blocks": timed_block(loop),
    }
    steps = max(1, round(BLOCK_SECONDS / (blocks["bare"](20) / 20)))
    rounds = [run_round(blocks, steps) for _ in range(ROUNDS)]
    each = 1e6 * (median(seconds["bare"] for seconds in rounds) or 0.0) / steps
    print(f"  {name}: {each:.0f} us a step")
    for other in list(blocks)[1:]:
        ratios = [seconds[other] / seconds["bare"] - 1 for seconds in rounds]
        share, interval = median(ratios) or 0.0, median_interval(ratios)
        assert interval is not None
        print(
            f"    {other:14} {100 * share:+6.2f} %  {share * each:+6.1f} us a step"
            f"   (95 %: {100 * interval.low:+.2f} to {100 * interval.high:+.2f} %)"
        )


def run_round(blocks: Mapping[str, Block], steps: int) -> dict[str, float]:
    """The seconds of one block of each, run in an order of its own."""
    names = random.sample(list(blocks), len(blocks))
    return {name: blocks[name](steps) for name in names}


def bare_block(loop: Loop) -> Block:
    """Runs so many steps with nothing around them; returns their seconds."""
    net, batch, optimizer = loop._rig.net, loop._rig.batch, loop._optimizer

    def run(steps: int) -> float:
        synchronize()
        began = clock()
        for _ in range(steps):
            loss = nn.functional.cross_entropy(net(batch.inputs), batch.targets)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        synchronize()
        return clock() - began

    return run


def epoch_block(loop: Loop) -> Block:
    """The same as in the epochs: with breadcrumb, watch, losses and clock."""
    watch, net = loop.watch, loop._rig.net
    assert watch is not None

    def run(steps: int) -> float:
        loop.losses.clear()
        hook = net.rnn.register_forward_hook(watch._on_forward)
        loop.clock.start()
        began = clock()
        for step in range(1, steps + 1):
            loop.step = step
            loop._train_step()
        synchronize()
        took = clock() - began
        hook.remove()
        return took

    return run


def timed_block(loop: Loop) -> Block:
    """The same as in a timed block, its beginning and its end included."""

    def run(steps: int) -> float:
        loop.clock.samples.clear()
        began = clock()
        loop._time_block(1, steps)
        return clock() - began

    return run


def synchronize() -> None:
    """Wait for the GPU, where there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
