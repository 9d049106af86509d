"""The journal: nothing that was appended is lost, and what is damaged is said."""

import errno
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import HarnessError, JournalError, RunBusyError, RunNotFoundError, StoreError
from harness.model import Device, Outcome, Plan, Record, Sample, Settings, Variant
from harness.store.journal import Journal, held, is_being_run, read_plan, read_records
from harness.store.layout import RunFolder, Store
from harness.wire import NewerSchemaError, dump

RUN = "20250131-093000-aaaaa"


def record(number: int, message: str = "naïve — \n two lines") -> Record:
    return Record(
        run=RUN,
        key=f"{number:012x}",
        label=f"cell=lstm,number={number}",
        device=Device.CPU,
        outcome=Outcome.ERROR,
        error_message=message,
        samples=(Sample(epoch=0, steps=6, wall_s=0.25),),
        last_loss=float("nan"),
    )


def plan() -> Plan:
    variant = Variant({"cell": "lstm"}, "cell=lstm")
    return Plan(RUN, "quick", "", "2025-01-31T09:30:00Z", (Device.CPU,), Settings(), (variant,))


def folder_in(root: Path) -> RunFolder:
    return Store(root).folder(RUN)


def filled(root: Path, count: int = 3) -> RunFolder:
    folder = folder_in(root)
    with Journal.create(folder, plan()) as journal:
        for number in range(count):
            journal.append(record(number))
    return folder


def keys(folder: RunFolder) -> list[int]:
    return [int(found.key, 16) for found in read_records(folder)]


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    assert read_plan(folder) == plan()
    assert [dump(found) for found in read_records(folder)] == [dump(record(number)) for number in range(3)]


def test_a_new_run_has_no_records(tmp_path: Path) -> None:
    assert read_records(filled(tmp_path, count=0)) == ()
    assert read_records(folder_in(tmp_path / "elsewhere")) == ()


def test_a_record_is_in_the_file_when_append_returns(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    with Journal.create(folder, plan()) as journal:
        for number in range(3):
            journal.append(record(number))
            assert keys(folder) == list(range(number + 1))


def test_a_record_is_synced_before_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    with Journal.create(folder_in(tmp_path), plan()) as journal:
        monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
        journal.append(record(0))
    assert synced == [journal.folder.records.stat().st_size]


def test_cut_at_every_byte_nothing_whole_is_lost_and_the_next_record_stands_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # a thousand of them take their time
    folder = filled(tmp_path)
    content = folder.records.read_bytes()
    ends = [index for index, byte in enumerate(content) if byte == ord("\n")]
    for size in range(len(content) + 1):
        folder.records.write_bytes(content[:size])
        whole = [number for number, end in enumerate(ends) if end <= size]
        assert keys(folder) == whole, size
        with Journal.resume(folder) as journal:
            assert keys(folder) == whole, size
            journal.append(record(77))
        assert keys(folder) == [*whole, 77], size


@settings(deadline=None, max_examples=50)
@given(tail=st.binary(min_size=1, max_size=200).filter(lambda tail: b"\n" not in tail))
def test_any_unfinished_tail_is_left_out_and_cut_off(tmp_path_factory: pytest.TempPathFactory, tail: bytes) -> None:
    folder = filled(tmp_path_factory.mktemp("store"), count=2)
    with folder.records.open("ab") as stream:
        stream.write(tail)
    assert keys(folder) == [0, 1]
    with Journal.resume(folder) as journal:
        journal.append(record(2))
    assert keys(folder) == [0, 1, 2]


def test_a_tail_longer_than_one_read_is_cut_off_too(tmp_path: Path) -> None:
    folder = filled(tmp_path, count=1)
    with folder.records.open("ab") as stream:
        stream.write(dump(record(1, message="x" * 200_000)).encode()[:-1])
    with Journal.resume(folder) as journal:
        journal.append(record(2))
    assert keys(folder) == [0, 2]


def test_a_damaged_middle_line_is_reported_by_number_and_nothing_is_changed(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    lines = folder.records.read_bytes().splitlines(keepends=True)
    damaged = lines[0] + b"{garbage}\n" + lines[2]
    folder.records.write_bytes(damaged)
    for attempt in (lambda: read_records(folder), lambda: Journal.resume(folder)):
        with pytest.raises(JournalError, match=r"records\.jsonl, line 2: not a record") as caught:
            attempt()
        assert caught.value.advice
    assert folder.records.read_bytes() == damaged


@pytest.mark.parametrize("newline", ["", "\n"])
def test_a_newer_schema_is_refused_and_kept(tmp_path: Path, newline: str) -> None:
    folder = filled(tmp_path, count=1)
    newer = folder.records.read_text() + '{"schema": 99, "colour": "green"}' + newline
    folder.records.write_text(newer)
    for attempt in (lambda: read_records(folder), lambda: Journal.resume(folder)):
        with pytest.raises(NewerSchemaError, match="schema 99") as caught:
            attempt()
        assert "Upgrade" in caught.value.advice
    assert folder.records.read_text() == newer


def test_a_newer_or_damaged_plan_is_refused(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    folder.plan.write_text('{"schema": 99}')
    with pytest.raises(NewerSchemaError, match=r"plan\.json.*schema 99"):
        read_plan(folder)
    folder.plan.write_text("{")
    with pytest.raises(JournalError, match=r"plan\.json.*not a plan") as caught:
        Journal.resume(folder)
    assert "Restore plan.json" in caught.value.advice
    assert "line" not in caught.value.advice, "that is the journal's word"


def test_records_that_have_lost_their_plan_are_no_run_that_never_was(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    before = folder.records.read_bytes()
    folder.plan.unlink()
    for attempt in (lambda: read_plan(folder), lambda: Journal.resume(folder)):
        with pytest.raises(JournalError, match=r"has records, but its plan\.json is missing") as caught:
            attempt()
        assert caught.value.exit_code == 4
        assert "Restore plan.json" in caught.value.advice
    assert folder.records.read_bytes() == before
    folder.records.unlink()
    with pytest.raises(RunNotFoundError, match="has no plan"):
        Journal.resume(folder)


def test_a_second_coordinator_is_refused_until_the_first_is_done(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    first = Journal.resume(folder)
    with pytest.raises(StoreError, match=f"another harness process is working on run {RUN}"):
        Journal.resume(folder)
    first.append(record(3))
    first.close()
    first.close()
    with Journal.resume(folder) as second:
        second.append(record(4))
    assert keys(folder) == [0, 1, 2, 3, 4]


def test_a_run_is_created_once(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    with pytest.raises(StoreError, match="file exists"):
        Journal.create(folder, plan())
    assert keys(folder) == [0, 1, 2]


def failing(code: int) -> Callable[..., int]:
    def fail(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    return fail


def test_a_full_disk_is_said_and_leaves_the_journal_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = filled(tmp_path, count=1)
    whole = folder.records.read_bytes()
    real = os.pwrite

    def half(descriptor: int, data: bytes, offset: int) -> int:
        if offset > len(whole):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data[:20], offset)

    with Journal.resume(folder) as journal:
        monkeypatch.setattr(os, "pwrite", half)
        with pytest.raises(StoreError, match="the disk is full") as caught:
            journal.append(record(1))
        assert "--store" in caught.value.advice
        assert folder.records.read_bytes() == whole
        monkeypatch.undo()
        journal.append(record(2))
    assert keys(folder) == [0, 2]


def test_a_run_that_cannot_be_created_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", failing(errno.EDQUOT))
    with pytest.raises(StoreError, match="the disk is full"):
        Journal.create(folder_in(tmp_path), plan())
    assert list(tmp_path.iterdir()) == []


def test_a_store_below_a_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot create") as caught:
        Journal.create(folder_in(tmp_path / "file"), plan())
    assert "--store" in caught.value.advice
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_deleted_journal_is_noticed(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    with Journal.resume(folder) as journal:
        folder.records.unlink()
        with pytest.raises(StoreError, match="was deleted"):
            journal.append(record(3))


def test_an_unreadable_lock_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object, **__: object) -> None:
        raise NotImplementedError

    folder = filled(tmp_path)
    monkeypatch.setattr(FileLock, "acquire", no_locks)
    with pytest.raises(HarnessError, match="no file locks"):
        Journal.resume(folder)


@pytest.mark.parametrize(("field", "what"), [("variants", "no variants"), ("devices", "no devices")])
def test_a_plan_of_nothing_is_damaged(tmp_path: Path, field: str, what: str) -> None:
    folder = filled(tmp_path)
    folder.plan.write_text(dump(replace(plan(), **{field: ()})))
    with pytest.raises(JournalError, match=what):
        read_plan(folder)


@pytest.mark.parametrize("size", [0, 100_000])
def test_a_journal_that_somebody_else_changes_takes_no_more(tmp_path: Path, size: int) -> None:
    folder = folder_in(tmp_path)
    with Journal.create(folder, plan()) as journal:
        journal.append(record(0))
        os.truncate(folder.records, size)
        with pytest.raises(StoreError, match="was changed while the run was writing to it"):
            journal.append(record(1))
    assert folder.records.stat().st_size == size


def test_a_run_that_is_held_has_no_coordinator_and_a_coordinator_is_not_interrupted(tmp_path: Path) -> None:
    folder = filled(tmp_path)
    with held(folder), pytest.raises(RunBusyError, match="another harness process") as caught:
        Journal.resume(folder, "harness --store s report r1")
    assert "`harness --store s report r1`" in caught.value.advice
    with Journal.resume(folder), pytest.raises(RunBusyError) as caught, held(folder, "harness --store s report r2"):
        pass
    assert "`harness --store s report r2`" in caught.value.advice
    with held(folder):
        """It was given back."""


def test_where_nobody_may_write_there_is_no_coordinator_to_keep_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise PermissionError(errno.EROFS, "Read-only file system")

    folder = filled(tmp_path)
    monkeypatch.setattr(FileLock, "acquire", forbidden)
    with held(folder):
        assert keys(folder) == [0, 1, 2]


def test_whoever_only_looks_refuses_nobody(tmp_path: Path) -> None:
    """`harness status` holds the lock for an instant, which a coordinator waits out."""
    folder = filled(tmp_path)
    look = FileLock(folder.lock, thread_local=False)
    look.acquire()
    threading.Timer(0.1, look.release).start()
    with Journal.resume(folder):
        assert not look.is_locked, "whoever looked was waited for"
        assert is_being_run(folder)
