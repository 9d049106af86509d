"""The environment for a child, and finding a torch without importing it."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from harness.errors import StubUnavailableError
from harness.stub.build import _cache_folder
from harness.stub.compiler import find_compiler
from harness.stub.environment import child_environment
from harness.stub.torch_install import read_torch_install

PRELOAD = Path("/cache/libharness_stub.so")
DRIVER = Path("/cache/driver")


def environment(base: dict[str, str], *, zeroes_memory: bool = True) -> dict[str, str]:
    return child_environment(base, PRELOAD, DRIVER, zeroes_memory=zeroes_memory)


def test_the_stub_comes_in_front_of_what_was_there() -> None:
    result = environment(
        {"LD_PRELOAD": "/usr/lib/libjemalloc.so", "LD_LIBRARY_PATH": "/opt/lib:/lib", "HOME": "/home/me"}
    )
    assert result["LD_PRELOAD"] == "/cache/libharness_stub.so:/usr/lib/libjemalloc.so"
    assert result["LD_LIBRARY_PATH"] == "/cache/driver:/opt/lib:/lib"
    assert result["HOME"] == "/home/me"
    assert result["HARNESS_STUB"] == "1"


def test_the_stub_in_front_of_itself_changes_nothing() -> None:
    once = environment({"LD_PRELOAD": "", "PATH": "/bin"})
    assert environment(once) == once


def test_settings_that_hide_devices_are_left_out_and_the_base_is_not_touched() -> None:
    base = {"CUDA_VISIBLE_DEVICES": "-1", "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
    assert not environment(base).keys() & base.keys()
    assert base == {"CUDA_VISIBLE_DEVICES": "-1", "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}


def test_without_a_hook_to_clear_memory_it_is_not_cached() -> None:
    assert "PYTORCH_NO_CUDA_MEMORY_CACHING" not in environment({})
    assert environment({}, zeroes_memory=False)["PYTORCH_NO_CUDA_MEMORY_CACHING"] == "1"


def test_a_cache_folder_that_ld_preload_cannot_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StubUnavailableError, match="spaces and colons"):
        _cache_folder({"XDG_CACHE_HOME": str(tmp_path / "my cache")})


def test_a_relative_cache_folder_is_ignored_as_its_specification_says() -> None:
    assert _cache_folder({"XDG_CACHE_HOME": "cache"}) == Path.home() / ".cache" / "harness" / "stub"


def test_the_compiler_that_was_asked_for_is_taken() -> None:
    assert find_compiler({"CC": "ccache gcc -m64", "PATH": "/nowhere"}) == ("ccache", "gcc", "-m64")


def a_path_with(folder: Path, *names: str) -> str:
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return str(folder)


@pytest.mark.parametrize("names", [("cc",), ("cc", "clang", "gcc"), ("clang", "gcc"), ("clang",)], ids=" ".join)
def test_without_one_asked_for_the_machines_own_compiler_is_taken(tmp_path: Path, names: tuple[str, ...]) -> None:
    first = next(name for name in ("cc", "gcc", "clang") if name in names)
    assert find_compiler({"PATH": a_path_with(tmp_path, *names)}) == (str(tmp_path / first),)
    assert find_compiler({"CC": "  ", "PATH": str(tmp_path)}) == (str(tmp_path / first),)


def ziglang_is(monkeypatch: pytest.MonkeyPatch, *, importable: bool) -> None:
    spec = ModuleSpec("ziglang", None) if importable else None
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec if name == "ziglang" else None)


def test_on_a_machine_without_one_that_of_the_ziglang_package_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ziglang_is(monkeypatch, importable=True)
    assert find_compiler({"PATH": str(tmp_path)}) == (sys.executable, "-m", "ziglang", "cc")
    own = a_path_with(tmp_path, "gcc")
    assert find_compiler({"PATH": own}) == (str(tmp_path / "gcc"),), "the machine's own comes first"


def test_no_compiler_at_all_is_said_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ziglang_is(monkeypatch, importable=False)
    with pytest.raises(StubUnavailableError, match="no C compiler was found") as raised:
        find_compiler({"PATH": str(tmp_path)})
    assert "gcc" in raised.value.advice
    assert "pip install ziglang" in raised.value.advice


def a_torch(folder: Path, version_file: str) -> Path:
    torch = folder / "torch"
    (torch / "lib").mkdir(parents=True)
    (torch / "version.py").write_text(version_file)
    return torch


def test_a_cpu_only_torch_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    torch = a_torch(tmp_path, "__version__ = '2.14.1+cpu'\ncuda: Optional[str] = None\n")
    with pytest.raises(StubUnavailableError, match=r"torch 2\.14\.1\+cpu is a CPU-only build") as raised:
        read_torch_install(torch)
    assert "--device cpu" in raised.value.advice


def test_another_platform_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    with pytest.raises(StubUnavailableError, match="this is darwin on arm64"):
        read_torch_install(tmp_path)


def test_no_torch_at_all_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    with pytest.raises(StubUnavailableError, match="There is no PyTorch in"):
        read_torch_install(tmp_path / "torch")
