"""What a run was made with and from: versions, commit, machine. Kept in the plan, shown in the report."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import harness

PACKAGES = ("torch", "torchvision", "mlflow", "pandas", "numpy", "pydantic")


def environment() -> dict[str, Any]:
    """Facts about the coordinating process. Asks no package to import itself."""
    facts: dict[str, Any] = {
        "harness": harness.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
    }
    for package in PACKAGES:
        try:
            facts[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return facts | _git()


def processor() -> str:
    """The name of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def _git() -> dict[str, Any]:
    """The commit that is checked out in the current folder, and whether tracked files differ from it."""
    commit = _ask_git("rev-parse", "HEAD")
    if commit is None:
        return {}
    changes = _ask_git("status", "--porcelain", "--untracked-files=no")
    return {"git_commit": commit, "git_dirty": bool(changes) if changes is not None else None}


def _ask_git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], capture_output=True, text=True, timeout=10, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
