/* Streams, events, and the capture that they may belong to. */
#ifndef HARNESS_STUB_CAPTURE_H
#define HARNESS_STUB_CAPTURE_H

#include <time.h>

#include "runtime.h"

typedef struct {
    int priority;
    unsigned long long capture; /* 0: none */
} stub_stream;

typedef struct {
    bool recorded;
    struct timespec at;
    unsigned long long capture;
} stub_event;

/* streams.c */
STUB_INTERNAL stub_stream *stub_stream_of(cudaStream_t stream);

/* graphs.c */
STUB_INTERNAL bool stub_any_capture(void);
STUB_INTERNAL cudaError_t stub_break_capture(cudaStream_t stream);
STUB_INTERNAL void stub_join_capture(stub_stream *stream, unsigned long long capture);

#endif
