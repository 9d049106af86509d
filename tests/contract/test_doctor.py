"""`harness doctor` in real processes: on this machine, on one that really misleads it, and on poor ones."""

from __future__ import annotations

import json
import os
import resource
import socket
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command import Ended, environment, harness, processes_of, started, wait_until

from harness.doctor import software
from harness.doctor.asking import ask_process
from harness.doctor.facts import State
from harness.doctor.known import BACKWARD, PLAIN, QUICK, REAL, STALLED
from harness.doctor.places import tracking_facts
from harness.model import Device
from harness.store.layout import Store

FAULTS = (PLAIN, *QUICK, *STALLED, *REAL)
ABSENT_COMPILER = {"PATH": "/nowhere", "CC": ""}


def applying(device: Device) -> set[str]:
    return {fault.name for fault in FAULTS if device in fault.devices}


def examined(ended: Ended) -> dict[str, Any]:
    assert "Traceback" not in ended.err
    document: dict[str, Any] = json.loads(ended.out)
    return document


def fact(document: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [fact for fact in document["facts"] if fact["name"] == name]
    return dict(found)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """The whole examination, of whatever this machine has; made once."""
    folder = tmp_path_factory.mktemp("doctor")
    return folder, harness("doctor", "--json", cwd=folder, env={"HARNESS_TEST_MARK": str(folder)})


def test_every_fault_comes_out_as_its_own_class_here(whole: tuple[Path, Ended], stub_device: None) -> None:
    _, ended = whole
    document = examined(ended)
    assert document["differences"] == []
    assert (ended.code, ended.err) == (0, "")
    found: dict[str, set[str]] = {}
    for fault in document["faults"]:
        assert fault["outcome"] == fault["expected"]
        found.setdefault(fault["device"], set()).add(fault["fault"])
    gpu = next(device for device in Device if device in found)
    assert gpu in (Device.CUDA, Device.STUB)
    assert found[gpu] == applying(gpu)
    assert BACKWARD in found[Device.CPU]
    assert document["not_tested"] == []


def test_its_facts_are_those_of_this_machine(whole: tuple[Path, Ended]) -> None:
    folder, ended = whole
    document = examined(ended)
    assert fact(document, "Python")["value"] == ".".join(map(str, sys.version_info[:3]))
    assert fact(document, "cores")["text"].split()[0] == str(len(os.sched_getaffinity(0)))
    assert fact(document, "store")["value"] == str(folder)
    assert fact(document, "PyTorch")["state"] == State.OK
    assert fact(document, "journal")["value"] > 0
    assert fact(document, "MLflow's store")["state"] == State.ABSENT
    assert all(fact["advice"] for fact in document["facts"] if fact["state"] == State.WARNING)


def test_it_keeps_nothing_and_leaves_nothing_running(whole: tuple[Path, Ended]) -> None:
    folder, _ = whole
    assert list(folder.iterdir()) == []
    wait_until(lambda: not processes_of(str(folder)))


def test_a_crash_that_is_really_taken_for_a_success_is_a_difference(tmp_path: Path) -> None:
    """Something that gets into every Python process here has made os.abort() harmless."""
    (tmp_path / "sitecustomize.py").write_text("import os\nos.abort = lambda: None\n")
    ended = harness("doctor", "--device", "cpu", cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert ended.code == 1
    assert "WRONG  abort on cpu: outcome is 'ok', not 'crash'" in ended.out.splitlines()
    assert ended.err.startswith("harness: ")
    row = next(line for line in ended.out.splitlines() if line.split()[:1] == ["abort"])
    assert row.endswith("ok - WRONG")
    assert "18 of 19 came out as what they are, on cpu" in ended.out


def test_a_stub_that_cannot_be_built_is_a_difference_where_it_was_asked_for(tmp_path: Path) -> None:
    env = {**ABSENT_COMPILER, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['ziglang'] = None\n")
    ended = harness("doctor", "--device", "stub", "--json", cwd=tmp_path, env=env)
    document = examined(ended)
    assert ended.code == 1
    (difference,) = document["differences"]
    assert difference.startswith("every fault on stub: not tested: ")
    assert (fact(document, "stub")["state"], fact(document, "C compiler")["state"]) == (State.ABSENT, State.ABSENT)
    assert {fault["device"] for fault in document["faults"]} == {Device.CPU}


def limited(number: int, soft: int) -> Any:
    """What a shell does with ``ulimit``, before the command starts."""
    return lambda: resource.setrlimit(number, (soft, soft))


@pytest.mark.parametrize(
    ("number", "soft", "name"),
    [(resource.RLIMIT_NOFILE, 9, "open files"), (resource.RLIMIT_AS, 600 << 20, "address space")],
)
def test_without_descriptors_or_addresses_every_line_can_still_be_read(
    tmp_path: Path, number: int, soft: int, name: str
) -> None:
    ended = harness("doctor", "--json", cwd=tmp_path, preexec_fn=limited(number, soft))
    document = examined(ended)
    assert ended.code == 1
    assert fact(document, name)["state"] == State.WARNING
    assert "no worker process starts" in fact(document, "PyTorch")["text"]
    # With so few descriptors it is chance whether the journal, which is looked at beside the rest, gets its own.
    about = {line.partition(":")[0] for line in document["differences"]}
    assert {"every fault"} <= about <= {"every fault", "journal"}
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_cannot_be_written_and_a_server_that_is_not_there_are_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    uri = "http://me:secret@127.0.0.1:9"
    store = tmp_path / "file" / "store"
    ended = harness("--store", store, "doctor", "--no-faults", "--json", "--tracking-uri", uri, cwd=tmp_path)
    document = examined(ended)
    assert ended.code == 1
    assert [line.partition(":")[0] for line in document["differences"]] == ["journal"]
    assert fact(document, "store")["state"] == State.WARNING
    assert fact(document, "MLflow's store")["text"].startswith("MLflow could not reach http://127.0.0.1:9")
    assert "secret" not in ended.out + ended.err


def test_mlflows_store_answers_and_is_not_changed_by_the_question(cpu_root: Path, cpu_run: Ended) -> None:
    assert cpu_run.code == 0
    before = (cpu_root / "mlflow.db").read_bytes()
    (found,) = tracking_facts(Store(cpu_root))
    assert (found.state, found.text) == (State.OK, f"sqlite:///{cpu_root}/mlflow.db answers")
    assert (cpu_root / "mlflow.db").read_bytes() == before


def test_a_database_of_another_mlflow_is_a_warning_and_stays_what_it_is(cpu_root: Path, tmp_path: Path) -> None:
    with (
        closing(sqlite3.connect(tmp_path / "mlflow.db")) as copy,
        closing(sqlite3.connect(cpu_root / "mlflow.db")) as one,
    ):
        one.backup(copy)
        copy.execute("UPDATE alembic_version SET version_num = '451aebb31d03'")
        copy.commit()
    before = (tmp_path / "mlflow.db").read_bytes()
    (found,) = tracking_facts(Store(tmp_path))
    assert found.state is State.WARNING
    assert "made by another version of MLflow (schema 451aebb31d03, not " in found.text
    assert (tmp_path / "mlflow.db").read_bytes() == before


@pytest.fixture
def mute_server() -> Iterator[str]:
    """A server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_server_that_hangs_costs_the_limit_and_no_more(mute_server: str, tmp_path: Path) -> None:
    (found,) = tracking_facts(Store(tmp_path, mute_server), limit_s=0.5)
    assert (found.state, found.text) == (State.WARNING, f"{mute_server}: no answer within 0.5 s")


def test_what_hangs_is_ended_with_all_that_it_has_started(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = (
        "import subprocess, pathlib, sys; child = subprocess.Popen(['sleep', '1000']);"
        f"pathlib.Path({str(note)!r}).write_text(str(child.pid)); child.wait()"
    )
    assert ask_process([sys.executable, "-c", code], "", 2.0) is None
    if not note.exists():
        pytest.skip("this machine is too slow to start a process within two seconds")
    pid = int(note.read_text())
    wait_until(lambda: not _runs(pid))


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_one_ctrl_c_ends_it_and_all_its_processes(tmp_path: Path) -> None:
    mark = str(tmp_path)
    with started("doctor", "--device", "cpu", cwd=tmp_path, env={"HARNESS_TEST_MARK": mark}) as process:
        wait_until(lambda: any("harness.trial" in line for line in processes_of(mark)))
        time.sleep(0.5)
        process.send_signal(2)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.strip() == "harness: interrupted"
    wait_until(lambda: not processes_of(mark))


def test_piped_output_has_no_colours_and_no_trailing_spaces(tmp_path: Path) -> None:
    ended = harness("doctor", "--no-faults", cwd=tmp_path, env={"TERM": "xterm-256color"})
    assert ended.code == 0
    assert "\x1b" not in ended.out
    assert [line for line in ended.out.splitlines() if line != line.rstrip()] == []


def test_a_compiler_that_hangs_is_ended(tmp_path: Path) -> None:
    slow = tmp_path / "cc"
    slow.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexec sleep 1000\n")
    slow.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment({"CC": str(slow), "XDG_CACHE_HOME": str(tmp_path)}).items():
            patch.setenv(name, value)
        (found,) = software.stub_facts(3.0)
    assert (found.state, found.text) == (State.WARNING, "not built within 3 s")
    if not (tmp_path / "ran").exists():
        pytest.skip("this machine is too slow to get as far as the compiler within three seconds")
    wait_until(lambda: not processes_of(f"XDG_CACHE_HOME={tmp_path}"))
