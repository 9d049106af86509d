"""Where facts are left: a file that is opened for each line, and counters in shared memory.

Both survive ``os._exit`` and signals, and neither minds a script that closes descriptors that it did not open.
"""

from __future__ import annotations

import json
import mmap
import threading
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.diagnose.facts import COUNTS, MOST_FACTS, NOTES, Count, Fact


class Notes:
    """The notes of one process, in a folder that whoever started it made."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / NOTES
        with (folder / COUNTS).open("r+b") as counts:
            self._counts = memoryview(mmap.mmap(counts.fileno(), 0)).cast("Q")
        self._lock = threading.Lock()
        self._dropped: set[int] = set()

    def forked(self) -> None:
        """This process was forked: another thread may have held the lock, and is not here to let it go."""
        self._lock = threading.Lock()

    def add(self, count: int, by: int = 1) -> None:
        """Count something."""
        with self._lock:
            self._counts[count] += by

    def happened(self, number: int) -> None:
        """The fact of this number happened once more."""
        if number < MOST_FACTS:
            self.add(Count.TIMES + number)

    def write(self, fact: Fact) -> None:
        """Leave a fact; one of the same number takes the place of an earlier one."""
        if fact.number < MOST_FACTS:
            self._line({"fact": asdict(fact)})
        elif fact.number not in self._dropped:
            self._dropped.add(fact.number)
            self.add(Count.DROPPED)

    def withdraw(self, number: int) -> None:
        """A fact turned out not to be one."""
        if number < MOST_FACTS:
            self._line({"withdrawn": number})
        elif number in self._dropped:
            self._dropped.discard(number)
            self.add(Count.DROPPED, by=-1)

    def ended_by(self, kind: str, message: str) -> None:
        """Leave the exception that ends the program."""
        self._line({"exception": kind, "message": message[:2000]})

    def failed(self, fault: Exception) -> None:
        """The watching failed, for a fault in harness itself."""
        self._line({"failed": "".join(traceback.format_exception(fault))[-4000:]})

    def _line(self, content: dict[str, Any]) -> None:
        line = json.dumps(content).encode() + b"\n"
        with self._lock, self._file.open("ab", buffering=0) as stream:
            stream.write(line)
