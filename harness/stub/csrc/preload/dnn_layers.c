/* cuDNN's convolutions, batch normalisation and CTC loss: what PyTorch asks before it runs them. The runs do nothing.
 *
 * Convolutions reach these older calls only with TORCH_CUDNN_V8_API_DISABLED=1, which the stub's environment sets; the
 * newer backend API would look for an engine, and there is none without a GPU. */
#include <string.h>

#include "dnn.h"

#define UNUSED(...) ((void)sizeof((const void *[]){__VA_ARGS__}))

/* One algorithm, good for everything. */
#define STUB_ONE_ALGORITHM(results, wanted, found)                                                                     \
    do {                                                                                                               \
        *(found) = (wanted) > 0;                                                                                       \
        if (!*(found)) break;                                                                                          \
        memset((results), 0, sizeof *(results));                                                                       \
        (results)->status = CUDNN_STATUS_SUCCESS;                                                                      \
        (results)->time = 1.0f;                                                                                        \
        (results)->determinism = CUDNN_DETERMINISTIC;                                                                  \
    } while (0)

#define STUB_GET_ALGORITHM(name, first, second, third, result)                                                         \
    cudnnStatus_t name(cudnnHandle_t handle, const first a, const second b, const cudnnConvolutionDescriptor_t c,      \
                       const third d, const int wanted, int *found, result *results) {                                 \
        UNUSED(handle, a, b, c, d);                                                                                    \
        STUB_ONE_ALGORITHM(results, wanted, found);                                                                    \
        return CUDNN_STATUS_SUCCESS;                                                                                   \
    }

/* torch.backends.cudnn.benchmark = True asks these instead; nothing is measured. */
#define STUB_FIND_ALGORITHM(name, first, second, third, result)                                                        \
    cudnnStatus_t name(cudnnHandle_t handle, const first a, const void *a_data, const second b, const void *b_data,    \
                       const cudnnConvolutionDescriptor_t c, const third d, void *d_data, const int wanted,            \
                       int *found, result *results, void *work, size_t work_size) {                                    \
        UNUSED(handle, a, a_data, b, b_data, c, d, d_data, work);                                                      \
        (void)work_size;                                                                                               \
        STUB_ONE_ALGORITHM(results, wanted, found);                                                                    \
        return CUDNN_STATUS_SUCCESS;                                                                                   \
    }

#define STUB_WORKSPACE(name, first, second, third, algorithm_type)                                                     \
    cudnnStatus_t name(cudnnHandle_t handle, const first a, const second b, const cudnnConvolutionDescriptor_t c,      \
                       const third d, algorithm_type algorithm, size_t *size) {                                        \
        UNUSED(handle, a, b, c, d);                                                                                    \
        (void)algorithm;                                                                                               \
        *size = 0;                                                                                                     \
        return CUDNN_STATUS_SUCCESS;                                                                                   \
    }

#define STUB_CONVOLUTION(get, find, workspace, first, second, third, result, algorithm)                                \
    STUB_GET_ALGORITHM(get, first, second, third, result)                                                              \
    STUB_FIND_ALGORITHM(find, first, second, third, result)                                                            \
    STUB_WORKSPACE(workspace, first, second, third, algorithm)

STUB_CONVOLUTION(cudnnGetConvolutionForwardAlgorithm_v7, cudnnFindConvolutionForwardAlgorithmEx,
                 cudnnGetConvolutionForwardWorkspaceSize, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t,
                 cudnnTensorDescriptor_t, cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgo_t)

STUB_CONVOLUTION(cudnnGetConvolutionBackwardDataAlgorithm_v7, cudnnFindConvolutionBackwardDataAlgorithmEx,
                 cudnnGetConvolutionBackwardDataWorkspaceSize, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t,
                 cudnnTensorDescriptor_t, cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgo_t)

STUB_CONVOLUTION(cudnnGetConvolutionBackwardFilterAlgorithm_v7, cudnnFindConvolutionBackwardFilterAlgorithmEx,
                 cudnnGetConvolutionBackwardFilterWorkspaceSize, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
                 cudnnFilterDescriptor_t, cudnnConvolutionBwdFilterAlgoPerf_t, cudnnConvolutionBwdFilterAlgo_t)

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t operations, const cudnnTensorDescriptor_t x,
    const cudnnTensorDescriptor_t z, const cudnnTensorDescriptor_t y, const cudnnTensorDescriptor_t scale,
    const cudnnActivationDescriptor_t activation, size_t *size) {
    UNUSED(handle, x, z, y, scale, activation);
    (void)mode, (void)operations;
    *size = 0;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t operations, const cudnnTensorDescriptor_t x,
    const cudnnTensorDescriptor_t y, const cudnnTensorDescriptor_t dy, const cudnnTensorDescriptor_t dz,
    const cudnnTensorDescriptor_t dx, const cudnnTensorDescriptor_t scale,
    const cudnnActivationDescriptor_t activation, size_t *size) {
    UNUSED(handle, x, y, dy, dz, dx, scale, activation);
    (void)mode, (void)operations;
    *size = 0;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(cudnnHandle_t handle, cudnnBatchNormMode_t mode,
                                                                   cudnnBatchNormOps_t operations,
                                                                   const cudnnActivationDescriptor_t activation,
                                                                   const cudnnTensorDescriptor_t x, size_t *size) {
    UNUSED(handle, activation, x);
    (void)mode, (void)operations;
    *size = 0;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetCTCLossWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t probabilities,
                                           const cudnnTensorDescriptor_t gradients, const int *labels,
                                           const int *label_lengths, const int *input_lengths,
                                           cudnnCTCLossAlgo_t algorithm, cudnnCTCLossDescriptor_t loss, size_t *size) {
    UNUSED(handle, probabilities, gradients, labels, label_lengths, input_lengths, loss);
    (void)algorithm;
    *size = 0;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetCTCLossWorkspaceSize_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t algorithm,
                                              cudnnCTCLossDescriptor_t loss,
                                              const cudnnTensorDescriptor_t probabilities,
                                              const cudnnTensorDescriptor_t gradients, size_t *size) {
    UNUSED(handle, loss, probabilities, gradients);
    (void)algorithm;
    *size = 0;
    return CUDNN_STATUS_SUCCESS;
}
