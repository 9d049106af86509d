"""A journal on the store's disk that is torn in the middle of a record, as by a power loss, and gone on with."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from harness.doctor.facts import Fact, warning
from harness.doctor.places import existing
from harness.files import os_words
from harness.model import Device, Outcome, Plan, Record, Settings, Variant
from harness.store.journal import Journal, read_records
from harness.store.layout import RunFolder, Store
from harness.wire import dump

NAME = "journal"
RECORDS = 3
CUT = 20
"""How many bytes of the last record are lost."""


def journal_facts(store: Store) -> Iterator[Fact]:
    """Whether a journal can be kept where ``store`` is, survives being torn, and how long a record takes.

    Works in a folder of its own, which is removed.

    Raises:
        StoreError: it cannot be written, synced or locked there.
    """
    there = existing(store.runs_folder)
    try:
        with _folder(there) as run:
            complaint, seconds = _tear(run)
    except OSError as error:
        yield warning(NAME, f"none can be kept in {there}: {os_words(error)}", "Choose another place with --store DIR.")
        return
    if complaint:
        yield warning(NAME, complaint, "Please report it, with the kind of file system that this is.")
    else:
        yield Fact(NAME, f"a torn one is gone on with; {1000 * seconds:.1f} ms to keep a record", value=seconds)


@contextmanager
def _folder(there: Path) -> Iterator[RunFolder]:
    """A run's folder in ``there``, removed by the names of its files: there may be no descriptor left to list them."""
    outer = Path(tempfile.mkdtemp(prefix=".harness-doctor-", dir=there))
    run = RunFolder(outer / "doctor")
    try:
        yield run
    finally:
        with suppress(OSError):
            for file in (run.plan, run.records, run.lock):
                file.unlink(missing_ok=True)
            run.path.rmdir()
        with suppress(OSError):
            outer.rmdir()
        if outer.exists():  # files that a journal did not have when this was written
            shutil.rmtree(outer, ignore_errors=True)


def _tear(run: RunFolder) -> tuple[str, float]:
    """What is not as it has to be (empty is good), and the seconds per record."""
    records = [_record(number) for number in range(RECORDS)]
    with Journal.create(run, _plan()) as journal:
        began = time.perf_counter()
        for record in records[:-1]:
            journal.append(record)
        seconds = (time.perf_counter() - began) / (RECORDS - 1)
    with run.records.open("ab") as file:
        file.write(dump(records[-1]).encode()[:-CUT])
    if list(read_records(run)) != records[:-1]:
        return "what came before a torn line is not read back as it was recorded", seconds
    with Journal.resume(run) as journal:
        journal.append(records[-1])
    if list(read_records(run)) != records:
        return "a journal does not go on after a torn line as it should", seconds
    return "", seconds


def _variant(number: int) -> Variant:
    return Variant({"number": number}, f"number={number}")


def _record(number: int) -> Record:
    variant = _variant(number)
    return Record("doctor", variant.key, variant.label, Device.CPU, Outcome.OK)


def _plan() -> Plan:
    return Plan(
        run="doctor",
        matrix="doctor",
        description="A journal that is torn.",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        devices=(Device.CPU,),
        settings=Settings(),
        variants=tuple(map(_variant, range(RECORDS))),
    )
