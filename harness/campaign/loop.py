"""The loop: plan, launch, journal, project to MLflow, report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from harness.campaign.choosing import Selection, choose
from harness.campaign.conditions import Conditions, Finished, Listener, check
from harness.campaign.desk import Books, Desk
from harness.campaign.orders import OrderMaker, orders_of
from harness.environment import environment
from harness.errors import InterruptedRunError, LeftAtOnceError
from harness.launch.site import Site, open_site
from harness.launch.stop import StopRequest, on_signals
from harness.model import Device, Order, Plan
from harness.store.background import start_tracking
from harness.store.journal import Journal
from harness.store.layout import new_run_id
from harness.store.tracking import Ending


def run_matrix(selection: Selection, conditions: Conditions, listener: Listener) -> Finished:
    """Run every selected variant on every device, keep the records, tell MLflow, write the report.

    Raises:
        InterruptedRunError: the person stopped it; what was recorded is kept, reported and in MLflow.
        HarnessError: see ``choose``, ``check``, ``open_site`` and ``Journal``.
    """
    chosen = choose(selection)
    check(conditions)
    settings = replace(chosen.settings, replicates=conditions.replicates or chosen.settings.replicates)
    listener.preparing("starting PyTorch")
    with open_site(conditions.device) as site:
        plan = Plan(
            run=new_run_id(),
            matrix=chosen.name,
            description=chosen.description,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            devices=site.devices,
            settings=settings,
            variants=chosen.expansion.variants,
            exclusions=chosen.expansion.exclusions,
            selection=str(selection),
            command=conditions.command,
            environment=environment(),
            notes=tuple(site.notes),
        )
        return carry_out(plan, orders_of, site, conditions, listener)


def carry_out(plan: Plan, orders: OrderMaker, site: Site, conditions: Conditions, listener: Listener) -> Finished:
    """Run a new plan to its end or to the person's stop, and leave store, MLflow and report in agreement."""
    stop = StopRequest()
    todo = [order for device in plan.devices for order in orders(plan, device)]
    with on_signals(stop), Journal.create(conditions.store.folder(plan.run), plan) as journal:
        session = Session(Books(plan, todo), journal, site, conditions, listener, stop)
        return session.carry_out(todo, lambda: listener.started(plan))


@dataclass(slots=True)
class Session:
    """One sitting of a run: the books, the journal that is held, and the devices that the attempts are made on."""

    books: Books
    journal: Journal
    site: Site
    conditions: Conditions
    listener: Listener
    stop: StopRequest

    def carry_out(self, todo: Sequence[Order], announce: Callable[[], None]) -> Finished:
        """Make the attempts, and leave store, MLflow and report in agreement; ``announce`` says that it begins.

        Raises:
            InterruptedRunError: the person stopped it.
        """
        plan, books, stop = self.books.plan, self.books, self.stop
        # MLflow hears of a run that is in the journal, never of one that could not be kept.
        tracking = start_tracking(self.conditions.store, plan, enabled=self.conditions.tracked)
        desk = Desk(self.journal, books, tracking, self.listener)
        try:
            # What an earlier sitting has recorded and MLflow may not have: its coordinator may have been killed.
            desk.show_all(settled=True)
            announce()
            for device in plan.devices:
                self._run_device(device, [order for order in todo if order.device is device], desk)
        except LeftAtOnceError:
            raise
        except BaseException:
            # The harness itself failed. What is recorded is reported as far as that is possible, MLflow does not
            # show RUNNING, and it is the first failure that the person hears of.
            with suppress(Exception):
                desk.close(Ending.INTERRUPTED if stop.no_more else Ending.BROKEN)
            raise
        files = desk.close(Ending.of(plan, books.all))
        if stop.no_more and not books.finished:
            raise self._interrupted()
        lost = tracking.caveats if self.conditions.tracked else ()
        return Finished(plan, books.all, self.journal.folder.path, files, self.conditions.tracked, lost)

    def _run_device(self, device: Device, todo: Sequence[Order], desk: Desk) -> None:
        if self.stop.no_more or not todo:
            return
        # Where the attempts are timed on the very cores that MLflow would be written with, it has to wait.
        if device is Device.CPU:
            desk.tracking.pause()
        for record in self.site.executors[device].run(todo, self.site.slots(device), self.stop):
            desk.enter(record)
        desk.tracking.resume()

    def _interrupted(self) -> InterruptedRunError:
        plan, path, store = self.books.plan, self.journal.folder.path, self.conditions.store
        again = store.command("run", "matrix", "--resume", plan.run, tracking=self.conditions.tracked)
        again_too = f", and {self.books.outstanding} were not made again" * (self.books.recorded == plan.attempts)
        return InterruptedRunError(
            f"stopped: {self.books.recorded} of {plan.attempts} attempts are recorded in {path}{again_too}",
            f"`{store.command('report', plan.run)}` shows them; "
            + ("the same command runs the program anew." if plan.is_program else f"`{again}` runs the others."),
        )
