"""Each action does to a real network what its name says, and nothing else."""

import pytest
import torch
from torch import nn

from harness.matrix.axes import make_variant
from harness.placements import Action, Around
from harness.trial.modes import Modes, around
from harness.trial.network import Net

MODULES = ["", "encoder", "rnn", "norm", "dropout", "head"]


@pytest.fixture
def net() -> Net:
    return Net(make_variant({"layers": 2, "dropout": 0.25, "norm": "batch-norm"}), encoder=True)


def modes(net: Net) -> dict[str, bool]:
    return {name: module.training for name, module in net.named_modules()}


def everything(training: bool, **others: bool) -> dict[str, bool]:
    return {**dict.fromkeys(MODULES, training), **others}


EXPECTED = {
    Action.TRAIN: (everything(True), everything(True)),
    Action.EVAL: (everything(False), everything(False)),
    Action.RNN_TRAIN: (everything(True), everything(False, rnn=True)),
    Action.RNN_EVAL: (everything(True, rnn=False), everything(False)),
    Action.RNN_DROPOUT_ZERO: (everything(True), everything(False)),
    Action.RNN_DROPOUT_RESTORE: (everything(True), everything(False)),
    Action.DROPOUT_NORM_EVAL: (everything(True, dropout=False, norm=False), everything(False)),
}


@pytest.mark.parametrize("action", Action, ids=lambda action: action.name)
def test_an_action_sets_the_modes_that_it_names(net: Net, action: Action) -> None:
    from_train, from_eval = EXPECTED[action]
    Modes(net.train()).act([action])
    assert modes(net) == from_train
    net.eval()
    Modes(net).act([action])
    assert modes(net) == from_eval


def test_the_rnns_dropout_comes_back_as_it_was(net: Net) -> None:
    switch = Modes(net)
    for _ in range(2):
        switch.act([Action.RNN_DROPOUT_ZERO])
        assert net.rnn.dropout == 0.0
        switch.act([Action.RNN_DROPOUT_ZERO, Action.RNN_DROPOUT_RESTORE])
        assert net.rnn.dropout == 0.25
    assert net.dropout is not None
    assert net.dropout.p == 0.25


def test_actions_run_in_order(net: Net) -> None:
    Modes(net).act([Action.TRAIN, Action.EVAL, Action.RNN_TRAIN])
    assert modes(net) == everything(False, rnn=True)
    Modes(net).act([Action.RNN_TRAIN, Action.EVAL])
    assert modes(net) == everything(False)
    Modes(net).act([])
    assert modes(net) == everything(False)


@pytest.mark.parametrize(
    "module", [nn.Dropout(), nn.Dropout2d(), nn.AlphaDropout(), nn.BatchNorm1d(2), nn.LayerNorm(2)], ids=repr
)
def test_dropout_and_norm_of_every_kind_is_switched(net: Net, module: nn.Module) -> None:
    net.add_module("extra", module)
    Modes(net.train()).act([Action.DROPOUT_NORM_EVAL])
    assert not module.training
    assert net.head.training


def test_the_rnns_own_dropout_acts_in_train_mode_only_and_not_at_zero() -> None:
    """What several placements hinge on, on the real layer: equal outputs mean that no dropout acted."""
    torch.manual_seed(0)
    net = Net(make_variant({"layers": 2, "dropout": 0.5}), encoder=False)
    switch, inputs = Modes(net), torch.randn(4, 3, 16)

    def repeatable() -> bool:
        return torch.equal(net.rnn(inputs)[0], net.rnn(inputs)[0])

    switch.act([Action.DROPOUT_NORM_EVAL])
    assert not repeatable()
    switch.act([Action.EVAL])
    assert repeatable()
    switch.act([Action.RNN_TRAIN])
    assert not repeatable()
    switch.act([Action.RNN_DROPOUT_ZERO])
    assert repeatable()


def test_contexts() -> None:
    assert torch.backends.cudnn.enabled
    with around(Around.CUDNN_OFF):
        assert not torch.backends.cudnn.enabled
        assert torch.is_grad_enabled()
    with around(Around.NO_GRAD):
        assert not torch.is_grad_enabled()
        assert torch.backends.cudnn.enabled
    with around(None):
        assert torch.is_grad_enabled()
        assert torch.backends.cudnn.enabled
    assert torch.backends.cudnn.enabled
    assert around(Around.CUDNN_OFF) is not around(Around.CUDNN_OFF)
