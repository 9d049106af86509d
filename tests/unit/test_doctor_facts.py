"""Facts about the machine: what is seen is told, what is not there is absent, what hangs costs its limit."""

from __future__ import annotations

import os
import resource
import sqlite3
import tempfile
import threading
from collections import namedtuple
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from fake_executor import TOLD, blank

from harness.doctor import asking, driver, journal, machine, places, pytorch, software
from harness.doctor.asking import Inquiry, Question
from harness.doctor.facts import Fact, State, size_words
from harness.doctor.injection import program_order
from harness.errors import StoreError
from harness.model import Device, Outcome, Record
from harness.store import journal as journal_store
from harness.store.journal import Journal
from harness.store.layout import Store


def by_name(facts: Iterable[Fact]) -> dict[str, Fact]:
    return {fact.name: fact for fact in facts}


@pytest.mark.parametrize(
    ("amount", "words"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (64 << 20, "64 MiB"), (3 << 40, "3 TiB")],
)
def test_sizes_are_in_the_unit_that_a_person_would_choose(amount: int, words: str) -> None:
    assert size_words(amount) == words


# Questions


def test_a_question_that_hangs_costs_its_limit_and_is_a_warning() -> None:
    never = threading.Event()

    def hang() -> tuple[Fact, ...]:
        never.wait()
        return ()

    (fact,) = Inquiry.start(Question("driver", hang, limit_s=0.05)).answer()
    never.set()
    assert (fact.name, fact.state, fact.text) == ("driver", State.WARNING, "no answer within 0.05 s")


@pytest.mark.parametrize(
    ("error", "text", "advice"),
    [
        (StoreError("no disk", "buy one"), "no disk", "buy one"),
        (OSError(24, "Too many open files"), "could not be found out: OSError: [Errno 24] Too many open files", "Try"),
        (ValueError("two\nlines"), "could not be found out: ValueError: two lines", "Try"),
    ],
)
def test_a_question_that_fails_is_a_warning(error: Exception, text: str, advice: str) -> None:
    def fail() -> tuple[Fact, ...]:
        raise error

    (fact,) = Inquiry.start(Question("store", fail)).answer()
    assert (fact.state, fact.text) == (State.WARNING, text)
    assert fact.advice.startswith(advice)


def test_without_threads_a_question_is_asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_more(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(asking.threading.Thread, "start", no_more)
    assert Inquiry.start(Question("cores", lambda: (Fact("cores", "2"),))).answer() == (Fact("cores", "2"),)


# The machine


@pytest.fixture
def linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """A machine whose files of /proc and /sys are what a test writes there, eight cores and no load."""
    monkeypatch.setattr(machine, "PROC", tmp_path / "proc")
    monkeypatch.setattr(machine, "CGROUP", tmp_path / "cgroup")
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.5, 0.0, 0.0))

    def write(name: str, text: str) -> None:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    return write


def test_cores_that_may_not_be_used_are_not_counted(
    linux: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3}, raising=False)
    assert by_name(machine.cpu_facts())["cores"] == Fact("cores", "2 of 8 (affinity)", value=2)


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"proc/self/cgroup": "0::/\n", "cgroup/cpu.max": "150000 100000\n"}, 1.5),
        ({"proc/self/cgroup": "0::/box\n", "cgroup/box/cpu.max": "max 100000\n"}, None),
        ({"proc/self/cgroup": "0::/on/the/host\n", "cgroup/cpu.max": "200000 100000\n"}, 2.0),
        (
            {
                "proc/self/cgroup": "3:cpu,cpuacct:/box\n",
                "cgroup/cpu/box/cpu.cfs_quota_us": "50000\n",
                "cgroup/cpu/box/cpu.cfs_period_us": "100000\n",
            },
            0.5,
        ),
        ({"proc/self/cgroup": "3:cpu:/\n", "cgroup/cpu/cpu.cfs_quota_us": "-1\n"}, None),
        ({}, None),
    ],
)
def test_the_cgroups_share_of_the_cores_is_found_in_both_versions(
    linux: Callable[[str, str], None], files: dict[str, str], quota: float | None
) -> None:
    for name, text in files.items():
        linux(name, text)
    assert machine.cpu_quota() == quota
    state = State.OK if quota is None else State.WARNING
    assert by_name(machine.cpu_facts())["cores"].state is state


def test_a_load_above_the_cores_is_a_warning(
    linux: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert by_name(machine.cpu_facts())["load"].state is State.OK
    monkeypatch.setattr(os, "getloadavg", lambda: (8.1, 0.0, 0.0))
    assert by_name(machine.cpu_facts())["load"].state is State.WARNING


MEMINFO = "MemTotal:       16777216 kB\nMemFree: 1 kB\nMemAvailable:   8388608 kB\nHugePages_Total:       0\n"


@pytest.mark.parametrize(
    ("files", "text", "state"),
    [
        ({"proc/meminfo": MEMINFO}, "16 GiB, 8 GiB available", State.OK),
        ({"proc/meminfo": MEMINFO.replace("8388608", "1048576")}, "16 GiB, 1 GiB available", State.WARNING),
        (
            {
                "proc/meminfo": MEMINFO,
                "proc/self/cgroup": "0::/\n",
                "cgroup/memory.max": f"{3 << 30}\n",
                "cgroup/memory.current": f"{2 << 30}\n",
            },
            "16 GiB, 8 GiB available; the cgroup may use 3 GiB and uses 2 GiB",
            State.WARNING,
        ),
        (
            {"proc/meminfo": MEMINFO, "proc/self/cgroup": "0::/\n", "cgroup/memory.max": "max\n"},
            "16 GiB, 8 GiB available",
            State.OK,
        ),
        (
            {
                "proc/meminfo": MEMINFO,
                "proc/self/cgroup": "4:memory:/\n",
                "cgroup/memory/memory.limit_in_bytes": f"{1 << 62}\n",
            },
            "16 GiB, 8 GiB available",
            State.OK,
        ),
        ({}, "/proc/meminfo does not say", State.ABSENT),
    ],
)
def test_memory_is_the_machines_or_the_cgroups(
    linux: Callable[[str, str], None], files: dict[str, str], text: str, state: State
) -> None:
    for name, content in files.items():
        linux(name, content)
    (fact,) = machine.memory_facts()
    assert (fact.text, fact.state) == (text, state)


@pytest.mark.parametrize(
    ("number", "name", "soft", "text", "state"),
    [
        (resource.RLIMIT_NOFILE, "open files", 64, "64 allowed, 112 may be needed", State.WARNING),
        (resource.RLIMIT_NOFILE, "open files", 1024, "1024 allowed", State.OK),
        (resource.RLIMIT_NOFILE, "open files", resource.RLIM_INFINITY, "unlimited", State.OK),
        (resource.RLIMIT_AS, "address space", 1 << 30, "1 GiB allowed, 8 GiB may be needed", State.WARNING),
        (resource.RLIMIT_NPROC, "processes", 10, "10 allowed, 256 may be needed", State.WARNING),
    ],
)
def test_limits_are_held_against_what_a_run_needs(
    linux: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    name: str,
    soft: int,
    text: str,
    state: State,
) -> None:
    free = resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda asked: (soft if asked == number else free, free))
    fact = by_name(machine.limit_facts())[name]
    assert (fact.text, fact.state, bool(fact.advice)) == (text, state, state is State.WARNING)


@pytest.mark.parametrize(
    ("soft", "pattern", "state"),
    [(0, "core", State.OK), (-1, "core", State.WARNING), (-1, "|/usr/share/apport/apport %p", State.OK)],
)
def test_core_files_are_a_warning_where_they_become_files(
    linux: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch, soft: int, pattern: str, state: State
) -> None:
    linux("proc/sys/kernel/core_pattern", pattern + "\n")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, -1))
    assert by_name(machine.limit_facts())["core files"].state is state


# Places

Usage = namedtuple("Usage", "total used free")


def test_a_store_that_can_be_written_says_how_many_runs_it_has(tmp_path: Path) -> None:
    facts = by_name(places.store_facts(Store(tmp_path / "new")))
    assert facts["store"].state is State.OK
    assert facts["store"].text == f"{tmp_path / 'new'}, writable, no runs yet"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("facts", [places.store_facts, journal.journal_facts])
def test_a_store_that_cannot_be_written_is_a_warning(facts: Callable[[Store], Iterable[Fact]], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    fact = next(iter(facts(Store(tmp_path / "file" / "store"))))
    assert fact.state is State.WARNING
    assert "not a directory" in fact.text
    assert "--store" in fact.advice
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def unreachable(folder: Path, how: str) -> Path:
    """A store that cannot even be looked at, and not for want of it."""
    if how == "too long":
        return folder / ("x" * 300) / "store"
    if how == "in circles":
        (folder / "circle").symlink_to(folder / "circle")
        return folder / "circle" / "store"
    if os.geteuid() == 0:
        pytest.skip("nothing is forbidden to root")
    (folder / "closed").mkdir(mode=0)
    return folder / "closed" / "store"


UNREACHABLE = {"too long": "name too long", "in circles": "symbolic links", "forbidden": "permission denied"}


@pytest.mark.parametrize("how", UNREACHABLE)
@pytest.mark.parametrize("facts", [places.store_facts, journal.journal_facts, places.tracking_facts])
def test_a_store_that_cannot_be_looked_at_is_a_warning_that_says_why(
    facts: Callable[[Store], Iterable[Fact]], how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    fact = next(iter(facts(Store(unreachable(tmp_path, how)))))
    assert fact.state is State.WARNING
    assert UNREACHABLE[how] in fact.text
    assert "--store" in fact.advice


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(36, "File name too long")])
def test_what_cannot_be_looked_at_is_not_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: OSError
) -> None:
    """As for whoever is not root below a folder that is closed to him."""
    closed, stat = tmp_path / "closed", Path.stat

    def looked_at(path: Path, **options: bool) -> os.stat_result:
        if path != closed and path.is_relative_to(closed):
            raise error
        return stat(path, **options)

    closed.mkdir()
    monkeypatch.setattr(Path, "stat", looked_at)
    assert places.existing(closed / "store" / "runs") == closed / "store" / "runs"
    assert places.existing(tmp_path / "new" / "runs") == tmp_path


@pytest.mark.parametrize(
    ("free", "inodes", "state"),
    [(5 << 30, 10**6, State.OK), (1 << 20, 10**6, State.WARNING), (5 << 30, 3, State.WARNING)],
)
def test_a_disk_that_is_nearly_full_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free: int, inodes: int, state: State
) -> None:
    monkeypatch.setattr(places.shutil, "disk_usage", lambda _: Usage(10 << 30, 0, free))
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_files=10**6, f_favail=inodes))
    assert by_name(places.store_facts(Store(tmp_path)))["disk of the store"].state is state


def test_a_temporary_folder_that_is_passed_over_is_a_warning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    fact = by_name(places.temporary_facts())["TMPDIR"]
    assert (fact.state, fact.text) == (State.WARNING, f"{tmp_path / 'gone'} cannot be written to")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert set(by_name(places.temporary_facts())) == {"temporary files"}


def test_shared_memory_may_be_little_or_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (missing,) = places.shared_memory_facts(tmp_path / "shm")
    assert missing.state is State.ABSENT
    monkeypatch.setattr(places.shutil, "disk_usage", lambda _: Usage(64 << 20, 0, 64 << 20))
    (little,) = places.shared_memory_facts(tmp_path)
    assert (little.state, little.text) == (State.WARNING, "64 MiB of 64 MiB free")


def database(root: Path, *statements: str) -> Store:
    with closing(sqlite3.connect(root / "mlflow.db")) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return Store(root)


def test_mlflows_database_may_be_absent_empty_or_damaged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    (missing,) = places.tracking_facts(Store(tmp_path))
    assert (missing.state, list(tmp_path.iterdir())) == (State.ABSENT, [])
    (empty,) = places.tracking_facts(database(tmp_path, "CREATE TABLE mine (x)"))
    assert empty.state is State.ABSENT
    (tmp_path / "mlflow.db").write_bytes(b"no database at all" * 100)
    (damaged,) = places.tracking_facts(Store(tmp_path))
    assert damaged.state is State.WARNING
    assert damaged.advice.startswith("Restore it from a copy")
    assert "harness sync" in damaged.advice


@pytest.mark.parametrize(
    ("denied", "said", "words", "advice"),
    [
        ({"mlflow.db": os.R_OK}, "unable to open database file", "is not yours to read", "Make it readable"),
        ({".": os.W_OK}, "attempt to write a readonly database", "in a folder that is read-only", "Make the folder"),
        ({}, "database is locked", "cannot be opened now: database is locked", "Is another program at work on it?"),
    ],
)
def test_a_sound_database_that_cannot_be_opened_is_not_to_be_restored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, denied: dict[str, int], said: str, words: str, advice: str
) -> None:
    """What SQLite raises there was seen by a user without rights; root may do everything."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    store = database(tmp_path, "CREATE TABLE alembic_version (x)")
    refused = {tmp_path / name: mode for name, mode in denied.items()}

    def connect(*_: object, **__: object) -> NoReturn:
        raise sqlite3.OperationalError(said)

    monkeypatch.setattr(os, "access", lambda path, mode: refused.get(path) != mode)
    monkeypatch.setattr(sqlite3, "connect", connect)
    (fact,) = places.tracking_facts(store)
    assert (fact.state, fact.text.partition(" ")[0]) == (State.WARNING, str(store.database))
    assert words in fact.text
    assert fact.advice.startswith(advice)
    assert "--no-tracking" in fact.advice
    assert "Restore" not in fact.advice


@pytest.mark.skipif(os.getuid() == 0, reason="root may write to every folder")
def test_a_sound_database_in_a_folder_that_is_read_only_is_told_as_that(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    store = database(tmp_path, "PRAGMA journal_mode=WAL", "CREATE TABLE alembic_version (x)")
    tmp_path.chmod(0o555)
    try:
        (fact,) = places.tracking_facts(store)
    finally:
        tmp_path.chmod(0o755)
    assert fact.text == f"{store.database} is in a folder that is read-only"


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        ('{"error": "", "advice": ""}\n', State.OK, "answers"),
        ('a warning of somebody\n{"error": "", "advice": ""}\n', State.OK, "answers"),
        ('{"error": "refused", "advice": "look"}\n', State.WARNING, "refused"),
        ("", State.WARNING, "died over the question"),
        ("{half", State.WARNING, "died over the question"),
        (None, State.WARNING, "no answer within 7 s"),
    ],
)
def test_what_mlflow_says_of_a_server_is_told_without_the_password(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str | None, state: State, words: str
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(places, "ask_process", lambda *arguments: asked.append(arguments) or answer)
    (fact,) = places.tracking_facts(Store(tmp_path, "http://me:secret@127.0.0.1:9"), 7)
    assert fact.state is state
    assert words in fact.text
    assert "secret" not in fact.text + fact.advice
    ((command, said, limit),) = asked
    assert not any("secret" in word for word in command)
    assert (said, limit) == ('"http://me:secret@127.0.0.1:9"', 7)


def test_a_tracking_uri_that_is_none_is_not_asked(tmp_path: Path) -> None:
    (fact,) = places.tracking_facts(Store(tmp_path, "nosuch://place"))
    assert (fact.state, fact.text) == (State.WARNING, "MLflow knows no tracking store 'nosuch://place'")


# The journal


def test_a_torn_journal_is_gone_on_with_and_nothing_is_left(tmp_path: Path) -> None:
    (fact,) = journal.journal_facts(Store(tmp_path / "new"))
    assert fact.state is State.OK
    assert isinstance(fact.value, float)
    assert list(tmp_path.iterdir()) == []


def lose_the_last(journal_: Journal, record: Record) -> None:
    if record.label != f"number={journal.RECORDS - 1}":
        KEEP(journal_, record)


KEEP = Journal.append
LOSSES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "is not read back": lambda patch: patch.setattr(journal, "read_records", lambda _: ()),
    "does not go on": lambda patch: patch.setattr(Journal, "append", lose_the_last),
    "records.jsonl, line 3": lambda patch: patch.setattr(journal_store, "_repaired_end", lambda d: os.fstat(d).st_size),
}


@pytest.mark.parametrize("words", LOSSES)
def test_a_journal_that_loses_something_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str
) -> None:
    LOSSES[words](monkeypatch)
    (fact,) = Inquiry.start(Question(journal.NAME, lambda: tuple(journal.journal_facts(Store(tmp_path))))).answer()
    assert (fact.name, fact.state) == (journal.NAME, State.WARNING)
    assert words in fact.text
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_where_no_folder_can_be_listed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a descriptor a file can still be removed by its name, and no folder can be listed."""

    def none_left(*_: object, **__: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(journal, "read_records", none_left)
    with monkeypatch.context() as patch:
        for name in ("listdir", "scandir"):
            patch.setattr(os, name, none_left)
        (fact,) = journal.journal_facts(Store(tmp_path))
    assert (fact.state, "too many open files" in fact.text) == (State.WARNING, True)
    assert list(tmp_path.iterdir()) == []


# Software, driver, PyTorch


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (None, State.WARNING),
        ("", State.WARNING),
        ('{"name": "stub", "text": "built", "state": "ok", "advice": "", "value": null}\n', State.OK),
        ('{"name": "stub", "text": "no compiler", "state": "absent", "advice": "x", "value": null}\n', State.ABSENT),
    ],
)
def test_the_stub_is_there_only_if_whoever_builds_it_says_so(
    monkeypatch: pytest.MonkeyPatch, answer: str | None, state: State
) -> None:
    monkeypatch.setattr(software, "ask_process", lambda *_: answer)
    (fact,) = software.stub_facts(1)
    assert fact.state is state
    assert isinstance(fact.state, State)


def test_a_compiler_may_be_absent_or_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CC", str(tmp_path / "nosuch"))
    (fact,) = software.compiler_facts()
    assert (fact.state, fact.text) == (State.WARNING, f"CC is {tmp_path / 'nosuch'}, which cannot be run")


class Nvml:
    """A driver with as many GPUs as it is told."""

    def __init__(self, *names: str | bytes, mode: int = 0) -> None:
        self.names, self.mode = names, mode

    def __getattr__(self, name: str) -> Callable[..., Any]:
        answers: dict[str, Callable[..., Any]] = {
            "nvmlInit": lambda: None,
            "nvmlSystemGetDriverVersion": lambda: b"580.65.06",
            "nvmlSystemGetCudaDriverVersion_v2": lambda: 13000,
            "nvmlDeviceGetCount": lambda: len(self.names),
            "nvmlDeviceGetHandleByIndex": lambda number: number,
            "nvmlDeviceGetName": lambda number: self.names[number],
            "nvmlDeviceGetMemoryInfo": lambda _: SimpleNamespace(free=70 << 30, total=80 << 30),
            "nvmlDeviceGetComputeMode": lambda _: self.mode,
        }
        return answers[name]


def test_the_driver_tells_its_gpus() -> None:
    facts = list(driver.facts_of(driver.ask_nvml(Nvml(b"H200", "L4")), present=True))
    assert [(fact.name, fact.text) for fact in facts] == [
        ("GPU driver", "NVIDIA 580.65.06, for CUDA up to 13.0"),
        ("GPU 0", "H200, 70 GiB of 80 GiB free"),
        ("GPU 1", "L4, 70 GiB of 80 GiB free"),
    ]
    assert {fact.state for fact in facts} == {State.OK}


def test_a_driver_may_list_none_or_forbid_it() -> None:
    assert list(driver.facts_of(driver.ask_nvml(Nvml()), present=True))[1].state is State.ABSENT
    assert list(driver.facts_of(driver.ask_nvml(Nvml("H200", mode=2)), present=True))[1].state is State.WARNING


@pytest.mark.parametrize(("present", "state"), [(True, State.WARNING), (False, State.ABSENT)])
def test_a_driver_that_does_not_answer_is_a_warning_only_where_the_kernel_has_one(present: bool, state: State) -> None:
    for error in ("NVML Shared Library Not Found", "nvidia-ml-py is not installed"):
        (fact,) = driver.facts_of({"error": error}, present=present)
        assert fact.state is state
        assert error in fact.text
        assert "not answer" not in fact.text, "without nvidia-ml-py nobody has asked it"


@pytest.mark.parametrize("answer", [None, "", "Segmentation fault"])
def test_a_driver_that_hangs_or_kills_is_a_warning(monkeypatch: pytest.MonkeyPatch, answer: str | None) -> None:
    monkeypatch.setattr(driver, "ask_process", lambda *_: answer)
    monkeypatch.setattr(driver, "has_amd", lambda: False)
    (fact,) = driver.driver_facts(1)
    assert fact.state is State.WARNING


def told(act: str, **changes: Any) -> Record:
    record = blank(program_order(act, Device.CPU, 1.0))
    return replace(record, results={**TOLD[act], **changes})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {"PyTorch": "2.14.1+cu130, built for CUDA 13.0", "cuDNN": "9.24.0"}),
        ({"cudnn": 8902}, {"cuDNN": "8.9.2"}),
        ({"cuda": None, "cudnn": None}, {"PyTorch": "2.14.1+cu130, built for the CPU only"}),
        (
            {"cuda": None, "hip": "6.4", "cudnn": 3004000},
            {"PyTorch": "2.14.1+cu130, built for ROCm 6.4", "MIOpen": "3004000"},
        ),
    ],
)
def test_a_build_of_pytorch_says_what_it_is_for(changes: dict[str, Any], expected: dict[str, str]) -> None:
    changes = dict(changes)
    cudnn = told(pytorch.CUDNN, cudnn=changes.pop("cudnn", 92400))
    facts = by_name(pytorch.build_facts({pytorch.BUILD: told(pytorch.BUILD, **changes), pytorch.CUDNN: cudnn}))
    assert {name: facts[name].text for name in expected} == expected
    assert facts["cuDNN" if changes.get("hip") is None else "MIOpen"].state is (
        State.OK if cudnn.results["cudnn"] else State.ABSENT
    )


def test_a_driver_that_hangs_costs_cudnns_version_and_not_pytorchs() -> None:
    hung = replace(told(pytorch.CUDNN), outcome=Outcome.TIMEOUT, results={}, reason="it hung")
    facts = by_name(pytorch.build_facts({pytorch.BUILD: told(pytorch.BUILD), pytorch.CUDNN: hung}))
    assert facts["PyTorch"].state is State.OK
    assert (facts["cuDNN"].state, facts["cuDNN"].text) == (State.WARNING, "no answer: timeout: it hung")


LISTED = [Fact("GPU", "H200, 1 GiB of 80 GiB free", value="H200")]
SEEN = {"available": True, "name": "H200", "capability": "9.0", "count": 2, "stub": False}


@pytest.mark.parametrize(
    ("changes", "listed", "state", "text"),
    [
        ({}, [], State.ABSENT, "it sees none"),
        ({}, LISTED, State.WARNING, "it does not see the H200 that the driver lists"),
        ({"said": ["The driver is too old"]}, LISTED, State.WARNING, "The driver is too old"),
        (SEEN, LISTED, State.OK, "H200, compute capability 9.0, the first of 2"),
        (SEEN | {"stub": True}, [], State.ABSENT, "what it sees is the stub: this command runs with the stub in front"),
    ],
)
def test_a_gpu_that_the_driver_lists_has_to_be_seen(
    changes: dict[str, Any], listed: list[Fact], state: State, text: str
) -> None:
    record = told(pytorch.GPU, **changes)
    (fact,) = pytorch.gpu_facts(record, listed)
    assert (fact.state, fact.text) == (state, text)
    assert pytorch.sees_gpu(record) is (state is State.OK)


def test_a_question_to_pytorch_that_hangs_is_a_warning_and_no_gpu() -> None:
    record = replace(
        told(pytorch.GPU, **SEEN), outcome=Outcome.TIMEOUT, results={}, reason="after its deadline of 30 s"
    )
    (fact,) = pytorch.gpu_facts(record, [])
    assert (fact.state, fact.text) == (State.WARNING, "no answer: timeout: after its deadline of 30 s")
    assert not pytorch.sees_gpu(record)
