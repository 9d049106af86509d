"""Whether there is a GPU, by the devices that the kernel has; whoever chooses a device has to see the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import gpus
from harness.diagnose import device
from harness.doctor import driver, examination
from harness.gpus import has_amd, has_gpu, has_nvidia
from harness.launch import site


@pytest.mark.parametrize(
    ("there", "nvidia", "amd"),
    [([], False, False), (["nvidiactl"], True, False), (["dxg"], True, False), (["kfd"], False, True)],
)
def test_each_device_of_the_kernel_is_somebodys(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, there: list[str], nvidia: bool, amd: bool
) -> None:
    for name in ("NVIDIA", "AMD"):
        monkeypatch.setattr(gpus, name, tuple(tmp_path / file.name for file in getattr(gpus, name)))
    for name in there:
        (tmp_path / name).touch()
    assert (has_nvidia(), has_amd(), has_gpu()) == (nvidia, amd, nvidia or amd)


def test_a_run_the_doctor_and_diagnose_ask_the_same() -> None:
    assert site.has_gpu is examination.has_gpu is device.has_gpu is has_gpu
    assert (driver.has_nvidia, driver.has_amd) == (has_nvidia, has_amd)


@pytest.mark.parametrize("there", [True, False])
def test_auto_tries_a_gpu_only_where_the_kernel_has_one(monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    asked: list[str] = []
    monkeypatch.setattr(site, "has_gpu", lambda: there)
    for name in ("_with_cuda", "_with_stub", "_with_cpu"):
        monkeypatch.setattr(site, name, lambda given, name=name: asked.append(name) or given)
    site.open_site("auto")
    assert asked == (["_with_cuda"] if there else ["_with_stub", "_with_cpu"])
