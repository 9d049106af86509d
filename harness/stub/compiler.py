"""Find a C compiler, and run it so that a failure leaves a log to read."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from harness.errors import StubUnavailableError

# -fexceptions: a refusal raises PyTorch's C++ exception through these frames (csrc/shared/refuse.c).
FLAGS = ("-std=gnu11", "-O1", "-fPIC", "-fexceptions", "-Wall", "-Wextra", "-pthread")


@dataclass(frozen=True)
class Compiler:
    """A command that compiles C, and where what it says is kept."""

    command: tuple[str, ...]
    log: Path

    def compile_all(self, sources: Sequence[Path], folder: Path, options: Sequence[str]) -> list[Path]:
        """Compile each source into ``folder``, as many at a time as there are cores."""
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            return list(pool.map(lambda source: self._compile(source, folder, options), sources))

    def _compile(self, source: Path, folder: Path, options: Sequence[str]) -> Path:
        target = folder / f"{source.stem}.o"
        self._run([*self.command, *FLAGS, *options, "-c", str(source), "-o", str(target)])
        return target

    def link(self, objects: Sequence[Path], library: Path, name: str) -> None:
        """Make a shared library that answers to ``name``."""
        arguments = ["-shared", "-pthread", f"-Wl,-soname,{name}", "-o", str(library)]
        self._run([*self.command, *arguments, *map(str, objects), "-ldl"])

    def _run(self, command: Sequence[str]) -> None:
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        except OSError as error:
            raise StubUnavailableError(
                f"The C compiler {command[0]} cannot be run: {error.strerror}.", "Set CC to one that can, or unset it."
            ) from error
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"$ {shlex.join(command)}\n{done.stdout}{done.stderr}")
        made = Path(command[command.index("-o") + 1])
        if done.returncode or not made.is_file():  # a CC that is no compiler may well be content
            raise CompileError(shlex.join(command))


class CompileError(Exception):
    """The compiler refused; what it said is in the log."""


def find_compiler(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command of a C compiler: ``$CC``, the machine's own, or the one in the ``ziglang`` package."""
    try:
        asked = shlex.split(environment.get("CC", ""))
    except ValueError as error:
        raise StubUnavailableError(f"CC is not a command: {error}.", "Set CC to a C compiler, or unset it.") from error
    if asked:
        return tuple(asked)
    for name in ("cc", "gcc", "clang"):
        if found := shutil.which(name, path=environment.get("PATH")):
            return (found,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    raise StubUnavailableError(
        "The stub device has to be compiled once, and no C compiler was found.",
        "Install gcc or clang, or `pip install ziglang`, which brings a compiler as a Python package.",
    )
