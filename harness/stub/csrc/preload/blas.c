/* cuBLAS: a handle that remembers its modes, matrix products that are not computed, and scalar results that are zero.
 * The products themselves are in the list of calls that simply succeed (harness/stub/policy.py). */
#include <stdlib.h>
#include <string.h>

#include <cublasLt.h>
#include <cublas_v2.h>

#include "stub.h"

typedef struct {
    cublasMath_t math;
    cublasPointerMode_t pointers;
    cudaStream_t stream;
} stub_blas;

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
    *handle = calloc(1, sizeof(stub_blas));
    return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    ((stub_blas *)handle)->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream) {
    *stream = ((stub_blas *)handle)->stream;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
    ((stub_blas *)handle)->math = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode) {
    *mode = ((stub_blas *)handle)->math;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
    ((stub_blas *)handle)->pointers = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode) {
    *mode = ((stub_blas *)handle)->pointers;
    return CUBLAS_STATUS_SUCCESS;
}

/* A dot product has one result, on the device or on the host; both are memory of this process here. */
#define STUB_DOT(name, type)                                                                                           \
    cublasStatus_t name(cublasHandle_t handle, int n, const type *x, int step_x, const type *y, int step_y,            \
                        type *result) {                                                                                \
        (void)handle, (void)n, (void)x, (void)step_x, (void)y, (void)step_y;                                           \
        memset(result, 0, sizeof *result);                                                                             \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }

STUB_DOT(cublasSdot_v2, float)
STUB_DOT(cublasDdot_v2, double)
STUB_DOT(cublasCdotu_v2, cuComplex)
STUB_DOT(cublasCdotc_v2, cuComplex)
STUB_DOT(cublasZdotu_v2, cuDoubleComplex)
STUB_DOT(cublasZdotc_v2, cuDoubleComplex)

cublasStatus_t cublasDotEx(cublasHandle_t handle, int n, const void *x, cudaDataType type_x, int step_x, const void *y,
                           cudaDataType type_y, int step_y, void *result, cudaDataType result_type,
                           cudaDataType execution_type) {
    (void)handle, (void)n, (void)x, (void)type_x, (void)step_x, (void)y, (void)type_y, (void)step_y;
    (void)execution_type;
    size_t size = result_type == CUDA_R_64F ? 8 : result_type == CUDA_R_32F ? 4 : 2;
    memset(result, 0, size);
    return CUBLAS_STATUS_SUCCESS;
}

/* PyTorch takes the first algorithm that cuBLASLt offers, and refuses to go on without one. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int *found) {
    (void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference;
    *found = wanted > 0;
    if (*found) {
        memset(results, 0, sizeof *results);
        results->state = CUBLAS_STATUS_SUCCESS;
        results->wavesCount = 1.0f;
    }
    return CUBLAS_STATUS_SUCCESS;
}
