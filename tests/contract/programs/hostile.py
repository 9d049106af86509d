"""A program with the face of a seed program that does to its attempt what programs should not do.

What `harness doctor` does on a person's machine is taken from its program; here is what only a test would do.
"""

import argparse
import ctypes
import json
import os
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from harness.doctor.faults.program import (
    aborts,
    exits,
    exits_hard_0,
    exits_hard_3,
    exits_well,
    floods,
    forks_away,
    kills_itself,
    note,
    result_pipe,
    runs_out_of_memory,
    segfaults,
    writes_half_a_record,
)

EPOCH, STEP = 2, 5
FOREVER = 10_000


@dataclass
class Result:
    values: dict[str, Any] = field(default_factory=dict)
    on_step: Callable[[Any], None] = print

    def to_json(self) -> str:
        return json.dumps(self.values)


@dataclass
class Position:
    epoch: int
    step: int


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("act", choices=ACTS)
    parser.add_argument("--note", type=Path)
    parser.add_argument("--text", default="")
    parser.add_argument("--device")
    return parser.parse_args(argv)


def run(config: argparse.Namespace, *, on_step: Callable[[Position], None], result: Result) -> Result:
    result.on_step = on_step
    on_step(Position(EPOCH, STEP))
    ACTS[config.act](config, result)
    return result


def open_descriptors() -> list[int]:
    listed = [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]
    return [descriptor for descriptor in listed if Path(f"/proc/self/fd/{descriptor}").is_symlink()]


def target(descriptor: int) -> str:
    return str(Path(f"/proc/self/fd/{descriptor}").readlink())


def behaves(config: argparse.Namespace, result: Result) -> None:
    result.values["act"] = "behaves"
    note(config, os.getpid())


def naps(config: argparse.Namespace, result: Result) -> None:
    note(config, os.getpid())
    time.sleep(0.5)


def meets(config: argparse.Namespace, result: Result) -> None:
    """Ends when as many as ``--text`` says have left their note in the same folder, so only beside the others."""
    note(config, os.getpid())
    while sum(not file.suffix for file in config.note.parent.iterdir()) < int(config.text):
        time.sleep(0.01)


def raises(config: argparse.Namespace, result: Result) -> NoReturn:
    raise RuntimeError(config.text)


def dies_of_a_nameless_signal(config: argparse.Namespace, result: Result) -> None:
    os.kill(os.getpid(), signal.SIGRTMIN + 6)


def stops_itself(config: argparse.Namespace, result: Result) -> None:
    note(config, os.getpid())
    os.kill(os.getpid(), signal.SIGSTOP)


def naps_and_dies(config: argparse.Namespace, result: Result) -> None:
    naps(config, result)
    kills_itself(config, result)


def dies_as_of_the_kernel(config: argparse.Namespace, result: Result) -> None:
    """As the kernel does when memory runs out: its count rises, then comes the SIGKILL. ``--text`` names the count."""
    Path(config.text).write_text("pgfault 7\noom_kill 4\n")
    kills_itself(config, result)


def dawdles(config: argparse.Namespace, result: Result) -> None:
    """Moves, and is never done."""
    for step in range(FOREVER):
        result.on_step(Position(EPOCH, step + 1))
        time.sleep(0.02)


def moves_then_hangs(config: argparse.Namespace, result: Result) -> None:
    for step in range(5):
        result.on_step(Position(EPOCH, step + 1))
    hangs(config, result)


def hangs(config: argparse.Namespace, result: Result) -> None:
    note(config, os.getpid())
    time.sleep(FOREVER)


def spins(config: argparse.Namespace, result: Result) -> None:
    note(config, os.getpid())
    while True:
        pass


def hangs_in_c(config: argparse.Namespace, result: Result) -> None:
    """The lock of the interpreter is held, so no Python code, and no Python signal handler, ever runs again."""
    note(config, os.getpid())
    nothing_to_read, _kept_open = os.pipe()
    ctypes.PyDLL(None).read(nothing_to_read, ctypes.create_string_buffer(1), 1)


def hangs_in_c_and_ignores_signals(config: argparse.Namespace, result: Result) -> None:
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, signal.SIG_IGN)
        except OSError:  # glibc keeps two for itself
            continue
    hangs_in_c(config, result)


def ignores_sigterm(config: argparse.Namespace, result: Result) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hangs(config, result)


def turns_sigterm_into_exit(config: argparse.Namespace, result: Result) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    hangs(config, result)


def floods_forever(config: argparse.Namespace, result: Result) -> None:
    while True:
        os.write(2, b"!" * 65_536)


def prints(config: argparse.Namespace, result: Result) -> None:
    print("to stdout")
    print("to stderr", file=sys.stderr)
    os.write(1, b"not text: \xff\xfe\n")


def closes_stdout(config: argparse.Namespace, result: Result) -> None:
    sys.stdout.close()
    sys.stderr.close()


def closes_descriptors_1_and_2(config: argparse.Namespace, result: Result) -> None:
    print("never written", end="")
    os.close(1)
    os.close(2)


def has_no_stdout(config: argparse.Namespace, result: Result) -> None:
    sys.stdout = sys.stderr = None  # type: ignore[assignment]


def closes_everything(config: argparse.Namespace, result: Result) -> None:
    os.closerange(0, 1024)


def forks(config: argparse.Namespace, result: Result) -> None:
    """Leaves a child behind that keeps both pipes open."""
    pid = os.fork()
    if pid == 0:
        time.sleep(FOREVER)
    note(config, pid)


def forks_and_comes_back_twice(config: argparse.Namespace, result: Result) -> None:
    """Parent and child both go on as if they were the attempt."""
    pid = os.fork()
    if pid:
        note(config, pid)
        os.waitpid(pid, 0)


def forks_away_and_dies(config: argparse.Namespace, result: Result) -> None:
    forks_away(config, result)
    os.kill(os.getpid(), signal.SIGKILL)


def forks_away_and_hangs(config: argparse.Namespace, result: Result) -> None:
    forks_away(config, result)
    time.sleep(FOREVER)


def writes_before_its_record(config: argparse.Namespace, result: Result) -> None:
    os.write(result_pipe(), config.text.encode())


def writes_and_exits(config: argparse.Namespace, result: Result) -> None:
    os.write(result_pipe(), config.text.encode())
    os._exit(0)


def writes_a_record_and_dies(config: argparse.Namespace, result: Result) -> None:
    os.write(result_pipe(), config.text.encode())
    os.kill(os.getpid(), signal.SIGKILL)


def writes_to_every_descriptor(config: argparse.Namespace, result: Result) -> None:
    for descriptor in open_descriptors():
        try:
            os.write(descriptor, b"\xff{garbage]\n" * 3)
        except OSError:
            continue


def writes_megabytes_of_record(config: argparse.Namespace, result: Result) -> None:
    result.values["text"] = "x" * (8 << 20)


def reports_a_megabyte(config: argparse.Namespace, result: Result) -> None:
    result.values["text"] = "x" * (1 << 20)


def kills_its_parent(config: argparse.Namespace, result: Result) -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(FOREVER)


def kills_its_parent_once(config: argparse.Namespace, result: Result) -> None:
    if not config.note.exists():
        note(config, os.getpid())
        kills_its_parent(config, result)


def runs_out_of_address_space(config: argparse.Namespace, result: Result) -> None:
    """Under a limit as a shell's ``ulimit -v`` sets it, which nobody's total has to reach."""
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (in_use + (64 << 20),) * 2)
    if config.text == "python":
        bytearray(1 << 30)
    if config.text == "torch":
        import torch

        torch.empty(1 << 30, dtype=torch.uint8)


def throws_bad_alloc(config: argparse.Namespace, result: Result) -> None:
    """In C++, past everything that would catch it."""
    ctypes.CDLL("libstdc++.so.6")._ZSt17__throw_bad_allocv()


def raises_of_the_device(config: argparse.Namespace, result: Result) -> NoReturn:
    import torch

    raise torch.AcceleratorError(config.text)


def fills_the_device(config: argparse.Namespace, result: Result) -> NoReturn:
    """cuBLAS finds no room for its handle; ``--text`` is what PyTorch says is free."""
    import torch

    torch.cuda.is_initialized = lambda: True  # type: ignore[assignment]
    torch.cuda.mem_get_info = lambda *_: (int(config.text), 16 << 30)  # type: ignore[assignment]
    raise RuntimeError("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`")


def recurses(config: argparse.Namespace, result: Result) -> None:
    recurses(config, result)


def reads_stdin(config: argparse.Namespace, result: Result) -> None:
    result.values["stdin"] = sys.stdin.read()
    result.values["raw"] = len(os.read(0, 10))


def deletes_its_folder(config: argparse.Namespace, result: Result) -> None:
    folder = Path(tempfile.mkdtemp())
    os.chdir(folder)
    folder.rmdir()


def changes_everything_it_can(config: argparse.Namespace, result: Result) -> None:
    os.chdir("/")
    os.umask(0)
    os.environ.clear()
    os.nice(1)
    sys.path.clear()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    result.values["changed"] = True


def leaves_a_thread(config: argparse.Namespace, result: Result) -> None:
    threading.Thread(target=time.sleep, args=(FOREVER,)).start()


def raises_in_a_thread(config: argparse.Namespace, result: Result) -> None:
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()


def is_alone(config: argparse.Namespace, result: Result) -> None:
    """Tells what it has inherited."""
    result.values["descriptors"] = sorted(target(n).partition(":")[0] for n in open_descriptors())
    result.values["own_session"] = os.getsid(0) == os.getpid()
    result.values["own_group"] = os.getpgid(0) == os.getpid()
    result.values["environment"] = dict(os.environ)


INJECTED = [aborts, exits, exits_hard_0, exits_hard_3, exits_well, floods, forks_away, kills_itself]
INJECTED += [runs_out_of_memory, segfaults, writes_half_a_record]
"""The doctor's own; like all others here, they are acts by their signature."""

ACTS: dict[str, Callable[[argparse.Namespace, Result], None]] = {
    act.__name__: act
    for act in list(globals().values())
    if callable(act) and getattr(act, "__annotations__", {}).keys() == {"config", "result", "return"}
}
