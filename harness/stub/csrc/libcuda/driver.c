/* The stub's libcuda.so.1: the part of the CUDA driver that PyTorch and Triton ask for. Everything else that the CUDA
 * headers declare is generated, and refused. */
#include <string.h>

#include <cuda.h>

#include "stub.h"

static char context_of[STUB_MAX_DEVICES];
static _Thread_local CUcontext current;

static CUcontext primary(CUdevice device) { return (CUcontext)&context_of[device]; }

static bool is_device(CUdevice device) { return device >= 0 && device < stub_device_count(); }

CUresult cuInit(unsigned int flags) {
    (void)flags;
    return stub_device_count() ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version) {
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
    *text = error == CUDA_SUCCESS               ? "no error"
            : error == CUDA_ERROR_NOT_SUPPORTED ? stub_refusal()
                                                : "a driver error that the harness stub has no text for";
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name) {
    *name = error == CUDA_SUCCESS ? "CUDA_SUCCESS" : error == CUDA_ERROR_NOT_SUPPORTED ? "CUDA_ERROR_NOT_SUPPORTED" : "CUDA_ERROR_UNKNOWN";
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
    *count = stub_device_count();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    *device = ordinal;
    return is_device(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    (void)device;
    strncpy(name, STUB_DEVICE_NAME, (size_t)length);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *size, CUdevice device) {
    (void)device;
    *size = stub_memory_size();
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    (void)device;
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = STUB_CAPABILITY_MAJOR; break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = STUB_CAPABILITY_MINOR; break;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK: *value = 65536; break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = 48 * 1024; break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 227 * 1024; break;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
        case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1980000; break;
        case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: *value = 2619000; break;
        case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: *value = 5120; break;
        default: *value = 0; /* a feature that this device does not have */
    }
    return CUDA_SUCCESS;
}

/* Both must say that device 0 is in use: otherwise torch 2.5 fails in AccumulateGrad with an event and a stream on
 * different devices, and newer ones warn that cuBLAS found no current context. */
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active) {
    *flags = 0;
    *active = device == 0;
    return is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuCtxGetCurrent(CUcontext *context) {
    *context = current ? current : primary(0);
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
    current = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) {
    *device = current ? (CUdevice)((char *)current - context_of) : 0;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    *context = primary(device);
    return CUDA_SUCCESS;
}

/* PyTorch asks where a pointer lives before it hands one to Triton. All memory of the stub is on the device asked. */
CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr pointer) {
    if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER) {
        *(CUdeviceptr *)value = pointer;
        return CUDA_SUCCESS;
    }
    return (CUresult)stub_refuse_with_code("cuPointerGetAttribute", "of this kind", CUDA_ERROR_NOT_SUPPORTED);
}

/* Modules that Triton, NVRTC and the like compiled: any handle will do for a kernel that is never run. */
static CUresult any_handle(void *handle) {
    static char only;
    *(void **)handle = &only;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    (void)image;
    return any_handle(module);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, CUjit_option *options,
                            void **values) {
    (void)image, (void)count, (void)options, (void)values;
    return any_handle(module);
}

CUresult cuModuleLoad(CUmodule *module, const char *path) {
    (void)path;
    return any_handle(module);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    (void)module, (void)name;
    return any_handle(function);
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
    (void)function;
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : attribute == CU_FUNC_ATTRIBUTE_NUM_REGS ? 32 : 0;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int size, size_t shared) {
    (void)function, (void)shared;
    *blocks = size > 0 && size <= 1024 ? 2048 / size : 1;
    return CUDA_SUCCESS;
}
