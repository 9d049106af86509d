"""The mode-switch placements: which of ``train()``, ``eval()``, cuDNN flags and ``no_grad`` happens where.

Each placement is a declaration that the step loop of ``trial`` interprets; none has a loop of its own. They were
clustered from public reports of the error. ``raises`` is what the rule predicts for a forward that takes the cuDNN
path; records confirm or contradict it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from harness.model import Wants


class Action(StrEnum):
    """Something a program does to the mode of its modules between two calls."""

    TRAIN = "net.train()"
    EVAL = "net.eval()"
    RNN_TRAIN = "net.rnn.train()"
    RNN_EVAL = "net.rnn.eval()"
    RNN_DROPOUT_ZERO = "net.rnn.dropout = 0"
    RNN_DROPOUT_RESTORE = "net.rnn.dropout = what it was"
    DROPOUT_NORM_EVAL = "eval() on Dropout and norm modules only"


class Around(StrEnum):
    """A context in which a call runs."""

    CUDNN_OFF = "torch.backends.cudnn.flags(enabled=False)"
    NO_GRAD = "torch.no_grad()"


class Second(StrEnum):
    """What happens to the output of a second forward, made in eval mode before the step's own."""

    SPLICED = "added to the loss"
    DETACHED = "detached, then added to the loss"
    UNUSED = "in the graph of the loss, but no gradient flows to it"


@dataclass(frozen=True, slots=True)
class Placement:
    """A mode-switch placement. The actions of each hook run in order, at the point that the field names."""

    name: str
    summary: str
    wants: Wants
    raises: bool
    start: tuple[Action, ...] = ()
    epoch_start: tuple[Action, ...] = ()
    mid_epoch: tuple[Action, ...] = ()
    before_forward: tuple[Action, ...] = ()
    inside_forward: tuple[Action, ...] = ()
    after_forward: tuple[Action, ...] = ()
    after_step: tuple[Action, ...] = ()
    before_evaluation: tuple[Action, ...] = ()
    around_forward: Around | None = None
    around_backward: Around | None = None
    cudnn_off_process: bool = False
    second: Second | None = None
    """A second forward of the RNN in eval mode before each step; the net is back in train mode afterwards."""
    freeze_rnn: bool = False
    """The RNN's weights need no gradient; a trainable encoder stands in front of it, so the gradient passes through."""
    inner_loop: bool = False
    """The evaluation pass takes gradients of its own."""
    applies: bool = True
    """Whether the gradient is applied by an optimizer; attributions only read it."""
    recipe: str = ""
    """How to do it in a line of one's own code; empty where nobody should."""


_T, _E = (Action.TRAIN,), (Action.EVAL,)

PLACEMENTS: dict[str, Placement] = {
    placement.name: placement
    for placement in (
        Placement(
            "train-always",
            "train() once, never eval()",
            Wants.TRAIN,
            raises=False,
            start=_T,
            recipe="model.train()  # once, before the first forward; never eval() after it",
        ),
        Placement(
            "train-each-epoch",
            "train() at the top of every epoch, eval() for the validation after it",
            Wants.TRAIN,
            raises=False,
            epoch_start=_T,
            before_evaluation=_E,
            recipe="model.train(); train_epoch(); model.eval(); validate()  # in this order, in every epoch",
        ),
        Placement(
            "train-each-step",
            "train() before every forward",
            Wants.TRAIN,
            raises=False,
            before_forward=_T,
            before_evaluation=_E,
            recipe="model.train(); output = model(x)  # before every forward",
        ),
        Placement(
            "eval-after-epoch",
            "train() once; eval() for the first validation, and nobody switches back",
            Wants.TRAIN,
            raises=True,
            start=_T,
            before_evaluation=_E,
        ),
        Placement(
            "eval-by-helper",
            "a helper called in mid-epoch switches to eval() and returns",
            Wants.TRAIN,
            raises=True,
            start=_T,
            mid_epoch=_E,
        ),
        Placement(
            "eval-always",
            "eval() on the whole net on purpose, then a gradient (saliency, attacks, attribution)",
            Wants.EVAL,
            raises=True,
            start=_E,
            applies=False,
        ),
        Placement(
            "eval-then-use",
            "eval() on the whole net, and a gradient that is applied (dynamic evaluation, test-time training)",
            Wants.EVAL,
            raises=True,
            start=_E,
        ),
        Placement(
            "train-before-backward",
            "eval(); forward; train(); backward - the remedy that the message suggests, in the wrong place",
            Wants.TRAIN,
            raises=True,
            before_forward=_E,
            after_forward=_T,
        ),
        Placement(
            "eval-before-backward",
            "train(); forward; eval(); backward",
            Wants.TRAIN,
            raises=False,
            before_forward=_T,
            after_forward=_E,
            recipe="model.train(); loss = criterion(model(x), y); model.eval(); loss.backward()",
        ),
        Placement(
            "rnn-eval-rest-train",
            "a frozen RNN in eval() between trainable parts; the gradient must pass through it",
            Wants.EVAL,
            raises=True,
            epoch_start=(Action.TRAIN, Action.RNN_EVAL),
            freeze_rnn=True,
        ),
        Placement(
            "rnn-frozen-in-train",
            "the RNN in train() with requires_grad False; the gradient passes through it",
            Wants.EVAL,
            raises=False,
            epoch_start=_T,
            freeze_rnn=True,
            recipe="model.rnn.requires_grad_(False); model.rnn.train()",
        ),
        Placement(
            "inner-loop-in-eval",
            "an evaluation hook sets eval(), then an inner loop takes gradients",
            Wants.EVAL,
            raises=True,
            epoch_start=_T,
            before_evaluation=_E,
            inner_loop=True,
        ),
        Placement(
            "eval-output-reused",
            "the output of an eval forward, kept without detach, is spliced into a training loss",
            Wants.TRAIN,
            raises=True,
            second=Second.SPLICED,
        ),
        Placement(
            "eval-output-detached",
            "the output of an eval forward is detached, then spliced into a training loss",
            Wants.TRAIN,
            raises=False,
            second=Second.DETACHED,
            recipe="kept = rnn(x)[0].detach()  # of the forward in eval mode",
        ),
        Placement(
            "eval-output-unused",
            "an eval forward is in the graph, but no gradient flows to its output",
            Wants.TRAIN,
            raises=False,
            second=Second.UNUSED,
            recipe="loss = criterion(train_output, y)  # without the output of the forward in eval mode",
        ),
        Placement(
            "rnn-train-rest-eval",
            "eval() on all, then train() on the RNN alone: its own dropout is on",
            Wants.EVAL,
            raises=False,
            start=(Action.EVAL, Action.RNN_TRAIN),
            applies=False,
            recipe="model.eval(); model.rnn.train()",
        ),
        Placement(
            "rnn-train-dropout-zero",
            "eval() on all; for each step train() on the RNN alone with its dropout at 0, both restored after it",
            Wants.EVAL,
            raises=False,
            start=_E,
            before_forward=(Action.RNN_TRAIN, Action.RNN_DROPOUT_ZERO),
            after_step=(Action.RNN_DROPOUT_RESTORE, Action.RNN_EVAL),
            applies=False,
            recipe="model.eval(); p, rnn.dropout = rnn.dropout, 0.0; rnn.train(); ...; rnn.dropout = p; rnn.eval()",
        ),
        Placement(
            "dropout-norm-eval",
            "train() on all, eval() on Dropout and norm modules only: misses the RNN's own dropout",
            Wants.EVAL,
            raises=False,
            start=(Action.TRAIN, Action.DROPOUT_NORM_EVAL),
            applies=False,
            recipe="model.train(); [m.eval() for m in model.modules() if isinstance(m, (nn.Dropout, nn.BatchNorm1d))]",
        ),
        Placement(
            "train-for-gradient",
            "the whole net in train() for an eval gradient: dropout and batch statistics are on",
            Wants.EVAL,
            raises=False,
            start=_T,
            applies=False,
            recipe="model.train(); model(x).sum().backward()",
        ),
        Placement(
            "eval-cudnn-off-forward",
            "eval(); forward with cuDNN off; backward outside",
            Wants.EVAL,
            raises=False,
            start=_E,
            around_forward=Around.CUDNN_OFF,
            applies=False,
            recipe="with torch.backends.cudnn.flags(enabled=False): output = model.eval()(x)  # backward() outside",
        ),
        Placement(
            "eval-cudnn-off-backward",
            "eval(); forward; backward with cuDNN off - a wrong fix",
            Wants.EVAL,
            raises=True,
            start=_E,
            around_backward=Around.CUDNN_OFF,
            applies=False,
        ),
        Placement(
            "eval-cudnn-off-process",
            "eval() with cuDNN off for the whole process",
            Wants.EVAL,
            raises=False,
            start=_E,
            cudnn_off_process=True,
            applies=False,
            recipe="torch.backends.cudnn.enabled = False  # once, for the whole process",
        ),
        Placement(
            "train-in-forward",
            "train() called inside forward(): never this error, always wrong in inference",
            Wants.EVAL,
            raises=False,
            start=_E,
            inside_forward=_T,
            applies=False,
            recipe="def forward(self, x): self.train(); ...",
        ),
        Placement(
            "eval-no-grad",
            "forward under no_grad(), then backward: another error, there is no graph",
            Wants.NOTHING,
            raises=False,
            start=_E,
            around_forward=Around.NO_GRAD,
            applies=False,
        ),
    )
}
