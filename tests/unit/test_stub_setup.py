"""What a person's environment can have wrong about a compiler or a cache folder ends in a sentence about just that."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import StubUnavailableError
from harness.stub import build
from harness.stub.compiler import CompileError, Compiler, find_compiler


def test_an_unbalanced_cc_is_told_as_such() -> None:
    with pytest.raises(StubUnavailableError, match="CC is not a command"):
        find_compiler({"CC": 'gcc "x'})


def test_a_user_without_a_home_is_told_where_the_stub_could_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(StubUnavailableError, match="no home folder") as caught:
        build._cache_folder({})
    assert "XDG_CACHE_HOME" in caught.value.advice
    assert build._cache_folder({"XDG_CACHE_HOME": "/somewhere"}) == Path("/somewhere/harness/stub")


def test_a_compiler_that_cannot_be_run_is_not_blamed_on_the_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def missing(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("harness.stub.compiler.subprocess.run", missing)
    with pytest.raises(StubUnavailableError, match="cannot be run"):
        Compiler(("/nonexistent/cc",), tmp_path / "log").link([], tmp_path / "made.so", "made.so")


def test_a_compiler_that_makes_nothing_has_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Content:
        returncode, stdout, stderr = 0, "", ""

    monkeypatch.setattr("harness.stub.compiler.subprocess.run", lambda *_, **__: Content)
    with pytest.raises(CompileError):
        Compiler(("true",), tmp_path / "log").link([], tmp_path / "made.so", "made.so")
