"""What the stub does not do. Each must say so in the exception, in these words, and nothing may crash."""

from __future__ import annotations

import torch


def _matrix() -> torch.Tensor:
    return torch.eye(4, device="cuda")


def fft() -> None:
    torch.fft.fft(torch.ones(8, device="cuda"))


def rfft2() -> None:
    torch.fft.rfft2(torch.ones(4, 4, device="cuda"))


def stft() -> None:
    torch.stft(torch.ones(400, device="cuda"), 64, window=torch.ones(64, device="cuda"), return_complex=True)


def cholesky() -> None:
    torch.linalg.cholesky(_matrix())


def cholesky_batched() -> None:
    torch.linalg.cholesky(torch.eye(3, device="cuda").repeat(5, 1, 1))


def cholesky_solve() -> None:
    torch.cholesky_solve(_matrix(), _matrix())


def cholesky_inverse() -> None:
    torch.cholesky_inverse(_matrix())


def inverse() -> None:
    torch.linalg.inv(_matrix())


def inverse_batched() -> None:
    torch.linalg.inv(torch.eye(3, device="cuda").repeat(5, 1, 1))


def solve() -> None:
    torch.linalg.solve(_matrix(), _matrix())


def determinant() -> None:
    torch.linalg.det(_matrix())


def lu_factor_batched() -> None:
    torch.linalg.lu_factor(torch.eye(3, device="cuda").repeat(5, 1, 1))


def lu_solve() -> None:
    torch.linalg.lu_solve(_matrix(), torch.ones(4, dtype=torch.int32, device="cuda"), _matrix())


def qr() -> None:
    torch.linalg.qr(_matrix())


def qr_batched() -> None:
    torch.linalg.qr(torch.eye(3, device="cuda").repeat(5, 1, 1))


def householder_product() -> None:
    torch.linalg.householder_product(_matrix(), torch.ones(4, device="cuda"))


def svd() -> None:
    torch.linalg.svd(_matrix())


def singular_values() -> None:
    torch.linalg.svdvals(_matrix())


def pseudo_inverse() -> None:
    torch.linalg.pinv(_matrix())


def spectral_norm_of_a_matrix() -> None:
    torch.linalg.matrix_norm(_matrix(), ord=2)


def eigenvalues_symmetric() -> None:
    torch.linalg.eigh(_matrix())


def eigenvalues() -> None:
    torch.linalg.eig(_matrix())


def least_squares() -> None:
    torch.linalg.lstsq(_matrix(), _matrix())


def ldl_factor() -> None:
    torch.linalg.ldl_factor(_matrix())


def orthogonal_initialisation() -> None:
    torch.nn.init.orthogonal_(torch.empty(4, 4, device="cuda"))


def _sparse() -> torch.Tensor:
    return torch.sparse_csr_tensor(torch.tensor([0, 1, 2]), torch.tensor([0, 1]), torch.ones(2), (2, 2)).cuda()


def sparse_matrix_product() -> None:
    torch.sparse.mm(_sparse(), torch.ones(2, 2, device="cuda"))


def sparse_matrix_times_vector() -> None:
    torch.mv(_sparse(), torch.ones(2, device="cuda"))


def nccl_between_processes() -> None:
    import os
    import tempfile

    import torch.distributed as dist

    file = os.path.join(tempfile.mkdtemp(), "rendezvous")  # noqa: PTH118
    dist.init_process_group("nccl", init_method=f"file://{file}", rank=0, world_size=1)
    dist.all_reduce(torch.ones(3, device="cuda"))


def tensor_to_another_process() -> None:
    from torch.multiprocessing.reductions import reduce_tensor

    reduce_tensor(torch.ones(3, device="cuda"))


class _FourierInBackward(torch.autograd.Function):
    @staticmethod
    def forward(_: object, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(_: object, gradient: torch.Tensor) -> torch.Tensor:
        return torch.fft.fft(gradient).real


def refused_in_a_thread_of_autograd() -> None:
    _FourierInBackward.apply(torch.ones(8, device="cuda", requires_grad=True)).sum().backward()
