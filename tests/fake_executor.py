"""An executor that starts nothing: it knows what every fault of the doctor has to come to, and can be made to err."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.doctor.known import PLAIN, QUICK, REAL, STALLED, Fault
from harness.doctor.pytorch import BUILD, CUDNN, GPU
from harness.launch.stop import StopRequest
from harness.matrix.axes import make_variant
from harness.model import Device, Order, Outcome, Record, Stall

FAULTS = (PLAIN, *QUICK, *STALLED, *REAL)
ZYGOTE = 4711
DEAD_PID = 2**22 + 1
"""Beyond what Linux gives to any process."""

TOLD: dict[str, dict[str, Any]] = {
    BUILD: {"torch": "2.14.1+cu130", "cuda": "13.0", "hip": None},
    CUDNN: {"cudnn": 92400},
    GPU: {"available": False, "said": []},
}
"""What PyTorch says to an attempt that asks it, by the act that asks."""

Spoil = Callable[[Fault, Record], Record | None]


@dataclass
class FakeExecutor:
    """Leaves right records, or what ``spoil`` makes of them; None is a record that never comes."""

    spoil: Spoil = lambda _, record: record
    told: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: TOLD)
    left_behind: int = DEAD_PID
    orders: list[Order] = field(default_factory=list)
    closed: bool = False

    def run(self, orders: Iterable[Order], slots: int, stop: StopRequest) -> Iterator[Record]:  # noqa: ARG002
        for order in orders:
            self.orders.append(order)
            act = order.arguments[0] if order.arguments else ""
            if act in self.told:
                yield replace(blank(order), results=self.told[act])
                continue
            fault = fault_of(order)
            if "--note" in order.arguments:
                Path(order.arguments[-1]).write_text(str(self.left_behind))
            record = self.spoil(fault, right(fault, order))
            if record is not None:
                yield record

    def close(self) -> None:
        self.closed = True


def blank(order: Order) -> Record:
    variant = order.variant
    return Record(order.run, variant.key, variant.label, order.device, Outcome.OK, order.replicate, wall_s=0.01)


def fault_of(order: Order) -> Fault:
    act = order.arguments[0] if order.arguments else ""
    for fault in FAULTS:
        same = fault.act == act if act else fault.axes is not None and make_variant(fault.axes) == order.variant
        if same and order.device in fault.devices:
            return fault
    raise AssertionError(f"an order that no fault explains: {order}")


def right(fault: Fault, order: Order) -> Record:
    said = dict(fault.said)
    stall = said.pop("stall", None)
    record = replace(blank(order), outcome=fault.outcome, **said)
    if fault is PLAIN:
        record = replace(record, results={"zygote": ZYGOTE})
    if stall is not None:
        record = replace(record, deadline_s=2.0, silent_s=1.9 if stall is Stall.HUNG else 0.1)
    return record


def on(name: str, device: Device | None = None, **changes: Any) -> Spoil:
    """A spoiler that changes the records of the fault ``name``."""

    def spoil(fault: Fault, record: Record) -> Record:
        hit = fault.name == name and device in (None, record.device)
        return replace(record, **changes) if hit else record

    return spoil
