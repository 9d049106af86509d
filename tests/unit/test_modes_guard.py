"""The guard: when it raises, when it stays silent, and that it leaves PyTorch as it was."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.checkpoint import checkpoint

from harness.modes import EvalModeBackwardError, backend, guard

X = torch.ones(2, 3, 4)


class Net(nn.Module):
    def __init__(self, rnn: nn.Module | None = None) -> None:
        super().__init__()
        self.encoder = nn.Linear(4, 4)
        self.rnn = rnn or nn.LSTM(4, 5, batch_first=True)
        self.head = nn.Linear(5, 1)

    def forward(self, sequence: Tensor) -> Tensor:
        return self.head(self.rnn(self.encoder(sequence))[0])


@pytest.fixture(autouse=True)
def leaves_pytorch_as_it_was() -> Iterator[None]:
    before = dict(vars(nn.RNNBase)), dict(vars(torch._VF))
    yield
    assert (dict(vars(nn.RNNBase)), dict(vars(torch._VF))) == before


def raises(function: Callable[[], Any]) -> bool:
    try:
        function()
    except EvalModeBackwardError:
        return True
    return False


@pytest.mark.parametrize("make", [nn.RNN, nn.LSTM, nn.GRU, lambda *a, **k: nn.RNN(*a, nonlinearity="relu", **k)])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("mode", [True, False])
def test_raises_exactly_after_a_forward_in_eval_mode(make: Any, packed: bool, mode: bool) -> None:
    rnn = make(4, 5, batch_first=True).train(mode)
    x = pack_padded_sequence(X, [3, 2], batch_first=True) if packed else X
    with guard():
        output = rnn(x)[0]
        loss = (output.data if packed else output).sum()
        assert raises(loss.backward) is not mode


def test_it_is_the_mode_at_the_forward_that_counts() -> None:
    net = Net()
    with guard():
        net.eval()
        late = net(X).sum()
        net.train()
        assert raises(late.backward)
        early = net(X).sum()
        net.eval()
        early.backward()


def nothing_of_the_rnn(net: Net) -> None:
    torch.autograd.grad(net(X).sum(), [net.head.weight])


def detached(net: Net) -> None:
    net.head(net.rnn(X)[0].detach()).sum().backward()


def output_unused(net: Net) -> None:
    unused = net.rnn(X)[0]
    net.encoder(X).sum().backward()
    assert unused.requires_grad, "it has a graph, and the loss is no part of that"


class NoGradient(torch.autograd.Function):
    @staticmethod
    def forward(_context: Any, value: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def backward(_context: Any, _gradient: Tensor) -> None:
        return None


def reached_without_a_gradient(net: Net) -> None:
    """The engine comes by, with nothing in its hands."""
    net.head(NoGradient.apply(net.rnn(X)[0])).sum().backward()


def without_cudnn(net: Net) -> None:
    with torch.backends.cudnn.flags(enabled=False):
        loss = net(X).sum()
    loss.backward()


def frozen(net: Net) -> None:
    net.rnn.requires_grad_(False)
    net.head(net.rnn(X)[0]).sum().backward()


def under_no_grad(net: Net) -> None:
    with torch.no_grad():
        output = net.rnn(X)[0]
    net.head(output).sum().backward()


def in_inference_mode(net: Net) -> None:
    with torch.inference_mode():
        output = net.rnn(X)[0]
    net.head(output.clone()).sum().backward()
    assert net.head.weight.grad is not None


def empty_batch(net: Net) -> None:
    net(X[:0]).sum().backward()


def cell(net: Net) -> None:
    nn.LSTMCell(4, 5).eval()(X[:, 0])[0].sum().backward()


def bfloat16_on_an_old_build(net: Net) -> None:
    """As on a build whose cuDNN does not take it."""
    net.bfloat16()(X.bfloat16()).sum().backward()


SILENT = (
    nothing_of_the_rnn,
    detached,
    output_unused,
    reached_without_a_gradient,
    without_cudnn,
    frozen,
    under_no_grad,
    in_inference_mode,
    empty_batch,
    cell,
    bfloat16_on_an_old_build,
)


@pytest.mark.parametrize("program", SILENT)
def test_stays_silent_where_cudnn_does(program: Callable[[Net], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "bfloat16_runs_on_cudnn", lambda: False)
    with guard():
        program(Net().eval())


def input_alone(net: Net) -> None:
    net.requires_grad_(False)
    x = X.clone().requires_grad_()
    torch.autograd.grad(net(x).sum(), [x])


def last_state_alone(net: Net) -> None:
    net.rnn(X)[1][0].sum().backward()


def cell_state_alone(net: Net) -> None:
    net.rnn(X)[1][1].sum().backward()


def changed_in_place(net: Net) -> None:
    """The output of a batch-first LSTM is a view on a CPU; an operation in place leaves the view's node behind."""
    output = net.rnn(X)[0]
    output[:, 0] = 0
    output.sum().backward()


def cudnn_off_for_the_backward_alone(net: Net) -> None:
    loss = net(X).sum()
    with torch.backends.cudnn.flags(enabled=False):
        loss.backward()


def zero_gradient(net: Net) -> None:
    (net(X) * 0).sum().backward()


def create_graph(net: Net) -> None:
    torch.autograd.grad(net(X).sum(), list(net.parameters()), create_graph=True)


def checkpointed_reentrant_in_eval_by_then(net: Net) -> None:
    net.train()
    x = X.clone().requires_grad_()
    loss = checkpoint(net, x, use_reentrant=True).sum()
    net.eval()
    loss.backward()


def functional(net: Net) -> None:
    torch.func.functional_call(net, dict(net.named_parameters()), (X,)).sum().backward()


def in_another_thread(net: Net) -> None:
    caught: list[BaseException] = []

    def work() -> None:
        try:
            net(X).sum().backward()
        except EvalModeBackwardError as error:
            caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    for error in caught:
        raise error


LOUD = (
    input_alone,
    last_state_alone,
    cell_state_alone,
    changed_in_place,
    cudnn_off_for_the_backward_alone,
    zero_gradient,
    create_graph,
    checkpointed_reentrant_in_eval_by_then,
    functional,
    in_another_thread,
)


@pytest.mark.parametrize("program", LOUD)
def test_raises_wherever_a_gradient_arrives(program: Callable[[Net], None]) -> None:
    with guard(), pytest.raises(EvalModeBackwardError):
        program(Net().eval())


def test_a_retained_graph_raises_every_time_and_a_second_use_of_a_module_is_judged_alone() -> None:
    net = Net()
    with guard():
        first = net(X).sum()
        second = net.eval()(X).sum()
        first.backward(retain_graph=True)
        for _ in range(2):
            assert raises(lambda: second.backward(retain_graph=True))
        first.backward()


def test_the_forward_guard_raises_before_the_backward_and_only_where_a_graph_is_recorded() -> None:
    net = Net().eval()
    with guard(when="forward"):
        with torch.no_grad():
            net(X)
        assert raises(lambda: net(X))
        net.train()(X).sum().backward()
