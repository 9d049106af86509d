"""How runs stand, as lines for people and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click
from tabulate import tabulate

from harness.campaign import Standing, State, Todo, Unreadable, standing, standings
from harness.model import Outcome, Plan
from harness.quoting import one_line
from harness.sittings import Sitting, word
from harness.store.layout import Store

_SHOWN = ("harness", "torch", "python", "system")
"""Of a sitting's environment; `--json` has all of it."""


def show_standings(store: Store, run: str | None, *, every: bool, as_json: bool) -> None:
    """How one run stands, or ``every`` run of the store, a line each.

    Raises:
        HarnessError: there is no such run, or it cannot be read.
    """
    if not every:
        found = standing(store.find(run))
        lines = iter([_json(_document(found))]) if as_json else standing_lines(found, store)
    else:
        all_found = list(standings(store))
        lines = iter([_json([_document(each) for each in all_found])]) if as_json else table_lines(all_found, store)
    for line in lines:
        click.echo(line)


def show_remaining(plan: Plan, todo: list[Todo]) -> None:
    """One line per attempt that a resume would make, and why; the count goes to stderr."""
    for each in todo:
        order = each.order
        number = f" replicate {order.replicate}" if plan.replicates_on(order.device) > 1 else ""
        why = "missing" if each.before is None else f"attempt {order.attempt}, after {each.before}"
        click.echo(f"{order.variant.key}  {order.device}{number}  {order.variant.label}  ({why})")
    again = sum(each.before is not None for each in todo)
    click.echo(
        f"run {plan.run}: {len(todo)} of {plan.attempts} attempts would be made: "
        f"{len(todo) - again} missing, {again} again",
        err=True,
    )


def standing_lines(found: Standing, store: Store) -> Iterator[str]:
    """One run: what it is, a table of its devices, its sittings, and what to do next."""
    plan = found.plan
    yield f"run {plan.run}: {one_line(plan.matrix)}, planned {plan.created}; {_state_words(found)}"
    yield ""
    outcomes = [outcome for outcome in Outcome if any(outcome in each.outcomes for each in found.devices)]
    rows = [["device", "planned", "recorded", "missing", *outcomes]]
    rows += [
        [
            each.device,
            str(each.planned),
            str(each.recorded),
            str(each.missing),
            *(_count(each.outcomes[o]) for o in outcomes),
        ]
        for each in found.devices
    ]
    yield from _aligned(rows)
    replaced = sum(each.superseded for each in found.devices)
    if replaced:
        attempts = "1 earlier attempt was" if replaced == 1 else f"{replaced} earlier attempts were"
        yield f"{attempts} made again; the latest of each is counted"
    if found.strays:
        records = "1 record belongs" if found.strays == 1 else f"{found.strays} records belong"
        yield f"{records} to nothing that was planned"
    yield from ("", *(line for sitting in found.sittings for line in _sitting_lines(sitting)))
    yield from _next(found, store)


def _state_words(found: Standing) -> str:
    missing = found.planned - found.recorded
    match found.state:
        case State.RUNNING:
            return f"a coordinator is at work on it, {missing} of {found.planned} attempts to go"
        case State.COMPLETE:
            report = "" if found.reported else ", but nobody came to write its report"
            return f"complete, {found.recorded} of {found.planned} attempts are recorded{report}"
        case State.UNFINISHED:
            verb = "is" if missing == 1 else "are"
            return f"unfinished, {missing} of {found.planned} attempts {verb} missing, and nobody is at work on it"


def _sitting_lines(sitting: Sitting) -> Iterator[str]:
    command = f": {one_line(' '.join(sitting.command))}" if sitting.command else ""
    yield f"sitting {sitting.number}, {sitting.started}{command}"
    facts = [f"{name} {word(sitting.environment[name])}" for name in _SHOWN if sitting.environment.get(name)]
    commit = sitting.environment.get("git_commit")
    if commit:
        facts.append(
            f"commit {str(commit)[:12]}{' and uncommitted changes' * bool(sitting.environment.get('git_dirty'))}"
        )
    if facts:
        yield f"  made with {one_line(', '.join(facts))}"
    for difference in sitting.differences:
        yield f"  other than in sitting 1: {one_line(difference)}"


def _next(found: Standing, store: Store) -> Iterator[str]:
    run = found.plan.run
    resume = store.command("run", "matrix", "--resume", run)
    if found.state is State.RUNNING:
        return
    if found.plan.is_program:
        if not found.reported:
            report, sync = store.command("report", run), store.command("sync", run)
            yield from ("", f"`{report}` shows it, `{sync}` brings it to MLflow")
        return
    if found.state is State.UNFINISHED:
        again = f" and makes {found.again} again" if found.again else ""
        yield from ("", f"`{resume}` finishes it{again}")
    elif not found.reported:
        yield from ("", f"`{resume}` writes its report and brings it to MLflow")
    elif found.again:
        yield from ("", f"`{resume}` makes {found.again} attempt{'s' * (found.again > 1)} again")


def table_lines(every: list[Standing | Unreadable], store: Store) -> Iterator[str]:
    """One line per run, oldest first."""
    if not every:
        yield f"there are no runs in {one_line(str(store.root.absolute()))}"
        return
    yield from _aligned([["run", "what", "devices", "recorded", "planned", "state"], *map(_row, every)])


def _row(found: Standing | Unreadable) -> list[str]:
    if isinstance(found, Unreadable):
        return [found.run, "", "", "", "", f"unreadable: {one_line(found.reason)}"]
    plan = found.plan
    state = str(found.state)
    if found.state is State.COMPLETE and not found.reported:
        state += ", no report"
    if len(found.sittings) > 1:
        state += f", {len(found.sittings)} sittings"
    return [
        plan.run,
        one_line(plan.matrix),
        "+".join(plan.devices),
        str(found.recorded),
        str(found.planned),
        state,
    ]


def _aligned(rows: list[list[str]]) -> list[str]:
    """Columns of equal width under the first row; figures to the right."""
    return [line.rstrip() for line in tabulate(rows, headers="firstrow", tablefmt="plain").splitlines()]


def _count(number: int) -> str:
    return str(number) if number else ""


def _document(found: Standing | Unreadable) -> dict[str, Any]:
    """One run for programs."""
    if isinstance(found, Unreadable):
        return {"run": found.run, "state": "unreadable", "reason": found.reason}
    plan = found.plan
    return {
        "run": plan.run,
        "matrix": plan.matrix,
        "created": plan.created,
        "state": found.state,
        "planned": found.planned,
        "recorded": found.recorded,
        "missing": found.planned - found.recorded,
        "again": found.again,
        "reported": found.reported,
        "strays": found.strays,
        "devices": {
            each.device: {
                "planned": each.planned,
                "recorded": each.recorded,
                "missing": each.missing,
                "superseded": each.superseded,
                "outcomes": dict(each.outcomes),
            }
            for each in found.devices
        },
        "sittings": [
            {
                "sitting": sitting.number,
                "started": sitting.started,
                "command": list(sitting.command),
                "environment": dict(sitting.environment),
                "facts": {device: dict(facts) for device, facts in sitting.facts.items()},
                "differences": list(sitting.differences),
            }
            for sitting in found.sittings
        ],
    }


def _json(document: object) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False, default=str)
