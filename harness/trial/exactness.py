"""How exact a placement's gradient is: taken once more, on the initial weights, and held against the one wanted.

The reference is computed in float64 on the CPU from the same weights and batch, in the modes that the person wanted.
All of it happens on a network of its own after the training has been recorded: no digest, time or peak of the attempt
knows of it. Facts only; ``harness.exactness`` says what they come to.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from harness.measured import Exactness
from harness.model import Order, Wants
from harness.placements import Placement, Second
from harness.trial.classify import clip, message_of, type_name
from harness.trial.digest import digest
from harness.trial.network import Batch, Net, loss_of
from harness.trial.rig import Rig

TOLERANCE = {"float64": 1e-12, "float32": 1e-4, "tf32": 5e-2, "float16": 5e-2, "bfloat16": 2e-1}
"""The largest relative error of a gradient that rounding explains, by the coarsest arithmetic allowed in it."""


Cure = Callable[[nn.Module], AbstractContextManager[object]]
"""Makes a context for a model; inside it the gradient is taken, as inside ``harness.eval_gradients(model)``."""


def examine(order: Order, cure: Cure = nullcontext) -> Exactness:
    """Take the placement's gradient, inside ``cure`` of its network, and its reference.

    What goes wrong is said in ``not_comparable``.
    """
    try:
        return _Examination(order, cure).result()
    except Exception as error:
        told = clip(message_of(error)).partition("\n")[0]
        return Exactness(not_comparable=f"the gradient could not be taken again: {type_name(error)}: {told}")


class _Examination:
    """One network, what it was before, and what was seen of it while the gradient was taken."""

    def __init__(self, order: Order, cure: Cure = nullcontext) -> None:
        self._rig = rig = Rig(order)
        self._cure = cure(rig.net)
        self._placement = rig.placement
        self._inner = rig.placement.inner_loop
        self._batch = rig.evaluation_batch if self._inner else rig.batch
        self._batch.inputs.requires_grad_()
        self._flag = order.variant["cudnn"] == "on"
        self._before = _twin(rig.net)
        self._eval_outputs = self._take_eval_outputs()
        self._sight = _Sight(rig)

    def result(self) -> Exactness:
        self._arrive()
        with self._cure:
            self._take_gradient()
        changed = tuple(self._changes())
        gradient = _gradient_of(self._rig.net, self._batch)
        precision = _precision(self._rig, cudnn=self._sight.cudnn)
        outputs = cast("Tensor", self._sight.outputs)
        seen = Exactness(
            precision=precision,
            tolerance=TOLERANCE[precision],
            outputs_equal_eval=torch.equal(outputs, self._eval_outputs),
            gradient_digest=digest(list(gradient.values())),
            train_wanted=tuple(name for name in self._sight.looked_at if wants_train(self._placement, name)),
            active_dropout=tuple(self._sight.active_dropout),
            inactive_dropout=tuple(self._sight.inactive_dropout),
            batch_statistics=tuple(self._sight.batch_statistics),
            running_statistics=tuple(self._sight.running_statistics),
            changed=changed,
        )
        dropouts = {*seen.active_dropout, *seen.inactive_dropout}
        if dropouts & set(seen.train_wanted):
            return replace(seen, not_comparable="dropout is random in the gradient that is wanted")
        return _with_errors(seen, gradient, self._reference())

    def _take_eval_outputs(self) -> Tensor:
        """What the whole net answers in eval mode, the cuDNN flag as the variant has it; then all is as before.

        With a graph, as the gradient's own forward: without one, other kernels run, which round otherwise.
        """
        net, flag = self._rig.net, torch.backends.cudnn.enabled
        net.eval()
        torch.backends.cudnn.enabled = self._flag
        inside, net.inside_forward = net.inside_forward, None
        try:
            return self._rig.logits(evaluation=self._inner).detach()
        finally:
            net.train()
            torch.backends.cudnn.enabled = flag
            net.inside_forward = inside

    def _arrive(self) -> None:
        """Bring the modes where an epoch leaves them."""
        placement = self._placement
        for hook in (placement.start, placement.epoch_start, placement.mid_epoch, placement.before_evaluation):
            self._rig.act(hook)

    def _take_gradient(self) -> None:
        """Begin the next epoch, and go through a step as far as its end."""
        rig, placement = self._rig, self._placement
        if self._inner:
            rig.backward(rig.loss(evaluation=True))
            return
        rig.act(placement.epoch_start)
        rig.backward(rig.step_loss())
        rig.act(placement.after_step)

    def _changes(self) -> Iterator[str]:
        """What is otherwise than a person who takes a gradient in the wanted modes would find it."""
        for (name, module), old in zip(self._rig.net.named_modules(), self._before.modules(), strict=True):
            if module.training is not wants_train(self._placement, name):
                yield f"{name or 'net'}.training"
            if isinstance(module, nn.RNNBase) and module.dropout != old.dropout:
                yield f"{name}.dropout"
        old_state = self._before.state_dict()
        weights = {name for name, _ in self._rig.net.named_parameters()}
        for name, value in self._rig.net.state_dict().items():
            wanted = name not in weights and wants_train(self._placement, name.rpartition(".")[0])
            if not wanted and not torch.equal(value, old_state[name]):
                yield name
        if torch.backends.cudnn.enabled is not self._flag:
            yield "torch.backends.cudnn.enabled"

    def _reference(self) -> dict[str, Tensor]:
        """The gradient that is wanted: the step's loss in float64, every module in the mode that is wanted of it."""
        net = self._before.double().cpu()
        batch = _as_reference(self._batch)
        kept: Tensor | None = None
        if self._placement.second is Second.SPLICED:
            other = _as_reference(self._rig.evaluation_batch)
            kept = net.eval()(other.inputs, other.lengths).mean()
        for name, module in net.named_modules():
            module.training = wants_train(self._placement, name)
        loss = loss_of(net(batch.inputs.requires_grad_(), batch.lengths), batch.targets)
        (loss if kept is None else loss + kept).backward()
        return _gradient_of(net, batch)


def wants_train(placement: Placement, module: str) -> bool:
    """Whether the person behind ``placement`` wants that module of the network to train; ``""`` is the net itself."""
    if placement.freeze_rnn:
        return module != "rnn"
    return placement.wants is Wants.TRAIN


class _Sight:
    """Sees in which mode each module with dropout or statistics ran the forward that the gradient comes from."""

    def __init__(self, rig: Rig) -> None:
        self.looked_at: list[str] = []
        self.active_dropout: list[str] = []
        self.inactive_dropout: list[str] = []
        self.batch_statistics: list[str] = []
        self.running_statistics: list[str] = []
        self.cudnn = False
        self.outputs: Tensor | None = None
        self._role = "step"
        rig.on_role = self._on_role
        rig.net.register_forward_hook(self._on_outputs)
        for name, module in rig.net.named_modules():
            if isinstance(module, nn.RNNBase | nn.Dropout | nn.BatchNorm1d):
                module.register_forward_pre_hook(partial(self._on_forward, name))

    def _on_role(self, role: str) -> None:
        self._role = role

    def _on_outputs(self, _net: nn.Module, _inputs: Any, outputs: Tensor) -> None:
        if self._role != "kept":
            self.outputs = outputs.detach()

    def _on_forward(self, name: str, module: nn.Module, _inputs: Any) -> None:
        if self._role == "kept":
            return
        self.looked_at.append(name)
        if isinstance(module, nn.BatchNorm1d):
            (self.batch_statistics if module.training else self.running_statistics).append(name)
            return
        if isinstance(module, nn.RNNBase):
            self.cudnn = torch.backends.cudnn.enabled
            drops = module.dropout > 0 and module.num_layers > 1
        else:
            drops = isinstance(module, nn.Dropout) and module.p > 0
        if drops:
            (self.active_dropout if module.training else self.inactive_dropout).append(name)


def _with_errors(seen: Exactness, gradient: Mapping[str, Tensor], reference: Mapping[str, Tensor]) -> Exactness:
    weights = [name for name in reference if name != INPUT]
    size = _flat(reference, weights).norm().item()
    if not math.isfinite(size) or not bool(reference[INPUT].isfinite().all()):
        return replace(seen, not_comparable="the gradient that is wanted is not finite")
    if size == 0:
        return replace(seen, not_comparable="the gradient that is wanted is zero")
    return replace(
        seen,
        gradient_error_weights=_error(gradient, reference, weights),
        gradient_error_input=_error(gradient, reference, [INPUT]),
    )


def _error(gradient: Mapping[str, Tensor], reference: Mapping[str, Tensor], names: list[str]) -> float:
    wanted = _flat(reference, names)
    difference, size = (_flat(gradient, names) - wanted).norm().item(), wanted.norm().item()
    if difference == 0:
        return 0.0
    return difference / size if size else math.inf


def _flat(tensors: Mapping[str, Tensor], names: list[str]) -> Tensor:
    return torch.cat([tensors[name].flatten() for name in names]).to("cpu", torch.float64)


INPUT = "input"


def _gradient_of(net: Net, batch: Batch) -> dict[str, Tensor]:
    """The gradients of all that is trained, and of the input; zeros where none arrived."""
    held = {name: weight for name, weight in net.named_parameters() if weight.requires_grad} | {INPUT: batch.inputs}
    return {name: torch.zeros_like(tensor) if tensor.grad is None else tensor.grad for name, tensor in held.items()}


def _as_reference(batch: Batch) -> Batch:
    return replace(batch, inputs=batch.inputs.detach().to("cpu", torch.float64), targets=batch.targets.cpu())


def _twin(net: Net) -> Net:
    """A copy of a network that nothing has run through yet; mode switches inside its forward are not copied."""
    inside, net.inside_forward = net.inside_forward, None
    twin = copy.deepcopy(net)
    net.inside_forward = inside
    return twin


def _precision(rig: Rig, *, cudnn: bool) -> str:
    axis = str(rig.variant["autocast"] if rig.autocast else rig.variant["dtype"])
    if axis != "float32" or rig.device.type == "cpu":
        return axis
    tf32 = (cudnn and torch.backends.cudnn.allow_tf32) or torch.backends.cuda.matmul.allow_tf32
    return "tf32" if tf32 else axis
