"""The guard in processes of its own: on the stub, under torch.compile, as a pytest plugin; what importing it costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness import stub
from harness.errors import StubUnavailableError

REPOSITORY = Path(__file__).parents[2]


def python(*arguments: str, cwd: Path = REPOSITORY, device: str = "cpu") -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ)
    if device == "stub":
        try:
            environment = stub.ensure().environment(os.environ)
        except StubUnavailableError as error:
            pytest.skip(str(error))
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment | {"PYTHONPATH": str(REPOSITORY)},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_importing_the_package_or_the_plugin_imports_no_torch() -> None:
    code = "import sys, harness, harness.pytest_plugin; dir(harness); assert 'torch' not in sys.modules"
    assert python("-c", code + "; harness.guard; assert 'torch' in sys.modules").stderr == ""


def test_using_the_guard_imports_no_compiler() -> None:
    code = "import sys, harness\nwith harness.guard(): pass\nassert 'torch._dynamo' not in sys.modules"
    assert python("-c", code).stderr == ""


def test_on_the_cudnn_path_the_guard_speaks_before_cudnn_does(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(
        "import torch, harness\n"
        "net = torch.nn.Sequential(torch.nn.LSTM(4, 5)).cuda()\n"
        "with harness.guard():\n"
        "    net.eval()\n"
        "    net(torch.ones(3, 2, 4).cuda())[0].sum().backward()\n"
    )
    done = python(str(program), device="stub")
    assert done.returncode == 1
    assert f"  forward in eval mode: {program}:5 in <module>" in done.stderr
    assert f"{program}:4 in <module> (eval() on Sequential, which contains it as '0')" in done.stderr


CUDNN_SAYS = "cudnn RNN backward can only be called in training mode"


@pytest.mark.parametrize("device", ["cpu", "stub"])
def test_compiled_networks(device: str) -> None:
    done = python("-m", "tests.contract.guard_fuzz.compiled", device=device)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    for backend in ("eager", "aot_eager"):
        assert found[f"whole {backend} bare"] == (CUDNN_SAYS if device == "stub" else "ok")
        assert found[f"whole {backend} guarded"] == "guard: rnn of Net"
    # With the layer taken apart cuDNN is never called, and the guard does not change that.
    assert found["apart aot_eager bare"] == found["apart aot_eager guarded"] == "ok"


TESTS = """
import pytest, sys, torch

def step(x=torch.ones(3, 2, 4)):
    torch.nn.LSTM(4, 5).eval()(x)[0].sum().backward()

@pytest.fixture
def stepped():
    step()

def test_in_test():
    step()

def test_in_fixture(stepped):
    pass

def test_forward_only():
    torch.nn.LSTM(4, 5).eval()(torch.ones(3, 2, 4))

@pytest.mark.no_rnn_mode_guard
def test_marked():
    step()

def test_one(rnn_mode_guard):
    assert rnn_mode_guard.when in ("backward", "forward")
    with pytest.raises(RuntimeError):
        step()
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers -p no:cacheprovider\n")
    return tmp_path


def outcomes(suite: Path, *options: str) -> dict[str, str]:
    done = python("-m", "pytest", "-p", "harness.pytest_plugin", "-rA", "-q", *options, cwd=suite)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith(("PASSED", "FAILED", "ERROR "))]
    found = {line[1].partition("::")[2]: line[0] for line in lines}
    assert len(found) == 5, done.stdout + done.stderr
    return found


def test_the_plugin_does_nothing_unless_asked(suite: Path) -> None:
    assert set(outcomes(suite).values()) == {"PASSED"}


def test_the_plugin_guards_tests_and_fixtures(suite: Path) -> None:
    found = outcomes(suite, "--rnn-mode-guard")
    assert found["test_in_test"] == "FAILED"
    assert found["test_in_fixture"] == "ERROR"
    assert found["test_forward_only"] == found["test_marked"] == found["test_one"] == "PASSED"


def test_the_plugin_can_be_strict(suite: Path) -> None:
    found = outcomes(suite, "--rnn-mode-guard", "--rnn-mode-guard-when=forward")
    assert found["test_forward_only"] == "FAILED"
    assert found["test_marked"] == found["test_one"] == "PASSED"


@pytest.mark.parametrize("when", ["backward", "forward"])
def test_the_traceback_ends_in_the_persons_own_line(suite: Path, when: str) -> None:
    options = ("--tb=short", "--rnn-mode-guard", f"--rnn-mode-guard-when={when}", "test_it.py::test_in_test")
    told = python("-m", "pytest", "-p", "harness.pytest_plugin", "-q", *options, cwd=suite).stdout
    places = [line for line in told.splitlines() if ".py:" in line and ": in " in line]
    assert places[-1] == "test_it.py:5: in step", told
    assert "E   harness.EvalModeBackwardError: " in told
    assert not any("guarding.py" in place or "calls.py" in place for place in places)
    everything = python("-m", "pytest", "-p", "harness.pytest_plugin", "-q", "--full-trace", *options, cwd=suite).stdout
    assert "guarding.py" in everything


def test_the_plugin_costs_nothing_unused(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import sys\ndef test_it():\n    assert 'torch' not in sys.modules\n")
    assert python("-m", "pytest", "-q", "-p", "harness.pytest_plugin", cwd=tmp_path).returncode == 0
