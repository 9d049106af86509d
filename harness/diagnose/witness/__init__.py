"""The part that runs inside the watched process: it sees every RNN and writes facts down. It changes nothing there."""

from __future__ import annotations

from pathlib import Path

from harness.diagnose.facts import Count
from harness.diagnose.witness.ending import watch_ending, watch_forks, watch_spawns
from harness.diagnose.witness.notes import Notes
from harness.diagnose.witness.watcher import Watcher


def attach(folder: str) -> Watcher:
    """Watch this process from now to its end, and leave the facts in ``folder``."""
    notes = Notes(Path(folder))
    watcher = Watcher(notes)
    watcher.open()
    watch_ending(watcher, notes)
    watch_forks(watcher)
    watch_spawns(notes)
    notes.add(Count.ATTACHED)
    return watcher
