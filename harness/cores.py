"""How many cores there are for us."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """The cores that this process may use: no more than the machine has, fewer where its affinity says so."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
