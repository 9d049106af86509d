"""Runs orders on this machine: a zygote per environment, a supervisor over its children."""

from __future__ import annotations

import json
import selectors
import signal
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from harness.launch.stop import StopRequest
from harness.launch.verdict import not_run, verdict, went_down
from harness.launch.ward import Stage, Ward
from harness.launch.zygote import ZygoteDiedError, ZygoteProcess
from harness.model import Device, Order, Outcome, Record, Settings, Variant
from harness.quoting import one_line
from harness.wire import dump

TICK_SECONDS = 0.2
PROBE_SECONDS = 120.0
"""A driver can take a while to answer, and a broken one never does."""
SILENCE_SECONDS = 10.0
"""How long after SIGKILL the end of an attempt is waited for, before the zygote itself is given up."""
START_SECONDS = 30.0
"""How long a zygote may take to fork, which takes it milliseconds; one that was suspended never answers."""
LIVES = 2
"""How often an order may go down with its zygote before the order itself is blamed."""
NOBODY = ""
"""Stands for the order that was running when none was."""


class Executor(Protocol):
    """Whatever turns orders into records: exactly one per order that was started, in the order of their ends."""

    def run(self, orders: Iterable[Order], slots: int, stop: StopRequest) -> Iterator[Record]:
        """Carry out ``orders``, at most ``slots`` at once; after a stop, whatever was not started has no record."""
        ...

    def close(self) -> None:
        """Give everything back."""
        ...


@dataclass(frozen=True, slots=True)
class Probe:
    """What an environment offers."""

    cuda: bool
    cuda_build: str | None
    facts: Mapping[str, Any]


class LocalExecutor:
    """Attempts on this machine, in the environment given. The zygote starts at once and is waited for when needed."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._zygote: ZygoteProcess | None = ZygoteProcess(self._environment)
        self._wards: dict[int, Ward] = {}
        self._ended: list[tuple[int, int]] = []

    def probe(self) -> Probe:
        """Ask a child of the zygote what is there; the zygote itself must not. Where somebody kills either, ask again.

        Raises:
            LaunchError: the child died over the question.
        """
        for _ in range(LIVES):
            try:
                return self._ask()
            except ZygoteDiedError as death:
                if not death.killed:
                    raise
                self.close()  # the question too, which may have started: no run is to wait for it
        return self._ask()

    def _ask(self) -> Probe:
        blank = Order("probe", Variant({}, "probe"), Device.CPU, Settings(deadline=PROBE_SECONDS))
        ward = self._start("probe", blank)
        with selectors.DefaultSelector() as selector:
            self._watch(selector, ward)
            while not self._ended:
                self._wait(selector)
                self._attend(selector, StopRequest())
        pid, status = self._ended.pop()
        self._retire(pid)
        try:
            answer = json.loads(ward.result_bytes)
        except ValueError as error:
            last = one_line(ward.tail.splitlines()[-1]) if ward.tail else f"it ended with wait status {status}"
            raise ZygoteDiedError(
                f"PyTorch could not be asked about this machine: {last}",
                "See what `python -c 'import torch; print(torch.cuda.is_available())'` says, and how long it takes.",
                killed=ward.stage is Stage.RUNNING and status == signal.SIGKILL,
            ) from error
        return Probe(answer["cuda"], answer["cuda_build"], answer["facts"])

    def run(self, orders: Iterable[Order], slots: int, stop: StopRequest) -> Iterator[Record]:
        """See ``Executor.run``. A zygote that dies is replaced, and what ran under it runs again."""
        queue = deque(orders)
        deaths: Counter[str] = Counter()
        while (queue and not stop.no_more) or self._wards:
            try:
                for record in self._run_until_idle(queue, slots, stop):
                    deaths.pop(NOBODY, None)  # it gets on: only deaths in a row mean that no zygote can live here
                    yield record
            except ZygoteDiedError as death:
                yield from self._bury(queue, deaths, death)

    def close(self) -> None:
        """End the zygote and whatever still runs under it."""
        for ward in self._wards.values():
            ward.kill()
            ward.close()
        self._wards.clear()
        self._ended.clear()
        self._give_up_zygote()

    def _give_up_zygote(self) -> None:
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None

    def _run_until_idle(self, queue: deque[Order], slots: int, stop: StopRequest) -> Iterator[Record]:
        with selectors.DefaultSelector() as selector:
            for ward in self._wards.values():
                self._watch(selector, ward)
            while True:
                while queue and len(self._wards) < slots and not stop.no_more:
                    self._watch(selector, self._start("attempt", queue[0]))
                    queue.popleft()
                if not self._wards:
                    return
                self._wait(selector)
                self._attend(selector, stop)
                while self._ended:
                    yield self._finish(*self._ended.pop(0))

    def _zygote_ready(self) -> ZygoteProcess:
        if self._zygote is None:
            self._zygote = ZygoteProcess(self._environment)
        self._zygote.wait_ready()
        return self._zygote

    def _start(self, what: str, order: Order) -> Ward:
        zygote = self._zygote_ready()
        ward = Ward.prepare(order)
        request = {"do": what, "name": order.name, "order": dump(order)}
        try:
            zygote.send(request, ward.remote)
            self._await_start(zygote, ward)
        except ZygoteDiedError:
            if ward.pid not in self._wards:
                ward.close()
            raise
        return ward

    def _await_start(self, zygote: ZygoteProcess, ward: Ward) -> None:
        patience = time.monotonic() + START_SECONDS
        while not ward.pid:
            if time.monotonic() > patience:
                raise ZygoteDiedError(
                    f"the worker process does not start {ward.order.variant.label}",
                    "Was it suspended, or is the machine out of memory? Try again when it is quieter.",
                )
            for event in zygote.events(TICK_SECONDS):
                if event["event"] == "started" and event["name"] == ward.order.name:
                    ward.started(event["pid"])
                    # At once: a short attempt's end may be among the events that arrived with its start.
                    self._wards[ward.pid] = ward
                else:
                    self._note(event)

    def _watch(self, selector: selectors.BaseSelector, ward: Ward) -> None:
        for descriptor in (ward.result, ward.output):
            selector.register(descriptor, selectors.EVENT_READ, ward)

    def _wait(self, selector: selectors.BaseSelector, seconds: float = TICK_SECONDS) -> None:
        """Take what arrives within a tick: pieces of results and output, and the news of ends."""
        zygote = self._zygote_ready()
        selector.register(zygote.socket, selectors.EVENT_READ, None)
        ready = selector.select(seconds)
        selector.unregister(zygote.socket)
        for key, _ in ready:
            if isinstance(key.data, Ward) and not key.data.read(key.fd):
                selector.unregister(key.fd)
        if any(key.data is None for key, _ in ready):
            for event in zygote.read_events():
                self._note(event)
        for pid, _ in self._ended:
            ward = self._wards[pid]
            for descriptor in (ward.result, ward.output):
                if descriptor in selector.get_map():
                    selector.unregister(descriptor)

    def _note(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "exited" and event["pid"] in self._wards:
            self._ended.append((event["pid"], event["status"]))

    def _attend(self, selector: selectors.BaseSelector, stop: StopRequest) -> None:
        now = time.monotonic()
        if any(ward.is_due(now) for ward in self._wards.values()):
            # Were we suspended ourselves, an end in good time may lie unread behind the deadline.
            self._wait(selector, 0)
        over = {pid for pid, _ in self._ended}
        for ward in self._wards.values():
            if ward.pid in over:
                continue
            if stop.now and not ward.cancelled:
                ward.cancelled = True
                ward.kill()
            ward.escalate(now)
            overdue_since = ward.unreported_at or ward.killed_at
            if overdue_since and now > overdue_since + SILENCE_SECONDS:
                raise ZygoteDiedError(
                    f"the worker process does not report the end of {ward.order.variant.label}",
                    "Was it suspended? Try again when the machine is quieter.",
                )

    def _finish(self, pid: int, status: int) -> Record:
        ward = self._wards[pid]
        ward.drain()
        record = verdict(ward, status)
        if ward.cancelled and record.outcome is Outcome.CRASH:
            record = not_run(ward, "stopped by the person while it ran")
        self._retire(pid)
        return record

    def _retire(self, pid: int) -> None:
        ward = self._wards.pop(pid)
        ward.drain()
        ward.kill_group()  # what it started and left behind
        ward.close()

    def _bury(self, queue: deque[Order], deaths: Counter[str], death: ZygoteDiedError) -> Iterator[Record]:
        """Its zygote is gone: what ran is put back in front, unless it goes down again and again."""
        while self._ended:
            yield self._finish(*self._ended.pop(0))
        lost, self._wards = list(self._wards.values()), {}
        self._give_up_zygote()
        if not lost:
            deaths[NOBODY] += 1
            if deaths[NOBODY] > LIVES:
                raise death
        for ward in lost:
            ward.kill()
            deaths[ward.order.name] += 1
            if ward.stage is not Stage.RUNNING:
                ward.drain()
                yield verdict(ward, signal.SIGKILL)  # a wait status: it was ended by us, whoever reaped it
            elif deaths[ward.order.name] > LIVES:
                ward.drain()
                yield went_down(ward, deaths[ward.order.name])
            else:
                queue.appendleft(ward.order)
            ward.close()
