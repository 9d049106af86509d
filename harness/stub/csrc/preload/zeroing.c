/* PyTorch's caching allocator hands out old memory. On the stub no kernel overwrites it, so results would be whatever
 * was there before: `pack_padded_sequence(enforce_sorted=False)` inverts a permutation on the device, and with old
 * memory dies of an IndexError that no GPU would show. With zeros it reaches the error that a GPU shows.
 *
 * The allocator reports every block that it hands out (a positive size) and takes back (a negative one) to PyTorch's
 * profiler, through this public function of libc10. The stub stands in front of it and clears the block on its way
 * out. The alternative, PYTORCH_NO_CUDA_MEMORY_CACHING=1, also gives zeros, but keeps no statistics and turns
 * torch.OutOfMemoryError into another exception. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

#include "stub.h"

typedef struct {
    int8_t type;
    int8_t index;
} c10_device;

enum { C10_DEVICE_TYPE_CUDA = 1 };

typedef void (*report_function)(void *, int64_t, size_t, size_t, c10_device);

/* c10::reportMemoryUsageToProfiler(void* ptr, int64_t size, size_t allocated, size_t reserved, c10::Device device) */
void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *pointer, int64_t size, size_t allocated,
                                                           size_t reserved, c10_device device) {
    static report_function next;
    if (device.type == C10_DEVICE_TYPE_CUDA && pointer && size > 0) stub_zero(pointer, (size_t)size);
    if (!next) {
        void *c10 = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
        if (c10) next = (report_function)dlsym(c10, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
    }
    if (next) next(pointer, size, allocated, reserved, device);
}
