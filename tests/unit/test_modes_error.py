"""What the error says: the module's name, the line of the forward, the line of the switch, and the cure."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from harness.modes import EvalModeBackwardError, guard, sites
from harness.modes.sites import Site, told

X = torch.ones(2, 3, 4)


class OwnLSTM(nn.LSTM):
    """A subclass."""


class First(nn.Module):
    def forward(self, outputs: tuple[Tensor, Any]) -> Tensor:
        return outputs[0]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 4), nn.Sequential(OwnLSTM(4, 4), First()))

    def forward(self, sequence: Tensor) -> Tensor:
        return self.encoder(sequence).sum()


FORWARD_LINE = Net.forward.__code__.co_firstlineno + 1


class Freezing(Net):
    """As many frozen encoders are written: an override of ``train`` that switches a part back."""

    def train(self, mode: bool = True) -> Freezing:
        super().train(mode)
        self.encoder.eval()
        return self


FREEZING_LINE = Freezing.train.__code__.co_firstlineno + 2


class Overriding(Net):
    def train(self, mode: bool = True) -> Overriding:
        super().train(mode)
        return self


def line() -> int:
    return sys._getframe(1).f_lineno


def caught(run: Callable[[], Any]) -> EvalModeBackwardError:
    with pytest.raises(EvalModeBackwardError) as info:
        run()
    return info.value


def here(number: int, function: str) -> str:
    return f"{__file__}:{number} in {function}"


def test_names_the_module_and_both_lines() -> None:
    net = Net()
    with guard():
        net.eval()
        switched = line() - 1
        error = caught(lambda: net(X).backward())
    assert (error.module, error.kind, error.root) == ("encoder.1.0", "OwnLSTM", "Net")
    assert error.forward == here(FORWARD_LINE, "Net.forward")
    place = here(switched, "test_names_the_module_and_both_lines")
    assert error.switch == f"{place} (eval() on Net, which contains it as 'encoder.1.0')"
    assert "A gradient reached the OwnLSTM 'encoder.1.0' of Net, whose forward ran in eval mode" in str(error)
    assert "cudnn RNN backward can only be called in training mode" in str(error)
    for part in (error.forward, error.switch, error.cure):
        assert part in str(error)


def by_submodule(net: Net) -> None:
    net.encoder[1].eval()


def by_train_false(net: Net) -> None:
    net.train(False)


def by_attribute(net: Net) -> None:
    net.encoder[1][0].training = False


def by_apply(net: Net) -> None:
    net.apply(lambda module: module.train(False))


def by_itself(net: Net) -> None:
    net.encoder[1][0].eval()


WAYS = {
    by_submodule: "(eval() on Sequential, which contains it as '0')",
    by_train_false: "(train(False) on Net, which contains it as 'encoder.1.0')",
    by_attribute: "(training = False)",
    by_apply: "(train(False) on OwnLSTM itself)",
    by_itself: "(eval() on OwnLSTM itself)",
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_into_eval_mode_is_told_from_the_others(way: Callable[[Net], None]) -> None:
    net = Net()
    with guard():
        way(net)
        error = caught(lambda: net(X).backward())
    where = here(way.__code__.co_firstlineno + 1, way.__name__)
    assert error.switch.startswith(where)
    assert error.switch.endswith(WAYS[way])


def test_an_override_of_train_is_looked_through_but_not_a_switch_of_its_own() -> None:
    freezing, overriding = Freezing(), Overriding()
    with guard():
        freezing.train()
        overriding.eval()
        switched = line() - 1
        frozen, plain = caught(lambda: freezing(X).backward()), caught(lambda: overriding(X).backward())
    assert frozen.switch.startswith(here(FREEZING_LINE, "Freezing.train"))
    assert "(eval() on Sequential" in frozen.switch
    assert plain.switch.startswith(f"{__file__}:{switched} in ")
    assert "(eval() on Overriding, which contains it as 'encoder.1.0')" in plain.switch


def test_only_the_switch_that_changed_something_counts() -> None:
    net = Net()
    with guard():
        net.eval()
        switched = line() - 1
        net.eval()
        error = caught(lambda: net(X).backward())
    assert error.switch.startswith(f"{__file__}:{switched} in ")


def test_a_switch_before_the_guard_is_not_invented() -> None:
    net = Net().eval()
    with guard():
        net.eval()
        assert caught(lambda: net(X).backward()).switch.startswith("not seen")
        net.train()
        vars(net.encoder[1][0])["training"] = False
        assert caught(lambda: net(X).backward()).switch.startswith("not seen")
    with guard():
        assert caught(lambda: net(X).backward()).switch.startswith("not seen")


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_a_copy_made_in_eval_mode_is_told_as_one(copied: Callable[[Net], Net]) -> None:
    net = Net().eval()
    with guard():
        twin = copied(net)
        error = caught(lambda: twin(X).backward())
    assert error.switch.endswith("(copied or loaded, already in eval mode)")
    assert error.switch.startswith(f"{__file__}:")


def test_a_replica_of_data_parallel_remembers_its_original() -> None:
    net = Net()
    with guard():
        net.eval()
        replica = net.encoder[1][0]._replicate_for_data_parallel()
        replica._flat_weights = net.encoder[1][0]._flat_weights
        assert "(eval() on Net" in caught(lambda: replica(X)[0].sum().backward()).switch


def test_the_root_is_the_outermost_module_that_was_called() -> None:
    net = Net().eval()
    whole = nn.ModuleDict({"student": net})
    with guard():
        assert caught(lambda: net.forward(X).backward()).module == "encoder.1.0"
        assert caught(lambda: net.encoder[1](X).sum().backward()).module == "0"
        alone = caught(lambda: net.encoder[1][0](X)[0].sum().backward())
        assert (alone.module, alone.root) == ("", "OwnLSTM")
        assert "reached the OwnLSTM, whose" in str(alone)
        assert caught(lambda: nn.Sequential(whole["student"])(X).backward()).module == "0.encoder.1.0"


def test_a_method_that_is_not_forward_names_its_module_too() -> None:
    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()

        def encode(self, sequence: Tensor) -> Tensor:
            return self.net.encoder[1][0](sequence)[0]

    reader = Reader().eval()
    with guard():
        error = caught(lambda: reader.encode(X).sum().backward())
    assert (error.module, error.root) == ("net.encoder.1.0", "Reader")


@pytest.mark.parametrize("length", [0, None])
def test_a_module_with_a_length_of_its_own_is_not_taken_for_none(length: int | None) -> None:
    class Sized(Net):
        def __len__(self) -> int:
            if length is None:
                raise TypeError("has no length")
            return length

    with guard():
        net = Sized().eval()
        error = caught(lambda: net(X).backward())
    assert "(eval() on Sized, which contains it as 'encoder.1.0')" in error.switch


def test_a_renamed_module_is_told_by_its_new_name() -> None:
    net = Net().eval()
    with guard():
        assert caught(lambda: net(X).backward()).module == "encoder.1.0"
        net.encoder = nn.Sequential(net.encoder)
        assert caught(lambda: net(X).backward()).module == "encoder.0.1.0"


def test_train_after_the_forward_gets_another_cure() -> None:
    net = Net()
    with guard():
        loss = net.eval()(X)
        before = caught(lambda: loss.backward(retain_graph=True)).cure
        net.train()
        after = caught(loss.backward).cure
    assert "eval_gradients" in before
    assert "too late" in after


def test_the_forward_guard_says_so() -> None:
    with guard("forward"):
        error = caught(lambda: Net().eval()(X))
    assert "records a graph in eval mode" in str(error)


def test_survives_pickling() -> None:
    with guard():
        error = caught(lambda: Net().eval()(X).backward())
    twin = pickle.loads(pickle.dumps(error))
    assert (str(twin), vars(twin)) == (str(error), vars(error))
    assert isinstance(twin, RuntimeError)


def test_its_name_is_the_one_that_people_import() -> None:
    assert f"{EvalModeBackwardError.__module__}.{EvalModeBackwardError.__qualname__}" == "harness.EvalModeBackwardError"
    assert pickle.loads(pickle.dumps(EvalModeBackwardError)) is EvalModeBackwardError


def test_a_library_s_line_is_told_with_the_own_line_that_called_it() -> None:
    library = Site(torch.__file__, 1, "f")
    own = Site("/home/somebody/train.py", 2, "main")
    assert not library.own
    assert told((library, own)) == f"{library}, called from {own}"
    assert told((own, library)) == str(own)
    assert told((library,)) == str(library)
    assert told(()) == "an unknown line"


def test_a_module_elsewhere_has_no_name() -> None:
    assert sites.name_in(nn.Linear(1, 1), nn.Linear(1, 1)) is None
