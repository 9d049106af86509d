"""What limits the evidence of a diagnosis, in sentences."""

from __future__ import annotations

from harness.diagnose.collected import Collected
from harness.diagnose.facts import MOST_FACTS, Count
from harness.model import Device
from harness.stub import NOTICE
from harness.symptoms import BACKWARD_ERROR

_STUB_SAYS_NO = "the harness stub"

_NOT_OF_ZEROS = (
    *("NameError", "ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError", "TabError"),
    *(
        "KeyboardInterrupt",
        "MemoryError",
        "NotImplementedError",
        "PermissionError",
        "BrokenPipeError",
        "RecursionError",
    ),
)
"""What a program does not end of because its numbers are zero. Others may: a best model that was never kept is None."""


def ended_unseen(found: Collected) -> bool:
    """Whether the script ended in cuDNN's error, and no RNN that was watched can have raised it."""
    raised = any(fact.on_gpu and fact.raises for fact in found.facts.values() if fact.what == "gradient")
    return BACKWARD_ERROR.search(found.message) is not None and not raised


def limits(found: Collected, device: Device) -> tuple[str, ...]:
    """What limits the evidence, most important first."""
    notes = []
    if found.failed is not None:
        notes.append(f"The watching ended early, so that findings may be missing: {found.failed}")
    elif not found.count(Count.ATTACHED):
        notes.append("The script did not import PyTorch in its own process, so no RNN was seen.")
    elif ended_unseen(found):
        notes.append(
            "The script ended in cuDNN's error, so an RNN ran that is not watched: in TorchScript, in another process, "
            "by a direct call of torch.lstm and the like or of torch._VF, or in C++. What helps is the same: train() "
            "before the forwards that train, or cuDNN turned off around a forward in eval mode."
        )
    elif not found.count(Count.FORWARDS):
        notes.append(
            "No nn.RNN, nn.LSTM or nn.GRU ran in the script's own process (the *Cell classes, which cuDNN never runs, "
            "are not counted)."
        )
    if found.count(Count.DROPPED):
        notes.append(f"More was found than the {MOST_FACTS} things that are written down; the rest is not told.")
    if found.count(Count.FORKED_FORWARDS):
        notes.append("RNNs ran in processes that the script forked; those are not watched.")
    if found.count(Count.SPAWNED):
        notes.append("The script spawned processes (multiprocessing); whether RNNs ran in those was not seen.")
    return (*notes, *(_of_stub(found) if device is Device.STUB else ()))


def _of_stub(found: Collected) -> list[str]:
    notes = [f"{NOTICE[0].upper()}{NOTICE[1:]}."]
    if found.count(Count.FORWARDS) and not found.count(Count.GPU_FORWARDS) and not ended_unseen(found):
        notes = ["The script kept its RNNs on the CPU; what is said is what a GPU would have done."]
    if _STUB_SAYS_NO in found.message:
        notes.append("The script ended at something that the stub does not do: try --device cpu.")
    elif found.exception not in (None, *_NOT_OF_ZEROS) and not BACKWARD_ERROR.search(found.message):
        notes.append(f"If it is the stub's zeros that the script ended of ({found.exception}): try --device cpu.")
    return notes
