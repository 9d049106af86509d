"""Attempts in real processes: whatever a program does, it ends in one record of the right class, and the next is ok."""

import os
import re
import signal
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from command import wait_until

from harness.launch import local, memory
from harness.launch.local import LocalExecutor
from harness.launch.stop import StopRequest
from harness.matrix.axes import make_variant
from harness.matrix.expand import expand
from harness.matrix.shelf import read_matrix
from harness.model import Device, KernelPath, Order, Outcome, Phase, Record, Settings, Stall
from harness.wire import dump

HOSTILE = str(Path(__file__).parent / "programs" / "hostile.py")
BACKWARD = "cudnn RNN backward can only be called in training mode"
NUMBERS = count()


@pytest.fixture(scope="module")
def executor() -> Iterator[LocalExecutor]:
    executor = LocalExecutor(os.environ)
    yield executor
    executor.close()


def act(name: str, *arguments: str, deadline: float = 60.0) -> Order:
    settings = Settings(deadline=deadline)
    variant = make_variant({})
    return Order("run", variant, Device.CPU, settings, next(NUMBERS), program=HOSTILE, arguments=(name, *arguments))


def carry_out(executor: LocalExecutor, *orders: Order, slots: int = 1) -> list[Record]:
    records = list(executor.run(orders, slots, StopRequest()))
    assert sorted(record.replicate for record in records) == [order.replicate for order in orders]
    return sorted(records, key=lambda record: record.replicate)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


STICKY = ("an illegal memory access was encountered", "device-side assert triggered", "unspecified launch failure")
POISONED: dict[str, object] = {"reason": "sticky CUDA error", "facts": {"process_poisoned": True}}

# act -> outcome, what the record says about it besides
AT = {"epoch": 2, "step": 5}
HERE = {**AT, "phase": Phase.STEP}
OK = {"phase": Phase.EVALUATE, "epoch": 2, "step": 5, "error_type": None, "exit_code": None, "signal": None}
ENDS: dict[str, tuple[list[str], Outcome, dict[str, object]]] = {
    "behaves": ([], Outcome.OK, {**OK, "results": {"act": "behaves"}}),
    "raises": (["--text", "no"], Outcome.ERROR, {**AT, "error_type": "RuntimeError", "error_message": "no"}),
    "raises the error": (["--text", BACKWARD], Outcome.BACKWARD_ERROR, {**AT, "phase": Phase.BACKWARD}),
    "raises a surrogate": (["--text", "\ud800"], Outcome.ERROR, {"error_message": "\\ud800"}),
    "recurses": ([], Outcome.ERROR, {"error_type": "RecursionError"}),
    "runs_out_of_memory": ([], Outcome.OOM, {**AT, "error_type": "MemoryError"}),
    "runs_out_of_address_space in Python": (["--text", "python"], Outcome.OOM, {**AT, "error_type": "MemoryError"}),
    "runs_out_of_address_space in PyTorch": (["--text", "torch"], Outcome.OOM, {**AT, "error_type": "RuntimeError"}),
    "throws_bad_alloc": ([], Outcome.OOM, {**HERE, "signal": "SIGABRT", "reason": "'std::bad_alloc'"}),
    "fills_the_device": (["--text", "1048576"], Outcome.OOM, {**AT, "facts": {"device_free_bytes": 1 << 20}}),
    "fills_the_device, which has room": (["--text", "8589934592"], Outcome.ERROR, {**AT, "reason": ""}),
    "raises OOM": (["--text", "CUDA out of memory. Tried to allocate 2.00 GiB"], Outcome.OOM, AT),
    "raises OOM of cuBLAS": (["--text", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED"], Outcome.OOM, AT),
    "raises OOM of cuDNN": (["--text", "cuDNN error: CUDNN_STATUS_ALLOC_FAILED"], Outcome.OOM, AT),
    **{
        f"raises_of_the_device: {message}": (["--text", f"CUDA error: {message}"], Outcome.ERROR, POISONED)
        for message in STICKY
    },
    "raises cuDNN's execution failed": (
        ["--text", "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"],
        Outcome.ERROR,
        {"error_type": "RuntimeError", "facts": {"process_poisoned": None}},
    ),
    "exits": ([], Outcome.ERROR, {"error_type": "SystemExit", "error_message": "3", "exit_code": None}),
    "exits_well": ([], Outcome.ERROR, {"error_type": "SystemExit", "error_message": "0", "exit_code": None}),
    "exits_hard_0": ([], Outcome.CRASH, {**HERE, "exit_code": 0, "reason": "code 0; it left no record"}),
    "exits_hard_3": ([], Outcome.CRASH, {**HERE, "exit_code": 3, "reason": "code 3; it left no record"}),
    "segfaults": ([], Outcome.CRASH, {**HERE, "signal": "SIGSEGV", "output_tail": "Segmentation fault"}),
    "aborts": ([], Outcome.CRASH, {**HERE, "signal": "SIGABRT", "output_tail": "Aborted"}),
    "kills_itself": ([], Outcome.CRASH, {**HERE, "signal": "SIGKILL", "exit_code": None, "reason": "did not send"}),
    "dies_of_a_nameless_signal": ([], Outcome.CRASH, {**HERE, "signal": "signal 40", "reason": "ended by signal 40"}),
    "floods": ([], Outcome.OK, {**OK, "output_tail": "the end of the flood"}),
    "prints": ([], Outcome.OK, {**OK, "output_tail": "to stderr"}),
    "closes_stdout": ([], Outcome.OK, OK),
    "closes_descriptors_1_and_2": ([], Outcome.OK, OK),
    "has_no_stdout": ([], Outcome.OK, OK),
    "closes_everything": ([], Outcome.CRASH, {**HERE, "exit_code": 1}),
    "writes_half_a_record": ([], Outcome.CRASH, {**HERE, "reason": "ended with exit code 0; it left half a record"}),
    "writes_before_its_record": (["--text", '{"run":'], Outcome.CRASH, {**HERE, "reason": "cannot be read"}),
    "writes_and_exits no JSON": (["--text", "garbage\n"], Outcome.CRASH, {**HERE, "reason": "cannot be read"}),
    "writes_and_exits nothing": (["--text", "\n"], Outcome.CRASH, {**HERE, "reason": "cannot be read"}),
    "writes_and_exits two lines": (["--text", "{}\n{}\n"], Outcome.CRASH, {**HERE, "reason": "more than one record"}),
    "writes_to_every_descriptor": ([], Outcome.CRASH, {"reason": "more than one record"}),
    "writes_megabytes_of_record": ([], Outcome.CRASH, {"phase": Phase.STEP, "reason": "more than a record can be"}),
    "reports_a_megabyte": ([], Outcome.OK, {**OK, "results": {"text": "x" * (1 << 20)}}),
    "reads_stdin": ([], Outcome.OK, {**OK, "results": {"stdin": "", "raw": 0}}),
    "deletes_its_folder": ([], Outcome.OK, OK),
    "changes_everything_it_can": ([], Outcome.OK, {**OK, "results": {"changed": True}}),
    "leaves_a_thread": ([], Outcome.OK, OK),
    "raises_in_a_thread": ([], Outcome.OK, {**OK, "output_tail": "ZeroDivisionError"}),
}


def check(record: Record, outcome: Outcome, said: dict[str, object]) -> None:
    assert record.outcome is outcome, record
    for name, value in said.items():
        seen = getattr(record, name)
        if name in {"reason", "output_tail"}:
            assert str(value) in (seen or "")
        elif name == "facts":
            assert value == {fact: seen.get(fact) for fact in value}  # type: ignore[attr-defined]
        else:
            assert seen == value, name


def check_next(record: Record) -> None:
    check(record, Outcome.OK, {**OK, "output_tail": ""})


@pytest.mark.parametrize("name", ENDS)
def test_an_attempt_ends_in_one_record_of_its_class_and_the_next_is_ok(executor: LocalExecutor, name: str) -> None:
    arguments, outcome, said = ENDS[name]
    record, after = carry_out(executor, act(re.split("[ ,:]", name)[0], *arguments), act("behaves"))
    check(record, outcome, said)
    assert (record.run, record.key, record.device) == ("run", make_variant({}).key, Device.CPU)
    assert record.wall_s is not None
    assert record.wall_s > 0
    assert len(record.output_tail or "") <= 4096
    check_next(after)


def test_only_its_own_single_whole_record_is_believed(executor: LocalExecutor) -> None:
    own = act("writes_and_exits")

    def line(**changes: object) -> str:
        fields = {"run": "run", "key": own.variant.key, "label": "x", "device": Device.CPU, "outcome": Outcome.OK}
        return dump(Record(**{**fields, "replicate": own.replicate, **changes})) + "\n"  # type: ignore[arg-type]

    def end(text: str, what: str = "writes_and_exits") -> Record:
        order = Order(own.run, own.variant, own.device, own.settings, own.replicate, 1, HOSTILE, (what, "--text", text))
        return carry_out(executor, order)[0]

    check(end(line()), Outcome.OK, {"label": "x"})  # the forger is not our enemy; a confused program is
    for other in ({"run": "other"}, {"key": "0" * 12}, {"device": Device.CUDA}, {"replicate": 10**6}, {"attempt": 2}):
        check(end(line(**other)), Outcome.CRASH, {**HERE, "reason": "about another attempt"})
    check(end(line() * 2), Outcome.CRASH, {**HERE, "reason": "more than one record"})
    check(end(line()[:-1]), Outcome.CRASH, {**HERE, "reason": "half a record"})
    check(end(line(schema=99)), Outcome.CRASH, {**HERE, "reason": "schema 99"})
    check(end(line(), "writes_before_its_record"), Outcome.CRASH, {**HERE, "reason": "more than one record"})
    died = end(line(), "writes_a_record_and_dies")
    check(died, Outcome.CRASH, {**HERE, "signal": "SIGKILL", "reason": "did not end as a healthy attempt"})


def test_an_attempt_that_the_kernel_kills_for_want_of_memory_is_oom(
    executor: LocalExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel's count stands in a file of the test's; nobody wants a machine that is really out of memory."""
    count = tmp_path / "vmstat"
    count.write_text("pgfault 7\noom_kill 3\n")
    monkeypatch.setattr(memory, "VMSTAT", count)
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "absent")
    orders = [act("dies_as_of_the_kernel", "--text", str(count)), act("kills_itself"), act("behaves")]
    record, other, after = carry_out(executor, *orders)
    check(record, Outcome.OOM, {**HERE, "signal": "SIGKILL", "reason": "for want of memory"})
    check(other, Outcome.CRASH, {**HERE, "signal": "SIGKILL", "reason": "did not send"})
    check_next(after)


LEFT_BEHIND = {"forks": Outcome.OK, "forks_and_comes_back_twice": Outcome.OK, "forks_away": Outcome.OK}
LEFT_BEHIND |= {"forks_away_and_dies": Outcome.CRASH}


@pytest.mark.parametrize("name", LEFT_BEHIND)
def test_what_an_attempt_leaves_behind_ends_with_it(executor: LocalExecutor, tmp_path: Path, name: str) -> None:
    note = tmp_path / "pid"
    record, after = carry_out(executor, act(name, "--note", str(note)), act("behaves"))
    check(record, LEFT_BEHIND[name], {})
    check_next(after)
    pid = int(note.read_text())
    wait_until(lambda: not alive(pid))


HANGS = {
    "dawdles": ("SIGTERM", "in dawdles"),
    "moves_then_hangs": ("SIGTERM", "in hangs"),
    "hangs": ("SIGTERM", "in hangs"),
    "spins": ("SIGTERM", "in spins"),
    "hangs_in_c": ("SIGTERM", "in hangs_in_c"),
    "hangs_in_c_and_ignores_signals": ("SIGKILL", ""),
    "ignores_sigterm": ("SIGKILL", "in hangs"),
    "turns_sigterm_into_exit": (None, "in hangs"),
    "stops_itself": ("SIGKILL", ""),
    "floods_forever": ("SIGTERM", ""),
    "forks_away_and_hangs": ("SIGTERM", "in forks_away_and_hangs"),
}


DEADLINES = {"dawdles": 6.0}
"""It hangs that is not seen to move for half of it; under load even a nimble one may not be served for a while."""


@pytest.fixture(scope="module")
def overdue(executor: LocalExecutor, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Record, Path]]:
    """All that hang, at once: each has its deadline to itself, and the well-behaved one among them is not disturbed."""
    folder = tmp_path_factory.mktemp("notes")
    orders = [act(name, "--note", str(folder / name), deadline=DEADLINES.get(name, 2.0)) for name in HANGS]
    *records, after = carry_out(executor, *orders, act("behaves"), slots=len(HANGS) + 1)
    check_next(after)
    return {name: (record, folder / name) for name, record in zip(HANGS, records, strict=True)}


@pytest.mark.parametrize("name", HANGS)
def test_what_hangs_is_ended_after_its_deadline(overdue: dict[str, tuple[Record, Path]], name: str) -> None:
    record, note = overdue[name]
    number, frame = HANGS[name]
    moves = name == "dawdles"
    where = {"phase": Phase.STEP, "epoch": 2} if moves else HERE
    deadline_s = DEADLINES.get(name, 2.0)
    check(record, Outcome.TIMEOUT, {**where, "signal": number, "reason": f"after its deadline of {deadline_s:g} s"})
    assert record.deadline_s == deadline_s
    assert record.stall is (Stall.SLOW if moves else Stall.HUNG)
    assert f"; {record.stall}: " in str(record.reason)
    assert record.wall_s is not None
    assert record.wall_s >= 2.0
    if frame:
        assert "most recent call first" in str(record.output_tail)
        assert re.search(rf'hostile\.py", line \d+ {frame}\b', str(record.output_tail))
    if note.exists():
        pid = int(note.read_text())
        wait_until(lambda: not alive(pid))


def test_an_attempt_inherits_nothing_that_it_should_not(executor: LocalExecutor) -> None:
    results = carry_out(executor, act("is_alone"))[0].results
    assert results["own_session"]
    assert results["own_group"]
    descriptors = [name for name in results["descriptors"] if not name.startswith("/proc/")]
    pipes = [name for name in descriptors if name == "pipe"]
    assert len(pipes) == 4, "stdout, stderr, and the write ends of the two pipes"
    assert "socket" not in descriptors
    assert "/dev/null" in descriptors


def test_a_dead_zygote_is_replaced_and_what_ran_under_it_runs_again(executor: LocalExecutor, tmp_path: Path) -> None:
    order = act("kills_its_parent_once", "--note", str(tmp_path / "once"))
    records = carry_out(executor, order, act("naps"), act("behaves"), slots=2)
    assert [record.outcome for record in records] == [Outcome.OK] * 3


def test_what_kills_every_zygote_is_blamed_itself(executor: LocalExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "LIVES", 1)  # each costs an import of torch
    record, after = carry_out(executor, act("kills_its_parent"), act("behaves"))
    check(record, Outcome.CRASH, {**HERE, "signal": None, "exit_code": None})
    check_next(after)


def test_one_wish_to_stop_lets_what_runs_finish(executor: LocalExecutor) -> None:
    stop = StopRequest()
    run = executor.run([act("behaves"), act("naps"), act("behaves"), act("behaves")], 2, stop)
    records = [next(run)]
    stop.ask()
    records += run
    assert [record.outcome for record in records] == [Outcome.OK] * 2
    assert records[1].wall_s is not None
    assert records[1].wall_s > 0.4


@pytest.mark.timeout(120)
def test_two_wishes_to_stop_end_what_runs(executor: LocalExecutor, tmp_path: Path) -> None:
    stop, note = StopRequest(), tmp_path / "pid"
    orders = [act("behaves"), act("ignores_sigterm", "--note", str(note)), act("behaves")]
    run = executor.run(orders, 2, stop)
    records = [next(run)]
    wait_until(note.exists)
    stop.ask()
    stop.ask()
    records += run
    assert [record.outcome for record in records] == [Outcome.OK, Outcome.NOT_RUN]
    check(records[1], Outcome.NOT_RUN, {**HERE, "reason": "stopped by the person", "replicate": orders[1].replicate})
    assert not alive(int(note.read_text()))
    check_next(carry_out(executor, act("behaves"))[0])


def test_nothing_is_started_after_a_stop(executor: LocalExecutor) -> None:
    stop = StopRequest()
    stop.ask()
    assert list(executor.run([act("behaves")], 1, stop)) == []


def test_attempts_run_side_by_side(executor: LocalExecutor, tmp_path: Path) -> None:
    orders = [act("meets", "--text", "3", "--note", str(tmp_path / str(number))) for number in range(3)]
    records = carry_out(executor, *orders, slots=3)
    assert [record.outcome for record in records] == [Outcome.OK] * 3


def test_with_one_slot_they_run_one_after_another(executor: LocalExecutor) -> None:
    began = time.monotonic()
    records = carry_out(executor, *(act("naps") for _ in range(3)), slots=1)
    assert time.monotonic() - began > 1.5
    assert [record.outcome for record in records] == [Outcome.OK] * 3


def test_no_descriptor_is_lost(executor: LocalExecutor) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    carry_out(executor, act("behaves"))
    before = descriptors()
    carry_out(executor, *(act(name) for name in ("behaves", "exits_hard_3", "kills_itself", "closes_stdout", "raises")))
    assert descriptors() == before


@pytest.fixture(scope="module")
def quick(executor: LocalExecutor) -> tuple[list[Order], list[Record]]:
    _, document = read_matrix("quick")
    settings = document.settings.settings()
    orders = [Order("quick", variant, Device.CPU, settings) for variant in expand(document).variants]
    return orders, list(executor.run(orders, 2, StopRequest()))


def test_the_quick_matrix_leaves_one_record_per_order(quick: tuple[list[Order], list[Record]]) -> None:
    orders, records = quick
    assert sorted(record.key for record in records) == sorted(order.variant.key for order in orders)
    assert {record.key: record.label for record in records} == {o.variant.key: o.variant.label for o in orders}


def test_on_a_cpu_nothing_claims_what_only_a_gpu_can_show(quick: tuple[list[Order], list[Record]]) -> None:
    orders, records = quick
    axes = {order.variant.key: order.variant for order in orders}
    for record in records:
        no_graph = axes[record.key]["placement"] == "eval-no-grad"
        assert record.outcome is (Outcome.ERROR if no_graph else Outcome.OK), record
        paths = {record.path, *(sighting.path for sighting in record.sightings)}
        assert paths <= ({None} if no_graph else {KernelPath.NATIVE, KernelPath.MKLDNN})
        assert record.facts["device_name"] == record.facts["cpu"]
        assert "cudnn" not in record.facts


def test_the_quick_matrix_is_measured(quick: tuple[list[Order], list[Record]]) -> None:
    settings = quick[0][0].settings
    for record in quick[1]:
        if record.outcome is not Outcome.OK:
            continue
        assert sum(sample.steps for sample in record.samples) == settings.epochs * settings.steps
        assert {sample.epoch for sample in record.samples if sample.warmup} == {1}
        assert re.fullmatch("[0-9a-f]{16}", str(record.losses_digest))
        assert re.fullmatch("[0-9a-f]{16}", str(record.weights_digest))
        assert record.peak_memory_bytes is not None
        assert record.peak_memory_bytes > 50 << 20


def test_an_attempt_alone_and_among_others_computes_the_same(
    executor: LocalExecutor, quick: tuple[list[Order], list[Record]]
) -> None:
    orders, records = quick
    once = {record.key: (record.losses_digest, record.weights_digest) for record in records}
    for record in executor.run(orders[:3], 1, StopRequest()):
        assert (record.losses_digest, record.weights_digest) == once[record.key]


def test_a_signal_of_the_person_does_not_reach_an_attempt(executor: LocalExecutor, tmp_path: Path) -> None:
    """Ctrl-C goes to the whole foreground group; attempts and zygote are in sessions of their own."""
    before = signal.getsignal(signal.SIGINT)  # where the tests run in the background it may be ignored
    note = tmp_path / "pid"
    run = executor.run([act("naps", "--note", str(note))], 1, StopRequest())
    record = next(run)
    assert record.outcome is Outcome.OK
    assert os.getpgid(0) != int(note.read_text())
    assert signal.getsignal(signal.SIGINT) is before
