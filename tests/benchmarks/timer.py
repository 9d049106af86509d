"""``python -m tests.benchmarks.timer``: what the clock and the hooks add to a training step.

Loops over one and the same network: the harness's own, as it runs the timed blocks and as it runs the epochs, and one
written by hand that does the same and nothing else. (Two equal networks in one process differ by more than what is
sought.) A round has one block of each, in an order of its own, so that a drift of the machine hits all alike; a figure
is the median over the rounds of the ratio to the bare block, with its distribution-free 95 % interval. On a CPU it is
this thread's processor time that counts, which other load on the machine disturbs less. Rounds are added until the
interval of the timed blocks lies on one side of the bar. The bare loop stands in twice: what it differs by from itself
is the error of the method.

Exits with 1 if a timed block is shown to cost more than the bar; says so where the machine is too noisy to tell.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import torch
from torch import nn

from harness.matrix.axes import make_variant
from harness.model import Device, Order, Settings, Value
from harness.statistics import Interval, median, median_interval
from harness.trial.loop import Loop
from harness.trial.timing import Timing
from harness.wire import BREADCRUMB_SIZE, Breadcrumb

BAR = 0.01
FEWEST_ROUNDS, MOST_ROUNDS = 40, 400
BLOCK_SECONDS = 0.03

clock = time.perf_counter if torch.cuda.is_available() else time.thread_time

Axes = dict[str, Value]
DEFAULT: Axes = {"layers": 2}
MATRIX: Axes = {"layers": 2, "dropout": 0.2, "batch": 16, "seq-len": 24, "input-size": 16, "hidden-size": 64}
SHORTEST: Axes = {"seq-len": 1, "hidden-size": 1}
SMALLEST: Axes = {**SHORTEST, "batch": 1, "input-size": 1}
SIZES = {"default sizes": DEFAULT, "as in `matrix` and `fixes`": MATRIX, "the smallest of `full`": SHORTEST}

Block = Callable[[int], float]
"""Runs so many steps; returns their seconds."""


def main() -> int:
    """Print the share that measuring takes of a step, for steps of several sizes; 1 where it is above the bar."""
    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(f"what measuring adds to a step on {device}; bar {BAR:.0%} for the timed blocks")
    print(f"(rounds of blocks of about {1000 * BLOCK_SECONDS:.0f} ms; in brackets the 95 % interval of the median)\n")
    verdicts = [report(name, axes) for name, axes in networks()]
    failed, unsure = verdicts.count("above the bar"), verdicts.count("too noisy to tell")
    print(f"\n{len(verdicts)} networks: {failed} above the bar, {unsure} where this machine is too noisy to tell")
    return 1 if failed else 0


def networks() -> Iterator[tuple[str, Axes]]:
    """Every cell in every size, and the two kinds of placement that do something within a step."""
    for size, axes in SIZES.items():
        for cell in ("rnn-tanh", "lstm", "gru"):
            yield f"{cell}, {size}", {**axes, "cell": cell}
    yield "rnn-tanh, the smallest there is", {**SMALLEST, "cell": "rnn-tanh"}
    for placement in ("train-each-step", "eval-cudnn-off-forward"):
        yield f"lstm, default sizes, {placement}", {**DEFAULT, "cell": "lstm", "placement": placement}


def report(name: str, axes: Axes) -> str:
    """A few lines about one network; returns what is to be said of its timed blocks."""
    device = Device.CUDA if torch.cuda.is_available() else Device.CPU
    order = Order("bench", make_variant({"placement": "train-always", **axes}), device, Settings())
    loop = Loop(order, Breadcrumb(bytearray(BREADCRUMB_SIZE)))
    loop.run()
    loop.time_steadily()  # takes the watch away
    loop.clock.read = None  # it is read between blocks, not in them
    by_hand = partial(run_bare_block, loop, STEPS[loop.placement.name])
    blocks = {"bare": by_hand, "bare again": by_hand, "epochs": epoch_block(loop), "timed": timed_block(loop)}
    if loop.placement.name != "train-always":
        del blocks["epochs"]
    steps = max(1, round(BLOCK_SECONDS / (by_hand(20) / 20)))
    rounds = run_rounds(blocks, steps)
    each = 1e6 * (median(seconds["bare"] for seconds in rounds) or 0.0) / steps
    print(f"  {name}: {each:.0f} us a step, {len(rounds)} rounds")
    for other in list(blocks)[1:]:
        share, interval = share_of(other, rounds)
        said = f"   {said_of(interval)}" if other == "timed" else ""
        print(
            f"    {other:10} {100 * share:+6.2f} %  [{100 * interval.low:+.2f}, {100 * interval.high:+.2f}]"
            f"  {share * each:+6.1f} us{said}"
        )
    return said_of(share_of("timed", rounds)[1])


def run_rounds(blocks: Mapping[str, Block], steps: int) -> list[dict[str, float]]:
    """The seconds of one block of each, round for round, until it is clear on which side of the bar they are.

    It is looked at up to ten times, so an interval of 95 % errs more often than one time in twenty.
    """
    rounds: list[dict[str, float]] = []
    while len(rounds) < MOST_ROUNDS:
        for _ in range(FEWEST_ROUNDS):
            rounds.append({name: blocks[name](steps) for name in random.sample(list(blocks), len(blocks))})
        if said_of(share_of("timed", rounds)[1]) != "too noisy to tell":
            break
    return rounds


def share_of(name: str, rounds: Sequence[Mapping[str, float]]) -> tuple[float, Interval]:
    """What a kind of block takes more than the bare one, as a share of it."""
    ratios = [seconds[name] / seconds["bare"] - 1 for seconds in rounds]
    middle, interval = median(ratios), median_interval(ratios)
    assert middle is not None and interval is not None
    return middle, interval


def said_of(interval: Interval) -> str:
    """Whether the bar is kept, by all that the interval holds."""
    if interval.high < BAR:
        return "under the bar"
    return "above the bar" if interval.low > BAR else "too noisy to tell"


def plain_step(loop: Loop) -> None:
    """What a person would write."""
    batch = loop._rig.batch
    nn.functional.cross_entropy(loop._rig.net(batch.inputs), batch.targets).backward()


def step_that_trains(loop: Loop) -> None:
    """The same, with what `train-each-step` does."""
    loop._rig.net.train()
    plain_step(loop)


def step_without_cudnn(loop: Loop) -> None:
    """The same, with what `eval-cudnn-off-forward` does, the gradient thrown away."""
    batch = loop._rig.batch
    with torch.backends.cudnn.flags(enabled=False):
        loss = nn.functional.cross_entropy(loop._rig.net(batch.inputs), batch.targets)
    loss.backward()


STEPS = {
    "train-always": plain_step,
    "train-each-step": step_that_trains,
    "eval-cudnn-off-forward": step_without_cudnn,
}


def run_bare_block(loop: Loop, step: Callable[[Loop], None], steps: int) -> float:
    """So many steps with nothing around them; returns their seconds."""
    optimizer, applies = loop._optimizer, loop.placement.applies
    synchronize()
    began = clock()
    for _ in range(steps):
        step(loop)
        if applies:
            optimizer.step()
        optimizer.zero_grad()
    synchronize()
    return clock() - began


def epoch_block(loop: Loop) -> Block:
    """The same as in the epochs: with breadcrumb, watch, losses and clock."""
    watch, rig = loop.watch, loop._rig
    assert watch is not None

    def run(steps: int) -> float:
        loop.losses.clear()
        hook = rig.net.rnn.register_forward_hook(watch._on_forward)
        rig.on_role = loop._tell_watch
        loop.clock.start()
        began = clock()
        for step in range(1, steps + 1):
            loop.step = step
            loop._train_step()
        synchronize()
        took = clock() - began
        rig.on_role = lambda _role: None
        hook.remove()
        return took

    return run


def timed_block(loop: Loop) -> Block:
    """The same as in a timed block, its beginning and its end included."""
    timing = Timing(loop._rig, loop._optimizer, loop.clock)

    def run(steps: int) -> float:
        loop.clock.samples.clear()
        began = clock()
        timing.whole(1, steps)
        return clock() - began

    return run


def synchronize() -> None:
    """Wait for the GPU, where there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


if __name__ == "__main__":
    sys.exit(main())
