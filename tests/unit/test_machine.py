"""The state of the machine: what NVML and the CPU say, and that nothing they do can hurt an attempt."""

import os
import sys
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from harness.measured import MachineState
from harness.model import Device
from harness.trial import machine
from harness.trial.facts import device_facts
from harness.trial.machine import Gpu, machine_reader

UUID = "3f5a1c8e-0000-1111-2222-333344445555"


class NvmlError(Exception):
    pass


class FakeNvml(ModuleType):
    """The functions of ``pynvml`` that are used, over one GPU; those named in ``broken`` raise."""

    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, *, mask: int = 0, pids: tuple[int, ...] = (), broken: tuple[str, ...] = ()) -> None:
        super().__init__("pynvml")
        self.asked: list[str] = []
        self.answers: dict[tuple[Any, ...], Any] = {
            ("nvmlInit",): None,
            ("nvmlDeviceGetHandleByUUID", f"GPU-{UUID}"): "handle",
            ("nvmlDeviceGetClockInfo", "handle", 1): 1980,
            ("nvmlDeviceGetTemperature", "handle", 0): 61,
            ("nvmlDeviceGetPowerUsage", "handle"): 345_600,
            ("nvmlDeviceGetCurrentClocksEventReasons", "handle"): mask,
            ("nvmlDeviceGetCurrentClocksThrottleReasons", "handle"): mask,
            ("nvmlDeviceGetComputeRunningProcesses", "handle"): [SimpleNamespace(pid=pid) for pid in pids],
        }
        for question in self.answers:
            setattr(self, question[0], partial(self._answer, question[0], broken=question[0] in broken))

    def _answer(self, *question: Any, broken: bool) -> Any:
        self.asked.append(question[0])
        if broken:
            raise NvmlError(question[0])
        return self.answers[question]


ASKED = [question[0] for question in FakeNvml().answers]


def read(monkeypatch: pytest.MonkeyPatch, nvml: FakeNvml | None) -> MachineState:
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(uuid=UUID))
    return machine_reader(Device.CUDA)()


def test_a_gpu_says_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    state = read(monkeypatch, FakeNvml(mask=0x1 | 0x4 | 0x40, pids=(1, 2, 3)))
    assert (state.sm_mhz, state.temperature_c, state.power_w) == (1980, 61, 345.6)
    assert state.throttled == ("sw-power-cap", "hw-thermal")
    assert state.foreign_processes == 2
    assert state.load == pytest.approx(os.getloadavg()[0], abs=5)


def test_an_idle_gpu_of_ones_own_has_no_reason_and_no_stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    state = read(monkeypatch, FakeNvml(mask=0x1, pids=(os.getpid(),)))
    assert state.throttled == ()
    assert state.foreign_processes == 0


def test_a_container_that_shows_no_process_says_nothing_about_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch, FakeNvml()).foreign_processes is None


def test_an_older_driver_knows_the_older_name() -> None:
    new, old = "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"
    assert Gpu(FakeNvml(mask=0x8, broken=(new,)), "handle").throttled() == ("hw-slowdown",)
    assert Gpu(FakeNvml(mask=0x8, broken=(new, old)), "handle").throttled() is None


@pytest.mark.parametrize("broken", ASKED)
def test_a_question_without_an_answer_leaves_the_others(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    whole = read(monkeypatch, FakeNvml(mask=0x8, pids=(1, 2)))
    state = read(monkeypatch, FakeNvml(mask=0x8, pids=(1, 2), broken=(broken,)))
    gpu = ["sm_mhz", "temperature_c", "power_w", "throttled", "foreign_processes"]
    absent = [name for name in gpu if getattr(state, name) is None]
    if broken in ("nvmlInit", "nvmlDeviceGetHandleByUUID"):
        assert absent == gpu
    else:
        assert len(absent) == (0 if "Reasons" in broken else 1)
        assert all(getattr(state, name) == getattr(whole, name) for name in gpu if name not in absent)


def test_without_the_binding_or_a_device_there_is_only_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    state = read(monkeypatch, None)
    assert state.sm_mhz is state.throttled is None

    def fail(_: int) -> None:
        raise RuntimeError("CUDA error: an illegal address")

    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    monkeypatch.setattr(torch.cuda, "get_device_properties", fail)
    assert machine_reader(Device.CUDA)().sm_mhz is None


@pytest.mark.parametrize("answer", ["570.86.15", b"570.86.15"])
def test_the_driver_is_a_fact_of_an_attempt_on_a_gpu(monkeypatch: pytest.MonkeyPatch, answer: object) -> None:
    nvml = FakeNvml()
    nvml.nvmlSystemGetDriverVersion = lambda: answer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H200")
    assert device_facts(Device.CUDA)["driver"] == "570.86.15"
    assert "driver" not in device_facts(Device.STUB), "there is none behind it"
    assert "driver" not in device_facts(Device.CPU)


def test_a_driver_that_nobody_tells_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H200")
    for nvml in (None, FakeNvml(broken=("nvmlInit",)), FakeNvml()):
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        assert "driver" not in device_facts(Device.CUDA)


def test_nvml_is_opened_once(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml()
    read(monkeypatch, nvml)
    reader = machine_reader(Device.CUDA)
    assert nvml.asked.count("nvmlInit") == 1
    reader()
    reader()
    assert nvml.asked.count("nvmlInit") == 2


def test_a_cpu_has_no_gpu_facts_and_asks_no_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    state = machine_reader(Device.CPU)()
    assert state == MachineState(load=state.load, cpu_mhz=state.cpu_mhz)


def test_a_host_that_tells_nothing_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr(os, "getloadavg", fail)
    monkeypatch.setattr(machine.Path, "read_text", fail)
    monkeypatch.setattr(machine.Path, "open", fail)
    assert machine_reader(Device.CPU)() == MachineState()


def test_the_clock_is_read_from_cpuinfo_where_there_is_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: machine.Path
) -> None:
    def fail(_: int) -> float:
        raise OSError

    file = tmp_path / "cpuinfo"
    file.write_text("processor\t: 0\ncpu MHz\t\t: 2000.5\nprocessor\t: 1\ncpu MHz\t\t: 3000.5\n" + "x" * 40_000)
    monkeypatch.setattr(machine, "_mhz_of_core", fail)
    monkeypatch.setattr(machine, "Path", lambda _: file)
    assert machine_reader(Device.CPU)().cpu_mhz == 2500.5
    file.write_text("processor\t: 0\nBogoMIPS\t: 50.00\n")
    assert machine_reader(Device.CPU)().cpu_mhz is None
