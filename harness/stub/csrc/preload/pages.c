/* Memory that costs nothing until it is touched, and goes back to zeros cheaply. */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "stub.h"

enum { PAGE = 4096, LARGE = 64 * 1024 };

static size_t round_up(size_t size) { return (size + PAGE - 1) / PAGE * PAGE; }

void *stub_map(size_t size) {
    void *address = mmap(NULL, round_up(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) return NULL;
    /* A huge page would turn the first byte written into a 2 MiB fill. */
    madvise(address, round_up(size), MADV_NOHUGEPAGE);
    return address;
}

void stub_unmap(void *address, size_t size) { munmap(address, round_up(size)); }

/* Private pages that are given back read as zeros again, so a large block is cleared without being touched. */
void stub_zero(void *address, size_t size) {
    if (size < LARGE) {
        memset(address, 0, size);
        return;
    }
    uintptr_t start = (uintptr_t)address, end = start + size;
    uintptr_t first = (start + PAGE - 1) / PAGE * PAGE, last = end / PAGE * PAGE;
    if (madvise((void *)first, last - first, MADV_DONTNEED)) {
        memset(address, 0, size);
        return;
    }
    memset(address, 0, first - start);
    memset((void *)last, 0, end - last);
}
