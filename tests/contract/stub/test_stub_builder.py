"""The builder with a real compiler and a cache of its own."""

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


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "harness" / "stub"


def built(cache: Path) -> list[Path]:
    return [path.parent for path in cache.glob("*/build.json")]


def test_a_first_build_is_the_only_one(cache: Path) -> None:
    first = stub.ensure()
    assert built(cache) == [first.folder]
    preload = first.preload.stat().st_mtime_ns
    assert stub.ensure() == first
    assert first.preload.stat().st_mtime_ns == preload


def test_builders_at_the_same_time_share_one_build(cache: Path) -> None:
    code = "from harness import stub; print(stub.ensure().built_at, stub.ensure().folder)"
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache.parents[1])}
    builders = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = {builder.communicate()[0] for builder in builders}
    assert [builder.returncode for builder in builders] == [0, 0, 0]
    assert len(said) == 1
    assert len(built(cache)) == 1
    assert not [path for path in cache.iterdir() if path.is_dir() and path not in built(cache)], "a half-made build"


def test_a_damaged_build_is_made_again(cache: Path) -> None:
    first = stub.ensure()
    first.preload.unlink()
    (first.folder / "build.json").write_text("{")
    assert stub.ensure().preload.exists()


def test_no_compiler_is_said_in_one_sentence(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(cache))
    monkeypatch.setattr("importlib.util.find_spec", _without_zig)
    with pytest.raises(StubUnavailableError, match="no C compiler was found") as raised:
        stub.ensure()
    assert "pip install ziglang" in raised.value.advice


_FIND_SPEC = __import__("importlib.util").util.find_spec


def _without_zig(name: str, package: str | None = None) -> Any:
    return None if name == "ziglang" else _FIND_SPEC(name, package)


def test_a_failing_compiler_leaves_its_words(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "sh -c 'echo out of ink >&2; exit 1'")
    with pytest.raises(StubUnavailableError, match=r"does not compile here.*\.log") as raised:
        stub.ensure()
    log = next(word for word in str(raised.value).split() if ".log" in word).rstrip(".")
    assert "out of ink" in Path(log).read_text()
    assert built(cache) == []


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "harness").write_text("a file where a folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(StubUnavailableError, match="cannot be kept in"):
        stub.ensure()


def test_every_function_that_torch_needs_is_decided_about(installed: Any) -> None:
    """None of them may reach NVIDIA's libraries by accident, which would look for a driver."""
    counts = installed.build.symbols
    assert set(counts) == {"body", "succeed", "refuse", "nvidia"}
    assert counts["body"] > 100
    assert counts["refuse"] == len(installed.build.refused)
    assert "cusolverDnCreate" in installed.build.refused
    assert "cudaLaunchKernel" not in installed.build.refused


def test_no_warnings_from_the_compiler(installed: Any) -> None:
    log = (installed.build.folder / "compile.log").read_text()
    assert "warning:" not in log


def test_memory_is_cleared_by_the_hook(torch_under_test: Any) -> None:
    assert torch_under_test.build.zeroes_memory
    assert "PYTORCH_NO_CUDA_MEMORY_CACHING" not in torch_under_test.environment()


def test_info_says_for_which_torch_and_what_is_not_done(installed: Any) -> None:
    info = stub.info()
    assert installed.build.torch_version in info.facts["torch"]
    assert info.facts["device"] == "harness stub (no GPU)"
    assert any("No timing" in sentence for sentence in info.does_not)


def test_importing_the_builder_imports_no_torch() -> None:
    code = "import harness.stub, sys, json; print(json.dumps([m for m in ('torch', 'numpy') if m in sys.modules]))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout) == []
