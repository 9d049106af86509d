/* A finished program keeps its exit code.
 *
 * While an interpreter ends, a thread of PyTorch's autograd engine may still ask for the GIL. Until 3.14 CPython ends
 * such a thread with pthread_exit, which unwinds C++ frames that do not allow it: "terminate called without an active
 * exception", abort, exit code 134, now and then, although the program had finished. From 3.14 on CPython lets such
 * threads hang until the process ends; the stub does the same for the older ones. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

#include "stub.h"

static bool interpreter_is_ending(void) {
    int (*is_finalizing)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    if (!is_finalizing) is_finalizing = (int (*)(void))dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
    return is_finalizing && is_finalizing();
}

__attribute__((noreturn)) void pthread_exit(void *value) {
    bool is_main_thread = getpid() == gettid();
    if (!is_main_thread && interpreter_is_ending())
        for (;;) pause();
    void (*next)(void *) = (void (*)(void *))dlsym(RTLD_NEXT, "pthread_exit");
    next(value);
    __builtin_unreachable();
}
