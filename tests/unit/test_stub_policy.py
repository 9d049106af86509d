"""What is decided about a CUDA function that has no body, and the C that comes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.stub.generate import driver_functions, generated_source
from harness.stub.policy import DRIVER, FAMILIES, Treatment, decide


def treatment(function: str) -> Treatment | None:
    decisions = decide([function], frozenset(), (*FAMILIES, DRIVER))
    return decisions[0].treatment if decisions else None


@pytest.mark.parametrize(
    "function",
    [
        "cublasSgemm_v2",
        "cublasGemmEx",
        "cublasGemmStridedBatchedEx",
        "cublasHgemmStridedBatched",
        "cublasDtrsmBatched",
        "cublasLtMatmul",
        "cudnnRNNForward",
        "cudnnConvolutionBackwardFilter",
        "cudaFuncSetAttribute",
        "__cudaRegisterFunction",
        "cuLaunchKernel",
        "cuTensorMapEncodeTiled",
    ],
)
def test_kernels_and_settings_succeed(function: str) -> None:
    assert treatment(function) is Treatment.SUCCEED


@pytest.mark.parametrize(
    "function", ["cufftDestroy", "cusolverDnDestroy", "cusparseDestroySpMat", "cudaGraphExecDestroy"]
)
def test_giving_back_never_fails_because_destructors_may_not(function: str) -> None:
    assert treatment(function) is Treatment.SUCCEED


@pytest.mark.parametrize(
    "function",
    [
        "cudaSomethingOfCuda14",
        "cublasSgetrfBatched",
        "cublasSnrm2_v2",
        "cublasIsamax_v2",
        "cublasSrotg_v2",
        "cudnnGetSomethingNew",
        "cudnnBackendFinalize",
        "cudnnBackendCreateDescriptor",
        "cusolverDnSpotrf",
        "cufftXtExec",
        "cusparseSpMM",
        "ncclCommInitRank",
        "nvshmem_malloc",
        "cuMemAllocManaged",
    ],
)
def test_what_nobody_thought_about_or_what_returns_data_is_refused(function: str) -> None:
    assert treatment(function) is Treatment.REFUSE


@pytest.mark.parametrize(
    "function",
    ["cudnnSetRNNDescriptor_v8", "cudnnCreateTensorDescriptor", "cublasLtMatmulDescCreate", "nvrtcCompileProgram"],
)
def test_what_needs_no_gpu_stays_with_nvidia(function: str) -> None:
    assert treatment(function) is Treatment.NVIDIA


@pytest.mark.parametrize("function", ["malloc", "curl_easy_init", "_ZN5torch3jitE", "cudecoder"])
def test_other_functions_are_not_ours(function: str) -> None:
    assert treatment(function) is None


def test_a_body_comes_before_every_rule() -> None:
    (decision,) = decide(["cusolverDnCreate"], frozenset({"cusolverDnCreate"}))
    assert decision.treatment is Treatment.BODY
    assert "cusolverDnCreate(" not in generated_source([decision])


def test_the_generated_source_says_what_is_refused_and_how() -> None:
    source = generated_source(decide(["cufftXtExec", "cudaIpcGetMemHandle", "cublasSgemm_v2"], frozenset()))
    assert "long cublasSgemm_v2(void) { return 0; }" in source
    assert (
        'stub_refuse("cufftXtExec", "Fourier transforms on the stub device", 16, __builtin_return_address(0))' in source
    )
    assert 'stub_refuse_with_code("cudaIpcGetMemHandle", "", 801)' in source


def test_the_functions_of_the_driver_are_read_from_its_header(tmp_path: Path) -> None:
    header = tmp_path / "cuda.h"
    header.write_text(
        "#define cuMemAlloc cuMemAlloc_v2\n"
        "#define cuStreamQuery __CUDA_API_PTSZ(cuStreamQuery)\n"
        "CUresult CUDAAPI cuMemAlloc(CUdeviceptr *p, size_t n);\n"
        "CUresult CUDAAPI cuStreamQuery(CUstream s);\n"
    )
    assert driver_functions(header) == {"cuMemAlloc", "cuMemAlloc_v2", "cuStreamQuery"}
