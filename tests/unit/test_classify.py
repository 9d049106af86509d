"""Exceptions -> outcomes, and what a record keeps of them."""

import errno
import re
from pathlib import Path
from typing import NoReturn

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from harness.model import Outcome
from harness.trial.classify import (
    FRAMES,
    FULL_BELOW_BYTES,
    MESSAGE_LIMIT,
    clip,
    fingerprint,
    is_sticky,
    may_be_oom,
    message_of,
    outcome_of,
    traceback_tail,
    type_name,
)

BACKWARD = "cudnn RNN backward can only be called in training mode"


AMBIGUOUS = [
    RuntimeError("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"),
    RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR"),
    RuntimeError("cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"),
    RuntimeError("miopenStatusInternalError"),
]
STICKY = [
    "CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be asynchronously reported",
    "CUDA error: device-side assert triggered",
    "CUDA error: unspecified launch failure",
    "CUDA error: misaligned address",
    "CUDA error: an illegal instruction was encountered",
    "CUDA error: the launch timed out and was terminated",
    "CUDA error: uncorrectable ECC error encountered",
    "CUDA driver error: an illegal memory access was encountered",
    "HIP error: an illegal memory access was encountered",
    "cudaErrorIllegalAddress: an illegal memory access was encountered",
]
UNDECIDED = [
    "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED",
    "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle, opa, opb, m, n, k)`",
    "miopenStatusUnknownError",
]
"""What says that something failed to run, and not whether anything can run after it."""


class MuteError(Exception):
    """An exception whose own code fails."""

    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(BACKWARD),
        RuntimeError("cuDNN RNN backward can only be called in training mode"),
        RuntimeError("miopen RNN backward can only be called in training mode"),
        RuntimeError("MIOpen RNN backward can only be called in training mode"),
        RuntimeError(f"{BACKWARD}\nException raised from _cudnn_rnn_backward_input at RNN.cpp:1500"),
        NotImplementedError(f"wrapped: {BACKWARD}"),
        torch.AcceleratorError(BACKWARD),
    ],
)
def test_the_error_that_this_is_about(error: BaseException) -> None:
    assert outcome_of(error) is Outcome.BACKWARD_ERROR


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB."),
        torch.cuda.OutOfMemoryError(""),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 MiB (GPU 0; 7.79 GiB total capacity)"),
        RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"),
        RuntimeError("CUDA driver error: out of memory"),
        RuntimeError("HIP out of memory. Tried to allocate 2.00 MiB"),
        RuntimeError("HIP error: out of memory"),
        RuntimeError("cudaErrorMemoryAllocation"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
        RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"),
        RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"),
        RuntimeError("cusolver error: CUSOLVER_STATUS_ALLOC_FAILED"),
        RuntimeError("cuFFT error: CUFFT_ALLOC_FAILED"),
        RuntimeError("miopenStatusAllocFailed"),
        RuntimeError("std::bad_alloc"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you"),
        RuntimeError("[enforce fail] data. DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes."),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
    ids=str,
)
def test_memory_that_ran_out_under_any_name(error: BaseException) -> None:
    assert outcome_of(error) is Outcome.OOM


def test_the_real_exception_of_the_cpu_allocator_is_oom() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.uint8)
    assert outcome_of(caught.value) is Outcome.OOM


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(""),
        RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn"),
        ValueError(BACKWARD),
        KeyError(BACKWARD),
        Exception(BACKWARD),
        RuntimeError("RNN backward can only be called in training mode"),
        RuntimeError("notcudnn RNN backward can only be called in training mode"),
        # often a lack of memory, and as often not
        *AMBIGUOUS,
        *map(RuntimeError, UNDECIDED),
        RuntimeError("CUDA error: an illegal memory access was encountered"),
        RuntimeError("the memory of this is out of reach"),
        OSError(errno.ENOSPC, "No space left on device"),
        SystemExit(0),
        SystemExit("bye"),
        KeyboardInterrupt(),
        MuteError(),
    ],
    ids=repr,
)
def test_any_other_exception_is_an_error(error: BaseException) -> None:
    assert outcome_of(error) is outcome_of(error, FULL_BELOW_BYTES) is Outcome.ERROR


@pytest.mark.parametrize("error", AMBIGUOUS, ids=str)
def test_what_a_full_device_may_mean_is_oom_where_it_is_full(error: BaseException) -> None:
    assert may_be_oom(error)
    assert outcome_of(error, 0) is outcome_of(error, FULL_BELOW_BYTES - 1) is Outcome.OOM


def test_a_full_device_makes_no_other_error_an_oom() -> None:
    for error in (RuntimeError("no"), RuntimeError(STICKY[0]), ValueError(str(AMBIGUOUS[0]))):
        assert not may_be_oom(error)
        assert outcome_of(error, 0) is Outcome.ERROR
    assert outcome_of(RuntimeError(BACKWARD), 0) is Outcome.BACKWARD_ERROR


@pytest.mark.parametrize("message", STICKY)
def test_an_error_that_takes_the_device_from_its_process(message: str) -> None:
    for kind in (RuntimeError, torch.AcceleratorError):
        assert is_sticky(kind(message))
        assert outcome_of(kind(message)) is Outcome.ERROR
    assert not is_sticky(ValueError(message))


@pytest.mark.parametrize(
    "message", [*UNDECIDED, "CUDA error: invalid argument", "CUDA out of memory", BACKWARD, "", "assert"]
)
def test_of_other_errors_it_is_not_said_that_the_device_is_lost(message: str) -> None:
    assert not is_sticky(RuntimeError(message))


def test_an_exception_that_cannot_say_what_it_is_is_kept_all_the_same() -> None:
    error = MuteError()
    assert message_of(error) == "<no message: ValueError while it was made>"
    assert fingerprint(error) == fingerprint(MuteError()) != fingerprint(ValueError())
    assert type_name(error).endswith(".MuteError")


def test_a_type_is_named_with_its_module_unless_it_is_a_builtin() -> None:
    assert type_name(RuntimeError()) == "RuntimeError"
    assert type_name(torch.OutOfMemoryError()).startswith("torch")
    assert type_name(re.error("")) in {"re.error", "re.PatternError"}


SAME = [
    ("size 3 against 4", "size 30 against 400"),
    ("Tried to allocate 2.00 MiB", "Tried to allocate 17.5 MiB"),
    ("at 0x7ffc01", "at 0xDEADBEEF01"),
    ("loss 0.5", "loss 1e-05"),
    ("loss -3", "loss 4.2E+10"),
    ("index .5", "index 7."),
    ("step 1\nand a line that differs", "step 2\nin its own way"),
    ("", "\n"),
]
DIFFERENT = [("size 3", "sizes 3"), ("a 1", "a 1 2"), ("", "x"), ("CUDA error", "cuda error")]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_messages_that_differ_in_numbers_only_have_one_fingerprint(one: str, other: str) -> None:
    assert fingerprint(RuntimeError(one)) == fingerprint(RuntimeError(other))
    assert fingerprint(RuntimeError(one)) != fingerprint(ValueError(one))


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_other_messages_have_other_fingerprints(one: str, other: str) -> None:
    assert fingerprint(RuntimeError(one)) != fingerprint(RuntimeError(other))


floats = st.floats(allow_nan=False, allow_infinity=False)
number = st.integers().map(str) | floats.map(str) | floats.map("{:e}".format)
word = st.sampled_from(["input", "has", "size", "but", "expected", "dimension"])


@given(st.lists(st.tuples(word, number, number), min_size=1, max_size=5))
def test_no_number_makes_a_fingerprint_of_its_own(parts: list[tuple[str, str, str]]) -> None:
    one = ", ".join(f"{text} {a}" for text, a, _ in parts)
    other = ", ".join(f"{text} {b}" for text, _, b in parts)
    assert fingerprint(RuntimeError(one)) == fingerprint(RuntimeError(other))


@given(st.text(st.characters()))
def test_any_message_is_classified_and_clipped(text: str) -> None:
    error = RuntimeError(text)
    assert outcome_of(error) in {Outcome.ERROR, Outcome.OOM, Outcome.BACKWARD_ERROR}
    assert re.fullmatch("[0-9a-f]{8}", fingerprint(error))
    assert len(clip(text)) <= MESSAGE_LIMIT + 60


def test_a_long_message_keeps_its_beginning_and_its_end() -> None:
    text = "begin" + "x" * 10_000 + "end"
    clipped = clip(text)
    assert clipped.startswith("begin")
    assert clipped.endswith("end")
    assert f"{len(text) - MESSAGE_LIMIT} characters left out" in clipped
    assert clip("x" * MESSAGE_LIMIT) == "x" * MESSAGE_LIMIT


def deep(levels: int) -> NoReturn:
    if levels:
        deep(levels - 1)
    raise RuntimeError("deep down")


def caught(code: str, filename: str, **names: object) -> BaseException:
    try:
        exec(compile(code, filename, "exec"), dict(names))
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_a_traceback_keeps_the_last_frames_innermost_last() -> None:
    with pytest.raises(RuntimeError) as raised:
        deep(50)
    lines = traceback_tail(raised.value).splitlines()
    assert len(lines) == FRAMES
    assert lines[-1].endswith('raise RuntimeError("deep down")')
    assert "deep(levels - 1)" in lines[0]


@pytest.mark.parametrize(
    ("filename", "shown"),
    [
        ("/home/someone/project/.venv/lib/python3.11/site-packages/torch/nn/modules/rnn.py", "torch/nn/modules/rnn.py"),
        ("/home/someone/harness/harness/trial/loop.py", "harness/trial/loop.py"),
        ("/home/someone/checkout/harness/trial/loop.py", "harness/trial/loop.py"),
        ("/home/someone/checkout/experiments/seed_simple_rnn.py", "experiments/seed_simple_rnn.py"),
        ("/v/site-packages/harness/_experiments/seed_simple_rnn.py", "harness/_experiments/seed_simple_rnn.py"),
        ("/usr/lib/python3.11/threading.py", "threading.py"),
        ("/home/someone/own.py", "own.py"),
        ("<string>", "<string>"),
    ],
)
def test_a_traceback_names_files_as_every_machine_would(filename: str, shown: str) -> None:
    lines = traceback_tail(caught("def f():\n    1 / 0\nf()", filename)).splitlines()
    assert [line.partition(":")[0] for line in lines[-2:]] == [shown, shown]
    assert not any(line.startswith("/") for line in lines)


def test_no_absolute_path_in_a_real_traceback() -> None:
    with pytest.raises(RuntimeError) as raised:
        torch.nn.Linear(2, 3)(torch.zeros(1, 5))
    tail = traceback_tail(raised.value)
    assert "torch/nn/modules/linear.py" in tail
    assert str(Path.cwd()) not in tail
    assert not re.search(r"(^|\s)/", tail)


def test_an_exception_that_was_never_raised_has_no_traceback() -> None:
    assert traceback_tail(RuntimeError()) == ""
