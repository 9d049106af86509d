/* The device that the stub pretends to be: its name says what it is, its numbers are those of a Hopper-class GPU. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#include "runtime.h"

enum {
    THREADS_PER_BLOCK = 1024,
    THREADS_PER_MULTIPROCESSOR = 2048,
    BLOCKS_PER_MULTIPROCESSOR = 32,
    MULTIPROCESSORS = 132,
    WARP = 32,
    REGISTERS = 65536,
    SHARED_PER_BLOCK = 48 * 1024,
    SHARED_OPT_IN = 227 * 1024,
    SHARED_PER_MULTIPROCESSOR = 228 * 1024,
    L2_CACHE = 50 * 1024 * 1024,
    CONSTANT_MEMORY = 64 * 1024,
    GRID_YZ = 65535,
    GRID_X = 2147483647,
    TEXTURE_ALIGNMENT = 512,
};

static _Thread_local int device;

int stub_current_device(void) { return device; }

cudaError_t cudaGetDeviceCount(int *count) {
    *count = 0;
    if (!stub_matches_torch())
        return stub_fail((cudaError_t)stub_refuse_with_code(
            "this PyTorch", "it was built for another one; `harness stub info` says for which", cudaErrorNotSupported));
    *count = stub_device_count();
    return *count ? cudaSuccess : stub_fail(cudaErrorNoDevice);
}

cudaError_t cudaGetDevice(int *current) {
    *current = device;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int wanted) {
    if (wanted < 0 || wanted >= stub_device_count()) return stub_fail(cudaErrorInvalidDevice);
    device = wanted;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}

static void describe_launch_limits(struct cudaDeviceProp *properties) {
    properties->warpSize = WARP;
    properties->maxThreadsPerBlock = THREADS_PER_BLOCK;
    properties->maxThreadsPerMultiProcessor = THREADS_PER_MULTIPROCESSOR;
    properties->maxBlocksPerMultiProcessor = BLOCKS_PER_MULTIPROCESSOR;
    properties->multiProcessorCount = MULTIPROCESSORS;
    properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = THREADS_PER_BLOCK;
    properties->maxThreadsDim[2] = 64;
    properties->maxGridSize[0] = GRID_X;
    properties->maxGridSize[1] = properties->maxGridSize[2] = GRID_YZ;
    properties->regsPerBlock = properties->regsPerMultiprocessor = REGISTERS;
    properties->sharedMemPerBlock = SHARED_PER_BLOCK;
    properties->sharedMemPerBlockOptin = SHARED_OPT_IN;
    properties->sharedMemPerMultiprocessor = SHARED_PER_MULTIPROCESSOR;
    properties->cooperativeLaunch = 1;
    properties->concurrentKernels = 1;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int of) {
    if (of < 0 || of >= stub_device_count()) return stub_fail(cudaErrorInvalidDevice);
    memset(properties, 0, sizeof *properties);
    strcpy(properties->name, STUB_DEVICE_NAME);
    memcpy(properties->uuid.bytes, "harness-stub", 12);
    properties->uuid.bytes[15] = (char)of;
    properties->major = STUB_CAPABILITY_MAJOR;
    properties->minor = STUB_CAPABILITY_MINOR;
    properties->totalGlobalMem = stub_memory_size();
    properties->totalConstMem = CONSTANT_MEMORY;
    properties->l2CacheSize = L2_CACHE;
    properties->textureAlignment = TEXTURE_ALIGNMENT;
    properties->unifiedAddressing = 1;
    properties->canMapHostMemory = 1;
    properties->streamPrioritiesSupported = 1;
    properties->memoryPoolsSupported = 1;
    properties->pciBusID = of + 1;
    describe_launch_limits(properties);
    return cudaSuccess;
}

/* Everything not named here is a feature that the stub's device does not have. */
static int attribute(enum cudaDeviceAttr which) {
    switch (which) {
        case cudaDevAttrMaxThreadsPerBlock: return THREADS_PER_BLOCK;
        case cudaDevAttrMaxBlockDimX:
        case cudaDevAttrMaxBlockDimY: return THREADS_PER_BLOCK;
        case cudaDevAttrMaxBlockDimZ: return 64;
        case cudaDevAttrMaxGridDimX: return GRID_X;
        case cudaDevAttrMaxGridDimY:
        case cudaDevAttrMaxGridDimZ: return GRID_YZ;
        case cudaDevAttrMaxSharedMemoryPerBlock: return SHARED_PER_BLOCK;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: return SHARED_OPT_IN;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return SHARED_PER_MULTIPROCESSOR;
        case cudaDevAttrReservedSharedMemoryPerBlock: return 1024;
        case cudaDevAttrTotalConstantMemory: return CONSTANT_MEMORY;
        case cudaDevAttrWarpSize: return WARP;
        case cudaDevAttrMaxRegistersPerBlock:
        case cudaDevAttrMaxRegistersPerMultiprocessor: return REGISTERS;
        case cudaDevAttrMultiProcessorCount: return MULTIPROCESSORS;
        case cudaDevAttrMaxThreadsPerMultiProcessor: return THREADS_PER_MULTIPROCESSOR;
        case cudaDevAttrMaxBlocksPerMultiprocessor: return BLOCKS_PER_MULTIPROCESSOR;
        case cudaDevAttrComputeCapabilityMajor: return STUB_CAPABILITY_MAJOR;
        case cudaDevAttrComputeCapabilityMinor: return STUB_CAPABILITY_MINOR;
        case cudaDevAttrL2CacheSize: return L2_CACHE;
        case cudaDevAttrTextureAlignment: return TEXTURE_ALIGNMENT;
        case cudaDevAttrClockRate: return 1980000;
        case cudaDevAttrUnifiedAddressing:
        case cudaDevAttrCanMapHostMemory:
        case cudaDevAttrConcurrentKernels:
        case cudaDevAttrStreamPrioritiesSupported:
        case cudaDevAttrCooperativeLaunch:
        case cudaDevAttrMemoryPoolsSupported: return 1;
        default: return 0;
    }
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which, int of) {
    if (of < 0 || of >= stub_device_count()) return stub_fail(cudaErrorInvalidDevice);
    *value = attribute(which);
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int of, int peer) {
    *can = of != peer;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int length, int of) {
    static const char format[] = "0000:00:00.0";
    if (length < (int)sizeof format) return stub_fail(cudaErrorInvalidValue);
    strcpy(text, format);
    text[6] = (char)('1' + of);
    return cudaSuccess;
}

static int no_such_driver_call(void) {
    return stub_refuse_with_code("a driver call that its libcuda lacks", "", cudaErrorNotSupported);
}

/* PyTorch asks for the driver's functions by name and keeps all of them before it needs one, so every name gets an
 * address. The stub's libcuda.so.1 has, or refuses, every function that the CUDA headers declare. */
static void *driver_function(const char *name) {
    char versioned[256];
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
    if (!driver || strlen(name) > sizeof versioned - 4) return NULL;
    strcpy(versioned, name);
    strcat(versioned, "_v2");
    void *found = dlsym(driver, versioned);
    return found ? found : dlsym(driver, name);
}

static cudaError_t driver_entry(const char *name, void **function, enum cudaDriverEntryPointQueryResult *result) {
    void *found = driver_function(name);
    *function = found ? found : (void *)no_such_driver_call;
    if (result) *result = cudaDriverEntryPointSuccess;
    return cudaSuccess;
}

/* CUDA 13 took the first of these out, CUDA 12.5 brought the second in. */
#if CUDART_VERSION < 13000
cudaError_t cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *result) {
    (void)flags;
    return driver_entry(name, function, result);
}
#endif

#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned int version,
                                             unsigned long long flags, enum cudaDriverEntryPointQueryResult *result) {
    (void)version;
    (void)flags;
    return driver_entry(name, function, result);
}
#endif
