"""What the stub does about every CUDA function that PyTorch needs and that has no body in ``csrc/``.

"Return success" for a function nobody thought about would turn into a silent wrong outcome, so the default is to
refuse: the Python exception then says "the harness stub does not do X". A function may succeed only where doing nothing
is the whole point (a kernel, a setting, giving something back) and it fills no answer that the caller reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Treatment(StrEnum):
    """What happens when PyTorch calls a function."""

    BODY = "body"
    SUCCEED = "succeed"
    REFUSE = "refuse"
    NVIDIA = "nvidia"


@dataclass(frozen=True)
class Rule:
    """The functions whose whole name matches ``pattern`` are treated so."""

    pattern: str
    treatment: Treatment
    why: str


@dataclass(frozen=True)
class Family:
    """One CUDA library: how its functions are named and how a refusal looks."""

    name: str
    prefix: str
    status: int
    """What a refused function returns, where no exception can be raised: the library's "not supported"."""
    raises: bool
    """Whether a refusal raises PyTorch's exception itself, for want of a function that spells the status."""
    advice: str
    rules: tuple[Rule, ...] = ()
    default: Treatment = Treatment.REFUSE


def _succeed(pattern: str, why: str) -> Rule:
    return Rule(pattern, Treatment.SUCCEED, why)


def _nvidia(pattern: str, why: str) -> Rule:
    return Rule(pattern, Treatment.NVIDIA, why)


# A refusal inside a C++ destructor would end the process, so what gives something back always succeeds.
_GIVE_BACK = _succeed(r"\w*(Destroy|Free|Unregister|Deregister|Release|Abort|Finalize)\w*", "gives something back")

_KERNELS_BLAS = (
    r"cublas\w*([Gg]emm|gemv|axpy|copy|scal|swap|rot|ger[cu]?|symm|hemm|symv|hemv|syrk?2?k?|herk?2?k?|syr2?|her2?"
    r"|trmm|trmv|trsm|trsv)(Batched|StridedBatched|Ex|BatchedEx|StridedBatchedEx|GroupedBatched|GroupedBatchedEx)?(_v2)?(_64)?"
)

_RUNTIME = Family(
    "CUDA runtime",
    r"(__)?cuda[A-Z]",
    status=801,
    raises=False,
    advice="",
    rules=(
        _GIVE_BACK,
        _succeed(r"__cuda(Register\w+|InitModule)", "the handle of a kernel is never used"),
        _succeed(r"cuda(Func|Kernel|Device|MemPool|Graph\w+)Set\w+", "a setting"),
        _succeed(r"cudaMemPoolTrimTo|cudaDeviceEnablePeerAccess|cudaCtxResetPersistingL2Cache", "a setting"),
        _succeed(r"cudaProfiler(Start|Stop)", "there is nothing to profile"),
        _succeed(r"cudaGraphRetainUserObject", "a graph of the stub keeps nothing alive"),
    ),
)

_BLAS = Family(
    "cuBLAS",
    r"cublas(?!Lt)",
    status=15,
    raises=True,
    advice="linear algebra on the stub device",
    rules=(
        _succeed(r"cublasSet\w+", "a setting"),
        _succeed(_KERNELS_BLAS, "a kernel: its result stays zero"),
    ),
)

_BLAS_LT = Family(
    "cuBLASLt",
    r"cublasLt",
    status=15,
    raises=True,
    advice="",
    rules=(
        _nvidia(
            r"cublasLt(Matmul(Desc|Preference)|Matrix(Layout|TransformDesc))\w+|cublasLtGet(Version|CudartVersion)",
            "descriptors need no GPU",
        ),
        _succeed(r"cublasLtMatmul", "a kernel: its result stays zero"),
    ),
)

_DNN = Family(
    "cuDNN",
    r"cudnn",
    status=3000,
    raises=True,
    advice="",
    rules=(
        Rule(r"cudnnBackend(?!Destroy)\w+", Treatment.REFUSE, "the graph API looks for an engine and finds none"),
        _nvidia(r"cudnn(Create|Destroy|Set|Get)\w*Descriptor\w*", "descriptors need no GPU"),
        _nvidia(r"cudnnBackendDestroyDescriptor", "descriptors need no GPU"),
        _nvidia(r"cudnnSetConvolution(GroupCount|MathType|ReorderType)", "descriptors need no GPU"),
        _nvidia(r"cudnnGet(Version|CudartVersion|Property|(Last)?ErrorString|MaxDeviceVersion)", "says what it is"),
        _succeed(r"cudnnRNN(Forward|BackwardData_v8|BackwardWeights_v8)", "a kernel: its result stays zero"),
        _succeed(
            r"cudnn(Convolution(Forward|BackwardData|BackwardFilter|BiasActivationForward)|BatchNormalization\w+"
            r"|CTCLoss\w*|PoolingForward|SpatialTf\w+)",
            "a kernel: its result stays zero",
        ),
    ),
)

_SPARSE = Family("cuSPARSE", r"cusparse(?!Lt)", 10, True, "sparse matrices on the stub device", (_GIVE_BACK,))
_NCCL = (
    _nvidia(r"ncclGet(Version|ErrorString|LastError)", "says what it is"),
    _succeed(r"ncclGroup(Start|End)", "brackets"),
    _succeed(
        r"nccl(Bcast|Broadcast|Reduce|AllReduce|AllGather|ReduceScatter|Send|Recv)",
        "a kernel between devices of one process: communicators between processes are refused",
    ),
    _GIVE_BACK,
)

FAMILIES: tuple[Family, ...] = (
    _RUNTIME,
    _BLAS,
    _BLAS_LT,
    _DNN,
    Family("cuSOLVER", r"cusolver", 9, True, "linear algebra on the stub device", (_GIVE_BACK,)),
    _SPARSE,
    Family("cuSPARSELt", r"cusparseLt", 10, True, "structured sparsity", (_GIVE_BACK,)),
    Family("cuFFT", r"cufft", 16, True, "Fourier transforms on the stub device", (_GIVE_BACK,)),
    Family("cuRAND", r"curand", 999, True, "", (_GIVE_BACK,)),
    Family("NCCL", r"nccl[A-Z]", 3, True, "use the gloo backend", _NCCL),
    Family("NVSHMEM", r"nvshmem", 1, True, "symmetric memory", (_GIVE_BACK,)),
    Family("cuFile", r"cuFile[A-Z]", 5001, True, "GPUDirect storage", (_GIVE_BACK,)),
    # A compiler and a profiler need no GPU: NVRTC compiles as ever, and CUPTI says itself that it sees no driver.
    Family("NVRTC", r"nvrtc", 0, False, "", default=Treatment.NVIDIA),
    Family("CUPTI", r"cupti", 0, False, "", default=Treatment.NVIDIA),
)

DRIVER = Family(
    "CUDA driver",
    r"cu[A-Z](?!File)",
    status=801,
    raises=False,
    advice="",
    rules=(
        _succeed(r"cuModuleUnload|cuDevicePrimaryCtxRelease\w*", "gives something back"),
        _succeed(r"cuFuncSet\w+|cuKernelSet\w+|cuCtxSetLimit", "a setting"),
        _succeed(r"cuLaunch(Kernel|KernelEx|CooperativeKernel)", "a kernel: its result stays zero"),
        _succeed(r"cuTensorMap(Encode\w+|ReplaceAddress)", "only a kernel would read the map"),
    ),
)


@dataclass(frozen=True)
class Decision:
    """How one function is treated, and by which family's manners."""

    function: str
    family: Family
    treatment: Treatment


def treat(family: Family, function: str) -> Treatment:
    """Return the treatment of a function that has no body."""
    for rule in family.rules:
        if re.fullmatch(rule.pattern, function):
            return rule.treatment
    return family.default


def decide(needed: Iterable[str], bodies: frozenset[str], families: tuple[Family, ...] = FAMILIES) -> list[Decision]:
    """Decide about every needed function that belongs to one of the families; others are not ours."""
    decisions = []
    for function in sorted(needed):
        family = next((one for one in families if re.match(one.prefix, function)), None)
        if family is not None:
            treatment = Treatment.BODY if function in bodies else treat(family, function)
            decisions.append(Decision(function, family, treatment))
    return decisions
