/* Streams and events. Everything is finished the moment it is asked for, so they carry only what can be asked back:
 * priority, the host's clock at the time of a record, and which capture they belong to (graphs.c). */
#include <stdlib.h>
#include <time.h>

#include "capture.h"

static stub_stream default_streams[3]; /* NULL, cudaStreamLegacy, cudaStreamPerThread */

stub_stream *stub_stream_of(cudaStream_t stream) {
    return (size_t)stream < 3 ? &default_streams[(size_t)stream] : (stub_stream *)stream;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority) {
    (void)flags;
    stub_stream *created = calloc(1, sizeof *created);
    if (!created) return stub_fail(cudaErrorMemoryAllocation);
    created->priority = priority;
    *stream = (cudaStream_t)created;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags) {
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithPriority(stream, 0, 0); }

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    if ((size_t)stream >= 3) free(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
    *priority = stub_stream_of(stream)->priority;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

/* A capture forbids waiting for its own streams: on a GPU this is the error behind `.item()` inside torch.cuda.graph. */
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    return stub_is_capturing(stream) ? stub_break_capture(stream) : stub_lost();
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    return stub_is_capturing(stream) ? stub_break_capture(stream) : cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
    return stub_any_capture() ? stub_break_capture(NULL) : stub_lost();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags) {
    (void)flags;
    stub_event *created = calloc(1, sizeof *created);
    if (!created) return stub_fail(cudaErrorMemoryAllocation);
    *event = (cudaEvent_t)created;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
    (void)flags;
    stub_event *recorded = (stub_event *)event;
    recorded->capture = stub_stream_of(stream)->capture;
    clock_gettime(CLOCK_MONOTONIC, &recorded->at);
    recorded->recorded = true;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) { return cudaEventRecordWithFlags(event, stream, 0); }

cudaError_t cudaEventQuery(cudaEvent_t event) {
    (void)event;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    (void)event;
    return stub_lost();
}

/* The host's clock between the two records. It times Python, not kernels, but scripts divide by it. */
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
    stub_event *from = (stub_event *)start, *to = (stub_event *)end;
    if (!from->recorded || !to->recorded) return stub_fail(cudaErrorInvalidResourceHandle);
    *milliseconds = (float)(to->at.tv_sec - from->at.tv_sec) * 1e3f + (float)(to->at.tv_nsec - from->at.tv_nsec) / 1e6f;
    return cudaSuccess;
}

/* Waiting for an event of a capturing stream draws the waiting stream into the capture, as on a GPU. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
    (void)flags;
    stub_join_capture(stub_stream_of(stream), ((stub_event *)event)->capture);
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
    cudaError_t error = stub_enqueue(stream);
    if (!error && !stub_is_capturing(stream)) function(data);
    return error;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned int flags) {
    (void)flags;
    callback(stream, cudaSuccess, data);
    return cudaSuccess;
}
