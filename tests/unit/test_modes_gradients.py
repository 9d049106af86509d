"""eval_gradients: outputs equal eval's bit for bit, gradients are eval's, and no flag is ever touched."""

from __future__ import annotations

import copy
import itertools
import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parametrizations
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.checkpoint import checkpoint

from harness.modes import EvalModeBackwardError, calls, eval_gradients, guard
from harness.modes.tap import Tap
from harness.placements import PLACEMENTS
from harness.trial.modes import Modes

LENGTHS = torch.tensor([5, 3, 2])


class Net(nn.Module):
    """Batch norm, an RNN with its own dropout, and dropout around it."""

    def __init__(self, cell: str = "LSTM", *, packed: bool = False, norm: bool = True, **options: Any) -> None:
        super().__init__()
        self.packed = packed
        self.norm = nn.BatchNorm1d(4) if norm else None
        self.rnn = getattr(nn, cell)(4, 6, batch_first=True, **options)
        self.dropout = nn.Dropout(0.5)
        width = (options.get("proj_size") or 6) * (2 if options.get("bidirectional") else 1)
        self.head = nn.Linear(width, 2)

    def forward(self, sequence: Tensor) -> Tensor:
        if self.norm is not None:
            sequence = self.norm(sequence.transpose(1, 2)).transpose(1, 2)
        if self.packed:
            packed = pack_padded_sequence(sequence, LENGTHS, batch_first=True)
            output, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        else:
            output, _ = self.rnn(sequence)
        return self.head(self.dropout(output))


@pytest.fixture(autouse=True)
def seeded_on_one_thread() -> Iterator[None]:
    """Of several threads each waits for the others, which takes long on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


def flags(module: nn.Module) -> list[tuple[bool, Any]]:
    return [(one.training, getattr(one, "dropout", None)) for one in module.modules()]


def gradients(model: nn.Module, x: Tensor) -> tuple[Tensor, list[Tensor]]:
    x = x.clone().requires_grad_()
    output = model(x)
    return output.detach(), [*torch.autograd.grad(output.double().square().sum(), [x, *model.parameters()])]


KINDS: list[dict[str, Any]] = [{"cell": "LSTM"}, {"cell": "LSTM", "proj_size": 3}, {"cell": "GRU"}, {"cell": "RNN"}]
KINDS.append({"cell": "RNN", "nonlinearity": "relu"})
SHAPES = [
    {"num_layers": layers, "dropout": 0.5 if layers > 1 else 0.0, "bidirectional": both, "packed": packed, "norm": norm}
    for layers, both, packed, norm in itertools.product((1, 3), (False, True), (False, True), (False, True))
]


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind.values())))
def test_outputs_are_eval_s_bit_for_bit_and_gradients_those_of_a_float64_eval(
    kind: dict[str, Any], dtype: torch.dtype
) -> None:
    """The reference computes on a CPU in eval mode without this package: there nothing forbids the backward."""
    tolerance = {torch.float64: 1e-12, torch.float32: 2e-5, torch.bfloat16: 0.15, torch.float16: 0.02}[dtype]
    for shape in SHAPES:
        net = Net(**kind, **shape).to(dtype).eval()
        x = torch.randn(3, 5, 4).to(dtype)
        plain, _ = gradients(net, x)
        before = flags(net)
        with eval_gradients(net), guard():
            assert flags(net) == before
            output, found = gradients(net, x)
        assert flags(net) == before
        assert torch.equal(output, plain), shape
        _, reference = gradients(copy.deepcopy(net).double(), x.double())
        for one, other in zip(found, reference, strict=True):
            scale = max(float(other.abs().max()), 1.0)
            assert float((one.double() - other).abs().max()) <= tolerance * scale, shape


@pytest.fixture
def seen() -> Iterator[list[tuple[bool, float]]]:
    """Mode and dropout of every call, as the kernels were told."""
    told: list[tuple[bool, float]] = []

    def observe(_operator: str, arguments: Any, training: bool, _outputs: Any) -> None:
        told.append((training, arguments[calls.place_of_mode(tuple(arguments)) - 1]))

    tap = Tap(observer=observe)
    tap.open()
    yield told
    tap.close()


X = torch.ones(3, 5, 4)


def deep() -> Net:
    return Net(num_layers=2, dropout=0.5).eval()


def test_tells_the_kernel_to_train_without_dropout_and_only_while_it_is_active(seen: list[Any]) -> None:
    net = deep()
    net(X)
    with eval_gradients(net) as same:
        assert same is net
        net(X)
        with torch.no_grad():
            net(X)
    net(X)
    assert seen == [(False, 0.5), (True, 0.0), (False, 0.5), (False, 0.5)]


def test_every_packed_and_unpacked_call_has_its_mode_where_it_is_looked_for(seen: list[Any]) -> None:
    """If PyTorch moves an argument, this is the test that says so."""
    for cell, packed, mode in itertools.product(("LSTM", "GRU", "RNN"), (False, True), (False, True)):
        Net(cell, packed=packed, num_layers=2, dropout=0.25).train(mode)(X)
        assert seen[-1] == (mode, 0.25)
    nn.RNN(4, 4, nonlinearity="relu")(X)
    assert len(seen) == 13


def test_an_exception_and_nesting_end_it_as_they_should(seen: list[Any]) -> None:
    net = deep()
    with pytest.raises(KeyError), eval_gradients(net):
        raise KeyError
    with eval_gradients(net):
        with eval_gradients(net):
            net(X)
        net(X)
    net(X)
    assert [training for training, _ in seen] == [True, True, False]


def test_only_the_model_is_touched_and_of_a_model_partly_in_training_only_what_is_in_eval(seen: list[Any]) -> None:
    net, other, training = deep(), deep(), deep().train()
    with eval_gradients(nn.ModuleList([net, training])):
        other(X)
        net(X)
        training(X)
    assert seen == [(False, 0.5), (True, 0.0), (True, 0.5)]


def test_shared_replaced_added_and_replicated_modules_are_covered_while_they_are_parts(seen: list[Any]) -> None:
    net = deep()
    owner = nn.ModuleList([net, net.rnn])
    with eval_gradients(net):
        owner[1](X)
        net.rnn = nn.GRU(4, 6, batch_first=True).eval()
        net(X)
        net.rnn = nn.ModuleList([net.rnn])[0]
        replica = net.rnn._replicate_for_data_parallel()
        replica._flat_weights = net.rnn._flat_weights
        replica(X)
        copy.deepcopy(net)(X)
    assert [training for training, _ in seen] == [True, True, True, False]


def test_another_thread_gets_the_same_outputs(seen: list[Any]) -> None:
    net, outputs = deep(), []
    expected = net(X)
    with eval_gradients(net):
        thread = threading.Thread(target=lambda: outputs.append(net(X)))
        thread.start()
        thread.join()
    assert torch.equal(outputs[0], expected)
    assert seen[-1] == (True, 0.0)


class ReadsItsMode(nn.LSTM):
    """Has dropout of its own making, and a ``train`` that refuses to be called."""

    def train(self, mode: bool = True) -> ReadsItsMode:
        assert not mode, "nobody may put this into training mode"
        return super().train(mode)

    def forward(self, sequence: Any, state: Any = None) -> Any:
        return super().forward(functional.dropout(sequence, 0.5, self.training), state)


def own_dropout() -> nn.Module:
    net = deep()
    net.rnn = ReadsItsMode(4, 6, batch_first=True)
    return net.eval()


def weight_norm() -> nn.Module:
    net = deep()
    parametrizations.weight_norm(net.rnn, "weight_hh_l0")
    return net.eval()


def spectral_norm() -> nn.Module:
    net = deep()
    parametrizations.spectral_norm(net.rnn, "weight_hh_l0")
    return net.eval()


def old_spectral_norm() -> nn.Module:
    """Iterates whenever the RNN itself is in training mode: the weights would change under a flipped flag."""
    net = deep()
    nn.utils.spectral_norm(net.rnn, "weight_hh_l0")
    return net.eval()


def mode_switching_hook() -> nn.Module:
    net = deep()
    net.rnn.register_forward_pre_hook(lambda module, inputs: (inputs[0] * (2 if module.training else 1),))
    return net


@pytest.mark.parametrize("make", [own_dropout, weight_norm, spectral_norm, old_spectral_norm, mode_switching_hook])
def test_whatever_reads_the_mode_still_sees_eval(make: Any) -> None:
    net = make()
    state = copy.deepcopy(net.state_dict())
    plain, reference = gradients(net, X)
    with eval_gradients(net), guard():
        output, found = gradients(net, X)
    assert torch.equal(output, plain)
    assert all(torch.allclose(one, other, atol=1e-6) for one, other in zip(found, reference, strict=True))
    assert all(torch.equal(value, state[name]) for name, value in net.state_dict().items())


def test_the_backward_may_come_after_it_and_the_guard_agrees() -> None:
    net = deep()
    with guard():
        with eval_gradients(net):
            loss = net(X).sum()
        loss.backward()
        with pytest.raises(EvalModeBackwardError):
            net(X).sum().backward()


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_runs_the_forward_again_in_the_backward_which_has_to_be_inside_too(
    reentrant: bool, seen: list[Any]
) -> None:
    net, x = deep(), X.clone().requires_grad_()

    def inside(x: Tensor) -> Tensor:
        with eval_gradients(net):
            return net(x)

    def told(forward: Any) -> list[bool]:
        """Whether the kernel is told to train when the forward runs again."""
        loss = checkpoint(forward, x, use_reentrant=reentrant).sum()
        seen.clear()
        loss.backward()
        return [training for training, _ in seen]

    with eval_gradients(net):
        assert told(net) == [True]
    assert told(inside) == [True]
    with eval_gradients(net):
        loss = checkpoint(net, x, use_reentrant=reentrant).sum()
    seen.clear()
    loss.backward()
    assert [training for training, _ in seen] == [False], "else the page may say again that the forward is enough"


def test_one_can_be_entered_again_after_and_while_it_is_entered(seen: list[Any]) -> None:
    net = deep()
    context = eval_gradients(net)
    for _ in range(2):
        with context:
            with context:
                net(X)
            net(X)
        net(X)
    assert [training for training, _ in seen] == [True, True, False] * 2


def test_decorates() -> None:
    net = deep()

    @eval_gradients(net)
    def saliency() -> Tensor:
        return gradients(net, X)[1][0]

    with guard():
        assert saliency().shape == X.shape
        assert saliency().shape == X.shape


def test_refuses_what_it_cannot_do() -> None:
    with pytest.raises(TypeError, match="takes a module, not list"), eval_gradients([deep()]):  # type: ignore[arg-type]
        pass
    scripted = deep()
    scripted.rnn.original_name = "LSTM"
    with pytest.raises(TypeError, match="rnn is TorchScript"), eval_gradients(scripted):
        pass
    scripted.rnn.original_name = "Linear"
    with eval_gradients(scripted):
        scripted(X).sum().backward()


@pytest.mark.parametrize("cell", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("packed", [False, True])
def test_the_kernel_is_called_as_by_the_placement_that_stands_for_it(cell: str, packed: bool) -> None:
    """What the report says of the row `rnn-train-dropout-zero`."""
    placement = PLACEMENTS["rnn-train-dropout-zero"]
    net, inputs = Net(cell, packed=packed, num_layers=2, dropout=0.4), torch.randn(3, 5, 4)
    seen: list[Any] = []

    def observe(_operator: str, arguments: Any, training: bool, _outputs: Any) -> None:
        settings = [one for one in arguments if isinstance(one, bool | int | float)]
        seen.append((training, arguments[calls.place_of_mode(arguments) - 1], settings))

    tap, modes = Tap(observer=observe), Modes(cast(Any, net))
    tap.open()
    try:
        modes.act((*placement.start, *placement.before_forward))
        by_hand = net(inputs)
        modes.act(placement.after_step)
        before = flags(net)
        with eval_gradients(net):
            assert torch.equal(net(inputs), by_hand)
            assert flags(net) == before
    finally:
        tap.close()
    assert seen[0] == seen[1]
    assert seen[0][:2] == (True, 0.0)
