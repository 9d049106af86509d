"""The loop around the attempts, with scripted records instead of processes: who is told what, and when."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness import campaign, seeds
from harness.campaign import Conditions, Finished, OrderMaker, carry_out, loop, orders_of, syncing
from harness.errors import InterruptedRunError, StoreError, TrackingError
from harness.launch.site import Site
from harness.launch.stop import StopRequest
from harness.matrix.axes import make_variant
from harness.model import Caveat, Device, Order, Outcome, Phase, Plan, Record, Settings, Variant
from harness.sittings import Sitting
from harness.store.journal import Journal, read_plan, read_records
from harness.store.layout import Store
from harness.store.tracking import Ending

VARIANTS = tuple(make_variant({"cell": cell, "placement": "eval-always"}) for cell in ("lstm", "gru", "rnn-tanh"))
STUB_AND_CPU = (Device.STUB, Device.CPU)


def make_plan(devices: Sequence[Device] = STUB_AND_CPU, replicates: int = 1) -> Plan:
    return Plan(
        run="20260301-101500-aaaaa",
        matrix="quick",
        description="",
        created="2026-03-01T10:15:00+00:00",
        devices=tuple(devices),
        settings=Settings(replicates=replicates),
        variants=VARIANTS,
    )


def record_of(order: Order) -> Record:
    raises = order.device is Device.STUB
    return Record(
        order.run,
        order.variant.key,
        order.variant.label,
        order.device,
        Outcome.BACKWARD_ERROR if raises else Outcome.OK,
        replicate=order.replicate,
        phase=Phase.BACKWARD if raises else Phase.EVALUATE,
    )


class Script:
    """An executor whose attempts end as ``play`` says, one after the other."""

    def __init__(self, play: Callable[[Order, StopRequest], Record] = lambda order, _: record_of(order)) -> None:
        self.play = play
        self.orders: list[Order] = []
        self.slots: list[int] = []

    def run(self, orders: Iterable[Order], slots: int, stop: StopRequest) -> Iterator[Record]:
        self.slots.append(slots)
        for order in orders:
            if stop.no_more:
                return
            self.orders.append(order)
            yield self.play(order, stop)

    def close(self) -> None:
        """Nothing to give back."""


class Shown:
    """A tracking that notes what it is told, and how much of that the journal had by then."""

    def __init__(self, folder: Path, log: list[str], lost: tuple[str, ...] = ()) -> None:
        self.records, self.log, self.lost = folder / "records.jsonl", log, lost
        self.projected: list[tuple[str, list[Device]]] = []
        self.endings: list[tuple[Ending, int, list[str]]] = []

    def project(self, variant: Variant, records: Sequence[Record]) -> None:
        kept = self.records.read_text()
        assert kept.count(variant.key) == len(records), "MLflow learns of nothing that the journal has not"
        self.projected.append((variant.label, [record.device for record in records]))
        self.log.append(f"project {variant.key}")

    def pause(self) -> bool:
        self.log.append("pause")
        return True

    def resume(self) -> None:
        self.log.append("resume")

    def finish(self, ending: Ending, records: Sequence[Record], artifacts: Sequence[Path] = ()) -> None:
        self.endings.append((ending, len(records), [path.name for path in artifacts if path.is_file()]))
        self.log.append("finish")

    closed: tuple[str, ...] = ()

    @property
    def caveats(self) -> tuple[str, ...]:
        # As the real one: until the end, everything that is not written yet counts as lost.
        return self.lost if self.endings else ("all of it is missing",)


class Ears:
    """A listener that notes what it hears, and checks that the journal had it first."""

    def __init__(self, folder: Path, log: list[str]) -> None:
        self.folder, self.log = folder, log
        self.heard: list[Record] = []

    def preparing(self, what: str) -> None:
        self.log.append(f"preparing: {what}")

    def started(self, _: Plan) -> None:
        assert (self.folder / "plan.json").is_file()
        self.log.append("started")

    def recorded(self, record: Record) -> None:
        self.heard.append(record)
        lines = (self.folder / "records.jsonl").read_bytes().splitlines()
        assert len(lines) == len(self.heard), "a record is in the journal before anybody hears of it"
        self.log.append(f"recorded {record.key}")

    def resumed(self, plan: Plan, sitting: Sitting, attempts: int) -> None:
        assert (self.folder / "sittings.jsonl").is_file()
        self.log.append(f"resumed {sitting.number}: {attempts} of {plan.attempts}")

    def finishing(self, what: str) -> None:
        self.log.append(f"finishing: {what}")

    def noted(self, sentence: str) -> None:
        self.log.append(f"noted: {sentence}")


class Scene:
    """A campaign with everything around it scripted."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch, plan: Plan | None = None) -> None:
        self.plan = plan or make_plan()
        self.store = Store(root)
        self.folder = self.store.folder(self.plan.run)
        self.log: list[str] = []
        self.scripts = {device: Script() for device in self.plan.devices}
        self.shown = Shown(self.folder.path, self.log)
        self.ears = Ears(self.folder.path, self.log)
        patch.setattr(loop, "start_tracking", lambda *_, **__: self.shown)
        patch.setattr("harness.report.draw", lambda _: {"outcomes.svg": "<svg/>"})  # drawing takes longer than the rest

    def play(self, orders: OrderMaker = orders_of) -> Finished:
        site = Site(executors=dict(self.scripts))  # type: ignore[arg-type]
        return carry_out(self.plan, orders, site, Conditions(self.store), self.ears)

    @property
    def report(self) -> str:
        return self.folder.report.read_text()


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path, monkeypatch)


def test_every_planned_variant_is_recorded_once_on_every_device(scene: Scene) -> None:
    finished = scene.play()
    kept = read_records(scene.folder)
    planned = {(variant.key, device) for variant in VARIANTS for device in STUB_AND_CPU}
    assert {(record.key, record.device) for record in kept} == planned
    assert len(kept) == scene.plan.attempts == len(planned)
    assert read_plan(scene.folder) == scene.plan
    assert sorted(finished.records, key=str) == sorted(kept, key=str)
    assert [path.name for path in finished.files][:2] == ["report.md", "results.csv"]
    assert all(path.is_file() for path in finished.files)
    assert finished.caveats == ()
    ((ending, count, names),) = scene.shown.endings
    assert (ending, count) == (Ending.COMPLETE, 6)
    assert sorted(names) == sorted([*(path.name for path in finished.files), "plan.json", "records.jsonl"])


def test_a_later_sync_attaches_what_the_run_attached(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[list[str]] = []

    def sync(*_: object, artifacts: Sequence[Path]) -> Shown:
        synced.append([path.name for path in artifacts if path.is_file()])
        return scene.shown

    monkeypatch.setattr(syncing, "sync", sync)
    scene.play()
    assert campaign.sync_run(scene.store, None) == scene.plan.run
    assert synced == [scene.shown.endings[0][2]]


def test_a_variant_is_shown_once_when_its_last_record_is_in(scene: Scene) -> None:
    scene.play()
    drawn = [order.variant for order in orders_of(scene.plan, Device.CPU)]
    assert scene.shown.projected == [(variant.label, [Device.STUB, Device.CPU]) for variant in drawn]
    recorded, projected = [f"recorded {v.key}" for v in VARIANTS], [f"project {v.key}" for v in drawn]
    log = [line for line in scene.log if line in recorded or line in projected]
    timed = [line for v in drawn for line in (f"recorded {v.key}", f"project {v.key}")]
    assert log == [*recorded, *timed]


def test_with_replicates_a_variant_is_shown_after_the_last_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path, monkeypatch, make_plan(replicates=3))
    scene.play()
    drawn = [order.variant for order in orders_of(scene.plan, Device.CPU)][-len(VARIANTS) :]
    assert scene.shown.projected == [(variant.label, [Device.STUB, *3 * [Device.CPU]]) for variant in drawn]
    assert len(read_records(scene.folder)) == scene.plan.attempts == 3 * (1 + 3)


def test_replicates_apply_only_where_kernels_run_and_are_the_outer_loop() -> None:
    plan = make_plan((Device.STUB, Device.CPU, Device.CUDA), replicates=2)
    assert [order.replicate for order in orders_of(plan, Device.STUB)] == [0, 0, 0]
    for device in (Device.CPU, Device.CUDA):
        orders = list(orders_of(plan, device))
        assert [order.replicate for order in orders] == [0, 0, 0, 1, 1, 1]
        for replicate in range(2):
            keys = [order.variant.key for order in orders if order.replicate == replicate]
            assert sorted(keys) == sorted(variant.key for variant in VARIANTS)
        assert {order.device for order in orders} == {device}


def test_timed_attempts_are_interleaved_in_an_order_that_the_plan_gives() -> None:
    cells, sizes = ("lstm", "gru"), range(8, 24)
    variants = tuple(make_variant({"cell": cell, "hidden-size": size}) for cell in cells for size in sizes)
    plan = replace(make_plan(replicates=3), variants=variants)

    def drawn(plan: Plan, device: Device = Device.CPU) -> list[list[str]]:
        found = [(order.replicate, order.variant.key) for order in orders_of(plan, device)]
        return [[key for number, key in found if number == replicate] for replicate in range(3)]

    first, second, third = drawn(plan)
    assert sorted(first) == sorted(second) == sorted(third)
    assert len({tuple(first), tuple(second), tuple(third), tuple(variant.key for variant in variants)}) == 4
    assert drawn(replace(plan, variants=variants[::-1])) == [first, second, third]
    assert drawn(plan, Device.CUDA) == [first, second, third]
    assert drawn(replace(plan, settings=replace(plan.settings, seed=1)))[0] != first
    # What is left out moves nothing else.
    half = set(first[::2])
    fewer = tuple(variant for variant in variants if variant.key in half)
    assert drawn(replace(plan, variants=fewer))[0] == first[::2]
    assert drawn(plan, Device.STUB)[0] == [variant.key for variant in variants]


def test_timed_attempts_run_alone_while_mlflow_rests(scene: Scene) -> None:
    scene.play()
    (stub_slots,), (cpu_slots,) = scene.scripts[Device.STUB].slots, scene.scripts[Device.CPU].slots
    assert cpu_slots == 1 <= stub_slots
    pause, resume = scene.log.index("pause"), len(scene.log) - 1 - scene.log[::-1].index("resume")
    recorded = [number for number, line in enumerate(scene.log) if line.startswith("recorded")]
    assert recorded[2] < pause < recorded[3], "the stub's attempts are not timed, the CPU's are"
    assert recorded[-1] < resume < scene.log.index("finish")
    assert scene.log.count("pause") == 1


def test_a_run_on_the_stub_alone_lets_mlflow_write_all_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(tmp_path, monkeypatch, make_plan((Device.STUB,)))
    scene.play()
    assert "pause" not in scene.log
    assert [devices for _, devices in scene.shown.projected] == 3 * [[Device.STUB]]


def test_the_order_of_things(scene: Scene) -> None:
    scene.play()
    assert scene.log[0] == "started"
    assert scene.log[-3:] == ["finishing: writing the report", "finishing: writing to MLflow", "finish"]


def test_nothing_is_said_to_be_missing_from_mlflow_that_was_merely_not_written_yet(scene: Scene) -> None:
    scene.play()
    assert "missing" not in scene.report


def test_what_mlflow_lost_is_in_the_report_and_told(scene: Scene) -> None:
    scene.shown.lost = ("2 of 3 variants were not written to MLflow.",)
    finished = scene.play()
    assert scene.shown.lost[0] in scene.report
    assert finished.caveats == scene.shown.lost


def test_without_tracking_the_report_says_so_and_nobody_is_bothered_with_it(tmp_path: Path) -> None:
    plan = make_plan()
    site = Site(executors={device: Script() for device in plan.devices})  # type: ignore[misc]
    store = Store(tmp_path)
    finished = carry_out(plan, orders_of, site, Conditions(store, tracked=False), Ears(store.folder(plan.run).path, []))
    assert str(Caveat.NOT_TRACKED) in store.folder(plan.run).report.read_text()
    assert (finished.tracked, finished.caveats) == (False, ())
    assert not store.database.exists()


def stop_after(number: int, signals: int, plan: Plan) -> Callable[[Order, StopRequest], Record]:
    """Attempts of which the ``number``th is interrupted: once lets it end, twice takes it with it."""
    played: list[Order] = []

    def play(order: Order, stop: StopRequest) -> Record:
        played.append(order)
        if len(played) == number:
            for _ in range(signals):
                signal.raise_signal(signal.SIGINT)
        if stop.now:
            return replace(record_of(order), outcome=Outcome.NOT_RUN, phase=None, reason="stopped by the person")
        return record_of(order)

    return play


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("signals", [1, 2])
def test_a_stop_keeps_reports_and_shows_what_there_is(scene: Scene, number: int, signals: int) -> None:
    before = signal.getsignal(signal.SIGINT)
    scene.scripts[Device.STUB].play = stop_after(number, signals, scene.plan)
    with pytest.raises(InterruptedRunError, match=f"{number} of 6 attempts are recorded") as caught:
        scene.play()
    assert caught.value.exit_code == 130
    assert f"`harness --store {scene.store.root} report {scene.plan.run}`" in caught.value.advice
    kept = read_records(scene.folder)
    assert len(kept) == number
    assert kept[-1].outcome is (Outcome.BACKWARD_ERROR if signals == 1 else Outcome.NOT_RUN)
    assert scene.scripts[Device.CPU].orders == []
    assert [devices for _, devices in scene.shown.projected] == number * [[Device.STUB]]
    assert [(ending, count) for ending, count, _ in scene.shown.endings] == [(Ending.INTERRUPTED, number)]
    assert str(Caveat.INCOMPLETE) in scene.report
    assert signal.getsignal(signal.SIGINT) is before


def test_a_stop_in_the_second_device_leaves_the_first_complete(scene: Scene) -> None:
    scene.scripts[Device.CPU].play = stop_after(2, 1, scene.plan)
    with pytest.raises(InterruptedRunError, match="5 of 6 attempts"):
        scene.play()
    devices = [devices for _, devices in scene.shown.projected]
    assert devices == [[Device.STUB, Device.CPU], [Device.STUB, Device.CPU], [Device.STUB]]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_that_comes_after_the_last_attempt_has_stopped_nothing(scene: Scene, number: signal.Signals) -> None:
    last = list(orders_of(scene.plan, Device.CPU))[-1]

    def play(order: Order, _: StopRequest) -> Record:
        if order == last:
            signal.raise_signal(number)
        return record_of(order)

    scene.scripts[Device.CPU].play = play
    assert len(scene.play().records) == 6
    assert scene.shown.endings[0][0] is Ending.COMPLETE


def test_a_third_request_waits_for_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def finish(*_: object) -> None:
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
        raise AssertionError("the third request leaves")

    monkeypatch.setattr(scene.shown, "finish", finish)
    with pytest.raises(KeyboardInterrupt):
        scene.play()
    assert len(read_records(scene.folder)) == 6
    assert scene.folder.report.is_file()


def test_what_nohup_ignores_stays_ignored(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        scene.scripts[Device.STUB].play = lambda order, _: signal.raise_signal(signal.SIGHUP) or record_of(order)
        assert len(scene.play().records) == 6
    finally:
        signal.signal(signal.SIGHUP, before)


def break_journal(patch: pytest.MonkeyPatch, after: int, error: BaseException) -> None:
    append = Journal.append
    appended: list[Record] = []

    def breaking(journal: Journal, record: Record) -> None:
        if len(appended) == after:
            raise error
        appended.append(record)
        append(journal, record)

    patch.setattr(Journal, "append", breaking)


FULL = StoreError("cannot write records.jsonl: the disk is full", "Free some space.")


@pytest.mark.parametrize("error", [FULL, ZeroDivisionError("a fault of ours")], ids=["disk", "bug"])
def test_when_the_harness_fails_what_is_recorded_is_reported_and_the_run_closed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    break_journal(monkeypatch, 4, error)
    with pytest.raises(type(error)) as caught:
        scene.play()
    assert caught.value is error
    assert len(read_records(scene.folder)) == len(scene.ears.heard) == 4, "nobody hears of the one that was not kept"
    assert str(Caveat.INCOMPLETE) in scene.report
    assert [(ending, count) for ending, count, _ in scene.shown.endings] == [(Ending.BROKEN, 4)]
    devices = [devices for _, devices in scene.shown.projected]
    assert devices == [[Device.STUB, Device.CPU], [Device.STUB], [Device.STUB]]


def test_where_the_report_cannot_be_written_either_the_run_is_closed_and_the_first_failure_told(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_journal(monkeypatch, 2, FULL)
    monkeypatch.setattr("harness.report.write_report", refuse)
    with pytest.raises(StoreError) as caught:
        scene.play()
    assert caught.value is FULL
    assert scene.shown.endings == [(Ending.BROKEN, 2, ["plan.json", "records.jsonl"])]


def test_a_report_that_cannot_be_written_does_not_leave_the_run_open(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.report.write_report", refuse)
    with pytest.raises(StoreError, match="no report"):
        scene.play()
    assert [(ending, count) for ending, count, _ in scene.shown.endings] == [(Ending.COMPLETE, 6)]


def refuse(*_: object, **__: object) -> None:
    raise StoreError("no report")


def test_a_listener_that_fails_leaves_nothing_open(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: object) -> None:
        raise RuntimeError("no ears")

    monkeypatch.setattr(scene.ears, "started", started)
    with pytest.raises(RuntimeError, match="no ears"):
        scene.play()
    assert [(ending, count) for ending, count, _ in scene.shown.endings] == [(Ending.BROKEN, 0)]


def test_mlflow_does_not_hear_of_a_run_that_cannot_be_kept(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    monkeypatch.setattr(loop, "start_tracking", lambda *_, **__: started.append(1) or scene.shown)
    scene.store.artifacts.write_text("a file where the folder should be")
    with pytest.raises(StoreError, match="cannot create"):
        scene.play()
    assert started == []
    assert all(script.orders == [] for script in scene.scripts.values())


@pytest.mark.parametrize("what", ["matrix", "seed"])
def test_what_can_never_work_is_refused_before_pytorch_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    heard: list[str] = []
    monkeypatch.setattr("harness.store.connection.importlib.util.find_spec", lambda _: None)
    ears = Ears(tmp_path, heard)
    with pytest.raises(TrackingError, match="MLflow is not installed"):
        if what == "matrix":
            campaign.run_matrix(campaign.Selection("quick"), Conditions(Store(tmp_path)), ears)
        else:
            seeds.run_seed(seeds.Seed("simple-rnn"), Conditions(Store(tmp_path)), ears)
    assert heard == []
    assert list(tmp_path.iterdir()) == []
