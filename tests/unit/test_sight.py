"""The path comes from the graph; a gradient is seen where it arrives, and only there."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from harness.model import KernelPath, Sighting
from harness.trial.sight import Watch, path_of


class FakeNode:
    """A node of an autograd graph that this machine cannot make."""

    def __init__(self, name: str, parents: Sequence["FakeNode | None"] = ()) -> None:
        self._name = name
        self.next_functions = [(parent, 0) for parent in parents]

    def name(self) -> str:
        return self._name


class FakeTensor:
    def __init__(self, node: FakeNode | None) -> None:
        self.grad_fn = node


def path_behind(node: FakeNode | None) -> KernelPath | None:
    return path_of(cast("Tensor", FakeTensor(node)))


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("CudnnRnnBackward0", KernelPath.CUDNN),
        ("CudnnRnnBackward1", KernelPath.CUDNN),
        ("MiopenRnnBackward0", KernelPath.MIOPEN),
        ("MkldnnRnnLayerBackward0", KernelPath.MKLDNN),
        ("TanhBackward0", KernelPath.NATIVE),
        ("ThnnFusedLstmCellBackward0", KernelPath.NATIVE),
        ("NotCudnnRnnBackward0", KernelPath.NATIVE),
        ("CudnnConvolutionBackward0", KernelPath.NATIVE),
    ],
)
@pytest.mark.parametrize("depth", [0, 1, 40])
def test_a_fused_node_is_found_however_deep_it_lies(name: str, path: KernelPath, depth: int) -> None:
    node = FakeNode(name, [None, FakeNode("AccumulateGrad")])
    for _ in range(depth):
        node = FakeNode("AddBackward0", [FakeNode("MulBackward0"), None, node])
    assert path_behind(node) is path


def test_a_graph_in_which_many_ways_lead_to_one_node_is_walked_once() -> None:
    node = FakeNode("AccumulateGrad")
    for _ in range(200):  # 2**200 ways
        node = FakeNode("AddBackward0", [node, node])
    assert path_behind(node) is KernelPath.NATIVE


def test_no_graph_has_no_path() -> None:
    assert path_behind(None) is None
    with torch.no_grad():
        assert path_of(nn.LSTM(2, 3)(torch.zeros(4, 1, 2))[0]) is None


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("rnn", [nn.RNN, nn.LSTM, nn.GRU])
def test_a_real_rnn_on_a_cpu_is_native_or_mkldnn(rnn: type[nn.RNNBase], training: bool) -> None:
    module = cast("nn.Module", rnn(4, 8, 2)).train(training)  # type: ignore[arg-type]
    assert path_of(module(torch.zeros(5, 2, 4))[0]) in {KernelPath.NATIVE, KernelPath.MKLDNN}


@pytest.mark.filterwarnings("ignore:TF32 acceleration on top of oneDNN")
def test_mkldnn_switched_off_is_native() -> None:
    lstm = nn.LSTM(4, 8)
    with torch.backends.mkldnn.flags(enabled=False):
        assert path_of(lstm(torch.zeros(5, 2, 4))[0]) is KernelPath.NATIVE


@pytest.fixture
def rnn() -> nn.GRU:
    torch.manual_seed(0)
    return nn.GRU(2, 3)


INPUT = torch.ones(4, 1, 2)


def look(watch: Watch) -> Sighting:
    (sighting,) = watch.sightings
    return sighting


def test_before_a_backward_nothing_is_said_of_the_gradient(rnn: nn.GRU) -> None:
    watch = Watch(rnn)
    rnn(INPUT)
    assert look(watch).gradient_reached is None


def test_a_gradient_that_arrives_is_seen(rnn: nn.GRU) -> None:
    watch = Watch(rnn)
    watch.epoch, watch.step = 2, 5
    rnn(INPUT)[0].sum().backward()
    watch.backward_tried()
    assert look(watch) == Sighting(2, 5, training=True, path=watch.path, gradient_reached=True, role="step")


def test_a_gradient_is_seen_even_if_the_backward_then_fails(rnn: nn.GRU) -> None:
    watch = Watch(rnn)
    output = rnn(INPUT)[0]

    def fail(_: Any) -> None:
        raise RuntimeError("in the middle of the backward")

    output.grad_fn.next_functions[0][0].register_prehook(fail)
    with pytest.raises(RuntimeError, match="in the middle"):
        output.sum().backward()
    watch.backward_tried()
    assert look(watch).gradient_reached is True


def test_a_detached_output_gets_no_gradient(rnn: nn.GRU) -> None:
    watch = Watch(rnn)
    weight = torch.ones(1, requires_grad=True)
    (rnn(INPUT)[0].detach().sum() * weight).sum().backward()
    watch.backward_tried()
    assert look(watch).gradient_reached is False


class Block(torch.autograd.Function):
    @staticmethod
    def forward(_context: Any, value: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def backward(_context: Any, _gradient: Tensor) -> None:
        return None


def test_an_output_in_the_graph_that_nothing_flows_to_gets_no_gradient(rnn: nn.GRU) -> None:
    watch = Watch(rnn)
    weight = torch.ones(1, requires_grad=True)
    (Block.apply(rnn(INPUT)[0]).sum() + weight).sum().backward()
    watch.backward_tried()
    assert look(watch).gradient_reached is False


def test_an_output_that_the_loss_does_not_use_gets_no_gradient(rnn: nn.GRU) -> None:
    watch = Watch(rnn)
    rnn(INPUT)
    torch.ones(1, requires_grad=True).sum().backward()
    watch.backward_tried()
    assert look(watch).gradient_reached is False


def test_a_packed_output_is_watched_like_any_other(rnn: nn.GRU) -> None:
    watch = Watch(rnn)
    packed = pack_padded_sequence(torch.ones(4, 2, 2), torch.tensor([2, 4]), enforce_sorted=False)
    rnn(packed)[0].data.sum().backward()
    watch.backward_tried()
    assert look(watch).gradient_reached is True
    assert look(watch).path in {KernelPath.NATIVE, KernelPath.MKLDNN}


def test_without_a_graph_there_is_no_path_and_no_gradient(rnn: nn.GRU) -> None:
    watch = Watch(rnn)
    with torch.no_grad():
        rnn(INPUT)
    watch.backward_tried()
    assert (look(watch).path, look(watch).gradient_reached, watch.path) == (None, False, None)


def test_each_kind_of_forward_is_looked_at_once(rnn: nn.GRU) -> None:
    watch = Watch(rnn)
    for step in range(1, 4):
        watch.step = step
        for training in (True, False):
            rnn.train(training)
            rnn(INPUT)
    assert [(s.step, s.training) for s in watch.sightings] == [(1, True), (1, False)]
    with torch.backends.cudnn.flags(enabled=False):
        rnn(INPUT)
    assert len(watch.sightings) == 3
    with torch.no_grad():
        rnn(INPUT)
    watch.role = "inner"
    rnn(INPUT)
    assert [s.role for s in watch.sightings] == ["step", "step", "step", "step", "inner"]


def test_an_evaluation_is_not_a_sighting(rnn: nn.GRU) -> None:
    watch = Watch(rnn)
    watch.role = "evaluate"
    rnn(INPUT)
    assert watch.sightings == ()


def test_each_backward_settles_what_it_was_asked_about_and_no_more(rnn: nn.GRU) -> None:
    watch = Watch(rnn)
    watch.role = "kept"
    kept = rnn.eval()(INPUT)[0]
    watch.role = "step"
    rnn.train()(INPUT)[0].sum().backward()
    watch.backward_tried()
    assert [(s.role, s.gradient_reached) for s in watch.sightings] == [("kept", False), ("step", True)]
    kept.sum().backward()
    watch.backward_tried()
    assert [(s.role, s.gradient_reached) for s in watch.sightings] == [("kept", False), ("step", True)]


def test_the_path_is_that_of_the_steps_own_forward(rnn: nn.GRU) -> None:
    def sighting(path: KernelPath | None, role: str) -> Sighting:
        return Sighting(1, 1, training=True, path=path, role=role)

    watch = Watch(rnn)
    assert watch.path is None
    watch._sightings = [sighting(KernelPath.MKLDNN, "kept")]
    assert watch.path is KernelPath.MKLDNN
    watch._sightings = [sighting(KernelPath.NATIVE, "step"), sighting(KernelPath.CUDNN, "kept")]
    assert watch.path is KernelPath.NATIVE
    watch._sightings = [sighting(KernelPath.NATIVE, "step"), sighting(None, "step")]
    assert watch.path is KernelPath.NATIVE
    watch._sightings.append(sighting(KernelPath.CUDNN, "inner"))
    assert watch.path is KernelPath.CUDNN
