"""The text of the loop: epochs, steps and the evaluation after each epoch, with the placement's actions in between."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from harness.model import Settings, Value, format_value
from harness.placements import Action, Around, Second
from harness.repro.network import Shape
from harness.repro.text import block

NO_GRADIENT = """\
class NoGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return None
""".splitlines()
"""Keeps what is behind it in the graph, and the gradient from it."""

_AROUND = {
    Around.CUDNN_OFF: "with torch.backends.cudnn.flags(enabled=False):",
    Around.NO_GRAD: "with torch.no_grad():",
}


def set_up(shape: Shape, settings: Settings) -> list[str]:
    """The statements between the definitions and the loop."""
    placement = shape.placement
    lines = [f'net = Net().to("{shape.device}"{shape.dtype})']
    if placement.freeze_rnn:
        lines.append("net.rnn.requires_grad_(False)")
    if placement.applies:
        lines.append(f"optimizer = torch.optim.SGD(net.parameters(), lr={format_value(settings.learning_rate)})")
    lines.append(f"inputs, targets{', lengths' if shape.packed else ''} = draw_batch()")
    if placement.second or placement.inner_loop or settings.evaluation_steps:
        targets = "held_out_targets" if placement.inner_loop else "_"
        lines.append(f"held_out, {targets}{', held_out_lengths' if shape.packed else ''} = draw_batch()")
    return [*lines, *_act(shape, placement.start)]


def loop(shape: Shape, settings: Settings) -> list[str]:
    """The training loop."""
    placement = shape.placement
    return block(
        f"for epoch in range(1, {settings.epochs + 1}):",
        [
            *_act(shape, placement.epoch_start),
            *block(f"for step in range(1, {settings.steps + 1}):", _step(shape, settings)),
            *_act(shape, placement.before_evaluation),
            *_evaluation(shape, settings.evaluation_steps),
        ],
    )


def _step(shape: Shape, settings: Settings) -> list[str]:
    placement = shape.placement
    middle = f"if step == {settings.steps // 2 + 1}:"
    forward = _loss(shape, "inputs", "targets", "lengths")
    if placement.around_forward:
        forward = block(_AROUND[placement.around_forward], forward)
    backward = ["loss.backward()"]
    if placement.around_backward:
        backward = block(_AROUND[placement.around_backward], backward)
    return [
        'print(f"epoch {epoch}, step {step}", flush=True)',
        *block(middle, _act(shape, placement.mid_epoch)),
        *_second_forward(shape),
        *_act(shape, placement.before_forward),
        *forward,
        *(["loss = loss + kept.mean()"] if placement.second else []),
        *_act(shape, placement.after_forward),
        *backward,
        *_apply(shape),
        *_act(shape, placement.after_step),
    ]


def _apply(shape: Shape) -> list[str]:
    return ["optimizer.step()", "optimizer.zero_grad()"] if shape.placement.applies else ["net.zero_grad()"]


def _second_forward(shape: Shape) -> list[str]:
    """The forward in eval mode whose output, or what a placement makes of it, joins the step's loss."""
    made = {
        Second.SPLICED: [],
        Second.DETACHED: ["kept = kept.detach()"],
        Second.UNUSED: ["kept = NoGradient.apply(kept)"],
    }
    if shape.placement.second is None:
        return []
    forward = _forward(shape, "kept", "held_out", "held_out_lengths")
    return ["net.eval()", *forward, "net.train()", *made[shape.placement.second]]


def _evaluation(shape: Shape, steps: int) -> list[str]:
    if shape.placement.inner_loop:
        return _inner_loop(shape, max(steps, 1))
    if not steps:
        return []
    forward = ["net(held_out, held_out_lengths)" if shape.packed else "net(held_out)"]
    if steps > 1:
        forward = block(f"for _ in range({steps}):", forward)
    cast = "" if shape.variant["autocast"] == "off" else f", {_autocast(shape)}"
    return ['print(f"epoch {epoch}, evaluation", flush=True)', *block(f"with torch.no_grad(){cast}:", forward)]


def _inner_loop(shape: Shape, steps: int) -> list[str]:
    return block(
        f"for step in range(1, {steps + 1}):",
        [
            'print(f"epoch {epoch}, evaluation, step {step}", flush=True)',
            *_loss(shape, "held_out", "held_out_targets", "held_out_lengths"),
            "loss.backward()",
            "optimizer.zero_grad()" if shape.placement.applies else "net.zero_grad()",
        ],
    )


def _loss(shape: Shape, inputs: str, targets: str, lengths: str) -> list[str]:
    """Logits and their loss, which is taken in float32 where the logits are in half precision, as autocast would."""
    half = shape.variant["autocast"] != "off" or shape.variant["dtype"] in {"float16", "bfloat16"}
    logits = "logits.float()" if half else "logits"
    return [
        *_forward(shape, "logits", inputs, lengths),
        f"loss = nn.functional.cross_entropy({logits}, {targets})",
    ]


def _forward(shape: Shape, name: str, inputs: str, lengths: str) -> list[str]:
    arguments = f"{inputs}, {lengths}" if shape.packed else inputs
    line = f"{name} = net({arguments})"
    return [line] if shape.variant["autocast"] == "off" else block(f"with {_autocast(shape)}:", [line])


def _autocast(shape: Shape) -> str:
    return f'torch.autocast("{shape.device}", dtype=torch.{shape.variant["autocast"]})'


def _act(shape: Shape, actions: Iterable[Action]) -> list[str]:
    return [line for action in actions for line in _ACTIONS[action](shape)]


def _dropout_and_norm_to_eval(shape: Shape) -> list[str]:
    norm = ["net.norm.eval()"] if shape.has_norm else []
    return [*norm, *(["net.dropout.eval()"] if shape.has_dropout else [])]


def _rnn_dropout(shape: Shape, value: Value) -> list[str]:
    """An RNN without a dropout has nothing to set to zero, nor to restore."""
    return [f"net.rnn.dropout = {format_value(value)}"] if shape.has_dropout else []


_ACTIONS: dict[Action, Callable[[Shape], list[str]]] = {
    Action.TRAIN: lambda _: ["net.train()"],
    Action.EVAL: lambda _: ["net.eval()"],
    Action.RNN_TRAIN: lambda _: ["net.rnn.train()"],
    Action.RNN_EVAL: lambda _: ["net.rnn.eval()"],
    Action.RNN_DROPOUT_ZERO: lambda shape: _rnn_dropout(shape, 0.0),
    Action.RNN_DROPOUT_RESTORE: lambda shape: _rnn_dropout(shape, shape.variant["dropout"]),
    Action.DROPOUT_NORM_EVAL: _dropout_and_norm_to_eval,
}
