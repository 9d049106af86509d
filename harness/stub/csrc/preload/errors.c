/* Errors of the CUDA runtime: the last one of each thread, and their names and texts. */
#include "runtime.h"

static _Thread_local cudaError_t last_error;

cudaError_t stub_fail(cudaError_t error) {
    last_error = error;
    return error;
}

/* A test may ask for an error that the kernels of a GPU can cause, by its number: HARNESS_STUB_FAULT=700 is an illegal
 * access. As on a GPU, the process that met it has lost its device: all work and every wait after it fails likewise. */
cudaError_t stub_lost(void) {
    static int lost;
    if (!lost) lost = stub_wanted_fault();
    return lost ? stub_fail((cudaError_t)lost) : cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void) { return last_error; }

typedef struct {
    cudaError_t error;
    const char *name;
    const char *text;
} error_text;

static const error_text texts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorAssert, "cudaErrorAssert", "device-side assert triggered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorIllegalState, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
};

static const error_text *find_text(cudaError_t error) {
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].error == error) return &texts[i];
    return NULL;
}

const char *cudaGetErrorString(cudaError_t error) {
    /* The stub itself returns "not supported" only for what it refuses. */
    if (error == cudaErrorNotSupported) return stub_refusal();
    const error_text *found = find_text(error);
    return found ? found->text : "an error that the harness stub has no text for";
}

const char *cudaGetErrorName(cudaError_t error) {
    if (error == cudaErrorNotSupported) return "cudaErrorNotSupported";
    const error_text *found = find_text(error);
    return found ? found->name : "cudaErrorUnknown";
}
