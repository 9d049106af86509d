/* The driver's virtual memory, which PyTorch's expandable segments use (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True):
 * a range of addresses is reserved once, and physical memory is mapped into it piece by piece. Here the range is memory
 * that may not be touched, and mapping a piece allows it; the size of the pretended device is kept as for cudaMalloc. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cuda.h>

#include "stub.h"

typedef struct {
    size_t size;
    int device;
} physical;

/* memory.c, in the library in front: there the book is kept. */
static bool claim(int device, long long size) {
    bool (*ask)(int, long long) = (bool (*)(int, long long))dlsym(RTLD_DEFAULT, "harness_stub_claim");
    return !ask || ask(device, size);
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option) {
    (void)properties, (void)option;
    *granularity = 2 * 1024 * 1024;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *range, size_t size, size_t alignment, CUdeviceptr wanted,
                             unsigned long long flags) {
    (void)alignment, (void)wanted, (void)flags;
    void *address = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *range = (CUdeviceptr)address;
    return address == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr range, size_t size) {
    munmap((void *)range, size);
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *properties,
                     unsigned long long flags) {
    (void)flags;
    if (!claim(properties->location.id, (long long)size)) return CUDA_ERROR_OUT_OF_MEMORY;
    physical *piece = malloc(sizeof *piece);
    if (!piece) return CUDA_ERROR_OUT_OF_MEMORY;
    *piece = (physical){size, properties->location.id};
    *handle = (CUmemGenericAllocationHandle)(size_t)piece;
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    physical *piece = (physical *)(size_t)handle;
    claim(piece->device, -(long long)piece->size);
    free(piece);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
    (void)offset, (void)handle, (void)flags;
    return mprotect((void *)address, size, PROT_READ | PROT_WRITE) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
    madvise((void *)address, size, MADV_DONTNEED);
    return mprotect((void *)address, size, PROT_NONE) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc *access, size_t count) {
    (void)address, (void)size, (void)access, (void)count;
    return CUDA_SUCCESS;
}
