"""How exact a gradient is: what an attempt sees of it, and the verdict on what was seen."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from harness.exactness import Judgement, Verdict, judge
from harness.matrix.axes import make_variant
from harness.measured import Exactness
from harness.model import Device, Order, Outcome, Record, Settings, Value, Wants
from harness.placements import PLACEMENTS
from harness.trial import attempt, exactness, rig
from harness.trial.attempt import run_order
from harness.trial.exactness import TOLERANCE, examine
from harness.wire import BREADCRUMB_SIZE, Breadcrumb, dump, load

pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")

SMALL: dict[str, Value] = {"batch": 6, "seq-len": 5, "input-size": 4, "hidden-size": 7, "layers": 2, "dropout": 0.0}
SETTINGS = Settings(epochs=2, steps=2, evaluation_steps=1)
DROPS: dict[str, Value] = {"dropout": 0.5}
NORM: dict[str, Value] = {"norm": "batch-norm"}

REST_TRAINS = {"rnn-eval-rest-train", "rnn-frozen-in-train"}
TRAIN = {name for name, p in PLACEMENTS.items() if p.wants is Wants.TRAIN}
EVAL = {name for name, p in PLACEMENTS.items() if p.wants is Wants.EVAL} - REST_TRAINS
FORWARD_IN_EVAL = {"eval-after-epoch", "eval-by-helper", "train-before-backward"}
"""Wants a train gradient, and in the end runs its forward in eval mode."""
RNN_TRAINS = {"rnn-train-rest-eval", "dropout-norm-eval"}
ALL_TRAINS = {"train-for-gradient", "train-in-forward"}


@pytest.fixture(autouse=True)
def switches_as_they_were() -> Iterator[None]:
    cudnn, threads = torch.backends.cudnn.enabled, torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.backends.cudnn.enabled = cudnn
    torch.set_num_threads(threads)


def order(settings: Settings = SETTINGS, **axes: Value) -> Order:
    named = {name.replace("_", "-"): value for name, value in axes.items()}
    return Order("run", make_variant({**SMALL, **named}), Device.CPU, settings)


def record(*seen: Exactness | None) -> list[Record]:
    return [Record("run", "key", "label", Device.CPU, Outcome.OK, exactness=one) for one in seen]


def judged(**axes: Value) -> Judgement:
    try:
        seen = examine(order(**axes))
    finally:
        torch.backends.cudnn.enabled = True
    found = judge(record(seen, seen))
    assert found is not None
    return found


def expected(name: str, *, dropout: bool, norm: bool) -> tuple[Verdict, str]:
    """The verdict that a person who knows the placement by heart would give."""
    wrong: list[str] = []
    if name in TRAIN:
        off = name in FORWARD_IN_EVAL
        wrong += ["dropout off (rnn, dropout)"] if dropout and off else []
        wrong += ["running statistics used (norm)"] if norm and off else []
    elif name in REST_TRAINS:
        wrong += ["dropout active (rnn)"] if dropout and name == "rnn-frozen-in-train" else []
    elif name in RNN_TRAINS:
        wrong += ["dropout active (rnn)"] if dropout else []
    elif name in ALL_TRAINS:
        wrong += ["dropout active (rnn, dropout)"] if dropout else []
        wrong += ["batch statistics used (norm)"] if norm else []
    if wrong:
        return Verdict.DIFFERS, "; ".join(wrong)
    if dropout and name in TRAIN | REST_TRAINS:
        return Verdict.NOT_COMPARABLE, "dropout is random in the gradient that is wanted"
    return Verdict.EXACT, "within what float32 rounds"


@pytest.mark.parametrize("axes", [{}, DROPS, NORM, {**DROPS, **NORM}], ids=str)
@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn-tanh"])
@pytest.mark.parametrize("name", sorted(TRAIN | EVAL | REST_TRAINS))
def test_the_verdict_on_every_placement(name: str, cell: str, axes: dict[str, Value]) -> None:
    found = judged(placement=name, cell=cell, **axes)
    assert (found.verdict, found.reason) == expected(name, dropout="dropout" in axes, norm="norm" in axes)
    assert found.repeatable is True


@pytest.mark.parametrize(
    ("name", "axes", "changed"),
    [
        ("eval-always", {}, ()),
        ("eval-cudnn-off-forward", {}, ()),
        ("eval-cudnn-off-process", {}, ("torch.backends.cudnn.enabled",)),
        ("rnn-train-dropout-zero", DROPS, ()),
        ("rnn-train-rest-eval", {}, ("rnn.training",)),
        ("rnn-frozen-in-train", {}, ("rnn.training",)),
        ("rnn-eval-rest-train", NORM, ()),
        ("dropout-norm-eval", {**DROPS, **NORM}, ("net.training", "rnn.training", "head.training")),
        ("train-each-step", {**DROPS, **NORM}, ()),
        ("train-before-backward", {}, ()),
        ("eval-before-backward", {}, ("net.training", "rnn.training", "head.training")),
        (
            "train-for-gradient",
            NORM,
            (
                *("net.training", "rnn.training", "norm.training", "head.training"),
                *("norm.running_mean", "norm.running_var", "norm.num_batches_tracked"),
            ),
        ),
    ],
)
def test_what_a_placement_leaves_behind(name: str, axes: dict[str, Value], changed: tuple[str, ...]) -> None:
    assert judged(placement=name, **axes).changed == changed


def test_a_cudnn_flag_that_the_variant_itself_wants_off_is_no_side_effect() -> None:
    assert judged(placement="eval-cudnn-off-process", cudnn="off").changed == ()


@pytest.mark.parametrize("axes", [{}, DROPS, NORM], ids=str)
@pytest.mark.parametrize("name", ["eval-always", "rnn-train-dropout-zero", "train-for-gradient", "inner-loop-in-eval"])
def test_outputs_are_those_of_eval_where_nothing_trains(name: str, axes: dict[str, Value]) -> None:
    same = name != "train-for-gradient" or not axes
    assert judged(placement=name, **axes).outputs_equal_eval is same


@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn-relu"])
def test_every_precision_has_a_tolerance_of_its_own(precision: str, cell: str) -> None:
    if precision == "tf32":
        return  # not on a CPU
    seen = examine(order(placement="eval-always", cell=cell, dtype=precision))
    assert (seen.precision, seen.not_comparable) == (precision, None)
    found = judge(record(seen))
    assert found is not None
    assert found.verdict is Verdict.EXACT
    assert seen.gradient_error_weights is not None
    assert (seen.gradient_error_weights > 0) == (precision != "float64")


def test_autocast_decides_the_precision() -> None:
    seen = examine(order(placement="eval-always", autocast="bfloat16"))
    assert seen.precision == "bfloat16"
    assert seen.gradient_error_weights is not None
    assert 1e-4 < seen.gradient_error_weights < TOLERANCE["bfloat16"]


AXES: list[dict[str, Value]] = [
    {"bidirectional": True},
    {"packed": True},
    {"packed": True, "batch_first": True, "bidirectional": True},
    {"proj_size": 3},
    {"batch_first": True},
    {"bias": False},
    {"layers": 1},
    {"layers": 3},
    {"batch": 1},
    {"seq_len": 1},
    {"cudnn": "off"},
]


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("name", ["eval-always", "train-always", "eval-output-reused", "rnn-eval-rest-train"])
def test_every_axis_can_be_examined(name: str, axes: dict[str, Value]) -> None:
    assert judged(placement=name, **axes).verdict is Verdict.EXACT


def test_the_spliced_output_is_part_of_the_gradient() -> None:
    """Its reference has the second forward in it too; without it the gradients would differ."""
    digests = {
        name: examine(order(placement=name)).gradient_digest
        for name in ("eval-output-reused", "eval-output-detached", "eval-output-unused", "train-always")
    }
    assert digests["eval-output-detached"] == digests["eval-output-unused"] == digests["train-always"]
    assert digests["eval-output-reused"] != digests["train-always"]


def test_dropout_gives_one_gradient_per_seed() -> None:
    one = examine(order(placement="train-for-gradient", **DROPS))
    torch.rand(13)
    assert examine(order(placement="train-for-gradient", **DROPS)) == one
    assert examine(order(replace(SETTINGS, seed=1), placement="train-for-gradient", **DROPS)) != one


def test_an_empty_batch_has_no_gradient_to_compare_with() -> None:
    found = judged(placement="eval-always", batch=0)
    assert (found.verdict, found.reason) == (Verdict.NOT_COMPARABLE, "the gradient that is wanted is zero")


def test_a_gradient_that_cannot_be_taken_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.\nSee the documentation")

    monkeypatch.setattr(rig.Rig, "backward", fail)
    seen = examine(order())
    assert seen.not_comparable is not None
    assert seen.not_comparable.endswith("OutOfMemoryError: CUDA out of memory.")
    ended = run_order(order(), Breadcrumb(bytearray(BREADCRUMB_SIZE)))
    assert ended.exactness is None, "the training itself failed"


def test_a_kernel_that_lies_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def backward(self: rig.Rig, loss: torch.Tensor) -> None:
        loss.backward()
        for weight in self.net.rnn.parameters():
            if weight.grad is not None:
                weight.grad *= 1.01

    monkeypatch.setattr(rig.Rig, "backward", backward)
    found = judged(placement="eval-always")
    assert (found.verdict, found.reason) == (Verdict.DIFFERS, "precision: float32 gradient, relative error 0.002")


def test_a_hook_that_changes_weights_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    act = rig.Rig.act

    def meddle(self: rig.Rig, actions: Any) -> None:
        act(self, actions)
        with torch.no_grad():
            self.net.head.bias += 1

    monkeypatch.setattr(rig.Rig, "act", meddle)
    assert "head.bias" in judged(placement="eval-always").changed


# --- in an attempt


def run(settings: Settings = SETTINGS, **axes: Value) -> Record:
    return run_order(order(settings, **axes), Breadcrumb(bytearray(BREADCRUMB_SIZE)))


@pytest.mark.parametrize("name", ["train-each-epoch", "train-in-forward", "eval-cudnn-off-process"])
def test_looking_disturbs_nothing_that_is_recorded(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    axes: dict[str, Value] = {"placement": name, **DROPS, **NORM}
    looked = run(replace(SETTINGS, timed_blocks=2, block_ms=1), **axes)
    monkeypatch.setattr(attempt, "examine", lambda _: None)
    plain = run(**axes)
    assert looked.exactness is not None
    assert plain.exactness is None
    for field in ("outcome", "phase", "epoch", "step", "first_loss", "last_loss", "losses_digest", "weights_digest"):
        assert getattr(looked, field) == getattr(plain, field), field
    assert looked.sightings == plain.sightings


def test_a_record_with_exactness_travels() -> None:
    ended = run(placement="train-for-gradient", **DROPS, **NORM)
    assert ended.exactness is not None
    assert load(Record, dump(ended)) == ended


def test_an_attempt_that_fails_has_none() -> None:
    assert run(placement="eval-no-grad").exactness is None
    assert run(norm="batch-norm", batch=1).exactness is None


def test_timed_blocks_come_after_the_epochs_and_are_about_as_long_as_asked() -> None:
    ended = run(replace(SETTINGS, timed_blocks=2, block_ms=200.0))
    steady = [sample for sample in ended.samples if sample.steady]
    assert [sample.epoch for sample in steady] == [3, 4, 5]
    assert [sample.forward_s is None for sample in steady] == [False, True, True], "the first one is timed in parts"
    assert [sample.epoch for sample in ended.samples if not sample.steady] == [1, 1, 2]
    assert all(sample.steps > 1 and not sample.warmup for sample in steady)
    assert (ended.phase, ended.epoch, ended.step) == (run().phase, 2, 2)
    for sample in ended.samples:
        parts = [sample.forward_s, sample.backward_s, sample.optimizer_s]
        assert parts == [None] * 3 or sum(part or 0 for part in parts) == pytest.approx(sample.wall_s)
        assert sample.machine is not None
    assert not any(sample.forward_s is None for sample in ended.samples if not sample.steady)


def test_timing_stops_where_the_deadline_comes_near() -> None:
    ended = run(replace(SETTINGS, timed_blocks=3, deadline=0.0))
    assert ended.outcome is Outcome.OK
    assert not any(sample.steady for sample in ended.samples)


def test_a_failure_while_timing_is_told_and_no_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("CUDA error: no")

    monkeypatch.setattr(attempt.Loop, "time_steadily", fail)
    ended = run()
    assert (ended.outcome, ended.facts["timing_error"]) == (Outcome.OK, "RuntimeError: CUDA error: no")
    assert ended.facts["torch"]


# --- the verdict alone

FINE = Exactness(1e-7, 2e-7, "float32", 1e-4, outputs_equal_eval=True, gradient_digest="aa")


def verdict(*seen: Exactness) -> tuple[Verdict, str]:
    found = judge(record(*seen))
    assert found is not None
    return found.verdict, found.reason


def test_without_a_look_there_is_no_verdict() -> None:
    assert judge([]) is None
    assert judge(record(None, None)) is None


def test_repeatability_needs_two() -> None:
    one, two = judge(record(FINE)), judge(record(FINE, None, FINE))
    assert one is not None
    assert two is not None
    assert (one.verdict, one.repeatable) == (Verdict.EXACT, None)
    assert (two.verdict, two.repeatable) == (Verdict.EXACT, True)
    assert verdict(FINE, replace(FINE, gradient_digest="bb"))[0] is Verdict.NOT_REPEATABLE


def test_a_difference_outweighs_the_rest_and_modes_explain_it() -> None:
    off = replace(FINE, gradient_error_weights=0.5, gradient_digest="bb")
    assert verdict(FINE, off) == (Verdict.DIFFERS, "precision: float32 gradient, relative error 0.5")
    dropped = replace(off, active_dropout=("rnn",))
    assert verdict(FINE, dropped) == (Verdict.DIFFERS, "dropout active (rnn)")
    assert verdict(replace(FINE, active_dropout=("rnn",)))[0] is Verdict.DIFFERS, "however small it was today"
    hidden = replace(FINE, gradient_error_weights=None, gradient_error_input=None, not_comparable="why")
    assert verdict(hidden) == (Verdict.NOT_COMPARABLE, "why")
    assert verdict(hidden, replace(hidden, gradient_digest="bb"))[0] is Verdict.NOT_REPEATABLE
    assert verdict(replace(hidden, batch_statistics=("norm",)))[0] is Verdict.DIFFERS


@pytest.mark.parametrize("error", [float("nan"), float("inf"), 1.1e-4])
def test_an_error_beyond_the_tolerance_or_no_number_differs(error: float) -> None:
    for field in ("gradient_error_weights", "gradient_error_input"):
        worse = replace(FINE, **{field: error})
        found = judge(record(worse, FINE))
        assert found is not None
        assert found.verdict is Verdict.DIFFERS
        assert repr(getattr(found, field)) == repr(error), "the largest of all attempts"


def test_what_is_wanted_in_train_mode_may_train() -> None:
    seen = replace(FINE, train_wanted=("dropout", "norm"), active_dropout=("dropout",), batch_statistics=("norm",))
    assert verdict(seen)[0] is Verdict.EXACT
    assert verdict(replace(seen, batch_statistics=(), running_statistics=("norm",))) == (
        Verdict.DIFFERS,
        "running statistics used (norm)",
    )


def test_the_reference_is_a_gradient_in_double_precision() -> None:
    """Held against a gradient that is computed here, from the start, by other means."""
    wanted = order(placement="eval-always", dtype="float64")
    made = rig.Rig(wanted)
    net = copy.deepcopy(made.net).eval()
    inputs = made.batch.inputs.clone().requires_grad_()
    nn.functional.cross_entropy(net(inputs), made.batch.targets).backward()
    seen = exactness._Examination(wanted)
    seen._take_gradient()
    reference = seen._reference()
    assert torch.equal(reference[exactness.INPUT], inputs.grad)  # type: ignore[arg-type]
    for name, weight in net.named_parameters():
        assert torch.equal(reference[name], weight.grad)  # type: ignore[arg-type]
