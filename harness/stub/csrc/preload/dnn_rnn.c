/* cuDNN's recurrent layers: what PyTorch asks about their weights. Forward and backward themselves do nothing.
 *
 * PyTorch lays its own parameters over cuDNN's weight space, so each matrix and bias needs an address of its own there
 * and a shape. The layout: for every pseudo-layer (a layer in one direction) the input matrices of all gates, then the
 * recurrent ones, then the projection; after all matrices, the biases in the same order. */
#include <stdint.h>

#include "dnn.h"

typedef struct {
    cudnnRNNMode_t cell;
    cudnnRNNBiasMode_t bias;
    cudnnDirectionMode_t direction;
    cudnnDataType_t type;
    int32_t input, hidden, projection, layers;
} rnn_shape;

typedef cudnnStatus_t (*get_rnn_descriptor)(cudnnRNNDescriptor_t, cudnnRNNAlgo_t *, cudnnRNNMode_t *,
                                            cudnnRNNBiasMode_t *, cudnnDirectionMode_t *, cudnnRNNInputMode_t *,
                                            cudnnDataType_t *, cudnnDataType_t *, cudnnMathType_t *, int32_t *,
                                            int32_t *, int32_t *, int32_t *, cudnnDropoutDescriptor_t *, uint32_t *);

static cudnnStatus_t read_shape(cudnnRNNDescriptor_t descriptor, rnn_shape *shape) {
    get_rnn_descriptor get = (get_rnn_descriptor)stub_real_cudnn("cudnnGetRNNDescriptor_v8");
    cudnnRNNAlgo_t algorithm;
    cudnnRNNInputMode_t input_mode;
    cudnnDataType_t precision;
    cudnnMathType_t math;
    cudnnDropoutDescriptor_t dropout;
    uint32_t flags;
    if (!get) return CUDNN_STATUS_NOT_INITIALIZED;
    return get(descriptor, &algorithm, &shape->cell, &shape->bias, &shape->direction, &input_mode, &shape->type,
               &precision, &math, &shape->input, &shape->hidden, &shape->projection, &shape->layers, &dropout, &flags);
}

static int gates(const rnn_shape *shape) {
    return shape->cell == CUDNN_LSTM ? 4 : shape->cell == CUDNN_GRU ? 3 : 1;
}

static int directions(const rnn_shape *shape) { return shape->direction == CUDNN_BIDIRECTIONAL ? 2 : 1; }

/* The width of what one direction hands on: the projection where there is one. */
static int32_t output(const rnn_shape *shape) {
    return shape->projection ? shape->projection : shape->hidden;
}

static bool has_projection(const rnn_shape *shape) { return output(shape) != shape->hidden; }

static int32_t input_of(const rnn_shape *shape, int pseudo_layer) {
    return pseudo_layer < directions(shape) ? shape->input : directions(shape) * output(shape);
}

static size_t matrices_of(const rnn_shape *shape, int pseudo_layer) {
    size_t hidden = (size_t)shape->hidden;
    size_t per_gate = hidden * (size_t)(input_of(shape, pseudo_layer) + output(shape));
    return (size_t)gates(shape) * per_gate + (has_projection(shape) ? hidden * (size_t)shape->projection : 0);
}

static int bias_sets(const rnn_shape *shape) {
    return shape->bias == CUDNN_RNN_NO_BIAS ? 0 : shape->bias == CUDNN_RNN_DOUBLE_BIAS ? 2 : 1;
}

static size_t biases_of(const rnn_shape *shape) {
    return (size_t)bias_sets(shape) * (size_t)gates(shape) * (size_t)shape->hidden;
}

static size_t matrices_before(const rnn_shape *shape, int pseudo_layer) {
    size_t total = 0;
    for (int i = 0; i < pseudo_layer; i++) total += matrices_of(shape, i);
    return total;
}

static int pseudo_layers(const rnn_shape *shape) { return shape->layers * directions(shape); }

static size_t element_size(cudnnDataType_t type) {
    return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_FLOAT ? 4 : 2;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor, size_t *size) {
    (void)handle;
    rnn_shape shape;
    cudnnStatus_t status = read_shape(descriptor, &shape);
    if (status) return status;
    size_t elements = matrices_before(&shape, pseudo_layers(&shape));
    elements += (size_t)pseudo_layers(&shape) * biases_of(&shape);
    *size = elements * element_size(shape.type);
    return CUDNN_STATUS_SUCCESS;
}

/* Where a part begins, counted in elements of the weight space, and its shape. */
typedef struct {
    bool exists;
    size_t offset;
    int rows, columns;
} part;

static part matrix_part(const rnn_shape *shape, int pseudo_layer, int id) {
    int count = gates(shape), input = input_of(shape, pseudo_layer), recurrent = output(shape);
    size_t hidden = (size_t)shape->hidden, offset = matrices_before(shape, pseudo_layer);
    if (id < count) return (part){true, offset + (size_t)id * hidden * (size_t)input, shape->hidden, input};
    offset += (size_t)count * hidden * (size_t)input;
    if (id < 2 * count)
        return (part){true, offset + (size_t)(id - count) * hidden * (size_t)recurrent, shape->hidden, recurrent};
    offset += (size_t)count * hidden * (size_t)recurrent;
    return (part){id == 2 * count && has_projection(shape), offset, shape->projection, shape->hidden};
}

static part bias_part(const rnn_shape *shape, int pseudo_layer, int id) {
    size_t offset = matrices_before(shape, pseudo_layers(shape)) + (size_t)pseudo_layer * biases_of(shape);
    bool exists = id < bias_sets(shape) * gates(shape);
    return (part){exists, offset + (size_t)id * (size_t)shape->hidden, shape->hidden, 1};
}

typedef cudnnStatus_t (*set_tensor)(cudnnTensorDescriptor_t, cudnnDataType_t, int, const int[], const int[]);

/* Either half of the answer may not be wanted: then its descriptor or its address is null. */
static cudnnStatus_t answer(part found, cudnnDataType_t type, const void *space, cudnnTensorDescriptor_t descriptor,
                            void **address) {
    if (address) *address = found.exists ? (char *)space + found.offset * element_size(type) : NULL;
    if (!descriptor || !found.exists) return CUDNN_STATUS_SUCCESS;
    set_tensor set = (set_tensor)stub_real_cudnn("cudnnSetTensorNdDescriptor");
    int sizes[3] = {1, found.rows, found.columns};
    int strides[3] = {found.rows * found.columns, found.columns, 1};
    return set ? set(descriptor, type, 3, sizes, strides) : CUDNN_STATUS_NOT_INITIALIZED;
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor, int32_t pseudo_layer,
                                      size_t size, const void *space, int32_t id, cudnnTensorDescriptor_t matrix,
                                      void **matrix_address, cudnnTensorDescriptor_t bias, void **bias_address) {
    (void)handle;
    (void)size;
    rnn_shape shape;
    cudnnStatus_t status = read_shape(descriptor, &shape);
    if (status) return status;
    status = answer(matrix_part(&shape, pseudo_layer, id), shape.type, space, matrix, matrix_address);
    if (status) return status;
    return answer(bias_part(&shape, pseudo_layer, id), shape.type, space, bias, bias_address);
}

/* How much memory cuDNN would need is its secret, so the stub's figures leave its workspaces out. The reserve of a
 * training forward must not be empty, though: that of an eval forward is, and by this difference checkpointing notices
 * that the mode changed between a forward and the forward that backward runs again. */
cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t descriptor, cudnnForwardMode_t mode,
                                        cudnnRNNDataDescriptor_t input, size_t *work, size_t *reserve) {
    enum { NOT_EMPTY = 16 };
    (void)handle, (void)descriptor, (void)input;
    if (work) *work = 0;
    if (reserve) *reserve = mode == CUDNN_FWD_MODE_TRAINING ? NOT_EMPTY : 0;
    return CUDNN_STATUS_SUCCESS;
}
