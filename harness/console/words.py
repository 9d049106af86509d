"""Placements, sightings and the rule in the words of a person."""

from __future__ import annotations

from collections.abc import Iterator

from harness.model import Device, KernelPath, Outcome, Record, Sighting
from harness.placements import Placement
from harness.rule import JUDGED, rule_says

_HOOKS = {
    "start": "at the start",
    "epoch_start": "at the top of every epoch",
    "mid_epoch": "in mid-epoch, once the first half of its steps is done",
    "before_forward": "before every training forward",
    "inside_forward": "inside forward()",
    "after_forward": "between forward and backward",
    "after_step": "after every step",
    "before_evaluation": "before the evaluation that follows every epoch",
}

_PATHS = {
    KernelPath.CUDNN: "through cuDNN",
    KernelPath.MIOPEN: "through MIOpen",
    KernelPath.MKLDNN: "through oneDNN",
    KernelPath.NATIVE: "through PyTorch's own kernels",
    None: "without a graph, so that its kernels are not known",
}

_ROLES = {
    "step": "a training step's forward",
    "kept": "the second forward, whose output is kept,",
    "inner": "the inner loop's forward",
}

_REACHED = {True: "a gradient reached it", False: "no gradient reached it", None: "no backward was tried"}


def device_words(device: Device) -> str:
    """The device, and what its evidence is worth."""
    worth = {
        Device.CUDA: "cuda (a real GPU)",
        Device.STUB: "stub (PyTorch's CUDA code with no GPU behind it)",
        Device.CPU: "cpu (where no forward takes the cuDNN path)",
    }
    return worth[device]


def placement_lines(placement: Placement) -> Iterator[str]:
    """The placement in words, and everything it declares."""
    yield f"placement {placement.name}: {placement.summary}"
    for hook, words in _HOOKS.items():
        for action in getattr(placement, hook):
            yield f"  {words}: {action}"
    if placement.around_forward:
        yield f"  around every training forward: {placement.around_forward}"
    if placement.around_backward:
        yield f"  around every training backward: {placement.around_backward}"
    if placement.cudnn_off_process:
        yield "  for the whole process: torch.backends.cudnn.enabled = False"
    if placement.second:
        yield f"  before every step's own forward, a second one in eval mode: its output is {placement.second}"
    if placement.freeze_rnn:
        yield "  the RNN is frozen, behind an encoder that is trained"
    if placement.inner_loop:
        yield "  the evaluation takes gradients of its own"
    yield f"  the gradient is {'applied by an optimizer' if placement.applies else 'only read, not applied'}"
    yield f"  the person wants the gradient of: {placement.wants}"
    yield f"  predicted through cuDNN: {'raises' if placement.raises else 'does not raise'}"


def sighting_line(sighting: Sighting) -> str:
    """``epoch 1, step 1: a training step's forward in eval mode through cuDNN; a gradient reached it``."""
    mode = "train" if sighting.training else "eval"
    role = _ROLES.get(sighting.role, sighting.role)
    reached = _REACHED[sighting.gradient_reached]
    return f"epoch {sighting.epoch}, step {sighting.step}: {role} in {mode} mode {_PATHS[sighting.path]}; {reached}"


def rule_line(record: Record) -> str:
    """What the rule says about a record, by what the attempt itself saw."""
    if record.outcome not in JUDGED:
        return f"says nothing about an attempt that ended as {record.outcome}"
    says = rule_says(record)
    if says is None:
        return "cannot say: the attempt saw too little"
    because = "an eval forward through cuDNN got a gradient" if says else "no eval forward through cuDNN got a gradient"
    agrees = says == (record.outcome is Outcome.BACKWARD_ERROR)
    said = "it has to raise" if says else "it must not raise this error"
    return f"says {said}, since {because}; {'so it was' if agrees else 'BUT the record CONTRADICTS it'}"
