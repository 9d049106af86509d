"""One order -> one record."""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import torch

from harness.model import Device, Order, Outcome, Record
from harness.symptoms import POISONED, POISONED_REASON
from harness.trial import classify
from harness.trial.digest import digest
from harness.trial.exactness import examine
from harness.trial.facts import device_facts, is_stub
from harness.trial.loop import Loop
from harness.trial.programs import run_program
from harness.wire import Breadcrumb


def run_order(order: Order, crumb: Breadcrumb) -> Record:
    """Carry out ``order``. Whatever the variant raises becomes part of the record; nothing is raised."""
    _refuse_disguise(order.device)
    if order.settings.threads:
        torch.set_num_threads(order.settings.threads)
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    began = time.perf_counter()
    record = Record(order.run, order.variant.key, order.variant.label, order.device, Outcome.OK)
    record = replace(record, replicate=order.replicate, attempt=order.attempt, sitting=order.sitting, started=started)
    record = _run_program(order, crumb, record) if order.program else _run_variant(order, crumb, record)
    return replace(record, wall_s=time.perf_counter() - began, facts={**_facts(order.device), **record.facts})


def _refuse_disguise(device: Device) -> None:
    """No record may say ``cuda`` of the stub or ``stub`` of a GPU, whatever environment a worker was given."""
    if device is not Device.CPU and is_stub() is not (device is Device.STUB):
        raise RuntimeError(f"ordered to run on {device}, but this process sees another device")


def _run_variant(order: Order, crumb: Breadcrumb, record: Record) -> Record:
    loop = None
    try:
        loop = Loop(order, crumb)
        loop.run()
    # SystemExit too: an exit from inside a variant is a finding about that variant.
    except BaseException as error:
        record = with_error(record, error)
    if loop is None:
        return record
    record = replace(record, **_seen_by(loop))
    try:
        record = replace(record, **_measured_by(loop, failed=record.outcome is not Outcome.OK))
    # After a sticky CUDA error every question to the device raises it again; where it came late, it comes here.
    except Exception as error:
        return with_error(record, error) if record.outcome is Outcome.OK else _marked(record, error)
    return _priced(order, loop, record) if record.outcome is Outcome.OK and loop.computes else record


def _priced(order: Order, loop: Loop, record: Record) -> Record:
    """``record`` with what the placement costs. Outcome, digests and peak memory stand; nothing here changes them.

    The exactness comes first, while the number of steps so far is the same in every attempt: cuDNN's dropout goes on
    from where the last step has left it.
    """
    record = replace(record, exactness=examine(order))
    try:
        loop.time_steadily()
    except Exception as error:
        facts = {"timing_error": f"{type(error).__name__}: {classify.clip(classify.message_of(error))}"}
        record = replace(record, facts=facts)
    return replace(record, samples=tuple(loop.clock.samples))


def _run_program(order: Order, crumb: Breadcrumb, record: Record) -> Record:
    progress = run_program(order, crumb)
    if progress.error is not None:
        record = with_error(record, progress.error)
    device = torch.device("cpu" if order.device is Device.CPU else "cuda")
    return replace(
        record,
        phase=progress.phase,
        epoch=progress.epoch,
        step=progress.step,
        results=progress.results,
        sightings=progress.sightings,
        path=progress.path,
        **_memory(device, stub=not order.device.computes),
    )


def with_error(record: Record, error: BaseException) -> Record:
    """``record`` with what it keeps of ``error``."""
    free_bytes = _device_free_bytes() if classify.may_be_oom(error) else None
    told = {} if free_bytes is None else {"device_free_bytes": free_bytes}
    record = replace(
        record,
        outcome=classify.outcome_of(error, free_bytes),
        error_type=classify.type_name(error),
        error_message=classify.clip(classify.message_of(error)),
        fingerprint=classify.fingerprint(error),
        traceback_tail=classify.traceback_tail(error),
        facts={**record.facts, **told},
    )
    return _marked(record, error)


def _marked(record: Record, error: BaseException) -> Record:
    """``record``, which says so where ``error`` took the device from its process."""
    if not classify.is_sticky(error):
        return record
    return replace(record, reason=POISONED_REASON, facts={**record.facts, POISONED: True})


def _device_free_bytes() -> int | None:
    """What is free on the device, asked at once after an error that a lack of memory may explain."""
    try:
        return torch.cuda.mem_get_info()[0] if torch.cuda.is_initialized() else None
    except Exception:  # the device may be lost altogether
        return None


def _seen_by(loop: Loop) -> dict[str, Any]:
    seen: dict[str, Any] = {"phase": loop.phase, "epoch": loop.epoch or None, "step": loop.step or None}
    if loop.watch is not None:
        seen |= {"sightings": loop.watch.sightings, "path": loop.watch.path}
    return seen


def _measured_by(loop: Loop, *, failed: bool) -> dict[str, Any]:
    seen = _memory(loop.device, stub=not loop.computes)
    if not loop.computes:
        return seen  # no kernel ran: whatever the numbers are, they mean nothing
    if loop.batch is not None:
        seen |= {
            "sequences_per_step": loop.batch.targets.shape[0],
            "timesteps_per_step": loop.batch.timesteps,
            "samples": tuple(loop.clock.samples),
        }
    if loop.clock.samples:
        seen["first_step_s"] = loop.clock.samples[0].wall_s
    if loop.losses and loop.net is not None:
        losses = torch.stack([loss.double() for loss in loop.losses]).cpu()
        seen |= {
            "first_loss": losses[0].item(),
            "last_loss": losses[-1].item(),
            "losses_digest": digest([losses]),
        }
        if not failed:
            seen["weights_digest"] = digest([weight.detach() for weight in loop.net.parameters()])
    return seen


def _memory(device: torch.device, *, stub: bool) -> dict[str, Any]:
    if device.type == "cpu":
        # Linux counts this in kibibytes, macOS in bytes.
        scale = 1 if sys.platform == "darwin" else 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale
        return {"peak_memory_bytes": peak, "memory_source": "process RSS, interpreter and PyTorch included"}
    if not torch.cuda.is_initialized():
        return {}
    source = "stub allocator accounting, without cuDNN's workspaces" if stub else "CUDA allocator"
    return {"peak_memory_bytes": torch.cuda.max_memory_allocated(), "memory_source": source}


def _facts(device: Device) -> dict[str, Any]:
    try:
        return device_facts(device)
    except Exception as error:
        return {"facts_error": f"{type(error).__name__}: {classify.clip(classify.message_of(error))}"}
