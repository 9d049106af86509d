"""Beginnings and ends of zygotes: nothing outlives its coordinator, and what cannot start is said."""

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest
from command import assert_sentence_and_advice, harness, pids_of, wait_until

from harness.errors import LaunchError
from harness.launch import local
from harness.launch.local import LocalExecutor
from harness.launch.stop import StopRequest, on_signals
from harness.matrix.axes import make_variant
from harness.model import Device, Order, Outcome, Record, Settings
from harness.wire import dump, load

HOSTILE = str(Path(__file__).parent / "programs" / "hostile.py")
MARK = "HARNESS_TEST_MARK"


@pytest.fixture
def mark() -> str:
    return uuid.uuid4().hex


def act(name: str, *arguments: str, replicate: int = 0, deadline: float = 60.0) -> Order:
    variant, settings = make_variant({}), Settings(deadline=deadline)
    return Order("run", variant, Device.CPU, settings, replicate, program=HOSTILE, arguments=(name, *arguments))


def surroundings() -> dict[str, object]:
    return {
        "environment": dict(os.environ),
        "folder": Path.cwd(),
        "descriptors": sorted(entry.name for entry in Path("/proc/self/fd").iterdir()),
        "path": list(sys.path),
        "handlers": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "umask": Path("/proc/self/status").read_text().partition("Umask:")[2].split()[0],
        "group": (os.getpgid(0), os.getsid(0)),
        "children": Path(f"/proc/self/task/{os.getpid()}/children").read_text(),
    }


def test_an_executor_leaves_the_coordinator_and_the_machine_as_they_were(mark: str) -> None:
    before = surroundings()
    executor = LocalExecutor({**os.environ, MARK: mark})
    try:
        probe = executor.probe()
        orders = [act("changes_everything_it_can"), act("is_alone", replicate=1)]
        records = list(executor.run(orders, 1, StopRequest()))
        assert len(pids_of(mark)) == 1, "the zygote"
    finally:
        executor.close()
    assert [record.outcome for record in records] == [Outcome.OK] * 2
    inherited = records[1].results["environment"]
    assert {**inherited, **os.environ, MARK: mark} == inherited, "what was given, and what importing PyTorch adds"
    assert probe.facts["torch"]
    assert not probe.cuda or "stub" in probe.facts
    wait_until(lambda: not pids_of(mark))
    assert surroundings() == before


def test_closing_ends_what_still_runs(mark: str, tmp_path: Path) -> None:
    executor = LocalExecutor({**os.environ, MARK: mark})
    stop = StopRequest()
    orders = [act("forks_away_and_hangs", "--note", str(tmp_path / "pid")), act("naps", replicate=1)]
    run = executor.run(orders, 2, stop)
    assert next(run).replicate == 1
    wait_until((tmp_path / "pid").exists)
    assert len(pids_of(mark)) == 3, "the zygote, the attempt, and what it has started"
    executor.close()
    wait_until(lambda: not pids_of(mark))
    executor.close()  # a second time is no error


COORDINATOR = """
import os, sys
from harness.launch.local import LocalExecutor
from harness.launch.stop import StopRequest
from harness.model import Order
from harness.wire import load
orders = [load(Order, line) for line in sys.stdin]
list(LocalExecutor(os.environ).run(orders, 3, StopRequest()))
"""


def test_nothing_outlives_a_coordinator_that_was_killed(mark: str, tmp_path: Path) -> None:
    names = ["ignores_sigterm", "forks_away_and_hangs", "hangs_in_c"]
    orders = [act(name, "--note", str(tmp_path / name), replicate=n) for n, name in enumerate(names)]
    with subprocess.Popen(
        [sys.executable, "-c", COORDINATOR], stdin=subprocess.PIPE, env={**os.environ, MARK: mark}, text=True
    ) as coordinator:
        assert coordinator.stdin is not None
        coordinator.stdin.write("\n".join(map(dump, orders)))
        coordinator.stdin.close()
        wait_until(lambda: all((tmp_path / name).exists() for name in names))
        assert len(pids_of(mark)) == 6, "coordinator, zygote, three attempts, and what one of them has started"
        coordinator.send_signal(signal.SIGKILL)
        wait_until(lambda: not pids_of(mark))


TELLING = """
import os, sys
from harness.launch.local import LocalExecutor
from harness.launch.stop import StopRequest
from harness.model import Order
from harness.wire import dump, load
orders = [load(Order, line) for line in sys.stdin]
for record in LocalExecutor(os.environ).run(orders, 2, StopRequest()):
    print(dump(record), flush=True)
"""


def test_a_suspended_coordinator_does_not_blame_what_ended_in_good_time(mark: str, tmp_path: Path) -> None:
    """As Ctrl-Z or a debugger does: when it goes on, deadlines are over, and the ends before them are still unread."""
    names = ["naps", "naps_and_dies"]
    orders = [act(name, "--note", str(tmp_path / name), replicate=n, deadline=2.0) for n, name in enumerate(names)]
    with subprocess.Popen(
        [sys.executable, "-c", TELLING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, MARK: mark},
        text=True,
    ) as coordinator:
        assert coordinator.stdin is not None
        assert coordinator.stdout is not None
        coordinator.stdin.write("\n".join(map(dump, orders)))
        coordinator.stdin.close()
        wait_until(lambda: all((tmp_path / name).exists() for name in names))
        began = time.monotonic()
        coordinator.send_signal(signal.SIGSTOP)
        wait_until(lambda: len(pids_of(mark)) == 2)  # coordinator and zygote; the attempts are over
        in_time = time.monotonic() - began < 2.0
        time.sleep(2.5)
        coordinator.send_signal(signal.SIGCONT)
        records = sorted((load(Record, line) for line in coordinator.stdout), key=lambda record: record.replicate)
    if in_time:  # else this machine is so slow that they may have overrun their deadline after all
        assert [record.outcome for record in records] == [Outcome.OK, Outcome.CRASH]
        assert records[1].signal == "SIGKILL"


@pytest.mark.parametrize("goes_on", [True, False], ids=["for a while", "for ever"])
def test_a_suspended_zygote_is_no_fault_of_its_attempts(
    mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, goes_on: bool
) -> None:
    """What ended under it in good time is not a timeout: it is heard of later, or runs again under another zygote."""
    monkeypatch.setattr(local, "SILENCE_SECONDS", 600.0 if goes_on else 0.5)
    executor = LocalExecutor({**os.environ, MARK: mark})
    name = "naps_and_dies"
    run = executor.run([act(name, "--note", str(tmp_path / name), deadline=3.0)], 1, StopRequest())
    found: list[Record] = []
    thread = threading.Thread(target=lambda: found.extend(run))
    thread.start()
    try:
        wait_until((tmp_path / name).exists)
        (zygote,) = (pid for pid in pids_of(mark) if pid != int((tmp_path / name).read_text()))
        os.kill(zygote, signal.SIGSTOP)
        if goes_on:
            time.sleep(4.0)
            os.kill(zygote, signal.SIGCONT)
        thread.join(60)
    finally:
        executor.close()
    assert [record.outcome for record in found] == [Outcome.CRASH], found
    assert found[0].signal == "SIGKILL"
    assert "did not send" in str(found[0].reason)


def broken(tmp_path: Path, sitecustomize: str) -> dict[str, str]:
    """An environment in which a Python starts with ``sitecustomize``."""
    (tmp_path / "sitecustomize.py").write_text(sitecustomize)
    return {**os.environ, "PYTHONPATH": str(tmp_path)}


def test_a_zygote_that_cannot_start_is_said_with_its_last_words(tmp_path: Path) -> None:
    executor = LocalExecutor(broken(tmp_path, "import sys; sys.modules['torch'] = None"))
    try:
        with pytest.raises(LaunchError, match="torch") as caught:
            list(executor.run([act("behaves")], 1, StopRequest()))
    finally:
        executor.close()
    assert str(caught.value).endswith("import of torch halted; None in sys.modules")
    assert caught.value.exit_code == 4
    assert "import torch" in caught.value.advice
    for told in (str(caught.value), caught.value.advice):
        assert "\n" not in told
        assert "Traceback" not in told


def test_the_command_says_that_pytorch_cannot_be_imported_in_a_sentence(tmp_path: Path) -> None:
    site, folder = tmp_path / "site", tmp_path / "here"
    site.mkdir()
    folder.mkdir()
    (site / "sitecustomize.py").write_text("import sys; sys.modules['torch'] = None")
    end = harness("run", "matrix", "quick", "--device", "cuda", cwd=folder, env={"PYTHONPATH": str(site)})
    assert (end.code, end.out) == (4, "")
    assert_sentence_and_advice(end.err, "import of torch halted", "import torch")
    assert list(folder.iterdir()) == []


def test_a_probe_that_never_answers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a driver that hangs."""
    monkeypatch.setattr(local, "PROBE_SECONDS", 0.5)
    hang = "import time, harness.trial.zygote as zygote\nzygote._probe = lambda: time.sleep(10_000)"
    executor = LocalExecutor(broken(tmp_path, hang))
    try:
        with pytest.raises(LaunchError, match="could not be asked"):
            executor.probe()
    finally:
        executor.close()


REFUSE_TO_FORK = """
import os, pathlib
flag = pathlib.Path(FOLDER, "once")
def fork():
    if not flag.exists():
        {touch}
        raise BlockingIOError(11, "Resource temporarily unavailable")
    return real()
real, os.fork = os.fork, fork
"""


def refuse_to_fork(tmp_path: Path, touch: str) -> dict[str, str]:
    return broken(tmp_path, REFUSE_TO_FORK.format(touch=touch).replace("FOLDER", repr(str(tmp_path))))


def test_a_fork_that_fails_once_costs_nothing(tmp_path: Path) -> None:
    executor = LocalExecutor(refuse_to_fork(tmp_path, "flag.touch()"))
    try:
        records = list(executor.run([act("behaves"), act("behaves", replicate=1)], 1, StopRequest()))
    finally:
        executor.close()
    assert (tmp_path / "once").exists()
    assert [record.outcome for record in records] == [Outcome.OK] * 2


def test_a_fork_that_always_fails_is_the_harness_failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No record is written: the order has done nothing."""
    monkeypatch.setattr(local, "LIVES", 0)  # each costs an import of torch
    executor = LocalExecutor(refuse_to_fork(tmp_path, "pass"))
    try:
        with pytest.raises(LaunchError, match="Resource temporarily unavailable"):
            list(executor.run([act("behaves")], 1, StopRequest()))
    finally:
        executor.close()


def test_signals_ask_for_a_stop_as_long_as_the_context_lasts() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    stop = StopRequest()
    with on_signals(stop) as same:
        assert same is stop
        assert (stop.no_more, stop.now) == (False, False)
        os.kill(os.getpid(), signal.SIGINT)
        wait_until(lambda: stop.count == 1)
        assert (stop.no_more, stop.now) == (True, False)
        os.kill(os.getpid(), signal.SIGTERM)
        wait_until(lambda: stop.count == 2)
        assert (stop.no_more, stop.now) == (True, True)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
