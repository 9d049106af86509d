"""What the machine is doing: load and clock of the CPU; clock, heat, power, throttling and strangers on the GPU.

Read between timed blocks. Whatever cannot be read is absent; nothing here fails.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import torch

from harness.measured import MachineState
from harness.model import Device

T = TypeVar("T")

MOST_CORES = 8
"""Of the cores that may be used, how many are asked for their clock: each is a file to read."""

SOME_OF_CPUINFO = 16_384
"""Characters, or about a dozen cores. The kernel makes the text while it is read: milliseconds on a large machine."""

_REASONS = {
    0x002: "application-clocks",
    0x004: "sw-power-cap",
    0x008: "hw-slowdown",
    0x010: "sync-boost",
    0x020: "sw-thermal",
    0x040: "hw-thermal",
    0x080: "hw-power-brake",
    0x100: "display-clocks",
}
"""NVML's bits for what holds the clocks down. 0x001, an idle GPU, is left out: between two blocks it is no news."""


def machine_reader(device: Device) -> Callable[[], MachineState]:
    """A function that reads the state of the machine under ``device``; NVML is opened when it is first called."""
    if device is not Device.CUDA:
        return lambda: MachineState(load=_load(), cpu_mhz=_cpu_mhz())
    gpu: list[Gpu | None] = []

    def read() -> MachineState:
        if not gpu:
            gpu.append(_open_gpu())
        return _with_gpu(gpu[0])

    return read


def _with_gpu(gpu: Gpu | None) -> MachineState:
    if gpu is None:
        return MachineState(load=_load(), cpu_mhz=_cpu_mhz())
    return MachineState(
        load=_load(),
        cpu_mhz=_cpu_mhz(),
        sm_mhz=gpu.sm_mhz(),
        temperature_c=gpu.temperature_c(),
        power_w=gpu.power_w(),
        throttled=gpu.throttled(),
        foreign_processes=gpu.foreign_processes(),
    )


class Gpu:
    """One GPU as NVML (the module ``pynvml``, or a fake of it) shows it. Each question may be answered by None."""

    def __init__(self, nvml: ModuleType, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle

    def sm_mhz(self) -> int | None:
        """The clock of the streaming multiprocessors, in MHz."""
        return _or_none(lambda: int(self._nvml.nvmlDeviceGetClockInfo(self._handle, self._nvml.NVML_CLOCK_SM)))

    def temperature_c(self) -> int | None:
        """In degrees Celsius."""
        sensor = self._nvml.NVML_TEMPERATURE_GPU
        return _or_none(lambda: int(self._nvml.nvmlDeviceGetTemperature(self._handle, sensor)))

    def power_w(self) -> float | None:
        """In watts."""
        return _or_none(lambda: self._nvml.nvmlDeviceGetPowerUsage(self._handle) / 1000)

    def throttled(self) -> tuple[str, ...] | None:
        """What holds the clocks down; empty is nothing."""
        # The function was renamed; drivers and bindings know either name, or both.
        for name in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
            ask = getattr(self._nvml, name, None)
            mask = None if ask is None else _or_none(partial(ask, self._handle))
            if mask is not None:
                return tuple(reason for bit, reason in _REASONS.items() if mask & bit)
        return None

    def foreign_processes(self) -> int | None:
        """How many others compute on this GPU. One of those that NVML lists is this one, under whatever id."""
        running = _or_none(lambda: len(self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)))
        return running - 1 if running else None


def driver_version() -> str | None:
    """The version of the NVIDIA driver under this process; None without ``nvidia-ml-py``, or where NVML is silent."""
    try:
        import pynvml
    except ImportError:
        return None
    return _or_none(lambda: _driver_of(pynvml))


def _driver_of(nvml: ModuleType) -> str:
    nvml.nvmlInit()
    told = nvml.nvmlSystemGetDriverVersion()
    # Older bindings answer in bytes.
    return told.decode() if isinstance(told, bytes) else str(told)


def _open_gpu() -> Gpu | None:
    """The GPU that PyTorch computes on; None without ``nvidia-ml-py``, or where NVML does not know it (a MIG slice)."""
    try:
        import pynvml
    except ImportError:
        return None
    return _or_none(lambda: _gpu_of(pynvml, str(torch.cuda.get_device_properties(torch.cuda.current_device()).uuid)))


def _gpu_of(nvml: ModuleType, uuid: str) -> Gpu:
    nvml.nvmlInit()
    # By its UUID: the numbers of CUDA and of NVML differ as soon as CUDA_VISIBLE_DEVICES is set.
    name = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
    return Gpu(nvml, nvml.nvmlDeviceGetHandleByUUID(name))


def _or_none(read: Callable[[], T]) -> T | None:
    """What ``read`` finds; None where the driver, the device or the binding has no answer."""
    with suppress(Exception):
        return read()
    return None


def _load() -> float | None:
    return _or_none(lambda: os.getloadavg()[0])


def _cpu_mhz() -> float | None:
    """The mean clock of the cores that this process may use; None where the system keeps it to itself."""
    cores = _or_none(lambda: sorted(os.sched_getaffinity(0))[:MOST_CORES]) or []
    clocks = [_or_none(partial(_mhz_of_core, core)) for core in cores]
    known = [clock for clock in clocks if clock]
    return sum(known) / len(known) if known else _or_none(_mhz_of_cpuinfo)


def _mhz_of_core(core: int) -> float:
    return int(Path(f"/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq").read_text()) / 1000


def _mhz_of_cpuinfo() -> float | None:
    with Path("/proc/cpuinfo").open() as file:
        lines = file.read(SOME_OF_CPUINFO).splitlines()[:-1]
    clocks = [float(line.partition(":")[2]) for line in lines if line.startswith("cpu MHz")]
    return round(sum(clocks) / len(clocks), 1) if clocks else None
