"""eval_gradients, judged as the placements are: by the reference and the judge of the matrix, on its own network."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence

import harness
from harness.exactness import Judgement, Verdict, judge
from harness.matrix.axes import make_variant
from harness.measured import Exactness
from harness.model import Device, Order, Outcome, Record, Settings, Value
from harness.trial.exactness import Cure, examine

pytestmark = pytest.mark.filterwarnings(
    "ignore:LSTM with projections is not supported with oneDNN",
    "ignore:dropout option adds dropout after all but last recurrent layer",
)

SMALL: dict[str, Value] = {"batch": 6, "seq-len": 5, "input-size": 4, "hidden-size": 7}
"""Too small for a relu in half precision: rounding moves a unit across its kink, and in so few units that is no small
part of the gradient, whatever takes it. There the sizes are the matrix's own."""
KINDS: list[dict[str, Value]] = [{"cell": cell} for cell in ("lstm", "gru", "rnn-tanh", "rnn-relu")]
KINDS.append({"cell": "lstm", "proj-size": 3})
DTYPES = ("float64", "float32", "bfloat16", "float16")
SHAPES: list[dict[str, Value]] = [
    {"bidirectional": both, "layers": layers, "dropout": dropout, "norm": norm, "packed": packed}
    for both, layers, dropout, norm, packed in itertools.product(
        (False, True), (1, 3), (0.0, 0.5), ("none", "batch-norm"), (False, True)
    )
]


@pytest.fixture(autouse=True)
def on_one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def examined(cure: Cure, axes: dict[str, Value], attempts: int = 2) -> tuple[Exactness, Judgement]:
    kinked = axes["cell"] == "rnn-relu" and axes["dtype"] in ("bfloat16", "float16")
    variant = make_variant({**({} if kinked else SMALL), **axes})
    # Twice with one seed, so that the judge also says whether the gradient is the same to the bit.
    order = Order("run", variant, Device.CPU, Settings())
    seen = [examine(order, cure) for _ in range(attempts)]
    found = judge([Record("run", "key", "label", Device.CPU, Outcome.OK, exactness=one) for one in seen])
    assert found is not None
    return seen[0], found


def with_dropout(shape: dict[str, Value]) -> set[str]:
    """The modules of the network that have a dropout which does something."""
    return set() if not shape["dropout"] else {"dropout"} | ({"rnn"} if shape["layers"] != 1 else set())


@pytest.mark.parametrize("placement", ["eval-always", "eval-then-use", "inner-loop-in-eval"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind.values())))
def test_its_gradient_is_exact_and_nothing_else_is_touched(kind: dict[str, Value], dtype: str, placement: str) -> None:
    """The placements are those that raise the error and want a gradient of the whole network in eval mode."""
    for shape in SHAPES if placement == "eval-always" else SHAPES[-1:]:
        axes = {"placement": placement, "dtype": dtype, **kind, **shape}
        seen, found = examined(harness.eval_gradients, axes)
        assert (found.verdict, found.reason) == (Verdict.EXACT, f"within what {dtype} rounds"), shape
        assert found.repeatable, shape
        assert found.outputs_equal_eval, shape
        assert found.changed == (), shape
        assert seen.active_dropout == seen.batch_statistics == (), shape
        assert set(seen.inactive_dropout) == with_dropout(shape), shape
        assert seen.running_statistics == (("norm",) if shape["norm"] == "batch-norm" else ()), shape
        errors = (found.gradient_error_weights, found.gradient_error_input)
        assert all(error is not None and error <= seen.tolerance for error in errors), shape
        # A CPU allows the backward in eval mode: there it may change no bit of the gradient.
        assert examined(nullcontext, axes, attempts=1)[0] == seen, shape


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind.values())))
def test_the_same_in_train_mode_differs(kind: dict[str, Value], dtype: str) -> None:
    """The proof above can fail: with the whole net in ``train()`` the same judge says so of every dropout and norm."""
    told: Counter[Verdict] = Counter()
    for shape in SHAPES:
        axes = {"placement": "train-for-gradient", "dtype": dtype, **kind, **shape}
        _, found = examined(harness.eval_gradients, axes, attempts=1)
        random = bool(shape["dropout"]) or shape["norm"] == "batch-norm"
        assert found.verdict is (Verdict.DIFFERS if random else Verdict.EXACT), shape
        assert found.outputs_equal_eval is not random, shape
        assert "rnn.training" in found.changed, shape
        told[found.verdict] += 1
    assert told == {Verdict.DIFFERS: 24, Verdict.EXACT: 8}


@contextmanager
def with_the_dropout_on(net: nn.Module) -> Iterator[None]:
    """What ``eval_gradients`` would be if it forgot the dropout: the RNN trains, and whoever looks sees eval."""

    def into_train(module: nn.Module, _inputs: Any) -> None:
        module.training = True

    def back(module: nn.Module, _inputs: Any, _outputs: Any) -> None:
        module.training = False

    rnn: Any = net.rnn
    handles = (rnn.register_forward_pre_hook(into_train), rnn.register_forward_hook(back))
    yield
    for handle in handles:
        handle.remove()


@contextmanager
def with_a_gradient_scaled(net: nn.Module) -> Iterator[None]:
    """The outputs are right to the bit, and what reaches the input is three times too large."""
    rnn: Any = net.rnn

    def scale(_module: nn.Module, inputs: Any) -> None:
        sequence = inputs[0].data if isinstance(inputs[0], PackedSequence) else inputs[0]
        sequence.register_hook(lambda gradient: gradient * 3)

    handle = rnn.register_forward_pre_hook(scale)
    yield
    handle.remove()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind.values())))
@pytest.mark.parametrize(("cure", "equal"), [(with_the_dropout_on, False), (with_a_gradient_scaled, True)])
def test_a_wrong_cure_that_no_flag_betrays_is_told_by_its_numbers(
    cure: Cure, equal: bool, kind: dict[str, Value], dtype: str
) -> None:
    shapes: Sequence[dict[str, Value]] = [one for one in SHAPES if "rnn" in with_dropout(one)]
    for shape in shapes:
        _, found = examined(cure, {"placement": "eval-always", "dtype": dtype, **kind, **shape})
        assert found.verdict is Verdict.DIFFERS, shape
        assert found.reason.startswith(f"precision: {dtype} gradient"), shape
        assert found.outputs_equal_eval is equal, shape
        assert found.changed == (), shape
