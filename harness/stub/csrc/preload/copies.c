/* Copies and fills. These are done at once, in the calling thread: there is no device for them to be late on. */
#include <string.h>

#include "runtime.h"

static cudaError_t copy(void *to, const void *from, size_t size, cudaStream_t stream) {
    cudaError_t error = stub_enqueue(stream);
    if (!error && size) memmove(to, from, size);
    return error;
}

static cudaError_t fill(void *to, int value, size_t size, cudaStream_t stream) {
    cudaError_t error = stub_enqueue(stream);
    if (error || !size) return error;
    struct cudaPointerAttributes where;
    cudaPointerGetAttributes(&where, to);
    /* Only memory of the stub's own may be cleared by giving its pages back. */
    if (value || where.type != cudaMemoryTypeDevice) memset(to, value, size);
    else stub_zero(to, size);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind) {
    (void)kind;
    return copy(to, from, size, NULL);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)kind;
    return copy(to, from, size, stream);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t size,
                                cudaStream_t stream) {
    (void)to_device;
    (void)from_device;
    return copy(to, from, size, stream);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
    (void)kind;
    cudaError_t error = stub_enqueue(stream);
    for (size_t row = 0; !error && row < height; row++)
        memmove((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
    return error;
}

/* A device variable has a shadow in the host program, of the same size, whose address is its name. */
cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset,
                               enum cudaMemcpyKind kind) {
    (void)kind;
    return copy((char *)symbol + offset, from, size, NULL);
}

cudaError_t cudaGetSymbolAddress(void **address, const void *symbol) {
    *address = (void *)symbol;
    return cudaSuccess;
}

cudaError_t cudaMemset(void *to, int value, size_t size) { return fill(to, value, size, NULL); }

cudaError_t cudaMemsetAsync(void *to, int value, size_t size, cudaStream_t stream) {
    return fill(to, value, size, stream);
}
