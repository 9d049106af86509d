"""A run held against the expectations, and the expectations changed on purpose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff
from itertools import islice
from pathlib import Path

import click

from harness.errors import CheckFailedError, StoreError, UsageError
from harness.expectations.accept import Accepted, accept
from harness.expectations.compare import Check, check
from harness.expectations.document import Expectations, ExpectationsFileError
from harness.expectations.shelf import DEFAULT, read_expectations
from harness.expectations.words import Group, groups
from harness.files import write_whole
from harness.model import Device, Plan, Record
from harness.store.journal import read_plan, read_records
from harness.store.layout import RunFolder

MOST_NAMED = 8
"""How many variants of a group are named; the rest is counted."""


def show_check(folder: RunFolder, expected: str | None) -> None:
    """Say in one sentence that a run is as expected, or list how it is not.

    Raises:
        CheckFailedError: something is not as expected.
        UsageError: the expectations cannot be read, or the run is not of a matrix.
    """
    plan, records = _read(folder)
    expectations = read_expectations(expected or DEFAULT)
    found = check(plan, records, expectations)
    if found.strays:
        click.echo(
            f"note: {_count(found.strays, 'record')} of run {plan.run} outside of its plan, held against nothing",
            err=True,
        )
    if not found.differences:
        return click.echo(f"run {plan.run} is as expected: {_held(found, expectations)}")
    for group in groups(found, expectations, plan.settings):
        for line in _group_lines(group):
            click.echo(line)
    count = len(found.differences)
    raise CheckFailedError(
        f"{count} of {plan.attempts} planned attempts of run {plan.run} {'is' if count == 1 else 'are'} not as "
        f"{expectations.source} expects",
        f"`harness show KEY --run {plan.run}` has everything about one. What is meant to be so from now on: "
        f"`harness accept {plan.run} --reason '...'`.",
    )


def show_accept(folder: RunFolder, expected: str | None, reason: str, *, dry_run: bool) -> None:
    """Change the expectations to what a run did, and show the change.

    Raises:
        CheckFailedError: something differs that nobody gets to accept, such as a timeout; the rest is accepted.
        UsageError: the expectations cannot be read or edited, or the run is not of a matrix.
    """
    plan, records = _read(folder)
    expectations = read_expectations(expected or DEFAULT)
    _refuse_shipped(Path(expectations.source))
    if not reason.strip():
        raise UsageError("the reason is empty", "Say with --reason why this is to be expected from now on.")
    done = accept(plan, records, expectations, " ".join(reason.split()))
    click.echo("".join(_diff(expectations, done)), nl=False)
    if done.accepted and not dry_run:
        _write(Path(expectations.source), done.text)
    click.echo(_said(done, expectations, dry_run=dry_run), err=True)
    if done.refused:
        named = ", ".join(dict.fromkeys(f"{d.record.outcome if d.record else d.kind}" for d in done.refused))
        raise CheckFailedError(
            f"{_count(len(done.refused), 'difference')} cannot be accepted ({named})",
            f"Run those variants again; `harness check {plan.run}` lists them.",
        )


def _said(done: Accepted, expectations: Expectations, *, dry_run: bool) -> str:
    number = len(done.accepted)
    if not number:
        return f"nothing was changed in {expectations.source}"
    verb = "would be" if dry_run else "is now" if number == 1 else "are now"
    return f"{_count(number, 'difference')} {verb} expected in {expectations.source}"


def _write(file: Path, text: str) -> None:
    try:
        write_whole(file, text)
    except StoreError as error:
        raise ExpectationsFileError(str(error), "Copy it to a place of yours and name it with --expected.") from error


def _read(folder: RunFolder) -> tuple[Plan, tuple[Record, ...]]:
    plan = read_plan(folder)
    if any("placement" not in variant.axes for variant in plan.variants):
        raise UsageError(f"run {plan.run} is not of a matrix ({plan.matrix})", "Name a run of `harness run matrix`.")
    return plan, read_records(folder)


def _refuse_shipped(file: Path) -> None:
    """What an installed package carries is no place for a person's decisions."""
    if file.parent.name == "_experiments":
        raise ExpectationsFileError(
            f"{file} belongs to the installed package", "Copy it to experiments/expected.yaml; it is found there first."
        )


def _held(found: Check, expectations: Expectations) -> str:
    parts = [
        f"{_count(number, 'record')} on {device} held against {_count(len(found.decided[device]), 'rule')}"
        for device, number in found.held.items()
    ]
    return f"{', '.join(parts)} of {expectations.source}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _group_lines(group: Group) -> Iterator[str]:
    where = "stub (no GPU)" if group.device is Device.STUB else str(group.device)
    yield f"{group.kind} on {where}: {_count(group.records, 'attempt')}"
    yield f"  expected  {group.expected or 'nothing: no rule speaks of it on this device'}"
    yield f"  seen      {group.seen}"
    if group.rule:
        yield f"  rule      {group.rule}"
    yield from (f"  {variant.key}  {variant.label}" for variant in islice(group.variants, MOST_NAMED))
    if len(group.variants) > MOST_NAMED:
        yield f"  and {_count(len(group.variants) - MOST_NAMED, 'variant')} more"
    yield ""


def _diff(expectations: Expectations, done: Accepted) -> Sequence[str]:
    before, after = (text.splitlines(keepends=True) for text in (expectations.text, done.text))
    return list(unified_diff(before, after, expectations.source, expectations.source, n=2))
