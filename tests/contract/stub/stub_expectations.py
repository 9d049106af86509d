"""What each case in ``cases/`` must end in: a value, or an exception of a type whose message has a fragment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

ANY = object()


@dataclass(frozen=True)
class Ok:
    """The case returns this value."""

    value: object = None


@dataclass(frozen=True)
class Raises:
    """The case raises exactly this type, and its message has this fragment."""

    kind: str
    fragment: str
    older: str = ""
    """The type in a PyTorch that does not have the newer one yet."""


EVAL = Raises("RuntimeError", "cudnn RNN backward can only be called in training mode")
FINE = Ok(None)


def refused(function: str) -> Raises:
    return Raises("RuntimeError", f"the harness stub does not do {function}")


def device_error(fragment: str) -> Raises:
    """An error of the CUDA runtime; PyTorch gave it a type of its own in 2.8."""
    return Raises("torch.AcceleratorError", f"CUDA error: {fragment}", older="RuntimeError")


OUT_OF_MEMORY = Raises("torch.OutOfMemoryError", "CUDA out of memory. Tried to allocate")
CONV = Ok("ConvolutionBackward0")
STEPPED = Ok(4)

_LAYERS = {
    "conv2d_before_rnn_train": Ok("AddBackward0"),
    "conv2d_before_rnn_eval": EVAL,
    "conv2d_before_rnn_eval_without_cudnn": Ok("AddBackward0"),
    "conv2d_benchmark": CONV,
    "conv2d_deterministic": CONV,
    "conv2d_bfloat16_channels_last": CONV,
    "conv1d": CONV,
    "conv3d": CONV,
    "conv_grouped_dilated": CONV,
    "conv_transposed": CONV,
    "embedding": Ok("EmbeddingBackward0"),
    "embedding_sparse": Ok("EmbeddingBackward0"),
    "embedding_large": Ok("EmbeddingBackward0"),
    "embedding_bag": Ok("EmbeddingBagBackward0"),
    "embedding_scaled_by_frequency": Ok("EmbeddingBackward0"),
    "multihead_attention": Ok("ViewBackward0"),
    "attention_float32": Ok("ScaledDotProductEfficientAttentionBackward0"),
    "attention_float16_causal": Ok("ScaledDotProductFlashAttentionBackward0"),
    "attention_bfloat16_dropout": Ok("ScaledDotProductFlashAttentionBackward0"),
    "attention_through_cudnn": refused("cudnnBackendCreateDescriptor"),
    "transformer_train": Ok("NativeLayerNormBackward0"),
    "transformer_eval": Ok("NativeLayerNormBackward0"),
    "transformer_eval_fast_path": Ok([2, 5, 16]),
    "transformer_decoder_bfloat16_autocast": Ok("NativeLayerNormBackward0"),
    "batch_norm_train": Ok("CudnnBatchNormBackward0"),
    "batch_norm_eval": Ok("CudnnBatchNormBackward0"),
    "batch_norm_channels_last": Ok("CudnnBatchNormBackward0"),
    "batch_norm_of_one": Raises("ValueError", "Expected more than 1 value per channel when training"),
    "layer_norm": Ok("NativeLayerNormBackward0"),
    "group_norm": Ok("NativeGroupNormBackward0"),
    "pooling_and_dropout": Ok("MeanBackward1"),
    "grid_sample": Ok("CudnnGridSamplerBackward0"),
}

_LOSSES = {
    "cross_entropy": Ok("AddBackward0"),
    "binary_cross_entropy": Ok("BinaryCrossEntropyWithLogitsBackward0"),
    "ctc_native": Ok("MeanBackward0"),
    "ctc_through_cudnn": Ok(["CudnnCtcLossBackward1", "LogSoftmaxBackward0"]),
    "sgd": STEPPED,
    "sgd_foreach": STEPPED,
    "sgd_fused": STEPPED,
    "adam": STEPPED,
    "adam_foreach": STEPPED,
    "adam_fused": STEPPED,
    "adam_capturable": STEPPED,
    "adamw": STEPPED,
    "adamw_fused": STEPPED,
    "rmsprop": STEPPED,
    "clipping_by_norm": Ok(0.0),
    "clipping_by_value": FINE,
    # The scale itself lives on the device, where no kernel set it: it reads as zero, and the step is still taken.
    "grad_scaler": Ok([True, [0.0, 0.0]]),
    "grad_scaler_eval_rnn": EVAL,
}

_GRAPH = {
    "checkpoint_train": FINE,
    "checkpoint_train_reentrant": FINE,
    "checkpoint_eval": EVAL,
    "checkpoint_eval_reentrant": EVAL,
    # The forward that backward runs again is in eval then, and keeps another reserve than the first.
    "checkpoint_mode_change_between": Raises(
        "torch.utils.checkpoint.CheckpointError", "have different metadata than during the forward pass"
    ),
    "functional_call_train": FINE,
    "functional_call_eval": EVAL,
    "double_backward_cudnn": Raises(
        "NotImplementedError", "the derivative for '_cudnn_rnn_backward' is not implemented"
    ),
    "double_backward_native": FINE,
    "double_backward_native_eval": FINE,
    "frozen_rnn_in_eval": EVAL,
    "output_of_eval_not_used": FINE,
    "no_grad": Raises("RuntimeError", "element 0 of tensors does not require grad and does not have a grad_fn"),
    "train_between_forward_and_backward": EVAL,
    "eval_between_forward_and_backward": FINE,
    "cudnn_off_around_backward_only": EVAL,
    "empty_batch": FINE,
    "lstm_cell": FINE,
    "data_parallel_train": Ok("cuda:0"),
    "data_parallel_eval": EVAL,
    "vmap_over_rnn": Raises("RuntimeError", "Batching rule not implemented for aten::lstm.input"),
    "hook_sees_the_gradient": Ok(True),
    "anomaly_detection": EVAL,
    "hidden_state_not_contiguous": Raises("RuntimeError", "rnn: hx is not contiguous"),
    "hidden_state_of_the_wrong_size": Raises("RuntimeError", "Expected hidden size (1, 3, 8), got [1, 3, 9]"),
    "weights_not_in_one_chunk": Ok("RNN module weights are not part of single contiguous chunk"),
    "weight_norm": FINE,
    "weight_norm_eval": EVAL,
}

_GIB = 1024**3

_RUNTIME = {
    "device_name": Ok("harness stub (no GPU)"),
    "device_properties": Ok(["harness stub (no GPU)", 16 * _GIB, [9, 0], 1]),
    "bfloat16_is_supported": Ok(True),
    "streams_and_events": Ok(True),
    "event_not_recorded": Raises("ValueError", "Both events must be recorded", older="RuntimeError"),
    "graph_capture": Ok("(2, 4)"),
    "graph_capture_of_nothing": Ok(ANY),
    "graph_capture_rnn_train": FINE,
    "graph_capture_rnn_eval": EVAL,
    "graph_capture_with_item": device_error("operation failed due to a previous error during capture"),
    "make_graphed_callables": Ok("(2, 4)"),
    "pinned_memory": Ok([True, False, [0.0, 1.0, 2.0, 3.0, 4.0]]),
    "copies_are_real": Ok([True, 6.0, True]),
    "item_of_a_result": Ok([0.0, False, 0]),
    "no_nonzero_elements": Ok([0, 1]),
    "sort_unique_topk": Ok([[3000], [5], [3000]]),
    "unique": Ok(0),
    "multinomial": Ok([2]),
    "save_and_load": Ok([True, True]),
    "data_loader": Ok([[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], True]),
    "wrong_device": device_error("invalid device ordinal"),
    "mixed_devices": Raises("RuntimeError", "Input and parameter tensors are not at the same device"),
    "random_numbers": Ok([16, [0.0, 0.0, 0.0]]),
    "fork_after_cuda": Ok(ANY),
    "profiler": Ok(True),
    "jiterator": Ok([3]),
    "dot_product": Ok(0.0),
    "odds_and_ends": Ok([True, 0, True, 2]),
    "waiting_forbidden": Raises("RuntimeError", "called a synchronizing CUDA operation"),
}

_MEMORY = {
    "allocator_statistics": Ok([3 * 1024**2, 0, 3 * 1024**2, True, 16 * _GIB]),
    "memory_is_given_back": Ok([0, 0]),
    "old_memory_is_cleared": Ok([0.0, 0.0, 0.0]),
    "a_parameter_keeps_its_value": Ok([True, True]),
    "results_repeat": Ok(True),
    "out_of_memory": OUT_OF_MEMORY,
    "out_of_memory_bit_by_bit": OUT_OF_MEMORY,
    "works_after_out_of_memory": Ok(3.0),
    "large_memory_is_not_touched": Ok(ANY),
    "expandable_segments": Ok([20 * 1024**2, True, 0.0, "out of memory", 0]),
    "memory_fraction": OUT_OF_MEMORY,
}

_LINEAR_ALGEBRA = (
    "cholesky",
    "cholesky_batched",
    "cholesky_solve",
    "cholesky_inverse",
    "inverse",
    "solve",
    "determinant",
    "qr",
    "householder_product",
    "svd",
    "singular_values",
    "pseudo_inverse",
    "spectral_norm_of_a_matrix",
    "eigenvalues_symmetric",
    "least_squares",
    "ldl_factor",
    "orthogonal_initialisation",
)

_REFUSALS = {
    **{name: refused("cufftCreate") for name in ("fft", "rfft2", "stft")},
    **{name: refused("cusolverDnCreate") for name in _LINEAR_ALGEBRA},
    "inverse_batched": refused("cublasSgetrfBatched"),
    "lu_factor_batched": refused("cublasSgetrfBatched"),
    "lu_solve": refused("cublasSgetrsBatched"),
    "qr_batched": refused("cublasSgeqrfBatched"),
    # PyTorch first asks a kernel whether all is finite, and a kernel that did not run says no.
    "eigenvalues": Raises("RuntimeError", "input tensor should not contain infs or NaNs"),
    "refused_in_a_thread_of_autograd": refused("cufftCreate"),
    "sparse_matrix_product": refused("cusparseCreateCsr"),
    "sparse_matrix_times_vector": refused("cusparseCreateCsr"),
    "nccl_between_processes": refused("ncclGetUniqueId"),
    "tensor_to_another_process": device_error("the harness stub does not do cudaIpcGetMemHandle"),
}

_COMPILED = {
    "eager_train": FINE,
    "eager_eval": EVAL,
    "aot_eager_eval": EVAL,
    "aot_eager_eval_rnn_allowed": FINE,
    "inductor_train": FINE,
    "inductor_eval": EVAL,
}

_MODULES = {
    "layers": _LAYERS,
    "losses": _LOSSES,
    "graph": _GRAPH,
    "runtime": _RUNTIME,
    "memory": _MEMORY,
    "refusals": _REFUSALS,
    "compiled": _COMPILED,
}

EXPECTED: Mapping[str, Ok | Raises] = MappingProxyType(
    {f"{module}.{case}": end for module, cases in _MODULES.items() for case, end in cases.items()}
)
