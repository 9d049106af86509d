"""What the two articles claim that this project started from, each held against what the attempts saw.

A claim is a declaration: its text, its half that may be true, and for each record whether it speaks for the claim,
against it, or not about it. Records are judged by their sightings; where a mode was switched after the forward, which
no sighting shows, by the declaration of their placement, never by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from harness.model import Device, KernelPath, Outcome, Record, Sighting, Variant
from harness.placements import PLACEMENTS, Action, Around, Placement
from harness.results import Result

ENDED = (Outcome.OK, Outcome.BACKWARD_ERROR)
"""Outcomes that say whether the error occurs; whatever else went wrong has reasons of its own."""


class Standing(StrEnum):
    """What the records of one device make of a claim."""

    SUPPORTED = "supported"
    REFUTED_AS_STATED = "refuted as stated"
    REFUTED = "refuted"
    UNTESTED = "not tested on this device"


@dataclass(frozen=True)
class Observation:
    """A record with its variant."""

    variant: Variant
    record: Record

    @property
    def placement(self) -> Placement | None:
        """Where the modes were switched; None for a program that is no placement of ours."""
        return PLACEMENTS.get(str(self.variant.axes.get("placement")))

    @property
    def raised(self) -> bool:
        """Whether the error occurred."""
        return self.record.outcome is Outcome.BACKWARD_ERROR

    @property
    def ran_cudnn(self) -> bool:
        """Whether a forward through cuDNN got a gradient: elsewhere the error has no chance."""
        return any(s.path is KernelPath.CUDNN and s.gradient_reached for s in self.record.sightings)

    def saw(self, test: Callable[[Sighting], object]) -> bool:
        """Whether a forward is as ``test`` says."""
        return any(map(test, self.record.sightings))


@dataclass(frozen=True)
class Tested:
    """A claim's records on one device: those that show it, those that contradict it, those that show its true half."""

    standing: Standing
    shows: tuple[Record, ...] = ()
    contradicts: tuple[Record, ...] = ()
    true_half: tuple[Record, ...] = ()


Sorted = tuple[list[Observation], list[Observation], list[Observation]]
Sort = Callable[[list[Observation]], Sorted]
"""Observations of one device -> those for the claim as stated, those against it, those for its true half."""


@dataclass(frozen=True)
class Claim:
    """A claim, what would support and what would refute it, what is true of it, and how records are sorted by it."""

    text: str
    supports: str
    refutes: str
    truth: str
    """What is so instead, or also; said only where records show it."""
    sort: Sort

    def test(self, results: Iterable[Result]) -> Tested:
        """Hold the claim against ``results``, which are all of one device."""
        seen = [Observation(x.variant, record) for x in results for record in x.records if record.outcome in ENDED]
        shows, contradicts, half = self.sort(seen)
        if contradicts:
            standing = Standing.REFUTED_AS_STATED if half else Standing.REFUTED
        else:
            standing = Standing.SUPPORTED if shows else Standing.UNTESTED
        return Tested(standing, *(tuple(x.record for x in each) for each in (shows, contradicts, half)))


def _eval_through_cudnn(sighting: Sighting) -> bool:
    return sighting.path is KernelPath.CUDNN and not sighting.training and bool(sighting.gradient_reached)


def _eval_with_gradient(sighting: Sighting) -> bool:
    return not sighting.training and sighting.path is not None and bool(sighting.gradient_reached)


def switches_after_forward(placement: Placement | None) -> bool:
    """Whether ``train()`` comes between a forward in eval mode and the backward."""
    return placement is not None and (Action.TRAIN in placement.after_forward or placement.second is not None)


# --- 1: train() before backward


def _train_before_backward(seen: list[Observation]) -> Sorted:
    """As stated, it does not matter whether ``train()`` comes before the forward or after it."""
    through = [x for x in seen if x.ran_cudnn]
    late = [x for x in through if switches_after_forward(x.placement) and x.saw(_eval_through_cudnn)]
    early = [x for x in through if all(s.training for s in x.record.sightings)]
    against = [x for x in (*late, *early) if x.raised]
    return [x for x in late if not x.raised], against, [] if any(x.raised for x in early) else early


# --- 2: eval mode means no gradient


def _eval_means_no_gradient(seen: list[Observation]) -> Sorted:
    def without_graph(x: Observation) -> bool:
        asked = x.placement is not None and Around.NO_GRAD in (x.placement.around_forward, x.placement.around_backward)
        return not asked and x.saw(lambda s: not s.training and s.path is None)

    return [x for x in seen if without_graph(x)], [x for x in seen if x.saw(_eval_with_gradient)], []


# --- 3: a second backward, freed tensors


def _second_backward(seen: list[Observation]) -> Sorted:
    """At the first backward of a process nothing was freed yet."""
    raised = [x for x in seen if x.raised]
    first = [x for x in raised if (x.record.epoch, x.record.step) == (1, 1) and not x.saw(lambda s: s.role == "inner")]
    # What saw nothing tells nothing: only a record of forwards in train mode alone would speak for the claim.
    trained = [x for x in raised if x not in first and x.record.sightings and not x.saw(lambda s: not s.training)]
    return trained, first, []


# --- 4: train() at the top of each epoch


def _train_each_epoch(seen: list[Observation]) -> Sorted:
    """Pairs of bidirectional variants that differ in this alone, and the program of the article itself."""
    cures, fails = [], []
    for cured, faulty in _pairs([x for x in seen if x.variant.axes.get("bidirectional") is True and x.ran_cudnn]):
        if any(x.raised for x in faulty):
            cures += [x for x in cured if not x.raised]
            fails += [x for x in cured if x.raised]
    program = [x for x in seen if x.variant.axes.get("program") == "brnn-mnist" and x.record.device is not Device.CPU]
    fixed = [x for x in program if x.variant.axes.get("form") == "fixed"]
    return cures + [x for x in fixed if not x.raised], fails + [x for x in fixed if x.raised], []


def _pairs(seen: Iterable[Observation]) -> Iterator[tuple[list[Observation], list[Observation]]]:
    def elsewhere(x: Observation) -> str:
        return repr(sorted((name, value) for name, value in x.variant.axes.items() if name != "placement"))

    for _, alike in groupby(sorted(seen, key=elsewhere), key=elsewhere):
        group = [(x, x.placement) for x in alike]
        validates = [(x, p) for x, p in group if p is not None and Action.EVAL in p.before_evaluation]
        cured = [x for x, p in validates if p.epoch_start == (Action.TRAIN,) and not p.inner_loop]
        yield cured, [x for x, p in validates if p.start == (Action.TRAIN,) and not p.epoch_start]


# --- 5: only cuDNN, only in eval mode


def _unsupported_by_cudnn(seen: list[Observation]) -> Sorted:
    """Both ways: what meets it raises, and nothing else does."""
    told = [x for x in seen if x.record.sightings]
    must = [x for x in told if x.saw(_eval_through_cudnn)]
    against = [x for x in must if not x.raised] + [x for x in told if x.raised and not x.saw(_eval_through_cudnn)]
    elsewhere = [x for x in told if not x.raised and not x.ran_cudnn and x.saw(_eval_with_gradient)]
    return [x for x in must if x.raised], against, elsewhere if must else []


CLAIMS = (
    Claim(
        "Calling `model.train()` before any backward pass removes the error.",
        "a forward in eval mode, then `train()`, then a backward that does not raise",
        "a backward that raises although `train()` was called before it",
        "It does if it comes before the *forward*: no attempt whose forwards were all in train mode raised.",
        _train_before_backward,
    ),
    Claim(
        "In eval mode PyTorch computes no gradients.",
        "a forward in eval mode that records no graph, without anybody asking for `no_grad()`",
        "a forward in eval mode whose output a gradient reaches",
        "",
        _eval_means_no_gradient,
    ),
    Claim(
        "The error comes from a second backward pass, or from intermediate tensors that were freed.",
        "a later backward that raises with no forward in eval mode",
        "a process whose very first backward raises: nothing had been freed by then",
        "",
        _second_backward,
    ),
    Claim(
        "`train()` at the top of each epoch cures the bidirectional RNN program.",
        "two bidirectional variants that differ in this alone: the one without it raises, the other does not",
        "the one with it raises, too",
        "",
        _train_each_epoch,
    ),
    Claim(
        "Backward in eval mode is unsupported when cuDNN runs the RNN (and only then).",
        "every gradient that reaches an eval forward through cuDNN raises, and nothing else does",
        "one that does not raise, or an attempt that raises without one",
        "On other paths an eval forward gets its gradient.",
        _unsupported_by_cudnn,
    ),
)
