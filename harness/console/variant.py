"""Everything about one variant of a run, as plain lines; and the script that reproduces it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from harness.console.measurements import block_line, exactness_lines, measured_lines, plain
from harness.console.words import device_words, placement_lines, rule_line, sighting_line
from harness.errors import NothingSelectedError, UsageError
from harness.matrix.axes import AXES
from harness.matrix.expand import Expansion, select
from harness.matrix.naming import UnknownVariantError, from_label, in_matrices, is_key, with_key
from harness.matrix.shelf import names
from harness.model import HEADLINE_AXES, Plan, Record, Settings, Value, Variant, format_value
from harness.placements import PLACEMENTS
from harness.quoting import clean, one_line
from harness.repro.case import Case, case_of
from harness.repro.script import script_of
from harness.results import Result, results_of
from harness.store.journal import read_plan, read_records
from harness.store.layout import RunFolder, Store

ELSEWHERE = "--run RUN looks in another run."

MOST_LISTED = 40
"""How many variants a glob lists; more than fit a screen are rather narrowed."""

_ELSEWHERE = frozenset(
    ("run", "key", "label", "device", "outcome", "replicate", "attempt", "phase", "epoch", "step", "error_type")
) | {
    "error_message",
    "traceback_tail",
    "output_tail",
    "sightings",
    "samples",
    "exactness",
    "facts",
    "results",
    "sitting",
    "schema",
}
"""Fields of a record that have a place of their own in the text; all others follow by their names."""


def show_variant(folder: RunFolder, text: str) -> None:
    """Everything about the variant of a run that ``text`` names; where a glob means several, a line about each.

    Raises:
        UsageError: no variant has that key, or several have one that begins so.
        NothingSelectedError: no label matches.
    """
    plan, records = read_plan(folder), read_records(folder)
    found = _found(plan, text)
    if len(found) == 1:
        return _echo(variant_lines(plan, found[0], records))
    for variant in found[:MOST_LISTED]:
        outcomes = ", ".join(f"{r.device} {r.outcome}" for r in _results(plan, variant, records))
        click.echo(f"{variant.key}  {variant.label}  ({outcomes})")
    more = f", the first {MOST_LISTED} of them above" if len(found) > MOST_LISTED else ""
    return click.echo(f"{len(found)} variants match{more}; `harness show KEY` has everything about one", err=True)


def _found(plan: Plan, text: str) -> tuple[Variant, ...]:
    where = f"run {plan.run}"
    try:
        if is_key(text):
            return (with_key(plan.variants, text, where),)
        exact = tuple(variant for variant in plan.variants if variant.label == text)
        return exact or select(Expansion(plan.variants, ()), (text,)).variants
    except (UnknownVariantError, NothingSelectedError) as error:
        sentence = str(error) if where in str(error) else f"{error} in {where}"
        raise type(error)(sentence, f"{error.advice} {ELSEWHERE}") from error


def show_script(store: Store, text: str, run: str | None) -> None:
    """The script that reproduces the variant that ``text`` names.

    Raises:
        UsageError: nobody has planned it, or no script can be written for it.
    """
    click.echo(script_of(_case(store, text, run)), nl=False)


def _case(store: Store, text: str, run: str | None) -> Case:
    """The variant as the run saw it (the latest, where none is named); else as any matrix plans it."""
    if not is_key(text) and "=" not in text:
        raise UsageError(f"{text!r} is neither a key nor a label", "`harness plan` lists both; a label has axis=value.")
    labelled = None if is_key(text) else from_label(text)
    key = labelled.key if labelled else text
    searched = ""
    if run is not None or store.runs():
        folder = store.find(run)
        plan = read_plan(folder)
        try:
            return case_of(plan, with_key(plan.variants, key, f"run {plan.run}"), read_records(folder))
        except UnknownVariantError as error:
            if run is not None:
                raise UnknownVariantError(str(error), f"{error.advice} {ELSEWHERE}") from error
            searched = f"run {plan.run}, the latest, or in "
    if labelled:
        return Case(labelled, Settings(), "Default settings")
    try:
        name, settings, variant = in_matrices(key, searched)
    except UnknownVariantError as error:
        raise UnknownVariantError(str(error), f"{error.advice} {ELSEWHERE}" if searched else error.advice) from error
    return Case(variant, settings, f"Matrix {name}")


def _echo(lines: Iterator[str]) -> None:
    for line in lines:
        click.echo(line)


def _results(plan: Plan, variant: Variant, records: tuple[Record, ...]) -> list[Result]:
    mine = [record for record in records if record.key == variant.key and record.run == plan.run]
    return results_of(plan, variant, mine)


def variant_lines(plan: Plan, variant: Variant, records: tuple[Record, ...]) -> Iterator[str]:
    """The variant's name, axes and placement, each of its records, and how to have them again."""
    yield f"variant {variant.key}  {one_line(variant.label, 1000)}"
    yield f"run {plan.run}, matrix {one_line(plan.matrix)}, planned on {' and '.join(plan.devices)}"
    yield from ("", "axes")
    for name, value in variant.axes.items():
        default = name in AXES and value == AXES[name].default
        yield f"  {name:14} {format_value(value)}{'  (default)' if default else ''}"
    placement = PLACEMENTS.get(str(variant.axes.get("placement")))
    if placement is not None:
        yield from ("", *placement_lines(placement))
    for result in _results(plan, variant, records):
        yield ""
        if not result.records:
            yield f"on {device_words(result.device)}: not-run, there is no record of it"
        for record in result.records:
            yield from record_lines(record, alone=len(result.records) == 1)
        measured = list(measured_lines(result))
        if measured:
            yield f"what the attempts on {result.device} come to"
            yield from measured
        if result.superseded:
            attempts = (
                "1 earlier attempt was" if result.superseded == 1 else f"{result.superseded} earlier attempts were"
            )
            yield f"  {attempts} made again; the latest is counted"
    yield from ("", f"run it again, alone:  {_shell(rerun_command(plan, variant))}")
    if placement is not None:
        yield f"reproduce it:         harness repro {variant.key} --run {plan.run} > repro.py"


def record_lines(record: Record, *, alone: bool) -> Iterator[str]:
    """Everything that one record holds; which attempt it is of is said unless it is the first, and ``alone``."""
    first = record.replicate + record.attempt == 1
    number = "" if first and alone else f", replicate {record.replicate}, attempt {record.attempt}"
    number += f", sitting {record.sitting}" if record.sitting > 1 else ""
    yield f"on {device_words(record.device)}{number}: {record.outcome}"
    where = [f"{record.phase}"] if record.phase else []
    where += [f"epoch {record.epoch}"] if record.epoch else []
    where += [f"step {record.step}"] if record.step else []
    if where:
        yield f"  got as far as  {', '.join(where)}"
    if record.error_type:
        yield f"  error          {one_line(f'{record.error_type}: {record.error_message or str()}', 2000)}"
    yield from _tail("traceback, innermost last", record.traceback_tail)
    for sighting in record.sightings:
        yield f"  seen           {sighting_line(sighting)}"
    yield f"  the rule       {rule_line(record)}"
    yield from (f"  timed          {block_line(sample)}" for sample in record.samples)
    if record.exactness is not None:
        yield "  its gradient, taken once more"
        yield from (f"    {line}" for line in exactness_lines(record.exactness))
    for field in fields(record):
        value = getattr(record, field.name)
        if field.name not in _ELSEWHERE and value is not None:
            yield f"  {field.name:14} {plain(value)}{_mebibytes(field.name, value)}"
    for title, mapping in (("results", record.results), ("facts", record.facts)):
        if mapping:
            yield f"  {title}"
            yield from (f"    {one_line(name):14} {plain(value)}" for name, value in mapping.items())
    yield from _tail("the end of its output", record.output_tail)


def _tail(title: str, text: str | None) -> Iterator[str]:
    if text:
        yield f"  {title}"
        yield from (f"    {line}" for line in clean(text).splitlines())


def _shell(command: list[str]) -> str:
    """``command`` as one types it; what steers a terminal is spelt out, and then it no longer is what one types."""
    return clean(shlex.join(command)).replace("\n", "\\n")


def _mebibytes(name: str, value: Any) -> str:
    return f" ({value / 2**20:,.1f} MiB)" if name.endswith("_bytes") else ""


def rerun_command(plan: Plan, variant: Variant) -> list[str]:
    """The command that runs this variant of this plan again, and no other."""
    if "program" in variant.axes:
        return list(plan.command)
    device = [] if len(plan.devices) > 1 else ["--device", str(plan.devices[0])]
    axes = [word for name in _to_name(plan, variant) for word in ("-a", f"{name}={format_value(variant[name])}")]
    return ["harness", "run", "matrix", _matrix_of(plan), *axes, *device]


def _to_name(plan: Plan, variant: Variant) -> list[str]:
    """The axes that single the variant out; of a plan that was itself a selection, all."""
    if plan.selection:
        return list(variant.axes)
    return [name for name in variant.axes if name in HEADLINE_AXES or _varies(plan, name, variant[name])]


def _varies(plan: Plan, axis: str, value: Value) -> bool:
    return any(other.axes.get(axis) != value for other in plan.variants)


def _matrix_of(plan: Plan) -> str:
    """The matrix as a person names it: a plan keeps the short name, and a file of one's own needs its path."""
    words = (word for word in plan.command if Path(word).stem == plan.matrix and word != plan.matrix)
    return plan.matrix if plan.matrix in names() else next(words, plan.matrix)
