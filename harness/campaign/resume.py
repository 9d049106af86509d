"""Going on with a run that was stopped, killed or only partly well: the attempts that are left, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from harness.campaign.conditions import Conditions, Finished, Listener, check
from harness.campaign.desk import Books
from harness.campaign.loop import Session
from harness.campaign.policy import Policy, Todo, remaining
from harness.campaign.standing import is_reported
from harness.environment import environment, processor
from harness.errors import DeviceUnavailableError, RunNotFoundError, UsageError
from harness.launch.site import Site, reopen_site
from harness.launch.stop import StopRequest, on_signals
from harness.matrix.axes import AXES
from harness.matrix.shelf import names
from harness.model import Device, Plan, Record
from harness.results import collect
from harness.sittings import Sitting, changed_facts, changes, next_number
from harness.store.journal import Journal, read_plan, read_records
from harness.store.layout import LATEST, RunFolder, Store
from harness.store.sittings import append_sitting, read_sittings


@dataclass(frozen=True, slots=True)
class Resumption:
    """Which run is to go on, and what of it is made.

    ``latest`` is the newest run of a matrix that is unfinished, else the newest that lacks its report, else the newest.
    """

    run: str = LATEST
    policy: Policy = field(default_factory=Policy)


def look_ahead(store: Store, asked: Resumption) -> tuple[Plan, list[Todo]]:
    """The plan of the run that would go on, and the attempts that would be made.

    Raises:
        HarnessError: see ``resume_matrix``.
    """
    folder, plan = _find(store, asked)
    return plan, remaining(plan, read_records(folder), asked.policy)


def resume_matrix(asked: Resumption, conditions: Conditions, listener: Listener) -> Finished:
    """Make what is left of a run, on the devices that it was planned on; where nothing is, bring report and MLflow
    up to date.

    Raises:
        RunBusyError: another coordinator is at work on it.
        DeviceUnavailableError: a device that it was planned on is not here.
        UsageError: there is no such run, or it is none that can go on.
        InterruptedRunError: the person stopped it.
    """
    folder, plan = _find(conditions.store, asked)
    check(conditions)
    with Journal.resume(folder, conditions.store.command("report", folder.run)) as journal:
        records, sittings = read_records(folder), read_sittings(folder, plan)
        number = next_number(sittings, records)
        todo = remaining(plan, records, asked.policy, number)
        books = Books(plan, [each.order for each in todo], records)
        if not todo:
            session = Session(books, journal, Site(), conditions, listener, StopRequest())
            return session.carry_out([], lambda: listener.noted(_nothing_left(books)))
        _note_other_tracking(plan, conditions, listener)
        listener.preparing("starting PyTorch")
        with _site_of(plan, todo) as site:
            stop = StopRequest()
            sitting = _sitting(number, plan, records, site, conditions)
            with on_signals(stop):
                append_sitting(folder, sitting)
                session = Session(books, journal, site, conditions, listener, stop)
                orders = [each.order for each in todo]
                return session.carry_out(orders, lambda: listener.resumed(plan, sitting, len(orders)))


def _find(store: Store, asked: Resumption) -> tuple[RunFolder, Plan]:
    if asked.run != LATEST:
        if asked.run in names():
            raise UsageError(
                f"--resume takes a run, and {asked.run!r} is a matrix",
                f"`harness run matrix {asked.run}` starts a new run; `harness status --all` lists the runs.",
            )
        folder = store.find(asked.run)
        return folder, _resumable(read_plan(folder))
    store.latest()  # says it where there is none at all
    folders = (folder for folder in map(store.folder, reversed(store.runs())) if folder.plan.exists())
    found = ((folder, read_plan(folder)) for folder in folders)
    matrices = [(folder, plan) for folder, plan in found if not plan.is_program]
    if not matrices:
        raise RunNotFoundError(
            f"there are no runs of a matrix in {store.root.absolute()}", "Make one with `harness run matrix`."
        )
    unfinished = (each for each in matrices if not collect(each[1], read_records(each[0])).complete)
    unreported = (each for each in matrices if not is_reported(each[0], read_sittings(*each)))
    folder, plan = next(unfinished, None) or next(unreported, matrices[0])
    return folder, _resumable(plan)


def _resumable(plan: Plan) -> Plan:
    if plan.is_program:
        raise UsageError(
            f"run {plan.run} is of a seed program, and only runs of a matrix can go on",
            f"`{' '.join(plan.command) or 'harness run seed'}` runs it anew.",
        )
    strange = {axis for variant in plan.variants for axis in variant.axes.keys() ^ AXES.keys()}
    if strange:
        raise UsageError(
            f"run {plan.run} was planned with other axes than this harness has: {', '.join(sorted(strange))}",
            "Go on with the version of harness that planned it, or start a new run.",
        )
    return plan


def _site_of(plan: Plan, todo: Sequence[Todo]) -> Site:
    """The devices that are still needed. Another than those planned would mix what must not be mixed."""
    needed = {each.order.device for each in todo}
    try:
        return reopen_site(device for device in plan.devices if device in needed)
    except DeviceUnavailableError as error:
        raise DeviceUnavailableError(
            f"run {plan.run} cannot go on here, since it was planned on {' and '.join(plan.devices)}: {error}",
            "Go on where that device is, or start a new run: one run never mixes devices.",
        ) from error


def _sitting(number: int, plan: Plan, records: Sequence[Record], site: Site, conditions: Conditions) -> Sitting:
    now = environment()
    facts: dict[Device, dict[str, object]] = {
        device: {"cpu": processor()} | dict(site.facts.get(device, {})) for device in site.devices
    }
    return Sitting(
        number,
        datetime.now(UTC).isoformat(timespec="seconds"),
        conditions.command,
        now,
        facts,
        (*changes(plan.environment, now), *changed_facts(records, facts)),
    )


def _note_other_tracking(plan: Plan, conditions: Conditions, listener: Listener) -> None:
    """A run that was begun with ``--tracking-uri`` and goes on without it is whole here, and unfinished there."""
    begun_elsewhere = any(word.startswith("--tracking-uri") for word in plan.command)
    if begun_elsewhere and conditions.tracked and conditions.store.tracking_uri is None:
        listener.noted(
            "the run was begun with --tracking-uri; without it this sitting writes to the store's own MLflow"
        )


def _nothing_left(books: Books) -> str:
    missing = books.plan.attempts - books.recorded
    if missing:
        return f"run {books.plan.run}: nothing is to be made again; {missing} missing attempts are left out"
    return f"run {books.plan.run}: nothing is missing, all {books.recorded} planned attempts are recorded"
