"""The DataFrame behind every table, and its journey to CSV and back."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from harness.model import Plan, Record, Value, format_value
from harness.report.columns import COLUMNS, IDENTITY, OBSERVED, Cell, Column, Kind, axis_column
from harness.report.text import clean
from harness.results import Result, collect


def results_frame(plan: Plan, records: Sequence[Record]) -> pd.DataFrame:
    """One row per planned variant and planned device, whatever the records are; see ``columns.py`` for the columns."""
    return frame_of(plan, collect(plan, records).results)


def frame_of(plan: Plan, results: Sequence[Result]) -> pd.DataFrame:
    """The rows of ``results``, in their order."""
    series = {"run": _series(Kind.TEXT, (plan.run for _ in results))}
    series |= {column.name: _column(column, results) for column in IDENTITY}
    for axis in axes_of(plan):
        series[axis_column(axis)] = _axis([result.variant.axes.get(axis) for result in results])
    series |= {column.name: _column(column, results) for column in OBSERVED}
    return pd.DataFrame(series)


def axes_of(plan: Plan) -> list[str]:
    """Every axis that a variant of ``plan`` has, in the order of their first appearance."""
    return list(dict.fromkeys(axis for variant in plan.variants for axis in variant.axes))


def _column(column: Column, results: Iterable[Result]) -> pd.Series:
    return _series(column.kind, (column.of(result) for result in results))


def _series(kind: Kind, values: Iterable[Cell]) -> pd.Series:
    if kind is Kind.TEXT:
        # An empty text and an absent one look alike in a CSV, so they are alike here.
        return pd.Series([clean(str(v)) if v is not None and v != "" else pd.NA for v in values], dtype="string")
    absent = float("nan") if kind is Kind.NUMBER else pd.NA
    return pd.Series([absent if value is None else value for value in values], dtype=kind.value)


def _axis(values: Sequence[Value | None]) -> pd.Series:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int}:
        return _series(Kind.INTEGER, values)
    if kinds in ({float}, {int, float}):
        return _series(Kind.NUMBER, values)
    return _series(Kind.TEXT, (None if value is None else format_value(value) for value in values))


# --- CSV: a spreadsheet takes a text that begins like a formula for one, so such a text gets an apostrophe in front.

_FORMULA = re.compile(r"'*[=+\-@\t\r＝＋－＠]")


def to_csv(frame: pd.DataFrame) -> str:
    """``frame`` as CSV. Text is quoted and cannot become a formula; numbers are as they are; absent is empty."""
    safe = frame.copy()
    for name in _text_columns(frame):
        safe[name] = frame[name].map(_disarm, na_action="ignore")
    return safe.to_csv(index=False, na_rep="", lineterminator="\n")


def read_results(source: Path | str) -> pd.DataFrame:
    """Read ``results.csv`` (a path, or its text) back into the frame that it was written from."""
    stream = io.StringIO(source.read_text(encoding="utf-8") if isinstance(source, Path) else source)
    kinds = {column.name: column.kind.value for column in COLUMNS} | {"run": Kind.TEXT.value}
    frame = pd.read_csv(stream, dtype=kinds, keep_default_na=False, na_values=[""], dtype_backend="numpy_nullable")
    for name in _text_columns(frame):
        frame[name] = frame[name].map(_arm, na_action="ignore").astype("string")
    for name in frame.select_dtypes("boolean").columns:  # an axis that is a switch is a text here: true, false
        frame[name] = frame[name].map(format_value, na_action="ignore").astype("string")
    return frame


def _text_columns(frame: pd.DataFrame) -> list[str]:
    return [str(name) for name in frame.columns if isinstance(frame[name].dtype, pd.StringDtype)]


def _disarm(value: str) -> str:
    return f"'{value}" if _FORMULA.match(value) else value


def _arm(value: str) -> str:
    return value[1:] if value.startswith("'") and _FORMULA.match(value) else value
