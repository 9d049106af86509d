/* What the environment asks of the stub. Read on use, so that a forked child may still be told something else. */
#include <stdlib.h>

#include "stub.h"

static unsigned long long number_from(const char *name, unsigned long long otherwise) {
    const char *text = getenv(name);
    if (!text || !*text) return otherwise;
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    return *end ? otherwise : value;
}

int stub_device_count(void) {
    unsigned long long count = number_from("HARNESS_STUB_DEVICES", 1);
    return count > STUB_MAX_DEVICES ? STUB_MAX_DEVICES : (int)count;
}

int stub_wanted_fault(void) { return (int)number_from("HARNESS_STUB_FAULT", 0); }

size_t stub_memory_size(void) {
    return (size_t)number_from("HARNESS_STUB_MEMORY_GIB", 16) * STUB_GIB;
}
