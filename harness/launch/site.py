"""Which devices this machine offers, and an executor for each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from harness import stub
from harness.cores import usable_cores
from harness.errors import DeviceUnavailableError, StubUnavailableError
from harness.gpus import has_gpu
from harness.launch.local import LocalExecutor, Probe
from harness.model import Device

CHOICES = ("auto", *Device)


@dataclass(slots=True)
class Site:
    """The devices of a run, each with its executor and the facts its probe gave. Closes them all."""

    executors: dict[Device, LocalExecutor] = field(default_factory=dict)
    facts: dict[Device, Mapping[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def devices(self) -> tuple[Device, ...]:
        """In the order in which they are run: outcomes first."""
        return tuple(self.executors)

    def slots(self, device: Device) -> int:
        """How many attempts may run at once: what is timed runs alone, what is not takes every core that we may use."""
        return 1 if device.computes else usable_cores()

    def close(self) -> None:
        """End every zygote."""
        for executor in self.executors.values():
            executor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


def open_site(choice: str) -> Site:
    """The site for ``--device choice``.

    ``auto`` is the GPU where PyTorch sees one; elsewhere outcomes come from the stub and numbers from the CPU.

    Raises:
        DeviceUnavailableError: the device asked for is not to be had here.
        LaunchError: no worker process can be started.
    """
    match choice:
        case Device.CPU:
            return _with_cpu(Site())
        case Device.STUB:
            return _with_stub(Site())
        case Device.CUDA:
            return _with_cuda(Site())
        case _:
            return _auto()


def reopen_site(devices: Iterable[Device]) -> Site:
    """The site that has exactly ``devices``: for a run that was planned on them.

    Raises:
        DeviceUnavailableError: one of them is not to be had here.
        LaunchError: no worker process can be started.
    """
    makers = {Device.CPU: _with_cpu, Device.CUDA: _with_cuda, Device.STUB: _with_stub}
    site = Site()
    try:
        for device in devices:
            makers[device](site)
    except BaseException:
        site.close()
        raise
    return site


def _auto() -> Site:
    site = Site()
    try:
        if has_gpu():
            return _with_cuda(site)
    except DeviceUnavailableError as error:
        site.notes.append(f"A GPU seems to be present, but {error}; stub and CPU were used instead.")
    try:
        _with_stub(site)
    except StubUnavailableError as error:
        site.notes.append(f"No stub device: {error}. {error.advice}".strip())
    return _with_cpu(site)


def _with_cpu(site: Site) -> Site:
    site.executors[Device.CPU] = LocalExecutor(os.environ)
    return site


def _with_cuda(site: Site) -> Site:
    executor = LocalExecutor(os.environ)
    probe = _probe(executor)
    if not probe.cuda or probe.facts.get("stub"):
        executor.close()
        built = f"was built for CUDA {probe.cuda_build}" if probe.cuda_build else "was built without CUDA"
        sentence = (
            "what PyTorch sees here is the stub, not a GPU" if probe.cuda else f"PyTorch, which {built}, sees no GPU"
        )
        raise DeviceUnavailableError(
            sentence, "Use --device auto, stub or cpu; `nvidia-smi` says what the driver sees."
        )
    site.executors[Device.CUDA], site.facts[Device.CUDA] = executor, probe.facts
    return site


def _with_stub(site: Site) -> Site:
    executor = LocalExecutor(stub.ensure().environment(os.environ))
    probe = _probe(executor)
    if not (probe.cuda and probe.facts.get("stub")):
        executor.close()
        raise StubUnavailableError(
            "the stub was built, but PyTorch does not see it",
            "`harness stub info` says what was built, and for which torch.",
        )
    site.executors[Device.STUB], site.facts[Device.STUB] = executor, probe.facts
    return site


def _probe(executor: LocalExecutor) -> Probe:
    try:
        return executor.probe()
    except BaseException:
        executor.close()
        raise
