/* What the files of the stub share. The stub stands in front of the CUDA libraries that PyTorch was built against:
 * memory calls use host memory, copies are memcpy, and kernel launches return success and run nothing. */
#ifndef HARNESS_STUB_H
#define HARNESS_STUB_H

#include <stdbool.h>
#include <stddef.h>

#define STUB_INTERNAL __attribute__((visibility("hidden")))
#define STUB_DEVICE_NAME "harness stub (no GPU)"
#define STUB_MAX_DEVICES 8
#define STUB_GIB (1024ULL * 1024 * 1024)

/* Compute capability 9.0: PyTorch sends bfloat16 recurrent layers to cuDNN only on new enough devices. */
#define STUB_CAPABILITY_MAJOR 9
#define STUB_CAPABILITY_MINOR 0

/* refuse.c: how "the harness stub does not do X" reaches the Python exception. */
STUB_INTERNAL long stub_refuse(const char *function, const char *advice, int status, const void *caller);
STUB_INTERNAL int stub_refuse_with_code(const char *function, const char *advice, int status);
STUB_INTERNAL const char *stub_refusal(void);

/* settings.c: what the environment asks for, and where the device of a call is kept. */
STUB_INTERNAL int stub_device_count(void);
STUB_INTERNAL size_t stub_memory_size(void);
STUB_INTERNAL int stub_wanted_fault(void);

/* pages.c: memory that costs nothing until it is touched. */
STUB_INTERNAL void *stub_map(size_t size);
STUB_INTERNAL void stub_unmap(void *address, size_t size);
STUB_INTERNAL void stub_zero(void *address, size_t size);

/* guard.c: is the torch in this process the one that the stub was built for? */
STUB_INTERNAL bool stub_matches_torch(void);

#endif
