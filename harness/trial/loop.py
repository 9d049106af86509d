"""The step loop: E epochs of S training steps with an evaluation after each, and a placement's hooks in between."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, cast

import torch
from torch import Tensor, nn

from harness.model import Device, Order, Phase
from harness.placements import PLACEMENTS, Action, Placement, Second
from harness.trial.clock import BlockClock
from harness.trial.modes import Modes, around
from harness.trial.network import Batch, Net, make_batch, make_net
from harness.trial.sight import Watch
from harness.wire import Breadcrumb


class _NoGradient(torch.autograd.Function):
    """Passes a value on and no gradient back: the graph reaches what lies behind it, the gradient does not."""

    @staticmethod
    def forward(_context: Any, value: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def backward(_context: Any, _gradient: Tensor) -> None:
        return None


class Loop:
    """One attempt's training. What it saw stays readable after an exception: ``phase``, ``epoch``, ``step``, losses."""

    def __init__(self, order: Order, crumb: Breadcrumb) -> None:
        self.settings = order.settings
        self.variant = order.variant
        self.placement: Placement = PLACEMENTS[str(order.variant["placement"])]
        self.computes = order.device.computes
        self.phase, self.epoch, self.step = Phase.BUILD, 0, 0
        self.losses: list[Tensor] = []
        self._crumb = crumb
        cuda = order.device is not Device.CPU
        self.device = torch.device("cuda" if cuda else "cpu")
        self.clock = BlockClock(cuda, self.computes, self.settings.warmup_epochs)
        self._autocast = {"float16": torch.float16, "bfloat16": torch.bfloat16}.get(str(self.variant["autocast"]))
        self.watch: Watch | None = None
        self.net: Net | None = None
        self._modes: Modes
        self.batch: Batch | None = None

    def run(self) -> None:
        """Build the network, then train and evaluate for every epoch. An exception of the variant passes through."""
        self._enter(Phase.BUILD)
        self._build()
        for epoch in range(1, self.settings.epochs + 1):
            self.epoch, self.step = epoch, 0
            self._train_epoch()
            self._enter(Phase.EVALUATE)
            self._modes.act(self.placement.before_evaluation)
            self._evaluate()

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self._crumb.drop(phase, self.epoch, self.step)

    def _build(self) -> None:
        placement, settings = self.placement, self.settings
        torch.manual_seed(settings.seed)
        if self.variant["cudnn"] == "off" or placement.cudnn_off_process:
            torch.backends.cudnn.enabled = False
        generator = torch.Generator().manual_seed(settings.seed)
        self.net = net = make_net(self.variant, self.device, encoder=placement.freeze_rnn)
        self.batch = make_batch(self.variant, self.device, generator)
        self._evaluation_batch = make_batch(self.variant, self.device, generator)
        if placement.freeze_rnn:
            net.rnn.requires_grad_(False)
        if placement.inside_forward:
            net.inside_forward = lambda: self._modes.act(placement.inside_forward)
        self._optimizer = torch.optim.SGD(
            [weight for weight in net.parameters() if weight.requires_grad], lr=settings.learning_rate
        )
        self._modes = Modes(net)
        self.watch = Watch(net.rnn)
        self._modes.act(placement.start)

    def _train_epoch(self) -> None:
        self._modes.act(self.placement.epoch_start)
        steps = self.settings.steps
        self.clock.start()
        for step in range(1, steps + 1):
            self.step = step
            if step == steps // 2 + 1:
                self._modes.act(self.placement.mid_epoch)
            self._train_step()
            if self.epoch == step == 1:
                # The first step pays for what is set up lazily: a block, and a number, of its own.
                self.clock.stop(1, 1)
                self.clock.start()
        self.clock.stop(self.epoch, steps - 1 if self.epoch == 1 else steps)

    def _train_step(self) -> None:
        placement = self.placement
        self._enter(Phase.FORWARD)
        self._tell_watch("step")
        kept = self._second_forward()
        self._modes.act(placement.before_forward)
        with around(placement.around_forward):
            loss = self._loss(cast("Batch", self.batch))
        if kept is not None:
            loss = loss + kept
        self._modes.act(placement.after_forward)
        self._enter(Phase.BACKWARD)
        self._backward(loss)
        self._enter(Phase.STEP)
        if placement.applies:
            self._optimizer.step()
        self._optimizer.zero_grad()
        self._modes.act(placement.after_step)
        self.losses.append(loss.detach())

    def _second_forward(self) -> Tensor | None:
        """What the step's loss gets from an output of an eval forward, made just before; the net trains afterwards."""
        second = self.placement.second
        if second is None:
            return None
        self._modes.act((Action.EVAL,))
        self._tell_watch("kept")
        output = self._forward(self._evaluation_batch)
        self._modes.act((Action.TRAIN,))
        self._tell_watch("step")
        match second:
            case Second.SPLICED:
                return output.mean()
            case Second.DETACHED:
                return output.detach().mean()
            case Second.UNUSED:
                return cast("Tensor", _NoGradient.apply(output)).mean()

    def _evaluate(self) -> None:
        steps = self.settings.evaluation_steps
        if not self.placement.inner_loop:
            self._tell_watch("evaluate")
            with torch.no_grad():
                for _ in range(steps):
                    self._loss(self._evaluation_batch)
            return
        for step in range(1, max(steps, 1) + 1):
            self.step = step
            self._enter(Phase.EVALUATE)
            self._tell_watch("inner")
            self._backward(self._loss(self._evaluation_batch))
            self._optimizer.zero_grad()

    def _backward(self, loss: Tensor) -> None:
        try:
            with around(self.placement.around_backward):
                loss.backward()
        finally:
            cast("Watch", self.watch).backward_tried()

    def _forward(self, batch: Batch) -> Tensor:
        net = cast("Net", self.net)
        with self._cast():
            return cast("Tensor", net(batch.inputs, batch.lengths))

    def _loss(self, batch: Batch) -> Tensor:
        # The loss of half-precision logits is taken in float32, as autocast would.
        logits = self._forward(batch)
        return nn.functional.cross_entropy(logits if logits.dtype is torch.float64 else logits.float(), batch.targets)

    def _cast(self) -> Any:
        return torch.autocast(self.device.type, dtype=self._autocast) if self._autocast else nullcontext()

    def _tell_watch(self, role: str) -> None:
        watch = cast("Watch", self.watch)
        watch.role, watch.epoch, watch.step = role, self.epoch, self.step
