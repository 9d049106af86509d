"""A fault in the journal: it ends in the middle of a record, as after a power loss."""

from __future__ import annotations

import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from harness.doctor.places import existing
from harness.model import Device, Outcome, Plan, Record, Settings, Variant
from harness.store.journal import Journal, read_records
from harness.store.layout import Store
from harness.wire import dump

RECORDS = 3


def torn_journal(store: Store) -> tuple[tuple[str, ...], float]:
    """Tear a journal on the disk of ``store``, go on with it, and read it: what differs, and the seconds per append.

    Works in a folder of its own, which is removed.

    Raises:
        StoreError: it cannot be written there.
        OSError: not even a folder can be made.
    """
    with tempfile.TemporaryDirectory(prefix=".harness-doctor-", dir=existing(store.runs_folder)) as folder:
        run = Store(Path(folder)).folder("doctor")
        plan, records = _plan(), [_record(number) for number in range(RECORDS)]
        began = time.perf_counter()
        with Journal.create(run, plan) as journal:
            for record in records[:-1]:
                journal.append(record)
        seconds = (time.perf_counter() - began) / RECORDS  # the plan is one more
        with run.records.open("ab") as file:
            file.write(dump(records[-1]).encode()[:-20])
        torn = read_records(run)
        with Journal.resume(run) as journal:
            journal.append(records[-1])
        mended = read_records(run)
    differs = [] if list(torn) == records[:-1] else ["what came before the torn line is not what was recorded"]
    differs += [] if list(mended) == records else ["after the torn line it does not go on as it should"]
    return tuple(differs), seconds


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
