/* The zygote's model: a process imports PyTorch, touches no CUDA, and forks a child for every attempt. Each child would
 * load the parts of cuDNN that hold its descriptors, at about 15 ms; loaded before the first fork, the children inherit
 * them. No device and no thread is involved: a descriptor is a piece of host memory. */
#define _GNU_SOURCE
#include <pthread.h>

#include "dnn.h"

typedef cudnnStatus_t (*make_descriptor)(void **);
typedef cudnnStatus_t (*drop_descriptor)(void *);

static void touch(const char *create, const char *destroy) {
    make_descriptor make = (make_descriptor)stub_real_cudnn(create);
    drop_descriptor drop = (drop_descriptor)stub_real_cudnn(destroy);
    void *descriptor;
    if (make && drop && !make(&descriptor)) drop(descriptor);
}

static void before_fork(void) {
    static bool done;
    if (done || !stub_real_cudnn("cudnnGetVersion")) return;
    done = true;
    touch("cudnnCreateRNNDescriptor", "cudnnDestroyRNNDescriptor");
    touch("cudnnCreateConvolutionDescriptor", "cudnnDestroyConvolutionDescriptor");
}

__attribute__((constructor)) static void prepare_for_forks(void) { pthread_atfork(before_fork, NULL, NULL); }
