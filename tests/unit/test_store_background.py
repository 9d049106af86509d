"""The writer's thread: it never stops a run, loses nothing silently and rests while something is timed."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from store_samples import FINE, HANGS, PLAN, RAISES, RECORDS, RUN

from harness.errors import TrackingError, UsageError
from harness.model import Record, Variant
from harness.store.background import BackgroundProjection, NoTracking, start_tracking
from harness.store.layout import Store
from harness.store.tracking import Ending

SYNC = f"harness sync {RUN}"


class Shown:
    """A projection in memory; ``trouble`` is called before each write."""

    def __init__(self, trouble: Callable[[], None] = lambda: None) -> None:
        self.trouble = trouble
        self.variants: list[str] = []
        self.ended: list[tuple[Ending, int, tuple[Path, ...]]] = []

    closed: tuple[str, ...] = ()

    def project(self, variant: Variant, records: Sequence[Record]) -> None:
        assert records
        self.trouble()
        self.variants.append(variant.key)

    def finish(self, ending: Ending, records: Sequence[Record], artifacts: Sequence[Path] = ()) -> None:
        self.ended.append((ending, len(records), tuple(artifacts)))


def refuse() -> None:
    raise TrackingError("MLflow could not write: no route to host")


def void(_: object) -> None:
    """Make a lambda return nothing."""


def project_all(tracking: BackgroundProjection) -> None:
    for number, variant in enumerate(PLAN.variants):
        tracking.project(variant, RECORDS[2 * number : 2 * number + 2])


def test_all_is_written_in_order_and_then_closed() -> None:
    shown = Shown()
    tracking = BackgroundProjection(lambda: shown, SYNC)
    project_all(tracking)
    tracking.finish(Ending.COMPLETE, RECORDS, [Path("report.md")])
    assert shown.variants == [variant.key for variant in PLAN.variants]
    assert shown.ended == [(Ending.COMPLETE, 6, (Path("report.md"),))]
    assert tracking.caveats == ()


def test_nothing_is_written_or_even_opened_while_paused() -> None:
    shown, opened = Shown(), threading.Event()

    def open_it() -> Shown:
        opened.set()
        return shown

    tracking = BackgroundProjection(open_it, SYNC)
    assert opened.wait(5)
    assert tracking.pause()
    project_all(tracking)
    time.sleep(0.1)
    assert shown.variants == []
    tracking.resume()
    tracking.finish(Ending.COMPLETE, RECORDS)
    assert len(shown.variants) == 3


def test_pause_waits_for_the_write_in_progress() -> None:
    begun, release = threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        assert release.wait(5)

    shown = Shown(slow)
    tracking = BackgroundProjection(lambda: shown, SYNC)
    tracking.project(FINE, RECORDS[2:4])
    assert begun.wait(5)
    threading.Timer(0.1, release.set).start()
    assert tracking.pause()
    assert shown.variants == [FINE.key]
    tracking.finish(Ending.COMPLETE, RECORDS)


def test_a_pause_is_lifted_by_finish() -> None:
    shown = Shown()
    tracking = BackgroundProjection(lambda: shown, SYNC)
    tracking.pause()
    project_all(tracking)
    tracking.finish(Ending.COMPLETE, RECORDS)
    assert len(shown.variants) == 3


def test_a_store_that_cannot_be_opened_is_a_caveat() -> None:
    def fail() -> Shown:
        raise TrackingError("MLflow could not open http://nowhere: refused")

    tracking = BackgroundProjection(fail, SYNC)
    project_all(tracking)
    tracking.finish(Ending.COMPLETE, RECORDS)
    lost, unclosed = tracking.caveats
    assert lost.startswith("3 of 3 variants were not written to MLflow (MLflow could not open http://nowhere: refused)")
    assert f"harness sync {RUN}" in lost
    assert "not closed" in unclosed


def test_one_failure_loses_one_variant_and_a_second_try_makes_up_for_it() -> None:
    troubles = [refuse]
    shown = Shown(lambda: troubles.pop()() if troubles else None)
    tracking = BackgroundProjection(lambda: shown, SYNC)
    project_all(tracking)
    tracking.finish(Ending.COMPLETE, RECORDS)
    assert shown.variants == [FINE.key, HANGS.key]
    assert tracking.caveats[0].startswith("1 of 3 variants were not written")
    troubles.append(refuse)
    again = BackgroundProjection(lambda: shown, SYNC)
    project_all(again)
    again.project(RAISES, RECORDS[:2])
    again.finish(Ending.COMPLETE, RECORDS)
    assert again.caveats == ()


def test_after_three_failures_in_a_row_no_more_is_tried() -> None:
    tries: list[int] = []

    def count_and_refuse() -> None:
        tries.append(1)
        refuse()

    shown = Shown(count_and_refuse)
    tracking = BackgroundProjection(lambda: shown, SYNC)
    for _ in range(4):
        project_all(tracking)
    tracking.finish(Ending.COMPLETE, RECORDS)
    assert len(tries) == 3
    assert shown.ended, "the parent is closed all the same"
    assert "no route to host" in tracking.caveats[0]


@pytest.mark.timeout(60)
def test_a_store_that_never_answers_is_given_up_on() -> None:
    release = threading.Event()
    tracking = BackgroundProjection(lambda: Shown(lambda: void(release.wait(120))), SYNC, patience_s=0.3)
    project_all(tracking)
    tracking.finish(Ending.COMPLETE, RECORDS)
    release.set()
    assert "was not closed in MLflow (no answer for 0.3 s)" in tracking.caveats[-1]


def test_an_interrupted_run_is_closed_soon_and_says_what_it_left_out() -> None:
    shown = Shown(lambda: time.sleep(0.2))
    tracking = BackgroundProjection(lambda: shown, SYNC, hurry_s=0.1)
    project_all(tracking)
    tracking.finish(Ending.INTERRUPTED, RECORDS)
    assert len(shown.variants) < 3
    assert [ending for ending, _, _ in shown.ended] == [Ending.INTERRUPTED]
    assert "the run was interrupted" in tracking.caveats[0]


def test_without_tracking_nothing_happens_and_it_is_said() -> None:
    tracking = NoTracking()
    tracking.project(FINE, RECORDS)
    assert tracking.pause()
    tracking.resume()
    tracking.finish(Ending.COMPLETE, RECORDS)
    assert tracking.caveats == ("Nothing of this run was written to MLflow.",)


def test_tracking_that_is_wanted_needs_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(TrackingError, match="not installed") as caught:
        start_tracking(Store(tmp_path), PLAN)
    assert "--no-tracking" in caught.value.advice
    assert isinstance(start_tracking(Store(tmp_path), PLAN, enabled=False), NoTracking)


@pytest.mark.parametrize(
    "uri", ["./mlruns", "file:///tmp/x", "htp://host", "sqlite://", "sqlite:///", "sqlite:///a?b", "x", "://", "\x00"]
)
def test_a_tracking_uri_that_can_never_work_is_refused_at_once(tmp_path: Path, uri: str) -> None:
    with pytest.raises(UsageError) as caught:
        start_tracking(Store(tmp_path, uri), PLAN)
    assert caught.value.advice
    assert list(tmp_path.iterdir()) == []


def test_no_password_is_shown(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        start_tracking(Store(tmp_path, "htp://me:secret@host/x"), PLAN)
    assert "secret" not in str(caught.value)
    assert "host" in str(caught.value)
