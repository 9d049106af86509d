"""The examination: facts first, then the faults on each device, and what of it is not as it has to be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from harness.doctor import driver, journal, machine, places, pytorch, software
from harness.doctor.asking import Inquiry, Question, ended_helpers
from harness.doctor.bench import Bench, NoExecutor, OpenExecutor, no_executor
from harness.doctor.facts import Fact, State, warning
from harness.doctor.injection import Finding, Injector
from harness.doctor.known import BACKWARD, QUICK, REAL, STALLED, Fault
from harness.doctor.software import version_of
from harness.errors import HarnessError
from harness.gpus import has_gpu
from harness.launch.local import Executor, LocalExecutor
from harness.model import Device, Record
from harness.store.layout import Store

Say = Callable[[str], None]

AFTER_PYTHON = 3
"""Where PyTorch's facts belong among those on software."""

JOURNAL_LIMIT_S = 20.0
"""Three records and a plan are synced to the disk, which takes a slow one seconds."""


@dataclass(frozen=True, slots=True)
class Untested:
    """What was not tested, and why. ``wanted`` where it was asked for, or where nothing runs without it."""

    what: str
    why: str
    advice: str = ""
    wanted: bool = False


@dataclass(slots=True)
class Examination:
    """Everything that was found. Facts by group, in the order in which they are shown."""

    facts: dict[str, list[Fact]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    untested: list[Untested] = field(default_factory=list)

    @property
    def differences(self) -> list[str]:
        """A sentence for each thing that is not as it has to be; empty is good."""
        found = [
            f"{finding.fault.name} on {finding.device}: {sentence}"
            for finding in self.findings
            for sentence in finding.differs
        ]
        found += [f"{one.what}: not tested: {one.why}" for one in self.untested if one.wanted]
        # Without a journal nothing runs; it is looked at with the facts, since it takes no attempt.
        return found + [f"{fact.name}: {fact.text}" for fact in self.warnings if fact.name == journal.NAME]

    @property
    def warnings(self) -> list[Fact]:
        """The facts that somebody should do something about."""
        return [fact for facts in self.facts.values() for fact in facts if fact.state is State.WARNING]


def examine(
    store: Store, device: str, *, faults: bool, say: Say = lambda _: None, executor: OpenExecutor = LocalExecutor
) -> Examination:
    """Ask for the facts and, if ``faults``, inject the faults on ``device``, or for ``auto`` where a run would go.

    Never raises for what it finds; a device that was asked for and is not there is a difference.
    """
    seen = Examination()
    with Bench(executor) as bench, ended_helpers():
        say("starting PyTorch")
        bench.open_base()  # first, since it takes longest
        inquiries = {group: [Inquiry.start(one) for one in ones] for group, ones in questions(store).items()}
        if faults and (device == Device.STUB or (device == "auto" and not has_gpu())):
            bench.open_stub(_facts_of(inquiries.get("software", ()), "stub"))
        records = bench.ask_pytorch()
        say("asking about the machine")
        for group, asked in inquiries.items():
            seen.facts[group] = [fact for inquiry in asked for fact in inquiry.answer()]
        _add_pytorch(seen, records)
        if faults:
            _inject(seen, device, bench, records, say)
    return seen


def _facts_of(inquiries: Iterable[Inquiry], name: str) -> tuple[Fact, ...]:
    return next((inquiry.answer() for inquiry in inquiries if inquiry.question.name == name), ())


def questions(store: Store) -> dict[str, tuple[Question, ...]]:
    """What is asked beside PyTorch, each with a limit of its own."""
    return {
        "software": (
            Question("packages", lambda: tuple(software.package_facts())),
            Question("C compiler", lambda: tuple(software.compiler_facts())),
            Question("stub", lambda: tuple(software.stub_facts()), software.STUB_LIMIT_S + 5),
        ),
        "GPU": (Question("GPU driver", lambda: tuple(driver.driver_facts()), driver.LIMIT_S + 5),),
        "machine": (
            Question("cores", lambda: tuple(machine.cpu_facts())),
            Question("memory", lambda: tuple(machine.memory_facts())),
            Question("limits", lambda: tuple(machine.limit_facts())),
            Question("/dev/shm", lambda: tuple(places.shared_memory_facts())),
        ),
        "store": (
            Question("store", lambda: tuple(places.store_facts(store))),
            Question(journal.NAME, lambda: tuple(journal.journal_facts(store)), JOURNAL_LIMIT_S),
            Question("temporary files", lambda: tuple(places.temporary_facts())),
            Question("MLflow's store", lambda: tuple(places.tracking_facts(store)), places.TRACKING_LIMIT_S + 5),
        ),
    }


def _add_pytorch(seen: Examination, records: dict[str, Record] | NoExecutor) -> None:
    """What a worker saw, where it belongs; where none can be started, that."""
    software_facts, gpu_facts = seen.facts.setdefault("software", []), seen.facts.setdefault("GPU", [])
    if isinstance(records, NoExecutor):
        version = version_of("torch")
        if version:
            words = f"{version} is installed, but no worker process starts: {records.why}"
            software_facts.insert(AFTER_PYTHON, warning("PyTorch", words, records.advice))
        return
    software_facts[AFTER_PYTHON:AFTER_PYTHON] = pytorch.build_facts(records)
    listed = [fact for fact in gpu_facts if fact.name != "GPU driver" and fact.state is not State.ABSENT]
    gpu_facts += pytorch.gpu_facts(records[pytorch.GPU], listed)


def _inject(seen: Examination, device: str, bench: Bench, records: dict[str, Record] | NoExecutor, say: Say) -> None:
    if isinstance(records, NoExecutor):
        seen.untested.append(Untested("every fault", records.why, records.advice, wanted=True))
        return
    for target in targets(seen, device, bench, pytorch.sees_gpu(records[pytorch.GPU])):
        injector = Injector(target.executor, target.device, say)
        try:
            well = injector.inject(target.quick, target.stalled)
        except (HarnessError, OSError, MemoryError) as error:
            failed = no_executor(error)
            what = f"{'the rest of ' if injector.findings else ''}the faults on {target.device}"
            seen.untested.append(Untested(what, failed.why, failed.advice, wanted=True))
        else:
            if not well:
                why = "an attempt without any fault fails already"
                seen.untested.append(Untested(f"the faults on {target.device}", why))
        seen.findings += injector.findings


@dataclass(frozen=True, slots=True)
class Target:
    """A device on which faults are injected, and which."""

    device: Device
    executor: Executor
    quick: tuple[Fault, ...] = (*QUICK, *REAL)
    stalled: tuple[Fault, ...] = STALLED


def targets(seen: Examination, device: str, bench: Bench, sees_gpu: bool) -> Iterator[Target]:
    """The devices in the order in which they are tested; what cannot be is entered as untested.

    ``auto`` takes a GPU where a run would: where the kernel has one and PyTorch sees it. A CPU is always needed, to
    show that what raises elsewhere does not raise there; it gets the other faults where a run would use it too.
    """
    if isinstance(bench.base, NoExecutor):
        return
    alone = device in (Device.CUDA, Device.STUB)
    if device == Device.CUDA or (device == "auto" and sees_gpu and has_gpu()):
        alone = True
        if sees_gpu:
            yield Target(Device.CUDA, bench.base)
        else:
            advice = "The facts on the GPU say more; `--device auto` tests what is there."
            seen.untested.append(Untested("every fault on cuda", "PyTorch sees no GPU", advice, wanted=True))
    elif device == Device.CPU:
        seen.untested.append(Untested(BACKWARD, "it cannot occur on a CPU", "`--device stub` needs no GPU."))
    else:
        opened = bench.open_stub(tuple(seen.facts.get("software", ())))
        if isinstance(opened, NoExecutor):
            what = "every fault on stub" if device == Device.STUB else BACKWARD
            why = opened.why if device == Device.STUB else f"there is neither a GPU nor a stub: {opened.why}"
            seen.untested.append(Untested(what, why, opened.advice, wanted=device == Device.STUB))
        else:
            yield Target(Device.STUB, opened)
    yield Target(Device.CPU, bench.base, REAL, ()) if alone else Target(Device.CPU, bench.base)
