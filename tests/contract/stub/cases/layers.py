"""Layers that stand around a recurrent one in people's models. Each runs forward and backward."""

from __future__ import annotations

import torch
from torch import nn


def _train(module: nn.Module, *inputs: torch.Tensor) -> str:
    """One forward and one backward; the name of the operation that made the output."""
    module.cuda()
    output = module(*inputs)
    output = output[0] if isinstance(output, tuple) else output
    output.float().sum().backward()
    missing = [name for name, one in module.named_parameters() if one.grad is None]
    assert not missing, f"no gradient for {missing}"
    return output.grad_fn.name()


def _image() -> torch.Tensor:
    return torch.randn(2, 1, 16, 12, device="cuda", requires_grad=True)


class _Speech(nn.Module):
    """Convolutions over a spectrogram, then a recurrent layer over time."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.rnn = nn.GRU(4 * 6, 8, batch_first=True, bidirectional=True)
        self.head = nn.Linear(16, 5)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        features = torch.relu(self.norm(self.conv(image)))
        batch, channels, time, width = features.shape
        return self.head(self.rnn(features.permute(0, 2, 1, 3).reshape(batch, time, channels * width))[0])


def conv2d_before_rnn_train() -> str:
    return _train(_Speech(), _image())


def conv2d_before_rnn_eval() -> str:
    return _train(_Speech().eval(), _image())


def conv2d_before_rnn_eval_without_cudnn() -> str:
    with torch.backends.cudnn.flags(enabled=False):
        return _train(_Speech().eval(), _image())


def conv2d_benchmark() -> str:
    torch.backends.cudnn.benchmark = True
    return _train(nn.Conv2d(1, 4, 3), _image())


def conv2d_deterministic() -> str:
    torch.use_deterministic_algorithms(True)
    return _train(nn.Conv2d(1, 4, 3), _image())


def conv2d_bfloat16_channels_last() -> str:
    image = _image().detach().bfloat16().to(memory_format=torch.channels_last)
    return _train(nn.Conv2d(1, 4, 3).bfloat16(), image)


def conv1d() -> str:
    return _train(nn.Conv1d(3, 4, 3), torch.randn(2, 3, 9, device="cuda"))


def conv3d() -> str:
    return _train(nn.Conv3d(1, 2, 3), torch.randn(2, 1, 5, 5, 5, device="cuda"))


def conv_grouped_dilated() -> str:
    return _train(nn.Conv2d(4, 4, 3, groups=4, dilation=2), torch.randn(2, 4, 9, 9, device="cuda"))


def conv_transposed() -> str:
    return _train(nn.ConvTranspose2d(1, 2, 3, stride=2), _image())


def embedding() -> str:
    return _train(nn.Embedding(10, 4, padding_idx=0), torch.randint(0, 10, (3, 5), device="cuda"))


def embedding_sparse() -> str:
    return _train(nn.Embedding(10, 4, sparse=True), torch.randint(0, 10, (3, 5), device="cuda"))


def embedding_large() -> str:
    return _train(nn.Embedding(5000, 8), torch.randint(0, 5000, (64, 200), device="cuda"))


def embedding_bag() -> str:
    return _train(nn.EmbeddingBag(10, 4, mode="mean"), torch.randint(0, 10, (3, 5), device="cuda"))


def embedding_scaled_by_frequency() -> str:
    return _train(nn.Embedding(10, 4, scale_grad_by_freq=True), torch.randint(0, 10, (3, 5), device="cuda"))


def multihead_attention() -> str:
    x = torch.randn(5, 2, 16, device="cuda")
    return _train(nn.MultiheadAttention(16, 4), x, x, x)


def _attention(dtype: torch.dtype, **options: object) -> str:
    q, k, v = (torch.randn(2, 4, 16, 64, device="cuda", dtype=dtype, requires_grad=True) for _ in range(3))
    output = nn.functional.scaled_dot_product_attention(q, k, v, **options)
    output.sum().backward()
    assert q.grad is not None
    return output.grad_fn.name()


def attention_float32() -> str:
    return _attention(torch.float32)


def attention_float16_causal() -> str:
    return _attention(torch.float16, is_causal=True)


def attention_bfloat16_dropout() -> str:
    return _attention(torch.bfloat16, dropout_p=0.1)


def attention_through_cudnn() -> str:
    with nn.attention.sdpa_kernel(nn.attention.SDPBackend.CUDNN_ATTENTION):
        return _attention(torch.bfloat16)


def _transformer() -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)


def transformer_train() -> str:
    return _train(_transformer(), torch.randn(2, 5, 16, device="cuda"))


def transformer_eval() -> str:
    return _train(_transformer().eval(), torch.randn(2, 5, 16, device="cuda"))


def transformer_eval_fast_path() -> list[int]:
    module = _transformer().cuda().eval()
    with torch.no_grad():
        return list(module(torch.randn(2, 5, 16, device="cuda")).shape)


def transformer_decoder_bfloat16_autocast() -> str:
    x = torch.randn(2, 5, 16, device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return _train(nn.TransformerDecoderLayer(16, 4, 32, batch_first=True), x, x)


def batch_norm_train() -> str:
    return _train(nn.BatchNorm1d(4), torch.randn(3, 4, 5, device="cuda"))


def batch_norm_eval() -> str:
    return _train(nn.BatchNorm1d(4).eval(), torch.randn(3, 4, 5, device="cuda"))


def batch_norm_channels_last() -> str:
    image = torch.randn(2, 4, 8, 8, device="cuda").half().to(memory_format=torch.channels_last)
    return _train(nn.BatchNorm2d(4), image)


def batch_norm_of_one() -> str:
    return _train(nn.BatchNorm1d(4), torch.randn(1, 4, device="cuda"))


def layer_norm() -> str:
    return _train(nn.LayerNorm(8), torch.randn(3, 8, device="cuda"))


def group_norm() -> str:
    return _train(nn.GroupNorm(2, 4), torch.randn(3, 4, 5, device="cuda"))


def pooling_and_dropout() -> str:
    return _train(
        nn.Sequential(nn.Conv2d(1, 2, 3), nn.MaxPool2d(2), nn.Dropout(0.5), nn.AdaptiveAvgPool2d(1)), _image()
    )


def grid_sample() -> str:
    image, grid = _image(), torch.zeros(2, 4, 4, 2, device="cuda", requires_grad=True)
    output = nn.functional.grid_sample(image, grid, align_corners=True)
    output.sum().backward()
    return output.grad_fn.name()
