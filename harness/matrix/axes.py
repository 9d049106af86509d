"""The axes a matrix can have: their values, defaults and meaning.

Values come from YAML, from ``-a`` flags and from Python. YAML reads bare ``on``/``off``/``yes``/``no`` as booleans,
so a switch takes either spelling, and an axis that is no switch refuses booleans rather than mistake one for a number.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from harness.errors import UsageError
from harness.model import HEADLINE_AXES, Value, Variant, format_value
from harness.placements import PLACEMENTS

_TRUE, _FALSE = {"true", "on", "yes", "1"}, {"false", "off", "no", "0"}


class UnknownAxisError(UsageError):
    """There is no axis of that name."""


class UnknownValueError(UsageError):
    """The axis has no such value."""


def nearest(word: str, known: Iterable[str]) -> str:
    """The advice for a misspelt ``word``: the nearest known one, or all of them."""
    names = list(known)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    return f"Did you mean {close[0]!r}?" if close else f"Choose from: {', '.join(names)}."


@dataclass(frozen=True, slots=True)
class AxisSpec:
    """What an axis may hold.

    ``choices`` lists the values of a ``choice`` axis; a ``switch`` holds a boolean; an ``integer`` or ``fraction``
    must be at least ``minimum`` (and a fraction below 1).
    """

    name: str
    kind: Literal["choice", "switch", "integer", "fraction"]
    default: Value
    doc: str
    choices: tuple[str, ...] = ()
    minimum: int = 0

    def parse(self, raw: object) -> Value:
        """``raw`` as this axis holds it.

        Raises:
            UnknownValueError: ``raw`` is none of the axis's values; the advice names the nearest.
        """
        match self.kind:
            case "choice":
                return self._choice(raw)
            case "switch":
                return self._switch(raw)
            case "integer":
                return self._integer(raw)
            case "fraction":
                return self._fraction(raw)

    def _refuse(self, raw: object, advice: str) -> UnknownValueError:
        shown = format_value(raw) if isinstance(raw, bool | int | float | str) else repr(raw)
        return UnknownValueError(f"axis {self.name!r} has no value {shown!r}", advice)

    def _choice(self, raw: object) -> str:
        if isinstance(raw, bool):
            raw = "on" if raw else "off"
        if isinstance(raw, str):
            word = raw.strip().lower()
            word = {"true": "on", "yes": "on", "false": "off", "no": "off"}.get(word, word)
            if word in self.choices:
                return word
            raise self._refuse(raw, nearest(word, self.choices))
        raise self._refuse(raw, f"Choose from: {', '.join(self.choices)}.")

    def _switch(self, raw: object) -> bool:
        word = format_value(raw).strip().lower() if isinstance(raw, bool | int | str) else ""
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
        raise self._refuse(raw, "It is a switch: write true or false (on/off and yes/no are read too).")

    def _integer(self, raw: object) -> int:
        text = raw.strip() if isinstance(raw, str) else raw
        if isinstance(text, str) and text.isascii() and text.isdigit():
            text = int(text)
        if isinstance(text, bool) or not isinstance(text, int) or text < self.minimum:
            raise self._refuse(raw, f"It takes a whole number of at least {self.minimum}.")
        return text

    def _fraction(self, raw: object) -> float:
        try:
            number = float(raw) if isinstance(raw, str | int | float) and not isinstance(raw, bool) else -1.0
        except ValueError:
            number = -1.0
        if not 0 <= number < 1:
            raise self._refuse(raw, "It takes a number from 0 up to, not including, 1.")
        return number


_ON_OFF = ("on", "off")

AXES: dict[str, AxisSpec] = {
    spec.name: spec
    for spec in (
        AxisSpec("cell", "choice", "lstm", "the recurrent layer", ("rnn-tanh", "rnn-relu", "lstm", "gru")),
        AxisSpec("bidirectional", "switch", False, "whether it reads the sequence both ways"),
        AxisSpec("cudnn", "choice", "on", "torch.backends.cudnn.enabled for the whole attempt", _ON_OFF),
        AxisSpec("placement", "choice", "train-each-epoch", "the mode-switch placement", tuple(PLACEMENTS)),
        AxisSpec("layers", "integer", 1, "num_layers of the RNN", minimum=1),
        AxisSpec("dropout", "fraction", 0.0, "the RNN's own dropout, between its layers"),
        AxisSpec(
            "dtype",
            "choice",
            "float32",
            "the dtype of weights and inputs",
            ("float32", "float64", "float16", "bfloat16"),
        ),
        AxisSpec(
            "autocast",
            "choice",
            "off",
            "torch.autocast around forward and loss, to this dtype",
            ("off", "float16", "bfloat16"),
        ),
        AxisSpec("packed", "switch", False, "whether the input is a PackedSequence of unequal lengths"),
        AxisSpec("proj-size", "integer", 0, "proj_size of an LSTM; 0 is none"),
        AxisSpec("batch-first", "switch", False, "whether the batch is the first dimension"),
        AxisSpec("bias", "switch", True, "whether the RNN has biases"),
        AxisSpec("norm", "choice", "none", "a normalisation after the RNN", ("none", "batch-norm")),
        AxisSpec("batch", "integer", 16, "sequences per step"),
        AxisSpec("seq-len", "integer", 16, "time steps per sequence (the longest, where packed)", minimum=1),
        AxisSpec("input-size", "integer", 16, "features per time step", minimum=1),
        AxisSpec("hidden-size", "integer", 32, "hidden units", minimum=1),
    )
}


def spec_of(name: str) -> AxisSpec:
    """The axis called ``name``; underscores are read as dashes.

    Raises:
        UnknownAxisError: there is none; the advice names the nearest.
    """
    word = name.strip().lower().replace("_", "-")
    if word not in AXES:
        raise UnknownAxisError(f"there is no axis {name!r}", nearest(word, AXES))
    return AXES[word]


def make_variant(values: Mapping[str, Value]) -> Variant:
    """The variant with ``values`` and every other axis at its default."""
    axes = {name: values.get(name, spec.default) for name, spec in AXES.items()}
    shown = [name for name, spec in AXES.items() if name in HEADLINE_AXES or axes[name] != spec.default]
    return Variant(axes, ",".join(f"{name}={format_value(axes[name])}" for name in shown))


def full_label(variant: Variant) -> str:
    """Every axis of ``variant``, defaults included, in the spelling of labels."""
    return ",".join(f"{name}={format_value(value)}" for name, value in variant.axes.items())
