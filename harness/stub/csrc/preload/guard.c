/* Is the torch in this process the one that the stub was built for? Another one may have other structures and other
 * symbols, and would end in a crash or in NVIDIA's libraries looking for a driver. The GNU build id of its CUDA library
 * says. */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "stub.h"

enum answer { NOT_LOADED, SAME, ANOTHER };

static bool has_build_id(const struct dl_phdr_info *object, const ElfW(Phdr) *segment, const char *expected) {
    const char *at = (const char *)object->dlpi_addr + segment->p_vaddr, *end = at + segment->p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
        const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
        const char *name = at + sizeof *note;
        const unsigned char *id = (const unsigned char *)name + ((note->n_namesz + 3) & ~3U);
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && !memcmp(name, "GNU", 4)) {
            char text[2 * 64 + 1] = "";
            for (unsigned i = 0; i < note->n_descsz && i < 64; i++) sprintf(text + 2 * i, "%02x", id[i]);
            return !strcmp(text, expected);
        }
        at = (const char *)id + ((note->n_descsz + 3) & ~3U);
    }
    return false;
}

static int visit(struct dl_phdr_info *object, size_t size, void *data) {
    (void)size;
    const char *slash = strrchr(object->dlpi_name, '/');
    if (!slash || strcmp(slash + 1, "libtorch_cuda.so")) return 0;
    enum answer *answer = data;
    *answer = ANOTHER;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_NOTE && has_build_id(object, &object->dlpi_phdr[i], STUB_TORCH_BUILD_ID))
            *answer = SAME;
    return 1;
}

bool stub_matches_torch(void) {
    static enum answer known = NOT_LOADED;
    if (known == NOT_LOADED) dl_iterate_phdr(visit, &known);
    return known != ANOTHER;
}
