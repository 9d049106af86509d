"""Memory that two processes share without a disk, and the kernel's count of whom it has killed for want of memory."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from harness.errors import LaunchError

VMSTAT = Path("/proc/vmstat")
MEMBERSHIP, GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def shared_memory(name: str, size: int = 0) -> int:
    """A descriptor of a file in memory, ``size`` bytes of zeros long, to map or to write; a child may be given it.

    Anonymous where the system can do that. On a full disk, or a full ``/dev/shm``, a file would seem to have its size
    and then kill with SIGBUS whoever writes to it, and the attempt would be blamed for that.

    Raises:
        LaunchError: there is no memory for it, and no folder for temporary files either.
    """
    try:
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create(name)
        else:
            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
        os.pwrite(descriptor, bytes(size), 0)  # not ftruncate: that would promise what is not there
    except OSError as error:
        raise LaunchError(
            f"no memory can be shared with a worker process: {error.strerror or error}",
            "Is the memory, the disk of TMPDIR or the number of open files at its limit?",
        ) from error
    return descriptor


def oom_kills() -> int | None:
    """How many processes the kernel has killed for want of memory so far; None where it does not say.

    Counted in our control group where that can be read (version 2), else on the whole machine. The count rises before
    the victim gets its SIGKILL, so after its end a comparison cannot miss it.
    """
    for file in (*_own_groups(), VMSTAT):
        try:
            fields = dict(line.split(maxsplit=1) for line in file.read_text().splitlines())
            return int(fields["oom_kill"])
        except (OSError, KeyError, ValueError):
            continue
    return None


def _own_groups() -> tuple[Path, Path]:
    """Where ``memory.events`` of the control group may be that this process and its attempts are in.

    In a container its path may be the host's, and its own group is the root of what is mounted. Outside of one that
    root is the machine's, which has no such file.
    """
    try:
        lines = MEMBERSHIP.read_text().splitlines()
    except OSError:
        lines = []
    path = next((line[3:] for line in lines if line.startswith("0::")), "/")
    return Path(f"{GROUPS}{path}", "memory.events"), GROUPS / "memory.events"
