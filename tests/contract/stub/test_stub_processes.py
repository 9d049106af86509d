"""Whole processes under the stub: exit codes, signals, several devices, several processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from harness import stub
from harness.errors import UsageError

PROGRAMS = str(Path(__file__).with_name("programs.py"))


def test_a_program_keeps_its_exit_code_while_autograd_is_at_work(torch_under_test: Any) -> None:
    ended = torch_under_test.run(PROGRAMS, "exit_while_autograd_is_at_work")
    assert ended.returncode == 7, ended.stderr


def test_run_returns_the_exit_code_of_a_python_program(installed: Any) -> None:
    assert stub.run([sys.executable, PROGRAMS, "exit_while_autograd_is_at_work"]) == 7


def test_run_takes_any_command() -> None:
    assert stub.run(["sh", "-c", 'test "$HARNESS_STUB" = 1 && exit 3']) == 3


def test_run_reports_a_signal_as_a_shell_does() -> None:
    assert stub.run(["sh", "-c", "kill -KILL $$"]) == 128 + signal.SIGKILL


def test_run_passes_a_termination_on(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    command = ["sh", "-c", f"trap 'exit 5' TERM; touch {ready}; while :; do sleep 0.05; done"]
    code = f"import sys; from harness import stub; sys.exit(stub.run({command!r}))"
    with subprocess.Popen([sys.executable, "-c", code]) as runner:
        while not ready.exists():
            assert runner.poll() is None
            time.sleep(0.02)
        runner.terminate()
        assert runner.wait(timeout=120) == 5


def test_run_refuses_what_is_not_there() -> None:
    with pytest.raises(UsageError, match="no-such-command cannot be run"):
        stub.run(["no-such-command"])
    with pytest.raises(UsageError, match="no command"):
        stub.run([])


def test_run_says_that_a_script_is_meant_for_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for script in ("train.py", "./two words.py"):
        Path(script).write_text("")
        with pytest.raises(UsageError, match="cannot be run") as info:
            stub.run([script, "--epochs", "3"])
        assert info.value.advice.startswith("Put `python` in front: harness stub run -- python ")
        assert info.value.advice.endswith(" --epochs 3")
    with pytest.raises(UsageError, match="cannot be run") as info:
        stub.run(["absent.py"])
    assert "python" not in info.value.advice


def test_the_caller_is_left_alone(installed: Any) -> None:
    before = dict(os.environ)
    environment = installed.environment()
    assert dict(os.environ) == before
    assert environment["HARNESS_STUB"] == "1"
    assert str(installed.build.preload) in environment["LD_PRELOAD"]


def test_devices_and_memory_can_be_set(installed: Any) -> None:
    code = "import torch; print(torch.cuda.device_count(), torch.cuda.mem_get_info(1)[1] // 1024**3)"
    environment = installed.environment() | {"HARNESS_STUB_DEVICES": "3", "HARNESS_STUB_MEMORY_GIB": "5"}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["3", "5"]


def test_devices_hidden_in_the_shell_do_not_hide_the_stub(installed: Any) -> None:
    environment = installed.build.environment(os.environ | {"CUDA_VISIBLE_DEVICES": ""})
    command = [sys.executable, PROGRAMS, "what_cuda_is_there"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout == "True 1\n"


def test_data_parallel_on_two_devices(torch_under_test: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_STUB_DEVICES", "2")
    ended = torch_under_test.run(PROGRAMS, "data_parallel_on_two_devices")
    train, evaluate = ended.stdout.splitlines()
    assert train == "True (6, 5, 8)"
    assert "cudnn RNN backward can only be called in training mode" in evaluate


def test_distributed_data_parallel_on_gloo(torch_under_test: Any) -> None:
    ended = torch_under_test.run(PROGRAMS, "distributed_data_parallel_on_gloo")
    error = "cudnn RNN backward can only be called in training mode"
    expected = [f"rank {rank}, {mode}" for mode in ("eval", "train") for rank in (0, 1)]
    said = dict(line.split(": ", 1) for line in ended.stdout.splitlines() if line.startswith("rank"))
    assert sorted(said) == sorted(expected), ended.stderr
    assert all(said[who].startswith(error if "eval" in who else "ok") for who in expected)


def test_a_zygote_may_have_many_children_at_once(torch_under_test: Any) -> None:
    ended = torch_under_test.run(PROGRAMS, "children_at_once")
    assert ended.stdout == "[0, 10, 0, 10, 0, 10, 0, 10]\n", ended.stderr


def test_a_stub_for_another_torch_says_so(installed: Any, other: Any) -> None:
    ended = subprocess.run(
        [installed.python, PROGRAMS, "what_cuda_is_there"],
        env=other.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout.startswith("False "), ended.stderr
    assert "the harness stub does not do this PyTorch: it was built for another one" in ended.stdout
