"""CUDA itself, as PyTorch offers it: streams, graphs, pinned memory, the allocator."""

from __future__ import annotations

import io

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def device_name() -> str:
    return torch.cuda.get_device_name()


def device_properties() -> list[object]:
    properties = torch.cuda.get_device_properties(0)
    return [properties.name, properties.total_memory, torch.cuda.get_device_capability(), torch.cuda.device_count()]


def bfloat16_is_supported() -> bool:
    return torch.cuda.is_bf16_supported()


def streams_and_events() -> bool:
    stream, start, end = torch.cuda.Stream(priority=-1), *(torch.cuda.Event(enable_timing=True) for _ in range(2))
    x = torch.ones(4, device="cuda")
    start.record()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        y = x * 2
        y.record_stream(stream)
    torch.cuda.current_stream().wait_stream(stream)
    end.record()
    torch.cuda.synchronize()
    assert stream.query()
    assert end.query()
    return start.elapsed_time(end) > 0


def event_not_recorded() -> None:
    torch.cuda.Event(enable_timing=True).elapsed_time(torch.cuda.Event(enable_timing=True))


def graph_capture() -> str:
    model, x = nn.Linear(4, 4).cuda(), torch.randn(2, 4, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        model(x).sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)
        y.sum().backward()
    graph.replay()
    torch.cuda.synchronize()
    return str(tuple(y.shape))


def graph_capture_of_nothing() -> str:
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            pass
    return str(caught[0].message) if caught else "no warning"


def graph_capture_rnn_train() -> None:
    model, x = nn.LSTM(4, 8).cuda(), torch.randn(5, 3, 4, device="cuda")
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        model(x)[0].sum().backward()


def graph_capture_rnn_eval() -> None:
    model, x = nn.LSTM(4, 8).cuda().eval(), torch.randn(5, 3, 4, device="cuda")
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        model(x)[0].sum().backward()


def graph_capture_with_item() -> None:
    x = torch.ones(3, device="cuda")
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        (x + 1).sum().item()


def make_graphed_callables() -> str:
    model = torch.cuda.make_graphed_callables(nn.Linear(4, 4).cuda(), (torch.randn(2, 4, device="cuda"),))
    output = model(torch.randn(2, 4, device="cuda"))
    output.sum().backward()
    return str(tuple(output.shape))


def pinned_memory() -> list[object]:
    host = torch.arange(5.0).pin_memory()
    device = host.to("cuda", non_blocking=True)
    back = torch.empty(5, pin_memory=True)
    back.copy_(device, non_blocking=True)
    torch.cuda.synchronize()
    return [host.is_pinned(), torch.arange(3).is_pinned(), back.tolist()]


def copies_are_real() -> list[object]:
    table = torch.arange(12.0).reshape(3, 4)
    moved = table.cuda()
    return [moved.cpu().tolist() == table.tolist(), moved[1, 2].item(), moved.t().contiguous().shape == (4, 3)]


def item_of_a_result() -> list[object]:
    total = torch.ones(10, device="cuda").sum()
    return [total.item(), bool(total > 3), int(torch.ones(4, device="cuda").argmax())]


def no_nonzero_elements() -> list[int]:
    return list(torch.ones(5, device="cuda").nonzero().shape)


def sort_unique_topk() -> list[object]:
    x = torch.randn(3000, device="cuda")
    return [list(torch.sort(x)[0].shape), list(torch.topk(x, 5)[1].shape), list(torch.cumsum(x, 0).shape)]


def unique() -> int:
    return torch.randint(0, 9, (100,), device="cuda").unique().numel()


def multinomial() -> list[int]:
    return list(torch.multinomial(torch.ones(4, device="cuda"), 2).shape)


def save_and_load() -> list[object]:
    model = nn.LSTM(4, 8).cuda()
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    restored = torch.load(file, weights_only=True)
    file.seek(0)
    on_cpu = torch.load(file, map_location="cpu", weights_only=True)
    name = "weight_ih_l0"
    return [restored[name].is_cuda, bool((on_cpu[name] == model.state_dict()[name].cpu()).all())]


def data_loader() -> list[object]:
    data = TensorDataset(torch.arange(8.0).reshape(8, 1))
    loader = DataLoader(data, batch_size=2, num_workers=2, pin_memory=True)
    torch.zeros(1, device="cuda")
    seen, pinned = [], []
    for (batch,) in loader:
        pinned.append(batch.is_pinned())
        seen += batch.cuda(non_blocking=True).cpu().flatten().tolist()
    return [seen, all(pinned)]


def wrong_device() -> None:
    torch.ones(3, device="cuda:3")


def mixed_devices() -> None:
    nn.LSTM(4, 8).cuda()(torch.randn(5, 3, 4))


def random_numbers() -> list[object]:
    torch.cuda.manual_seed_all(3)
    state = torch.cuda.get_rng_state()
    torch.cuda.set_rng_state(state)
    return [state.numel(), torch.randn(3, device="cuda").tolist()]


def fork_after_cuda() -> str:
    """PyTorch's own check, which a zygote must respect: CUDA in the parent first, then in a forked child."""
    import os

    torch.zeros(1, device="cuda")
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            torch.zeros(1, device="cuda")
            said = "nothing"
        except RuntimeError as error:
            said = str(error)
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    return os.read(read, 4096).decode()


def profiler() -> bool:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as recorded:
        torch.ones(3, device="cuda").sum()
    return len(recorded.key_averages()) > 0


def jiterator() -> list[int]:
    return list(torch.special.bessel_j0(torch.ones(3, device="cuda")).shape)


def dot_product() -> float:
    x = torch.ones(4, device="cuda")
    return torch.dot(x, x).item()


def odds_and_ends() -> list[object]:
    torch.cuda.nvtx.range_push("a range")
    torch.cuda.nvtx.range_pop()
    torch.cuda.ipc_collect()
    torch.cuda.reset_peak_memory_stats()
    free, _ = torch.cuda.cudart().cudaMemGetInfo(0)
    return [
        "GPU" in torch.cuda.memory_summary(),
        len(torch.cuda.memory_snapshot()),
        free > 0,
        torch.cuda.nccl.version()[0],
    ]


def waiting_forbidden() -> None:
    torch.cuda.set_sync_debug_mode("error")
    torch.ones(3, device="cuda").sum().item()
