"""How the guard is used: nested, again, as a decorator; what it refuses; that it leaves PyTorch as it was."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import harness
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


def test_of_nested_guards_the_strictest_holds_and_each_ends_alone() -> None:
    net = Net().eval()
    with guard():
        with guard("forward"):
            with guard():
                assert raises(lambda: net(X))
            assert raises(lambda: net(X))
        loss = net(X).sum()
        assert raises(lambda: loss.backward(retain_graph=True))
    loss.backward()
    net(X).sum().backward()


def test_an_exception_ends_the_guard_and_a_guard_can_be_used_again() -> None:
    again = guard()
    for _ in range(2):
        with pytest.raises(KeyError), again:
            raise KeyError
        with again, again:
            assert raises(net_in_eval)
    net_in_eval()


def net_in_eval() -> None:
    Net().eval()(X).sum().backward()


def test_decorates_functions_generators_and_coroutines() -> None:
    @guard()
    def plain(x: Tensor, *, scale: float = 1.0) -> None:
        (Net().eval()(x) * scale).sum().backward()

    @guard()
    def generator() -> Iterator[int]:
        yield 1
        net_in_eval()

    @guard()
    async def coroutine() -> None:
        await asyncio.sleep(0)
        net_in_eval()

    assert plain.__name__ == "plain"
    assert raises(lambda: plain(X, scale=2.0))
    steps = generator()
    assert next(steps) == 1
    assert raises(lambda: next(steps))
    assert raises(lambda: asyncio.run(coroutine()))
    net_in_eval()


def test_decorates_without_parentheses_too() -> None:
    @guard
    def step() -> str:
        """Its own words."""
        net_in_eval()
        return "done"

    assert (step.__name__, step.__doc__) == ("step", "Its own words.")
    assert raises(step)
    net_in_eval()


def test_says_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match="neither 'backward' nor 'forward'"):
        guard(when="never")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="decorates functions"):
        guard()(Net)
    with pytest.raises(TypeError, match="decorates functions"):
        guard(Net)
    with pytest.raises(AttributeError, match="has no attribute 'gard'"):
        harness.gard  # noqa: B018 - the attribute is the test


def test_bfloat16_follows_the_cudnn_that_pytorch_was_compiled_with(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(compiled_with: int | None, *, gpu: tuple[int, int] | None = None, torch_version: str = "2.14.1") -> bool:
        with monkeypatch.context() as patch:
            patch.setattr(backend, "_cudnn_compiled_with", lambda: compiled_with)
            patch.setattr(torch.cuda, "is_available", lambda: gpu is not None)
            patch.setattr(torch.cuda, "get_device_capability", lambda: gpu)
            patch.setattr(torch, "__version__", torch_version)
            return backend.bfloat16_runs_on_cudnn.__wrapped__()

    assert answer(92400)
    assert answer(91300, gpu=(8, 0))
    assert not answer(91300, gpu=(7, 5))
    assert not answer(91002)
    assert answer(None, torch_version="2.10.0+cpu")
    assert not answer(None, torch_version="2.9.1")
    assert backend._cudnn_compiled_with() is None or backend._cudnn_compiled_with() > 80000


def test_what_others_put_in_its_place_stays() -> None:
    original = nn.RNNBase.__setattr__

    def others(*arguments: Any) -> Any:
        return torch._C._VariableFunctions.lstm(*arguments)

    try:
        with guard():
            torch._VF.lstm = others
            ours = nn.RNNBase.__setattr__
            theirs = nn.RNNBase.__setattr__ = functools.partialmethod(ours)
        assert vars(torch._VF)["lstm"] is others
        assert vars(nn.RNNBase)["__setattr__"] is theirs
        net_in_eval()
    finally:
        del torch._VF.lstm
        nn.RNNBase.__setattr__ = original
