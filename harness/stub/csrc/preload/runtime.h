/* What the files that stand in for the CUDA runtime share. */
#ifndef HARNESS_STUB_RUNTIME_H
#define HARNESS_STUB_RUNTIME_H

#include <cuda_runtime_api.h>

#include "stub.h"

/* errors.c: the runtime keeps the last error of each thread until somebody asks for it; so does the stub. */
STUB_INTERNAL cudaError_t stub_fail(cudaError_t error);
STUB_INTERNAL cudaError_t stub_lost(void);

/* device.c */
STUB_INTERNAL int stub_current_device(void);

/* streams.c: work of every kind passes here, so that a capture knows that it is not empty. */
STUB_INTERNAL cudaError_t stub_enqueue(cudaStream_t stream);
STUB_INTERNAL bool stub_is_capturing(cudaStream_t stream);

#endif
