/* A call that the stub does not do must end in an error that says so, in the Python exception itself.
 *
 * Where a library has a function that turns a status into text and PyTorch prints that text (the CUDA runtime and the
 * driver), the stub returns a status and answers that function with its own sentence. cuBLAS, cuSOLVER and cuFFT have
 * no such way in: PyTorch spells their statuses itself, from a table. For those the stub raises the C++ exception that
 * PyTorch's own TORCH_CHECK raises, by calling the function behind that macro. Its frames unwind because this file is
 * compiled with -fexceptions.
 *
 * An exception may only cross code that expects one, so it is raised for callers inside PyTorch's libraries alone.
 * Everybody else gets the status, and the sentence on stderr. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "stub.h"

static _Thread_local char refusal[512];

static void remember(const char *function, const char *advice) {
    snprintf(refusal, sizeof refusal, "the harness stub does not do %s%s%s", function, *advice ? ": " : "", advice);
}

const char *stub_refusal(void) {
    return refusal[0] ? refusal : "the harness stub does not do this call";
}

int stub_refuse_with_code(const char *function, const char *advice, int status) {
    remember(function, advice);
    return status;
}

static bool is_in_torch(const void *caller) {
    Dl_info info;
    if (!dladdr(caller, &info) || !info.dli_fname) return false;
    const char *slash = strrchr(info.dli_fname, '/');
    const char *name = slash ? slash + 1 : info.dli_fname;
    return !strncmp(name, "libtorch", 8) || !strncmp(name, "libc10", 6);
}

/* c10::detail::torchCheckFail(char const* function, char const* file, unsigned line, char const* message) */
typedef void (*torch_check_fail)(const char *, const char *, uint32_t, const char *);

static torch_check_fail find_torch_check_fail(void) {
    /* By handle, not RTLD_DEFAULT: Python loads PyTorch's libraries outside the global scope. */
    void *c10 = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
    return c10 ? (torch_check_fail)dlsym(c10, "_ZN3c106detail14torchCheckFailEPKcS2_jS2_") : NULL;
}

long stub_refuse(const char *function, const char *advice, int status, const void *caller) {
    remember(function, advice);
    torch_check_fail raise = is_in_torch(caller) ? find_torch_check_fail() : NULL;
    if (raise) raise(function, "harness/stub", 0, refusal);
    fprintf(stderr, "%s\n", refusal);
    return status;
}
