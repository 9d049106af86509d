"""What the watched process writes down: facts as JSON lines, and counts in shared memory. Nothing is interpreted here.

Only the standard library: the watched process is a person's own, and gets no import that it can do without.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

VARIABLE = "HARNESS_DIAGNOSE"
"""Holds JSON: the ``folder`` in which the watched process leaves its notes, and the ``pythonpath`` to put back."""

NOTES = "notes.jsonl"
COUNTS = "counts"

MOST_FACTS = 40
"""Distinct things that one process may report; the rest would tell a person nothing new."""


class Count(IntEnum):
    """The places of the counters; behind the last of them, how often each fact happened."""

    ATTACHED = 0
    FORWARDS = 1
    CUDNN_FORWARDS = 2
    """Forwards that cuDNN ran, or would have run on a GPU."""
    BACKWARDS = 3
    FORKED_FORWARDS = 4
    """Forwards in processes that the program forked, of which nothing else is known."""
    GPU_FORWARDS = 5
    DROPPED = 6
    """Facts that were not written down, since there were ``MOST_FACTS`` before."""
    SPAWNED = 7
    """Processes that the program had multiprocessing spawn, DataLoader workers aside; nothing else is known of them."""
    TIMES = 8


@dataclass(frozen=True, slots=True)
class Place:
    """A line that was running. ``span`` is the extent of the call in it: line, end line, column, end column (bytes).

    ``own`` tells a person's line from an installed library's. ``names`` are expressions that meant a module there, by
    the module's part: ``root``, ``rnn`` or ``through``.
    """

    file: str
    line: int
    function: str
    own: bool
    starts: int
    span: tuple[int, int, int, int] | None = None
    names: dict[str, str] = field(default_factory=dict, compare=False)


Chain = tuple[Place, ...]
"""A call stack without PyTorch's own lines, innermost first."""


@dataclass(frozen=True, slots=True)
class SwitchFact:
    """How an RNN came into eval mode; see ``harness.modes.switches.Switch``."""

    how: str
    through: str
    name: str
    chain: Chain


@dataclass(frozen=True, slots=True)
class TrainCall:
    """A call of ``train()``: on a module of class ``on``, which holds the RNN, a copy of it, or neither."""

    on: str
    holds: str
    when: str
    chain: Chain


@dataclass(frozen=True, slots=True)
class Seen:
    """What was the case when the forward ran, and when the gradient arrived."""

    trained: int = 0
    """How often a gradient reached this RNN after a forward in train mode, before this."""
    trained_here: int = 0
    """The same, of forwards that were called from the same lines."""
    train_chains: tuple[Chain, ...] = ()
    """Some of the lines that called it in train mode."""
    train_forward_since: bool = False
    """Whether a forward in train mode came between this forward and its backward."""
    pending: tuple[Chain, ...] = ()
    """Forwards in train mode since the latest backward, to which no gradient has come yet."""
    switched_after: bool = False
    """Whether the RNN was put into train mode between this forward and its backward."""
    cudnn_off_at_backward: bool = False
    switched_part: str = ""
    """What was switched to eval mode, seen from the module that was called: ``whole``, ``part`` or ``other``."""
    root_training: bool = False
    """Whether the module that was called was in train mode at the forward."""
    rest_training: bool = False
    """Whether any module in it was, besides itself."""
    frozen: bool = False
    """Whether no weight of the RNN takes a gradient."""
    input_grad: bool = False
    """Whether what the called module was given takes a gradient."""
    optimizers: int = 0
    reaches_optimizer: bool = False
    """Whether this backward leaves a gradient in a weight that an optimizer holds."""
    rnn_in_optimizer: bool = False
    others_train: bool = False
    """Whether an optimizer holds parameters, but none of the module that was called."""
    root_in_optimizer: bool = False
    evaluated: bool = False
    """Whether a forward without a graph ran since the switch."""
    evaluation_chains: tuple[Chain, ...] = ()
    """Some of the lines that called the RNN in eval mode and without a graph."""
    inference: bool = False
    """Whether the forward ran under ``inference_mode``."""
    changed: bool = False
    """Whether a ``train()`` inside ``forward()`` changed the mode while gradients were enabled."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that the witness saw. ``what`` is one of:

    ``gradient``: one reached a forward in eval mode. ``no-graph``: PyTorch refused a backward, and the latest forward
    had run without gradients. ``train-in-forward``, ``frozen-dropout``, ``rest-eval``: the silent forms.
    """

    number: int
    what: str
    module: str
    kind: str
    root: str
    path: str | None
    on_gpu: bool
    raises: bool
    chain: Chain
    entry: int
    """Which line of the chain called the root module; the length of the chain where none did."""
    switch: SwitchFact | None
    forward_count: int
    backward_count: int
    seen: Seen
    train_calls: tuple[TrainCall, ...] = ()
    eval_call: Chain = ()
    """The latest call of ``eval()`` that reached the RNN before the forward, also where it changed nothing."""
    backward: Chain = ()
    also: tuple[Fact, ...] = ()
    """Other forwards in eval mode in the graph of the same backward: they would be refused next."""
