"""The machine under a run: cores, memory, load, limits. Read from files that Linux offers; absent elsewhere."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

from harness.cores import usable_cores
from harness.doctor.facts import Fact, State, absent, size_words, warning

PROC, CGROUP = Path("/proc"), Path("/sys/fs/cgroup")

BASE_FILES, FILES_PER_ATTEMPT = 64, 6
"""Open files of a coordinator: for itself, MLflow and Python's imports, and for each attempt that runs at once."""

LITTLE_MEMORY = 2 << 30
"""A worker process and one attempt take about 0.7 GB with PyTorch's CUDA libraries loaded, each further one less."""
LITTLE_ADDRESS_SPACE = 8 << 30
"""With PyTorch's CUDA build, 3 GiB were seen to be too little for a worker and 8 GiB to be enough, without a GPU."""
FEW_PROCESSES = 256


def cpu_facts() -> Iterator[Fact]:
    """Cores of the machine, those that this process may use, and how much of them its cgroup is given."""
    cores = os.cpu_count() or 1
    usable = usable_cores()
    text = f"{cores}" if usable == cores else f"{usable} of {cores} (affinity)"
    quota = cpu_quota()
    if quota is not None and quota < usable:
        advice = (
            f"As many attempts as there are cores run at once, and share {quota:g} of them: deadlines come sooner in "
            "effect, and times of a step are the quota's, not the machine's."
        )
        yield warning("cores", f"{text}; the cgroup is given the time of {quota:g}", advice, quota)
    else:
        yield Fact("cores", text, value=usable)
    yield from _load_facts(usable)
    set_by = [f"{name}={os.environ[name]}" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS") if name in os.environ]
    if set_by:
        yield Fact("threads", f"{', '.join(set_by)}; a run sets PyTorch's own number per attempt")


def _load_facts(usable: int) -> Iterator[Fact]:
    try:
        load = os.getloadavg()[0]
    except OSError:
        return
    text = f"{load:.1f} over the last minute"
    if load > usable:
        yield warning("load", text, "Others use the cores: outcomes stay right, times of a step do not.", load)
    else:
        yield Fact("load", text, value=load)


def cpu_quota() -> float | None:
    """How many cores' worth of time the cgroup gives; None without a limit."""
    limit = _cgroup_words("cpu.max", "")
    if len(limit) == 2 and limit[0] != "max":
        return int(limit[0]) / int(limit[1])
    quota, period = _cgroup_words("cpu.cfs_quota_us", "cpu"), _cgroup_words("cpu.cfs_period_us", "cpu")
    if quota and period and int(quota[0]) > 0:
        return int(quota[0]) / int(period[0])
    return None


def memory_facts() -> Iterator[Fact]:
    """Memory of the machine, what is available of it, and what the cgroup allows."""
    meminfo = _meminfo()
    if "MemTotal" not in meminfo:
        yield absent("memory", "/proc/meminfo does not say")
        return
    total, available = meminfo["MemTotal"], meminfo.get("MemAvailable")
    limit, used = _cgroup_memory()
    words = size_words(total)
    if available is not None:
        words += f", {size_words(available)} available"
    if limit is not None and limit < total:
        words += f"; the cgroup may use {size_words(limit)}" + ("" if used is None else f" and uses {size_words(used)}")
        available = min(limit - (used or 0), total if available is None else available)
    if available is not None and available < LITTLE_MEMORY:
        advice = "Attempts may be killed by the kernel: end other programs, or give the container more memory."
        yield warning("memory", words, advice, available)
    else:
        yield Fact("memory", words, value=available)


def _meminfo() -> dict[str, int]:
    try:
        lines = (PROC / "meminfo").read_text().splitlines()
    except OSError:
        return {}
    rows = (line.replace(":", " ").split() for line in lines)
    return {row[0]: int(row[1]) * 1024 for row in rows if len(row) == 3 and row[2] == "kB"}


def _cgroup_memory() -> tuple[int | None, int | None]:
    for name, used, controller in (
        ("memory.max", "memory.current", ""),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory"),
    ):
        limit, now = _cgroup_words(name, controller), _cgroup_words(used, controller)
        if limit and limit[0].isdigit():
            return int(limit[0]), int(now[0]) if now else None
    return None, None


def _cgroup_words(name: str, controller: str) -> list[str]:
    """The words in a file of this process's cgroup: of version 2 for the controller ``""``, else of version 1."""
    try:
        memberships = [line.split(":", 2) for line in (PROC / "self" / "cgroup").read_text().splitlines()]
    except OSError:
        return []
    for _, controllers, path in (parts for parts in memberships if len(parts) == 3):
        if controller in controllers.split(","):
            # In a container the path is the host's, and the container's own group is the root of what is mounted.
            for folder in (CGROUP / controller / path.lstrip("/"), CGROUP / controller):
                try:
                    return (folder / name).read_text().split()
                except OSError:
                    continue
    return []


def limit_facts() -> Iterator[Fact]:
    """What ``ulimit`` allows."""
    needed = BASE_FILES + FILES_PER_ATTEMPT * usable_cores()
    yield _limit("open files", resource.RLIMIT_NOFILE, needed, str, f"Allow more with `ulimit -n {max(needed, 1024)}`.")
    if hasattr(resource, "RLIMIT_NPROC"):
        advice = "Allow more with `ulimit -u`: threads count too."
        yield _limit("processes", resource.RLIMIT_NPROC, FEW_PROCESSES, str, advice)
    advice = "Lift it with `ulimit -v unlimited`: PyTorch reserves far more addresses than it uses."
    yield _limit("address space", resource.RLIMIT_AS, LITTLE_ADDRESS_SPACE, size_words, advice)
    yield _core_files()


def _limit(name: str, number: int, needed: int, words: Callable[[int], str], advice: str) -> Fact:
    soft, _ = resource.getrlimit(number)
    if soft == resource.RLIM_INFINITY:
        return Fact(name, "unlimited")
    if soft < needed:
        return warning(name, f"{words(soft)} allowed, {words(needed)} may be needed", advice, soft)
    return Fact(name, f"{words(soft)} allowed", value=soft)


def _core_files() -> Fact:
    soft, _ = resource.getrlimit(resource.RLIMIT_CORE)
    try:
        pattern = (PROC / "sys" / "kernel" / "core_pattern").read_text().strip()
    except OSError:
        pattern = ""
    if not soft:
        return Fact("core files", "none are written", value=0)
    if pattern.startswith("|"):
        return Fact("core files", f"go to {pattern[1:].split()[0]}", value=soft)
    advice = "Each attempt that crashes may leave gigabytes behind; `ulimit -c 0` prevents it."
    return Fact("core files", "are written", State.WARNING, advice, soft)
