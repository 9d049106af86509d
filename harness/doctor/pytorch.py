"""PyTorch as a worker sees it: how it was built, and whether it sees a GPU. This process never imports it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.doctor.facts import Fact, absent, warning
from harness.doctor.injection import program_order
from harness.launch.local import Executor
from harness.launch.stop import StopRequest
from harness.model import Device, Outcome, Record
from harness.quoting import one_line

LIMIT_S = 30.0
BUILD, CUDNN, GPU = "tells_about_pytorch", "tells_about_cudnn", "tells_about_the_gpu"


def ask_pytorch(executor: Executor) -> dict[str, Record]:
    """The records of attempts that say what they see: of the build, which hangs on nothing; of cuDNN; of a GPU.

    Raises:
        LaunchError: the worker process cannot be started.
    """
    orders = [program_order(act, Device.CPU, LIMIT_S, number) for number, act in enumerate((BUILD, CUDNN, GPU))]
    found = {record.replicate: record for record in executor.run(orders, len(orders), StopRequest())}
    return {order.arguments[0]: found[order.replicate] for order in orders}


def build_facts(records: Mapping[str, Record]) -> Iterator[Fact]:
    """PyTorch's version, what it was built for, and cuDNN or MIOpen."""
    build, cudnn = records[BUILD], records[CUDNN]
    if build.outcome is not Outcome.OK:
        yield warning("PyTorch", failure(build), "Does `python -c 'import torch'` work here?")
        return
    said = build.results
    built_for = f"CUDA {said['cuda']}" if said["cuda"] else f"ROCm {said['hip']}" if said["hip"] else "the CPU only"
    yield Fact("PyTorch", f"{said['torch']}, built for {built_for}", value=said["torch"])
    library = "MIOpen" if said["hip"] else "cuDNN"
    number = cudnn.results.get("cudnn")
    if cudnn.outcome is not Outcome.OK:
        yield warning(library, failure(cudnn), "`nvidia-smi` says whether the driver answers at all.")
    elif number:
        yield Fact(library, _version_words(number, library), value=number)
    else:
        yield absent(library, "PyTorch was built without it, or does not find it")
    if library == "cuDNN":
        yield absent("MIOpen", "belongs to builds for ROCm")


def _version_words(number: int, library: str) -> str:
    """cuDNN 9 and later count 90100, earlier ones 8902; MIOpen's number is left as it is."""
    if library != "cuDNN":
        return str(number)
    step = 10_000 if number >= 90_000 else 1000
    return f"{number // step}.{number % step // 100}.{number % 100}"


def sees_gpu(record: Record) -> bool:
    """Whether PyTorch sees a GPU that is one."""
    said = record.results
    return record.outcome is Outcome.OK and bool(said.get("available")) and not said.get("stub")


def gpu_facts(record: Record, listed: Sequence[Fact]) -> Iterator[Fact]:
    """What PyTorch sees of a GPU; ``listed`` are those that the driver names, which it ought to see."""
    name = "PyTorch's GPU"
    if record.outcome is not Outcome.OK:
        yield warning(name, failure(record), "`nvidia-smi` says whether the driver answers at all.")
    elif sees_gpu(record):
        said = record.results
        others = f", the first of {said['count']}" if said["count"] > 1 else ""
        yield Fact(name, f"{said['name']}, compute capability {said['capability']}{others}", value=said["name"])
    elif record.results.get("available"):
        yield absent(name, "what it sees is the stub: this command runs with the stub in front")
    else:
        complaints = "; ".join(one_line(words, 300) for words in record.results.get("said", ()))
        if listed:
            advice = "Does PyTorch's build fit the driver, and does CUDA_VISIBLE_DEVICES hide the GPU?"
            yield warning(name, complaints or f"it does not see the {listed[0].value} that the driver lists", advice)
        else:
            yield absent(name, complaints or "it sees none")


def failure(record: Record) -> str:
    """Why a record has no answer, in one line."""
    seen: Mapping[str, Any] = {"error": record.error_message, "reason": record.reason}
    words = " ".join(one_line(str(value)) for value in seen.values() if value)
    return f"no answer: {record.outcome}" + (f": {words}" if words else "")
