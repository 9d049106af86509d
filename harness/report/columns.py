"""The columns of ``results.csv`` and of the DataFrame behind every table, declared as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from harness.blocks import Part
from harness.exactness import Judgement
from harness.model import Record
from harness.report import text
from harness.report.notes import note_of
from harness.results import Result

Cell = str | int | float | None


class Kind(StrEnum):
    """What a column holds: the pandas dtype it has."""

    TEXT = "string"
    INTEGER = "Int64"
    NUMBER = "float64"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: how it is called, what it means, where it comes from and how a table shows it."""

    name: str
    kind: Kind
    doc: str
    of: Callable[[Result], Cell]
    unit: str = ""
    show: Callable[[object], str] = text.number


def _text(value: object) -> str:
    return text.plain(value) if isinstance(value, str) else ""


def _whole(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else ""


def _mebibytes(value: object) -> str:
    return f"{value / 2**20:,.1f} MiB" if isinstance(value, int) else ""


def _yes_no(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"


def _decisive(read: Callable[[Record], Cell]) -> Callable[[Result], Cell]:
    return lambda result: read(result.decisive) if result.decisive else None


def _fact(name: str) -> Callable[[Result], Cell]:
    def read(result: Result) -> Cell:
        values = dict.fromkeys(str(r.facts[name]) for r in result.records if r.facts.get(name) is not None)
        return " + ".join(values) or None

    return read


def _text_column(name: str, doc: str, of: Callable[[Result], Cell]) -> Column:
    return Column(name, Kind.TEXT, doc, of, show=_text)


IDENTITY = (
    _text_column("key", "identity of the variant: a hash over every axis value", lambda r: r.key),
    _text_column("label", "the variant in words", lambda r: r.variant.label),
)


def _part_column(part: Part) -> Column:
    doc = f"the {part} part of a training step, timed and summarised as step_ms_median"
    return Column(f"{part}_ms", Kind.NUMBER, doc, lambda r: r.part_ms(part), unit="ms")


def _gradient(read: Callable[[Judgement], Cell]) -> Callable[[Result], Cell]:
    return lambda result: read(result.gradient) if result.gradient else None


GRADIENT = (
    _text_column(
        "gradient",
        "the placement's gradient against the one wanted: exact, differs, not repeatable or not comparable",
        _gradient(lambda g: g.verdict),
    ),
    _text_column("gradient_reason", "why", _gradient(lambda g: g.reason)),
    Column(
        "gradient_error_weights",
        Kind.NUMBER,
        "norm of its difference from a float64 gradient on the CPU over the norm of that, all trained weights together",
        _gradient(lambda g: g.gradient_error_weights),
    ),
    Column(
        "gradient_error_input",
        Kind.NUMBER,
        "the same for the gradient of the input",
        _gradient(lambda g: g.gradient_error_input),
    ),
    _text_column(
        "repeatable",
        "whether two attempts with one seed gave the same gradient to the bit; needs replicates",
        _gradient(lambda g: _yes_no(g.repeatable)),
    ),
    _text_column(
        "eval_outputs",
        "whether the outputs behind that gradient are, to the bit, those of the net in eval mode",
        _gradient(lambda g: _yes_no(g.outputs_equal_eval)),
    ),
    _text_column(
        "side_effects",
        "what the placement leaves behind otherwise than it was",
        _gradient(lambda g: ", ".join(g.changed) or None),
    ),
)

OBSERVED = (
    _text_column("device", "where it ran: cuda, stub (no GPU behind it) or cpu", lambda r: r.device),
    _text_column("device_name", "what the attempts call that device", _fact("device_name")),
    _text_column("outcome", "what became of it; the worst one where replicates disagree", lambda r: r.outcome),
    _text_column("phase", "how far the decisive attempt got", _decisive(lambda r: r.phase)),
    Column("epoch", Kind.INTEGER, "the epoch it got to, from 1", _decisive(lambda r: r.epoch), show=_whole),
    Column("step", Kind.INTEGER, "the step of that epoch, from 1", _decisive(lambda r: r.step), show=_whole),
    _text_column("path", "the kernel family that ran the forward", _decisive(lambda r: r.path)),
    _text_column("error_type", "the type of the exception", _decisive(lambda r: r.error_type)),
    _text_column("error_message", "its message", _decisive(lambda r: r.error_message)),
    _text_column("fingerprint", "the same for the same error", _decisive(lambda r: r.fingerprint)),
    _text_column("reason", "why it was skipped, not run or killed", _decisive(lambda r: r.reason)),
    Column(
        "sequences_per_second",
        Kind.NUMBER,
        "training throughput: median over replicates; only where every replicate is ok and kernels really run",
        lambda r: r.sequences_per_second,
        unit="sequences/s",
    ),
    Column(
        "timesteps_per_second",
        Kind.NUMBER,
        "the same in time steps; padding does not count",
        lambda r: r.timesteps_per_second,
        unit="time steps/s",
    ),
    Column(
        "step_ms_median",
        Kind.NUMBER,
        "time of a training step: median of its blocks without warm-up, then over replicates",
        lambda r: r.step_ms,
        unit="ms",
    ),
    _text_column(
        "step_clock",
        "the clock behind the three above: device (CUDA events) or wall",
        lambda r: r.step_clock,
    ),
    *(_part_column(part) for part in ("forward", "backward", "optimizer")),
    _text_column(
        "steadiness",
        "whether the block times have settled: steady, drifts, or too few blocks to say",
        lambda r: r.steadiness,
    ),
    Column(
        "first_step_ms",
        Kind.NUMBER,
        "time of the very first step, with everything that is only paid once",
        lambda r: r.first_step_ms,
        unit="ms",
    ),
    Column(
        "peak_memory_bytes",
        Kind.INTEGER,
        "the highest peak of all replicates; memory_source says of what",
        lambda r: r.peak_memory_bytes,
        unit="bytes",
        show=_mebibytes,
    ),
    _text_column("memory_source", "what peak_memory_bytes counts", _decisive(lambda r: r.memory_source)),
    *GRADIENT,
    Column(
        "first_loss",
        Kind.NUMBER,
        "loss of the first step, of the decisive attempt",
        lambda r: r.decisive.first_loss if r.decisive and r.device.computes else None,
    ),
    Column(
        "last_loss",
        Kind.NUMBER,
        "loss of the last step, of the decisive attempt",
        lambda r: r.decisive.last_loss if r.decisive and r.device.computes else None,
    ),
    Column(
        "wall_s",
        Kind.NUMBER,
        "how long an attempt took, process and all; median over replicates",
        lambda r: r.attempt_s,
        unit="s",
    ),
    Column("attempts", Kind.INTEGER, "how many attempts this row rests on", lambda r: r.attempts, show=_whole),
    Column(
        "superseded",
        Kind.INTEGER,
        "how many earlier attempts were replaced by a retry and do not count",
        lambda r: r.superseded,
        show=_whole,
    ),
    _text_column(
        "sitting",
        "which sittings of the run made these attempts: 1 is the original run, every resume is one more",
        lambda r: "+".join(map(str, sorted({record.sitting for record in r.records}))) or None,
    ),
    _text_column("torch_version", "PyTorch, as the attempts saw it", _fact("torch")),
    _text_column("cuda_version", "CUDA, as the attempts saw it", _fact("cuda")),
    _text_column("cudnn_version", "cuDNN, as the attempts saw it", _fact("cudnn")),
    _text_column("note", "what else a reader of the row must know", note_of),
)

COLUMNS = (*IDENTITY, *OBSERVED)
FIXED_NAMES = frozenset(("run", *(column.name for column in COLUMNS)))


def axis_column(axis: str) -> str:
    """The column of ``axis``: its own name, unless a fixed column has it already."""
    return f"axis_{axis}" if axis in FIXED_NAMES else axis
