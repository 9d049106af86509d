"""The nouns of the project, frozen: what is planned, what is ordered, what is recorded.

What a worker measures is in ``measured``. Only the standard library is imported, so that every room, the worker
included, can share them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from harness.measured import Exactness, Sample

KEY_SCHEME = 1
"""Version of the identity scheme; part of every key, so that keys of two schemes never meet."""

_NAN_SURVIVES = {"ser_json_inf_nan": "strings"}
"""JSON has no NaN and no infinity; as strings they survive the journey and stay what they were."""

Value = str | int | float | bool
"""What an axis may hold."""

HEADLINE_AXES = ("cell", "bidirectional", "cudnn", "placement")
"""The axes that every label names, whether or not they have their default value."""


class Outcome(StrEnum):
    """What became of an attempt."""

    OK = "ok"
    BACKWARD_ERROR = "backward-error"
    ERROR = "error"
    OOM = "oom"
    TIMEOUT = "timeout"
    CRASH = "crash"
    SKIPPED = "skipped"
    NOT_RUN = "not-run"


class Stall(StrEnum):
    """Why an attempt was not done by its deadline: it no longer moved, or it moved and had more to do."""

    HUNG = "hung"
    SLOW = "slow"


HUNG_SHARE = 0.5
"""An attempt hung if its breadcrumb stood still for this share of its deadline, or more, up to the deadline."""


class Phase(StrEnum):
    """How far an attempt got."""

    BUILD = "build"
    FORWARD = "forward"
    BACKWARD = "backward"
    STEP = "step"
    EVALUATE = "evaluate"


class Device(StrEnum):
    """Where an attempt ran: a real GPU, PyTorch's CUDA path without one, or the CPU."""

    CUDA = "cuda"
    STUB = "stub"
    CPU = "cpu"

    @property
    def computes(self) -> bool:
        """Whether kernels really run, so that numbers and times mean something."""
        return self is not Device.STUB


class KernelPath(StrEnum):
    """The kernel family that ran an RNN's forward, read from the autograd graph."""

    CUDNN = "cudnn"
    MIOPEN = "miopen"
    MKLDNN = "mkldnn"
    NATIVE = "native"


class Wants(StrEnum):
    """Which gradient the person behind a placement is after; what a fix's exactness is measured against."""

    TRAIN = "train"
    EVAL = "eval"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension of a matrix, with the values it takes there."""

    name: str
    values: tuple[Value, ...]


def format_value(value: Value) -> str:
    """``value`` as labels, flags and tables spell it: ``true``/``false`` for booleans, ``0.5`` for floats.

    Two values never share a spelling: a float gets as many digits as it needs.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return str(value)


@dataclass(frozen=True, slots=True)
class Variant:
    """One cell of a matrix: a value for every axis."""

    axes: Mapping[str, Value]
    label: str

    @property
    def key(self) -> str:
        """Twelve hex digits of a hash over every axis value and the key scheme."""
        text = json.dumps({"scheme": KEY_SCHEME, "axes": dict(self.axes)}, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def __getitem__(self, axis: str) -> Value:
        return self.axes[axis]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A combination that was not planned, and why."""

    label: str
    reason: str


@dataclass(frozen=True, slots=True)
class Settings:
    """What is fixed for all variants of a run.

    ``epochs`` and ``steps`` count the training loop (steps per epoch); ``evaluation_steps`` the forward-only
    steps after each epoch; ``warmup_epochs`` how many leading epochs are marked as warm-up; ``deadline`` is in
    seconds per attempt; ``replicates`` counts attempts per variant and timed device; ``seed`` gives everything random,
    the order of the attempts on a timed device included. ``timed_blocks`` counts blocks of training steps that are
    timed after the epochs, each about ``block_ms`` milliseconds long; they change no outcome, loss or digest.
    ``threads`` is how many PyTorch may use on the CPU, 0 leaves it to PyTorch. One is the default because several
    spin-wait for each other: under other load a step of a small RNN was seen to take 40 times as long.
    """

    epochs: int = 3
    steps: int = 6
    evaluation_steps: int = 2
    warmup_epochs: int = 1
    learning_rate: float = 0.01
    seed: int = 0
    deadline: float = 60.0
    replicates: int = 1
    threads: int = 1
    timed_blocks: int = 0
    block_ms: float = 50.0


PROGRAM_SETTINGS = ("deadline", "replicates", "threads")
"""The settings that apply to a program: it has its own training loop, and seeds itself."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All that one run intends: every variant on every device, and what was left out."""

    run: str
    matrix: str
    description: str
    created: str
    devices: tuple[Device, ...]
    settings: Settings
    variants: tuple[Variant, ...]
    exclusions: tuple[Exclusion, ...] = ()
    selection: str = ""
    command: tuple[str, ...] = ()
    environment: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    schema: int = 2

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _NAN_SURVIVES

    @property
    def is_program(self) -> bool:
        """Whether this is a run of one of the seed programs, not of a matrix.

        Of the settings only ``PROGRAM_SETTINGS`` apply then: what the program trains, with which seed and learning
        rate, is up to the program. The others hold defaults that nothing reads, so they are not to be told.
        """
        return self.matrix.startswith("seed ")

    def replicates_on(self, device: Device) -> int:
        """How many attempts a variant gets on ``device``: replicates apply where kernels really run."""
        return self.settings.replicates if device.computes else 1

    @property
    def attempts(self) -> int:
        """How many attempts complete this plan."""
        return len(self.variants) * sum(map(self.replicates_on, self.devices))


@dataclass(frozen=True, slots=True)
class Order:
    """What a worker is told to do: one attempt at one variant on one device."""

    run: str
    variant: Variant
    device: Device
    settings: Settings
    replicate: int = 0
    attempt: int = 1
    program: str = ""
    """Path of a seed program to run instead of the matrix's own step loop; empty for a matrix variant."""
    arguments: tuple[str, ...] = ()
    sitting: int = 1
    """Which sitting of the run asked for it: 1 is the original ``run``, every resume is one more."""
    schema: int = 3

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _NAN_SURVIVES

    @property
    def name(self) -> str:
        """Unique within a run."""
        return f"{self.variant.key}/{self.device}/{self.replicate}/{self.attempt}"


@dataclass(frozen=True, slots=True)
class Sighting:
    """What was seen of one kind of forward of one RNN: the three facts that the error depends on.

    ``gradient_reached`` is None while no backward was tried. ``role`` tells the step's own forward (``step``)
    from a second one that a placement keeps (``kept``) and from an inner loop's (``inner``).
    """

    epoch: int
    step: int
    training: bool
    path: KernelPath | None = None
    gradient_reached: bool | None = None
    role: str = "step"


@dataclass(frozen=True, slots=True)
class Record:
    """What one attempt left behind. There is exactly one per attempt, whatever happened.

    A field that could not be observed is None (or empty), never zero: a stub record has no samples, losses or
    digests, a record of a dead process has no sightings.
    """

    run: str
    key: str
    label: str
    device: Device
    outcome: Outcome
    replicate: int = 0
    attempt: int = 1
    phase: Phase | None = None
    epoch: int | None = None
    step: int | None = None
    error_type: str | None = None
    error_message: str | None = None
    fingerprint: str | None = None
    traceback_tail: str | None = None
    reason: str | None = None
    path: KernelPath | None = None
    sightings: tuple[Sighting, ...] = ()
    samples: tuple[Sample, ...] = ()
    first_step_s: float | None = None
    sequences_per_step: int | None = None
    timesteps_per_step: int | None = None
    peak_memory_bytes: int | None = None
    memory_source: str | None = None
    first_loss: float | None = None
    last_loss: float | None = None
    losses_digest: str | None = None
    weights_digest: str | None = None
    exactness: Exactness | None = None
    """Only of an attempt that is ok, on a device whose kernels really run."""
    results: Mapping[str, Any] = field(default_factory=dict)
    """What a seed program reported: losses per epoch, accuracy, data set, artefact paths."""
    facts: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    started: str | None = None
    wall_s: float | None = None
    exit_code: int | None = None
    signal: str | None = None
    output_tail: str | None = None
    deadline_s: float | None = None
    """Only of a timeout: how many seconds the attempt was given."""
    silent_s: float | None = None
    """Only of a timeout: for how many seconds the breadcrumb had stood still when the deadline came."""
    sitting: int = 1
    """Which sitting of the run made this record: 1 is the original ``run``, every resume is one more."""
    schema: int = 3

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _NAN_SURVIVES

    @property
    def stall(self) -> Stall | None:
        """Of a timeout whose breadcrumb was watched: whether the attempt hung or was slow."""
        if self.outcome is not Outcome.TIMEOUT or self.deadline_s is None or self.silent_s is None:
            return None
        return Stall.HUNG if self.silent_s >= HUNG_SHARE * self.deadline_s else Stall.SLOW


class Caveat(StrEnum):
    """Something true about a run that a reader of its numbers must know, with the sentence that says it."""

    STUB_EVIDENCE = (
        "Outcomes marked `stub` come from PyTorch's real CUDA code with no GPU behind it: they show which of "
        "PyTorch's own checks fire, and no number of theirs is a measurement."
    )
    NOT_COMPARED = "The stub's outcomes have not yet been compared with a GPU."
    CPU_CANNOT_RAISE = (
        "The error cannot occur on a CPU: no forward takes the cuDNN path there, so an `ok` on `cpu` says nothing "
        "about a GPU."
    )
    SINGLE = "One attempt per variant: a ratio of two single attempts shows a direction, not a significant difference."
    TOO_FEW = "Fewer than six attempts per variant: too few for a distribution-free 95 % interval of the median."
    DIRTY_TREE = "The working tree had uncommitted changes, so the commit does not fully identify the code."
    MIXED_FACTS = "The records of this run were made under different machine facts."
    INCOMPLETE = "The run did not finish: variants without a record are shown as `not-run`."
    NOT_TRACKED = "Nothing of this run was written to MLflow."

    @classmethod
    def of_devices(cls, devices: Collection[Device]) -> tuple[Caveat, ...]:
        """What is to be known of every run on these devices, whatever came of it."""
        said = [cls.STUB_EVIDENCE] if Device.STUB in devices else []
        said += [cls.NOT_COMPARED] if Device.STUB in devices and Device.CUDA not in devices else []
        said += [cls.CPU_CANNOT_RAISE] if Device.CPU in devices else []
        return tuple(said)
