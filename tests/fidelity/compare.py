"""The same variants on a GPU and on the stub: where do the two disagree?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.model import Device, Record

COMPARED = ("outcome", "error_type", "phase", "epoch", "step")
"""What the stub claims to get right; everything else about its records it does not claim at all."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A variant on which the devices disagree, and the names of the fields in which they do."""

    label: str
    fields: tuple[str, ...]
    on_gpu: str
    on_stub: str


@dataclass(frozen=True, slots=True)
class Fidelity:
    """How many variants both devices have a record of, the differences, and what only one of them has."""

    compared: int
    differences: tuple[Difference, ...]
    only_one: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether the stub agreed wherever it was compared, and was compared everywhere."""
        return self.compared > 0 and not self.differences and not self.only_one


def compare(gpu: Iterable[Record], stub: Iterable[Record]) -> Fidelity:
    """Match the records of the two devices by variant; the latest of each counts.

    Raises:
        ValueError: a record is not of the device that it is given for, which would make the comparison a sham.
    """
    real, pretended = _by_key(gpu, Device.CUDA), _by_key(stub, Device.STUB)
    both = [key for key in real if key in pretended]
    found = [difference for key in both if (difference := _difference(real[key], pretended[key]))]
    alone = [(real.get(key) or pretended[key]).label for key in real.keys() ^ pretended.keys()]
    return Fidelity(len(both), tuple(found), tuple(sorted(alone)))


def _by_key(records: Iterable[Record], device: Device) -> dict[str, Record]:
    found = {}
    for record in records:
        if record.device is not device or bool(record.facts.get("stub")) is not (device is Device.STUB):
            raise ValueError(f"a record of {record.label} is not from {device}")
        found[record.key] = record
    return found


def _difference(real: Record, pretended: Record) -> Difference | None:
    fields = tuple(name for name in COMPARED if getattr(real, name) != getattr(pretended, name))
    return Difference(real.label, fields, told(real), told(pretended)) if fields else None


def told(record: Record) -> str:
    """The compared facts of a record in one line."""
    return " ".join(f"{name}={getattr(record, name)}" for name in COMPARED if getattr(record, name) is not None)
