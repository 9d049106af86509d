/* Device and pinned memory: host memory, with a book of who owns what so that the pretended size of a device is kept
 * and a pointer can be asked where it lives. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

typedef struct {
    char *base;
    size_t size;
    enum cudaMemoryType type;
    int device;
    bool owned;
} allocation;

/* Sorted by address, so that a pointer into the middle of a block is found too. */
static allocation *book;
static size_t book_length, book_capacity;
static size_t device_bytes[STUB_MAX_DEVICES];
static pthread_mutex_t book_lock = PTHREAD_MUTEX_INITIALIZER;

/* The index of the first allocation that starts beyond the pointer. */
static size_t first_after(const void *pointer) {
    size_t low = 0, high = book_length;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (book[middle].base <= (const char *)pointer) low = middle + 1;
        else high = middle;
    }
    return low;
}

static allocation *find(const void *pointer) {
    size_t index = first_after(pointer);
    if (!index) return NULL;
    allocation *found = &book[index - 1];
    return (const char *)pointer < found->base + found->size ? found : NULL;
}

static bool enter(allocation new) {
    if (book_length == book_capacity) {
        size_t capacity = book_capacity ? 2 * book_capacity : 64;
        allocation *grown = realloc(book, capacity * sizeof *book);
        if (!grown) return false;
        book = grown;
        book_capacity = capacity;
    }
    size_t index = first_after(new.base);
    memmove(&book[index + 1], &book[index], (book_length - index) * sizeof *book);
    book[index] = new;
    book_length++;
    return true;
}

static bool fits(int device, size_t size) {
    return size <= stub_memory_size() && device_bytes[device] <= stub_memory_size() - size;
}

/* For the stub's libcuda (driver_memory.c): takes memory of a device, or gives it back where the size is negative. */
bool harness_stub_claim(int device, long long size) {
    pthread_mutex_lock(&book_lock);
    bool granted = size < 0 || fits(device, (size_t)size);
    if (granted) device_bytes[device] += (size_t)size;
    pthread_mutex_unlock(&book_lock);
    return granted;
}

static cudaError_t allocate(void **pointer, size_t size, enum cudaMemoryType type) {
    int device = stub_current_device();
    bool counts = type == cudaMemoryTypeDevice;
    *pointer = NULL;
    if (!size) return cudaSuccess;
    pthread_mutex_lock(&book_lock);
    cudaError_t error = cudaErrorMemoryAllocation;
    if (!counts || fits(device, size)) {
        void *memory = stub_map(size);
        if (memory && enter((allocation){memory, size, type, device, true})) {
            if (counts) device_bytes[device] += size;
            *pointer = memory;
            error = cudaSuccess;
        } else if (memory) {
            stub_unmap(memory, size);
        }
    }
    pthread_mutex_unlock(&book_lock);
    return error ? stub_fail(error) : cudaSuccess;
}

static cudaError_t release(void *pointer) {
    if (!pointer) return cudaSuccess;
    pthread_mutex_lock(&book_lock);
    allocation *found = find(pointer);
    bool known = found && found->base == pointer;
    if (known) {
        if (found->type == cudaMemoryTypeDevice) device_bytes[found->device] -= found->size;
        if (found->owned) stub_unmap(found->base, found->size);
        book_length--;
        memmove(found, found + 1, (size_t)(&book[book_length] - found) * sizeof *book);
    }
    pthread_mutex_unlock(&book_lock);
    return known ? cudaSuccess : stub_fail(cudaErrorInvalidValue);
}

cudaError_t cudaMalloc(void **pointer, size_t size) { return allocate(pointer, size, cudaMemoryTypeDevice); }

cudaError_t cudaFree(void *pointer) { return release(pointer); }

cudaError_t cudaMallocAsync(void **pointer, size_t size, cudaStream_t stream) {
    (void)stream;
    return allocate(pointer, size, cudaMemoryTypeDevice);
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream) {
    (void)stream;
    return release(pointer);
}

cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned int flags) {
    (void)flags;
    return allocate(pointer, size, cudaMemoryTypeHost);
}

cudaError_t cudaMallocHost(void **pointer, size_t size) { return allocate(pointer, size, cudaMemoryTypeHost); }

cudaError_t cudaFreeHost(void *pointer) { return release(pointer); }

cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned int flags) {
    (void)flags;
    pthread_mutex_lock(&book_lock);
    bool entered = enter((allocation){pointer, size, cudaMemoryTypeHost, stub_current_device(), false});
    pthread_mutex_unlock(&book_lock);
    return entered ? cudaSuccess : stub_fail(cudaErrorMemoryAllocation);
}

cudaError_t cudaHostUnregister(void *pointer) { return release(pointer); }

cudaError_t cudaHostGetDevicePointer(void **device_pointer, void *pointer, unsigned int flags) {
    (void)flags;
    *device_pointer = pointer;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
    pthread_mutex_lock(&book_lock);
    *total = stub_memory_size();
    *free = *total - device_bytes[stub_current_device()];
    pthread_mutex_unlock(&book_lock);
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer) {
    memset(attributes, 0, sizeof *attributes);
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->device = -1;
    pthread_mutex_lock(&book_lock);
    allocation *found = find(pointer);
    if (found) {
        attributes->type = found->type;
        attributes->device = found->device;
        attributes->devicePointer = (void *)pointer;
        if (found->type == cudaMemoryTypeHost) attributes->hostPointer = (void *)pointer;
    }
    pthread_mutex_unlock(&book_lock);
    return cudaSuccess;
}

/* The memory pool behind cudaMallocAsync (PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync). It has no state of its own. */
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device) {
    static char pools[STUB_MAX_DEVICES];
    *pool = (cudaMemPool_t)&pools[device];
    return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value) {
    (void)pool;
    (void)attribute;
    pthread_mutex_lock(&book_lock);
    *(uint64_t *)value = device_bytes[stub_current_device()];
    pthread_mutex_unlock(&book_lock);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attribute, void *value) {
    (void)device;
    (void)attribute;
    *(uint64_t *)value = 0;
    return cudaSuccess;
}
