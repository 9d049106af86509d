/* cuDNN's handle, its dropout state, and the way to NVIDIA's own library.
 *
 * Descriptors need no GPU: making, setting and reading them stays with NVIDIA's cuDNN, which also keeps its checks of
 * their arguments. The stub stands in only for functions that take a handle. Its handle is its own, so such a function
 * must never reach NVIDIA's library: one that is not written here either succeeds or is refused (policy.py). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#include "dnn.h"

typedef struct {
    cudaStream_t stream;
} stub_dnn;

void *stub_real_cudnn(const char *name) {
    /* By handle: PyTorch's libraries, and cuDNN with them, are outside the global scope. Asked for until it is there
     * and then kept, since the loader compares the name with those of some hundred libraries, at every call of an RNN. */
    static void *_Atomic kept;
    void *library = kept;
    if (!library) kept = library = dlopen(STUB_CUDNN_LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
    return library ? dlsym(library, name) : NULL;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
    *handle = calloc(1, sizeof(stub_dnn));
    return *handle ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_INITIALIZED;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    ((stub_dnn *)handle)->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream) {
    *stream = ((stub_dnn *)handle)->stream;
    return CUDNN_STATUS_SUCCESS;
}

/* The random states of dropout, which a kernel would fill. */
cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t *size) {
    (void)handle;
    *size = 4096;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t descriptor, cudnnHandle_t handle, float dropout,
                                        void *states, size_t size, unsigned long long seed) {
    (void)descriptor, (void)handle, (void)dropout, (void)states, (void)size, (void)seed;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t descriptor, cudnnHandle_t handle, float dropout,
                                            void *states, size_t size, unsigned long long seed) {
    return cudnnSetDropoutDescriptor(descriptor, handle, dropout, states, size, seed);
}
