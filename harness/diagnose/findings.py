"""What a diagnosis says, and how it is written for machines; docs/diagnose.md describes every field."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from harness.diagnose.edits import Edit
from harness.diagnose.facts import Place
from harness.model import Device


class Kind(StrEnum):
    """How serious a finding is."""

    ERROR = "error"
    WOULD_RAISE = "would-raise"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Cure:
    """The smallest change that helps: ``edits`` may be empty where no line of the person's own can be changed."""

    id: str
    sentence: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class SwitchedAt:
    """Who put the RNN into eval mode (or, for ``train-in-forward``, into train mode)."""

    place: Place
    how: str
    through: str
    name: str
    library: Place | None = None
    """The line of a library that did it, called from ``place``."""


@dataclass(frozen=True, slots=True)
class TrainedAt:
    """A call of ``train()`` that did not help, and why."""

    place: Place
    on: str
    when: str
    why: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong in the script."""

    kind: Kind
    pattern: str
    summary: str
    module: str
    kind_of_rnn: str
    root: str
    path: str | None
    forward: Place | None
    call: Place | None
    switch: SwitchedAt | None
    nth_forward: int
    nth_backward: int
    times: int
    train_calls: tuple[TrainedAt, ...]
    train_since: str
    cure: Cure


@dataclass(frozen=True, slots=True)
class Exit:
    """How the script ended: its exit code as a shell has it, the signal's name, the exception's class."""

    code: int
    signal: str | None = None
    exception: str | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything about one run of a script."""

    device: Device
    exit: Exit
    forwards: int
    cudnn_forwards: int
    backwards: int
    on_gpu: bool = False
    """Whether any RNN ran on a GPU, or on what the stub makes of one."""
    ended_unseen: bool = False
    """Whether the script ended in cuDNN's error, raised for an RNN that was not watched."""
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = field(default=())

    def as_json(self) -> dict[str, Any]:
        """The diagnosis as JSON's own types."""
        return {
            "device": str(self.device),
            "exit": {"code": self.exit.code, "signal": self.exit.signal, "exception": self.exit.exception},
            "forwards": self.forwards,
            "cudnn_forwards": self.cudnn_forwards,
            "backwards": self.backwards,
            "notes": list(self.notes),
            "findings": [_finding(one) for one in self.findings],
        }


def _finding(one: Finding) -> dict[str, Any]:
    return {
        "kind": str(one.kind),
        "pattern": one.pattern,
        "summary": one.summary,
        "module": one.module,
        "class": one.kind_of_rnn,
        "root": one.root,
        "path": one.path,
        "forward": _at(one.forward),
        "call": _at(one.call),
        "switch": _switch(one.switch) if one.switch else None,
        "count": {"forward": one.nth_forward, "backward": one.nth_backward, "times": one.times},
        "train_since": {
            "calls": [
                {**_place(call.place), "on": call.on, "when": call.when, "why": call.why} for call in one.train_calls
            ],
            "sentence": one.train_since,
        },
        "cure": {
            "id": one.cure.id,
            "sentence": one.cure.sentence,
            "edits": [_edit(edit) for edit in one.cure.edits],
        },
    }


def _switch(one: SwitchedAt) -> dict[str, Any]:
    how = {"how": one.how, "through": one.through, "name": one.name, "library": _at(one.library)}
    return {**_place(one.place), **how}


def _at(place: Place | None) -> dict[str, Any] | None:
    return _place(place) if place else None


def _place(place: Place) -> dict[str, Any]:
    return {"file": place.file, "line": place.line, "function": place.function}


def _edit(edit: Edit) -> dict[str, Any]:
    return {
        "file": edit.file,
        "line": edit.line,
        "end_line": edit.end_line,
        "action": str(edit.action),
        "code": edit.code,
        "end": edit.end,
    }
