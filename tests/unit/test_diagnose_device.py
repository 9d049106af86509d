"""Where a script is run: the stub is never told as a GPU, nor as a plain CPU."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import SimpleNamespace

import pytest

from harness.diagnose import device
from harness.diagnose.device import choose
from harness.errors import DeviceUnavailableError, StubUnavailableError
from harness.model import Device
from harness.stub.environment import MARKER

BEHIND = {MARKER: "1", "LD_PRELOAD": "/cache/libharness_stub.so"}


class Build:
    """A stub that was built."""

    @staticmethod
    def environment(base: Mapping[str, str]) -> dict[str, str]:
        """The environment with it in front."""
        return {**base, "MADE": "stub"}


@pytest.fixture
def stub_and_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that looks as if it had a GPU, and has the stub."""
    monkeypatch.setattr(device, "has_gpu", lambda: True)
    monkeypatch.setattr(device.stub, "ensure", lambda: Build)


@pytest.mark.usefixtures("stub_and_nodes")
@pytest.mark.parametrize(("choice", "words"), [("cuda", "is the stub, not a GPU"), ("cpu", "no plain run on the CPU")])
def test_behind_the_stub_there_is_no_other_device(choice: str, words: str) -> None:
    with pytest.raises(DeviceUnavailableError, match=words) as info:
        choose(choice, BEHIND)
    assert "without `harness stub run`" in info.value.advice


@pytest.mark.usefixtures("stub_and_nodes")
@pytest.mark.parametrize("choice", ["auto", "stub"])
def test_behind_the_stub_the_device_is_the_stub(choice: str) -> None:
    place = choose(choice, BEHIND)
    assert (place.device, place.environment["MADE"]) == (Device.STUB, "stub")


def test_behind_a_stub_that_is_gone_auto_takes_no_cpu_either(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        raise StubUnavailableError("no compiler", "Install one.")

    monkeypatch.setattr(device.stub, "ensure", gone)
    monkeypatch.setattr(device, "has_gpu", lambda: False)
    with pytest.raises(DeviceUnavailableError, match="no plain run on the CPU"):
        choose("auto", BEHIND)
    plain = choose("auto", {"HOME": "/home/me"})
    assert (plain.device, plain.environment["CUDA_VISIBLE_DEVICES"], len(plain.notes)) == (Device.CPU, "", 1)


@pytest.mark.parametrize(
    ("available", "name", "marked", "code"),
    [
        (True, "NVIDIA H200", False, 0),
        (True, "NVIDIA H200", True, 9),
        (True, "Harness Stub Device", False, 9),
        (False, "", False, 9),
    ],
)
def test_only_a_gpu_is_taken_for_one(
    monkeypatch: pytest.MonkeyPatch, available: bool, name: str, marked: bool, code: int
) -> None:
    cuda = SimpleNamespace(is_available=lambda: available, get_device_name=lambda: name if available else 1 / 0)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    monkeypatch.delenv(MARKER, raising=False)
    if marked:
        monkeypatch.setenv(MARKER, "1")
    with pytest.raises(SystemExit) as info:
        exec(device._SEES_GPU, {})
    assert info.value.code == code
