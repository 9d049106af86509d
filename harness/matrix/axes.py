"""The axes a matrix can have: their values, defaults and meaning.

Values come from YAML, from ``-a`` flags and from Python. YAML reads bare ``on``/``off``/``yes``/``no`` as booleans,
so a switch takes either spelling, and an axis that is no switch refuses booleans rather than mistake one for a number.
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from harness.errors import UsageError
from harness.model import HEADLINE_AXES, Value, Variant, format_value
from harness.placements import PLACEMENTS

_TRUE, _FALSE = {"true", "on", "yes", "1"}, {"false", "off", "no", "0"}

LARGEST_INTEGER = 2**31 - 1
"""No size of a network that fits a machine comes near it."""

SHOWN = 60
"""Characters of a refused value that a complaint repeats."""


class UnknownAxisError(UsageError):
    """There is no axis of that name."""


class UnknownValueError(UsageError):
    """The axis has no such value."""


def shown(raw: object) -> str:
    """``raw`` as a complaint quotes it: in one line, and short even where aliases make a few lines of YAML endless."""
    if isinstance(raw, bool | int | float | str):
        try:
            text = repr(format_value(raw))
        except ValueError:  # an integer of more digits than Python prints
            text = "a number of thousands of digits"
    else:
        brief = reprlib.Repr()
        brief.maxlevel, brief.maxlist, brief.maxdict = 2, 3, 3
        text = brief.repr(raw)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 4]}...{text[-1]}"


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
        return UnknownValueError(f"axis {self.name!r} has no value {shown(raw)}", advice)

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
        # The numbers 1 and 0 are equal to the booleans.
        word = ("true" if raw else "false") if isinstance(raw, int) and raw in (0, 1) else raw
        word = word.strip().lower() if isinstance(word, str) else ""
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
        raise self._refuse(raw, "It is a switch: write true or false (on/off and yes/no are read too).")

    def _integer(self, raw: object) -> int:
        text = raw.strip() if isinstance(raw, str) else raw
        if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST_INTEGER)):
            text = int(text)
        if isinstance(text, bool) or not isinstance(text, int) or not self.minimum <= text <= LARGEST_INTEGER:
            raise self._refuse(raw, f"It takes a whole number from {self.minimum} to {LARGEST_INTEGER}.")
        return text

    def _fraction(self, raw: object) -> float:
        try:
            number = float(raw) if isinstance(raw, str | int | float) and not isinstance(raw, bool) else -1.0
        except (ValueError, OverflowError):
            number = -1.0
        if not 0 <= number < 1:
            raise self._refuse(raw, "It takes a number from 0 up to, not including, 1.")
        return number or 0.0  # never -0.0, which is the same value and would get a key of its own


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
        raise UnknownAxisError(f"there is no axis {shown(name)}", nearest(word, AXES))
    return AXES[word]


def make_variant(values: Mapping[str, Value]) -> Variant:
    """The variant with ``values`` and every other axis at its default."""
    axes = {name: values.get(name, spec.default) for name, spec in AXES.items()}
    named = [name for name, spec in AXES.items() if name in HEADLINE_AXES or axes[name] != spec.default]
    return Variant(axes, ",".join(f"{name}={format_value(axes[name])}" for name in named))


def full_label(variant: Variant) -> str:
    """Every axis of ``variant``, defaults included, in the spelling of labels."""
    return ",".join(f"{name}={format_value(value)}" for name, value in variant.axes.items())
