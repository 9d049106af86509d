"""Runs one of the programs that the project started from, as an attempt.

The programs are plain PyTorch that a reader can run alone; what they offer to this room is ``parse_arguments`` and
``run`` with listeners, and a ``Result`` that is filled in as the run goes.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.model import Device, KernelPath, Order, Outcome, Phase, Sighting
from harness.trial.classify import outcome_of
from harness.trial.sight import Watch
from harness.wire import Breadcrumb

MEASURED = ("epochs", "step_losses", "plot", "checkpoint")
"""What a program computes; on the stub no kernel ran, and none of it means anything."""


@dataclass(slots=True)
class Progress:
    """How far a program got, what it reported, and what it raised."""

    phase: Phase | None = Phase.BUILD
    epoch: int | None = None
    step: int | None = None
    results: dict[str, Any] = field(default_factory=dict)
    sightings: tuple[Sighting, ...] = ()
    path: KernelPath | None = None
    error: BaseException | None = None


def run_program(order: Order, crumb: Breadcrumb) -> Progress:
    """Run the program that ``order`` names; whatever it raises is part of the progress."""
    progress = Progress()
    crumb.drop(Phase.BUILD)
    watch = Watch()
    watch.epoch = watch.step = 1

    def on_step(report: Any) -> None:
        progress.epoch, progress.step = report.epoch, report.step
        crumb.drop(Phase.STEP, report.epoch, report.step)
        ended = report.step == getattr(report, "steps", None)
        watch.epoch, watch.step = (report.epoch + 1, 1) if ended else (report.epoch, report.step + 1)
        watch.backward_tried()

    result = None
    try:
        program = _load(Path(order.program))
        result = program.Result()
        device = "cpu" if order.device is Device.CPU else "cuda"
        config = program.parse_arguments([*order.arguments, "--device", device])
        program.run(config, on_step=on_step, result=result)
        progress.phase = Phase.EVALUATE  # each epoch of theirs ends with an evaluation
    except BaseException as error:
        progress.error = error
        progress.phase = Phase.BACKWARD if outcome_of(error) is Outcome.BACKWARD_ERROR else None
    try:
        if result is not None:
            _read_result(result, progress)
    # What it cannot report is its own failure too, unless it had one before.
    except BaseException as error:
        progress.error = progress.error or error
    watch.backward_tried()
    watch.close()
    progress.sightings, progress.path = watch.sightings, watch.path
    if order.device is Device.STUB:
        progress.results |= {"device": str(Device.STUB)} if progress.results else {}  # what PyTorch told it was `cuda`
    if not order.device.computes:
        _leave_no_artefacts(result)
        progress.results = {name: value for name, value in progress.results.items() if name not in MEASURED}
    return progress


def _read_result(result: Any, progress: Progress) -> None:
    results = json.loads(result.to_json())
    if not isinstance(results, dict):
        raise TypeError(f"a result is an object with names, not a {type(results).__name__}")
    progress.results = results
    failed_at = progress.results.get("failed_at")
    if failed_at:
        progress.epoch, progress.step = failed_at["epoch"], failed_at["step"]


def _leave_no_artefacts(result: Any) -> None:
    """A plot of losses that nothing computed, or a checkpoint of such weights, must not lie about to be found."""
    for file in (getattr(result, "plot", None), getattr(result, "checkpoint", None)):
        if file is not None:
            Path(file).unlink(missing_ok=True)


def _load(file: Path) -> ModuleType:
    """The program as a module; its neighbours in the same folder can be imported by it."""
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file.name} is not a Python program")
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module
