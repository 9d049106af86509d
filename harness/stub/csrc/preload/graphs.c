/* CUDA graphs. A capture keeps its rules (what may not be done meanwhile) and counts the work that it was given; to
 * replay a graph whose kernels do nothing is to do nothing. */
#include <pthread.h>
#include <stdlib.h>

#include "capture.h"

typedef struct {
    size_t nodes;
} stub_graph;

/* One capture at a time in a process, as PyTorch itself has it. */
static pthread_mutex_t capture_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long long current, last_id;
static stub_graph *current_graph;
static bool broken;

static bool is_current(unsigned long long capture) { return capture && capture == current; }

bool stub_any_capture(void) { return current != 0; }

bool stub_is_capturing(cudaStream_t stream) { return current && is_current(stub_stream_of(stream)->capture); }

cudaError_t stub_break_capture(cudaStream_t stream) {
    (void)stream;
    broken = true;
    return stub_fail(cudaErrorStreamCaptureUnsupported);
}

void stub_join_capture(stub_stream *stream, unsigned long long capture) {
    if (is_current(capture)) stream->capture = capture;
}

cudaError_t stub_enqueue(cudaStream_t stream) {
    cudaError_t lost = stub_lost();
    if (lost) return lost;
    if (!stub_is_capturing(stream)) return cudaSuccess;
    if (broken) return stub_fail(cudaErrorStreamCaptureInvalidated);
    current_graph->nodes++;
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
    (void)mode;
    /* The legacy default stream cannot be captured on a GPU either. */
    if (!stream || stream == cudaStreamLegacy) return stub_fail(cudaErrorStreamCaptureUnsupported);
    pthread_mutex_lock(&capture_lock);
    cudaError_t error = current ? cudaErrorIllegalState : cudaSuccess;
    if (!error && !(current_graph = calloc(1, sizeof *current_graph))) error = cudaErrorMemoryAllocation;
    if (!error) {
        current = ++last_id;
        broken = false;
        stub_stream_of(stream)->capture = current;
    }
    pthread_mutex_unlock(&capture_lock);
    return error ? stub_fail(error) : cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    *graph = NULL;
    if (!stub_is_capturing(stream)) return stub_fail(cudaErrorIllegalState);
    pthread_mutex_lock(&capture_lock);
    bool failed = broken;
    if (failed) free(current_graph);
    else *graph = (cudaGraph_t)current_graph;
    current_graph = NULL;
    current = 0;
    pthread_mutex_unlock(&capture_lock);
    return failed ? stub_fail(cudaErrorStreamCaptureInvalidated) : cudaSuccess;
}

static enum cudaStreamCaptureStatus status_of(cudaStream_t stream) {
    if (!stub_is_capturing(stream)) return cudaStreamCaptureStatusNone;
    return broken ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
    *status = status_of(stream);
    return cudaSuccess;
}

static cudaError_t capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                                cudaGraph_t *graph, const cudaGraphNode_t **dependencies, size_t *count) {
    *status = status_of(stream);
    if (id) *id = *status == cudaStreamCaptureStatusActive ? current : 0;
    if (graph) *graph = (cudaGraph_t)current_graph;
    if (dependencies) *dependencies = NULL;
    if (count) *count = 0;
    return cudaSuccess;
}

/* The same question has one argument more in CUDA 13, and is spelled with _v2 and _v3 in CUDA 12. */
#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                                     cudaGraph_t *graph, const cudaGraphNode_t **dependencies,
                                     const cudaGraphEdgeData **edges, size_t *count) {
    if (edges) *edges = NULL;
    return capture_info(stream, status, id, graph, dependencies, count);
}
#else
cudaError_t cudaStreamGetCaptureInfo_v2(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                        unsigned long long *id, cudaGraph_t *graph,
                                        const cudaGraphNode_t **dependencies, size_t *count) {
    return capture_info(stream, status, id, graph, dependencies, count);
}

#if CUDART_VERSION >= 12030
cudaError_t cudaStreamGetCaptureInfo_v3(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                                        unsigned long long *id, cudaGraph_t *graph,
                                        const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
                                        size_t *count) {
    if (edges) *edges = NULL;
    return capture_info(stream, status, id, graph, dependencies, count);
}
#endif
#endif

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
    static _Thread_local enum cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;
    enum cudaStreamCaptureMode wanted = *mode;
    *mode = thread_mode;
    thread_mode = wanted;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long flags) {
    (void)graph;
    (void)flags;
    *executable = calloc(1, 1);
    return *executable ? cudaSuccess : stub_fail(cudaErrorMemoryAllocation);
}

/* `cudaGraphInstantiate` has the same arguments since CUDA 12. */
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long flags) {
    return cudaGraphInstantiateWithFlags(executable, graph, flags);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
    if (nodes) return stub_refuse_with_code("cudaGraphGetNodes", "its graphs have no nodes to hand out", cudaErrorNotSupported);
    *count = ((stub_graph *)graph)->nodes;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
    (void)executable;
    return stub_enqueue(stream);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    free(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
    free(executable);
    return cudaSuccess;
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *pointer, cudaHostFn_t destroy, unsigned int count,
                                 unsigned int flags) {
    (void)pointer;
    (void)destroy;
    (void)count;
    (void)flags;
    static char only;
    *object = (cudaUserObject_t)&only;
    return cudaSuccess;
}
