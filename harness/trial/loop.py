"""The step loop: E epochs of S training steps with an evaluation after each, and a placement's hooks in between."""

from __future__ import annotations

import time
from typing import cast

import torch
from torch import Tensor

from harness.model import Device, Order, Phase
from harness.placements import PLACEMENTS, Placement
from harness.trial.clock import BlockClock, Part
from harness.trial.machine import machine_reader
from harness.trial.network import Batch, Net
from harness.trial.rig import Rig
from harness.trial.sight import Watch
from harness.trial.timing import Timing
from harness.wire import Breadcrumb

TIMING_SHARE = 0.5
"""Of its deadline, how much an attempt may have used when another timed block begins."""


class Loop:
    """One attempt's training. What it saw stays readable after an exception: ``phase``, ``epoch``, ``step``, losses."""

    def __init__(self, order: Order, crumb: Breadcrumb) -> None:
        self.settings = order.settings
        self.placement: Placement = PLACEMENTS[str(order.variant["placement"])]
        self.computes = order.device.computes
        self.phase, self.epoch, self.step = Phase.BUILD, 0, 0
        self.losses: list[Tensor] = []
        self._order = order
        self._crumb = crumb
        self._began = time.monotonic()
        cuda = order.device is not Device.CPU
        self.device = torch.device("cuda" if cuda else "cpu")
        read = machine_reader(order.device) if self.computes else None
        self.clock = BlockClock(cuda, self.computes, self.settings.warmup_epochs, read)
        self.watch: Watch | None = None
        self.net: Net | None = None
        self._rig: Rig
        self.batch: Batch | None = None

    def run(self) -> None:
        """Build the network, then train and evaluate for every epoch. An exception of the variant passes through."""
        self._enter(Phase.BUILD)
        self._build()
        for epoch in range(1, self.settings.epochs + 1):
            self.epoch, self.step = epoch, 0
            self._train_epoch()
            self._enter(Phase.EVALUATE)
            self._rig.act(self.placement.before_evaluation)
            self._evaluate()

    def time_steadily(self) -> None:
        """After the epochs: as many blocks as the settings ask for, each about as long as they say.

        A block is an epoch without an evaluation, and goes on in the modes that the last epoch left. Nothing watches
        it any more. It stops early where the attempt's deadline comes near: times are not worth an outcome.
        """
        cast("Watch", self.watch).close()
        self._rig.on_role = lambda _role: None
        settings = self.settings

        def late() -> bool:
            self._enter(self.phase)  # a sign of life before each block, outside what is timed: slow is not hung
            return self._is_late()

        timing = Timing(self._rig, self._optimizer, self.clock)
        timing.blocks(self.epoch + 1, settings.timed_blocks, settings.block_ms, late)

    def _is_late(self) -> bool:
        return time.monotonic() - self._began > TIMING_SHARE * self.settings.deadline

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self._crumb.drop(phase, self.epoch, self.step)

    def _build(self) -> None:
        self._rig = rig = Rig(self._order)
        self.net, self.batch = rig.net, rig.batch
        trainable = [weight for weight in rig.net.parameters() if weight.requires_grad]
        self._optimizer = torch.optim.SGD(trainable, lr=self.settings.learning_rate)
        self.watch = Watch(rig.net.rnn)
        rig.on_role = self._tell_watch
        rig.act(self.placement.start)

    def _train_epoch(self) -> None:
        self._rig.act(self.placement.epoch_start)
        steps = self.settings.steps
        self.clock.start()
        for step in range(1, steps + 1):
            self.step = step
            if step == steps // 2 + 1:
                self._rig.act(self.placement.mid_epoch)
            self._train_step()
            if self.epoch == step == 1:
                # The first step pays for what is set up lazily: a block, and a number, of its own.
                self.clock.stop(1, 1)
                self.clock.start()
        self.clock.stop(self.epoch, steps - 1 if self.epoch == 1 else steps)

    def _train_step(self) -> None:
        self._enter(Phase.FORWARD)
        loss = self._rig.step_loss()
        self.clock.lap(Part.FORWARD)
        self._enter(Phase.BACKWARD)
        self._backward(loss)
        self.clock.lap(Part.BACKWARD)
        self._enter(Phase.STEP)
        self._update()
        self.losses.append(loss.detach())
        self.clock.lap(Part.OPTIMIZER)

    def _update(self) -> None:
        if self.placement.applies:
            self._optimizer.step()
        self._optimizer.zero_grad()
        self._rig.act(self.placement.after_step)

    def _evaluate(self) -> None:
        steps = self.settings.evaluation_steps
        if not self.placement.inner_loop:
            self._tell_watch("evaluate")
            with torch.no_grad():
                for _ in range(steps):
                    self._enter(Phase.EVALUATE)
                    self._rig.loss(evaluation=True)
            return
        for step in range(1, max(steps, 1) + 1):
            self.step = step
            self._enter(Phase.EVALUATE)
            self._tell_watch("inner")
            self._backward(self._rig.loss(evaluation=True))
            self._optimizer.zero_grad()

    def _backward(self, loss: Tensor) -> None:
        try:
            self._rig.backward(loss)
        finally:
            cast("Watch", self.watch).backward_tried()

    def _tell_watch(self, role: str) -> None:
        watch = cast("Watch", self.watch)
        watch.role, watch.epoch, watch.step = role, self.epoch, self.step
