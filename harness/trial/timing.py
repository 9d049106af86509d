"""The blocks that are timed after the epochs: training steps with nothing around them but what the placement does."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from harness.trial.clock import BlockClock, Part
from harness.trial.network import loss_of
from harness.trial.rig import Rig

LONGEST_BLOCK = 10_000
"""Steps of one block; a clock that claims that a step takes no time must not make it endless."""

PARTS_EVERY = 3
"""Of how many blocks the first has one before it whose steps are timed in parts."""


class Timing:
    """Times blocks of one rig's steps.

    A whole block has no look at the clock inside it, and no event: on a small network they would cost more than is
    sought. What the parts of a step take is seen in blocks of their own, between the whole ones.
    """

    def __init__(self, rig: Rig, optimizer: torch.optim.Optimizer, clock: BlockClock) -> None:
        self._rig = rig
        self._optimizer = optimizer
        self._clock = clock
        self._applies = rig.placement.applies
        self._bare = _is_bare(rig)

    def blocks(self, first_epoch: int, amount: int, block_ms: float, late: Callable[[], bool]) -> None:
        """Time ``amount`` whole blocks of about ``block_ms``, and those in parts; each counts as an epoch.

        It stops early where ``late`` says so. The steps of a block follow from what the last one has taken.
        """
        epoch = first_epoch
        for number in range(amount):
            for block in (self.parts, self.whole) if number % PARTS_EVERY == 0 else (self.whole,):
                if late():
                    return
                last = self._clock.samples[-1]
                steps = math.ceil(block_ms / 1000 * last.steps / max(last.wall_s, 1e-9))
                block(epoch, min(max(steps, 1), LONGEST_BLOCK))
                epoch += 1

    def whole(self, epoch: int, steps: int) -> None:
        """One block, timed from outside."""
        self._rig.act(self._rig.placement.epoch_start)
        run = self._run_bare if self._bare else self._run
        self._clock.start()
        run(steps)
        self._clock.stop(epoch, steps, steady=True)

    def parts(self, epoch: int, steps: int) -> None:
        """One block, the parts of its steps timed as well."""
        self._rig.act(self._rig.placement.epoch_start)
        self._clock.start()
        for _ in range(steps):
            loss = self._rig.step_loss()
            self._clock.lap(Part.FORWARD)
            self._rig.backward(loss)
            del loss  # as below
            self._clock.lap(Part.BACKWARD)
            self._update()
            self._clock.lap(Part.OPTIMIZER)
        self._clock.stop(epoch, steps, steady=True)

    def _run(self, steps: int) -> None:
        for _ in range(steps):
            self._rig.backward(self._rig.step_loss())
            self._update()

    def _run_bare(self, steps: int) -> None:
        """The same for a placement that does nothing within a step: as short as a person would write it."""
        net, batch, optimizer, applies = self._rig.net, self._rig.batch, self._optimizer, self._applies
        inputs, lengths, targets = batch.inputs, batch.lengths, batch.targets
        for _ in range(steps):
            # No name for the loss: it would keep this step's graph alive, beside which the next one is built.
            loss_of(net(inputs, lengths), targets).backward()
            if applies:
                optimizer.step()
            optimizer.zero_grad()

    def _update(self) -> None:
        if self._applies:
            self._optimizer.step()
        self._optimizer.zero_grad()
        self._rig.act(self._rig.placement.after_step)


def _is_bare(rig: Rig) -> bool:
    """Whether a step of ``rig`` consists of forward, backward and optimizer alone."""
    placement = rig.placement
    hooks = (placement.before_forward, placement.after_forward, placement.after_step)
    contexts = (placement.around_forward, placement.around_backward, placement.second, rig.autocast)
    return not any(hooks) and all(context is None for context in contexts)
