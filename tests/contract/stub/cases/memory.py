"""The allocator: statistics, out of memory, and what old memory looks like when it is handed out again."""

from __future__ import annotations

import contextlib

import torch
from torch import nn


def allocator_statistics() -> list[object]:
    before = torch.cuda.memory_allocated()
    block = torch.empty(3 * 1024 * 1024, dtype=torch.uint8, device="cuda")
    held = torch.cuda.memory_allocated() - before
    del block
    free, total = torch.cuda.mem_get_info()
    return [
        held,
        torch.cuda.memory_allocated() - before,
        torch.cuda.max_memory_allocated() - before,
        torch.cuda.memory_reserved() == total - free,
        total,
    ]


def memory_is_given_back() -> list[int]:
    torch.empty(100 * 1024 * 1024, dtype=torch.uint8, device="cuda")
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    return [torch.cuda.memory_reserved(), total - free]


def old_memory_is_cleared() -> list[float]:
    """Small and large blocks, used again: results of kernels that did not run are zeros."""
    seen = []
    for size in (100, 100_000, 20_000_000):
        block = torch.full((size,), 7.0).cuda()
        address = block.data_ptr()
        del block
        again = torch.empty(size, device="cuda")
        assert again.data_ptr() == address, "the allocator did not hand out the old block"
        seen.append(float(again.cpu().abs().max()))
    return seen


def a_parameter_keeps_its_value() -> list[bool]:
    """What a kernel should have changed stays as it was copied to the device."""
    model = nn.Linear(4, 4)
    before = model.weight.detach().clone()
    model.cuda()(torch.randn(2, 4, device="cuda")).sum().backward()
    torch.optim.SGD(model.parameters(), lr=1.0).step()
    return [bool((model.weight.detach().cpu() == before).all()), float(model.weight.grad.abs().sum()) == 0.0]


def results_repeat() -> bool:
    """The same program twice, with other memory use in between, gives the same bytes."""

    def outputs() -> list[float]:
        torch.manual_seed(0)
        model = nn.LSTM(4, 8).cuda()
        return model(torch.randn(5, 3, 4).cuda())[0].flatten().tolist()

    first = outputs()
    torch.full((100_000,), 3.0).cuda()
    return outputs() == first


def out_of_memory() -> None:
    torch.empty(20 * 1024**3, dtype=torch.uint8, device="cuda")


def out_of_memory_bit_by_bit() -> None:
    kept = []
    while True:
        kept.append(torch.empty(1024**3, dtype=torch.uint8, device="cuda"))


def works_after_out_of_memory() -> float:
    with contextlib.suppress(torch.OutOfMemoryError):
        out_of_memory()
    return torch.ones(3).cuda().cpu().sum().item()


def large_memory_is_not_touched() -> int:
    """Eight GiB on the device cost next to nothing on the host."""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    blocks = [torch.zeros(1024**3, dtype=torch.uint8, device="cuda") for _ in range(8)]
    assert len(blocks) == 8
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024


def expandable_segments() -> list[object]:
    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    block = torch.ones(3_000_000).cuda()
    held, address = torch.cuda.memory_reserved(), block.data_ptr()
    del block
    again = torch.empty(3_000_000, device="cuda")
    cleared = [again.data_ptr() == address, float(again.cpu().max())]
    try:
        torch.empty(20 * 1024**3, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        cleared.append("out of memory")
    del again
    torch.cuda.empty_cache()
    return [held, *cleared, torch.cuda.memory_reserved()]


def memory_fraction() -> None:
    torch.cuda.set_per_process_memory_fraction(0.01)
    torch.empty(1024**3, dtype=torch.uint8, device="cuda")
