"""Programs that are run whole, in a process of their own, as a person's script would be."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from pathlib import Path


def exit_while_autograd_is_at_work() -> None:
    """The interpreter ends while autograd's device thread sleeps in Python and will ask for the GIL again.

    This is the rare abort at exit ("terminate called without an active exception", 134) made certain.
    """
    import torch

    x = torch.randn(5, 3, 8, device="cuda", requires_grad=True)
    asleep = threading.Event()

    def sleep_in_backward(gradient: torch.Tensor) -> None:
        asleep.set()
        time.sleep(0.5)

    x.register_hook(sleep_in_backward)
    layer = torch.nn.LSTM(8, 16).cuda()
    threading.Thread(target=lambda: layer(x)[0].sum().backward(), daemon=True).start()
    asleep.wait()
    sys.exit(7)


def data_parallel_on_two_devices() -> None:
    import torch

    for train in (True, False):
        model = torch.nn.DataParallel(torch.nn.LSTM(4, 8, batch_first=True).cuda()).train(train)
        assert model.device_ids == [0, 1]
        try:
            output = model(torch.randn(6, 5, 4, device="cuda"))[0]
            output.sum().backward()
            print(train, tuple(output.shape), flush=True)
        except RuntimeError as error:
            print(train, error, flush=True)


def _distributed_rank(rank: int, file: str, *, train: bool) -> None:
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
    model = torch.nn.LSTM(4, 8).cuda().train(train)
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    said = "ok"
    try:
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.randn(5, 3, 4, device="cuda"))[0].sum().backward()
            optimizer.step()
    except RuntimeError as error:
        said = str(error)
    print(f"rank {rank}, {'train' if train else 'eval'}: {said}\n", end="", flush=True)
    os._exit(0)


def distributed_data_parallel_on_gloo() -> None:
    import torch._dynamo  # noqa: F401 - DistributedDataParallel wants it; once, for all ranks

    for train in (True, False):
        file = str(Path(tempfile.mkdtemp()) / "rendezvous")
        ranks = []
        for rank in range(2):
            if (pid := os.fork()) == 0:
                _distributed_rank(rank, file, train=train)
            ranks.append(pid)
        for pid in ranks:
            os.waitpid(pid, 0)


def children_at_once() -> None:
    """A zygote with eight attempts at the same time."""
    import torch

    def attempt(number: int) -> int:
        layer = torch.nn.LSTM(4, 8).cuda().train(number % 2 == 0)
        try:
            for _ in range(20):
                layer(torch.randn(5, 3, 4, device="cuda"))[0].sum().backward()
        except RuntimeError as error:
            return 10 if "cudnn RNN backward can only be called in training mode" in str(error) else 20
        return 0

    children = []
    for number in range(8):
        if (pid := os.fork()) == 0:
            os._exit(attempt(number))
        children.append(pid)
    print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children])


def what_cuda_is_there() -> None:
    import warnings

    import torch

    warnings.simplefilter("ignore")
    print(torch.cuda.is_available(), torch.cuda.device_count())
    try:
        torch.zeros(1, device="cuda")
    except Exception as error:
        print(error)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
