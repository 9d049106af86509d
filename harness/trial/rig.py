"""What takes a gradient: an attempt's network and batches, with a placement's hooks around forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor

from harness.model import Device, Order
from harness.placements import PLACEMENTS, Action, Placement, Second
from harness.trial.modes import Modes, around
from harness.trial.network import loss_of, make_batch, make_net


class _NoGradient(torch.autograd.Function):
    """Passes a value on and no gradient back: the graph reaches what lies behind it, the gradient does not."""

    @staticmethod
    def forward(_context: Any, value: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def backward(_context: Any, _gradient: Tensor) -> None:
        return None


class Rig:
    """Everything random in it comes from the order's seed: built twice, it is the same to the bit.

    ``on_role`` is told before each forward what that forward is for, in the words of ``Sighting.role``.
    """

    def __init__(self, order: Order) -> None:
        self.variant = order.variant
        self.placement: Placement = PLACEMENTS[str(order.variant["placement"])]
        self.device = torch.device("cpu" if order.device is Device.CPU else "cuda")
        self.autocast = {"float16": torch.float16, "bfloat16": torch.bfloat16}.get(str(self.variant["autocast"]))
        torch.manual_seed(order.settings.seed)
        if self.variant["cudnn"] == "off" or self.placement.cudnn_off_process:
            torch.backends.cudnn.enabled = False
        generator = torch.Generator().manual_seed(order.settings.seed)
        self.net = make_net(self.variant, self.device, encoder=self.placement.freeze_rnn)
        self.batch = make_batch(self.variant, self.device, generator)
        self.evaluation_batch = make_batch(self.variant, self.device, generator)
        if self.placement.freeze_rnn:
            self.net.rnn.requires_grad_(False)
        if self.placement.inside_forward:
            self.net.inside_forward = lambda: self.act(self.placement.inside_forward)
        self._modes = Modes(self.net)
        self.on_role: Callable[[str], None] = lambda _role: None

    def act(self, actions: tuple[Action, ...]) -> None:
        """Carry out a hook of the placement. Most are empty, and this is in the middle of what is timed."""
        if actions:
            self._modes.act(actions)

    def step_loss(self) -> Tensor:
        """The loss of a training step, its mode switches around the forward included."""
        placement = self.placement
        self.on_role("step")
        kept = self._second_forward()
        self.act(placement.before_forward)
        if placement.around_forward is None:
            loss = self.loss(evaluation=False)
        else:
            with around(placement.around_forward):
                loss = self.loss(evaluation=False)
        if kept is not None:
            loss = loss + kept
        self.act(placement.after_forward)
        return loss

    def backward(self, loss: Tensor) -> None:
        """The backward pass, in the context that the placement puts around it."""
        if self.placement.around_backward is None:
            loss.backward()
            return
        with around(self.placement.around_backward):
            loss.backward()

    def loss(self, *, evaluation: bool) -> Tensor:
        """The loss on the evaluation batch or on the training batch, in the modes that the net is in."""
        batch = self.evaluation_batch if evaluation else self.batch
        return loss_of(self.logits(evaluation=evaluation), batch.targets)

    def logits(self, *, evaluation: bool) -> Tensor:
        """The network's output on that batch, under the autocast of the variant."""
        batch = self.evaluation_batch if evaluation else self.batch
        if self.autocast is None:
            return cast("Tensor", self.net(batch.inputs, batch.lengths))
        with torch.autocast(self.device.type, dtype=self.autocast):
            return cast("Tensor", self.net(batch.inputs, batch.lengths))

    def _second_forward(self) -> Tensor | None:
        """What the step's loss gets from an output of an eval forward, made just before; the net trains afterwards."""
        second = self.placement.second
        if second is None:
            return None
        self.act((Action.EVAL,))
        self.on_role("kept")
        output = self.logits(evaluation=True)
        self.act((Action.TRAIN,))
        self.on_role("step")
        match second:
            case Second.SPLICED:
                return output.mean()
            case Second.DETACHED:
                return output.detach().mean()
            case Second.UNUSED:
                return cast("Tensor", _NoGradient.apply(output)).mean()
