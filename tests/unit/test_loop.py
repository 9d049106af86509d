"""The step loop and the attempt around it, in this process on the CPU: every placement and every axis."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.matrix.axes import make_variant
from harness.model import Device, KernelPath, Order, Outcome, Phase, Record, Settings, Value
from harness.placements import PLACEMENTS
from harness.trial import attempt
from harness.trial.attempt import digest, run_order
from harness.trial.clock import BlockClock
from harness.trial.loop import Loop
from harness.wire import BREADCRUMB_SIZE, Breadcrumb, dump, load

# PyTorch says so once a process, from C++.
pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")

SMALL: dict[str, Value] = {"batch": 3, "seq-len": 4, "input-size": 5, "hidden-size": 6, "layers": 2, "dropout": 0.5}
SETTINGS = Settings(epochs=2, steps=2, evaluation_steps=1)


@pytest.fixture(autouse=True)
def switches_as_they_were() -> Iterator[None]:
    cudnn, threads = torch.backends.cudnn.enabled, torch.get_num_threads()
    torch.set_num_threads(1)  # two of them on a busy machine wait for each other
    yield
    torch.backends.cudnn.enabled = cudnn
    torch.set_num_threads(threads)


def order(settings: Settings = SETTINGS, device: Device = Device.CPU, **axes: Value) -> Order:
    named = {name.replace("_", "-"): value for name, value in axes.items()}
    return Order("run", make_variant({**SMALL, **named}), device, settings)


def run(settings: Settings = SETTINGS, **axes: Value) -> Record:
    record = run_order(order(settings, **axes), Breadcrumb(bytearray(BREADCRUMB_SIZE)))
    assert repr(load(Record, dump(record))) == repr(record)
    return record


def test_each_timed_block_has_a_sign_of_life_before_it_and_none_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine's blocks together may take half of a deadline, and are not hung."""
    told: list[str] = []
    for owner, name in ((BlockClock, "start"), (BlockClock, "stop"), (Breadcrumb, "drop")):
        monkeypatch.setattr(owner, name, noted(told, name, getattr(owner, name)))
    crumb = Breadcrumb(bytearray(BREADCRUMB_SIZE))
    loop = Loop(order(replace(SETTINGS, timed_blocks=4, block_ms=0.0)), crumb)
    loop.run()
    beats, *whereabouts = crumb.read()
    told.clear()
    loop.time_steadily()
    assert told == ["drop", "start", "stop"] * 6, "two of them in parts"
    assert crumb.read() == (beats + 6, *whereabouts)


def noted(told: list[str], name: str, do: Callable[..., object]) -> Callable[..., object]:
    def noting(*arguments: object, **options: object) -> object:
        told.append(name)
        return do(*arguments, **options)

    return noting


# Where a forward of each kind was first seen: epoch, step, RNN in train mode, gradient reached it, role.
T, E = True, False
FIRST_T = [(1, 1, T, True, "step")]
FIRST_E = [(1, 1, E, True, "step")]
SIGHTINGS: dict[str, list[tuple[int, int, bool, bool, str]]] = {
    "train-always": FIRST_T,
    "train-each-epoch": FIRST_T,
    "train-each-step": FIRST_T,
    "eval-after-epoch": [*FIRST_T, (2, 1, E, True, "step")],
    "eval-by-helper": [*FIRST_T, (1, 2, E, True, "step")],
    "eval-always": FIRST_E,
    "eval-then-use": FIRST_E,
    "train-before-backward": FIRST_E,
    "eval-before-backward": FIRST_T,
    "rnn-eval-rest-train": FIRST_E,
    "rnn-frozen-in-train": FIRST_T,
    "inner-loop-in-eval": [*FIRST_T, (1, 1, E, True, "inner")],
    "eval-output-reused": [(1, 1, E, True, "kept"), *FIRST_T],
    "eval-output-detached": [(1, 1, E, False, "kept"), *FIRST_T],
    "eval-output-unused": [(1, 1, E, False, "kept"), *FIRST_T],
    "rnn-train-rest-eval": FIRST_T,
    "rnn-train-dropout-zero": FIRST_T,
    "dropout-norm-eval": FIRST_T,
    "train-for-gradient": FIRST_T,
    "eval-cudnn-off-forward": FIRST_E,
    "eval-cudnn-off-backward": FIRST_E,
    "eval-cudnn-off-process": FIRST_E,
    "train-in-forward": FIRST_T,
    "eval-no-grad": [(1, 1, E, False, "step")],
}


def test_every_placement_is_in_the_table() -> None:
    assert set(SIGHTINGS) == set(PLACEMENTS)


@pytest.mark.parametrize("cell", ["lstm", "rnn-tanh"])
@pytest.mark.parametrize("name", PLACEMENTS)
def test_a_placement_does_on_a_cpu_what_it_declares(name: str, cell: str) -> None:
    record = run(placement=name, cell=cell)
    told = [(s.epoch, s.step, s.training, s.gradient_reached, s.role) for s in record.sightings]
    assert told == SIGHTINGS[name]
    if name == "eval-no-grad":
        assert (record.outcome, record.phase, record.epoch, record.step) == (Outcome.ERROR, Phase.BACKWARD, 1, 1)
        assert "does not require grad" in str(record.error_message)
        assert record.path is None
        return
    assert record.outcome is Outcome.OK, record.error_message
    assert record.path in {KernelPath.NATIVE, KernelPath.MKLDNN}
    assert all(sighting.path in {KernelPath.NATIVE, KernelPath.MKLDNN} for sighting in record.sightings)
    assert (record.phase, record.epoch) == (Phase.EVALUATE, 2)
    assert record.first_loss is not None
    assert record.last_loss is not None
    assert math.isfinite(record.first_loss)
    assert math.isfinite(record.last_loss)


@pytest.mark.parametrize("name", PLACEMENTS)
def test_the_rule_read_from_the_sightings_gives_the_prediction(name: str) -> None:
    """Off cuDNN no placement raises, but each sighting says what would: an eval forward that a gradient reached."""
    placement = PLACEMENTS[name]
    off_at_forward = placement.cudnn_off_process or placement.around_forward is not None
    would = any(not s.training and s.gradient_reached for s in run(placement=name).sightings) and not off_at_forward
    assert would == placement.raises


def loop_of(settings: Settings = SETTINGS, **axes: Value) -> Loop:
    loop = Loop(order(settings, **axes), Breadcrumb(bytearray(BREADCRUMB_SIZE)))
    loop.run()
    return loop


def weights(loop: Loop) -> list[torch.Tensor]:
    assert loop.net is not None
    return [weight.detach().clone() for weight in loop.net.parameters()]


@pytest.mark.parametrize("name", [name for name in PLACEMENTS if name != "eval-no-grad"])
def test_the_optimizer_steps_where_the_gradient_is_applied_and_only_there(name: str) -> None:
    placement = PLACEMENTS[name]
    after = loop_of(placement=name, dropout=0.0)
    before = loop_of(replace(SETTINGS, learning_rate=0.0), placement=name, dropout=0.0)
    moved = not all(map(torch.equal, weights(after), weights(before)))
    assert moved == placement.applies
    assert after.net is not None
    assert before.net is not None
    frozen = all(map(torch.equal, after.net.rnn.parameters(), before.net.rnn.parameters()))
    assert frozen == (placement.freeze_rnn or not placement.applies)
    assert all(weight.grad is None for weight in after.net.parameters())


def dropout_seen(name: str) -> tuple[set[float], float]:
    """The RNN's dropout at its forwards in ``name``, and when all is over."""
    loop = Loop(order(placement=name), Breadcrumb(bytearray(BREADCRUMB_SIZE)))
    seen: set[float] = set()
    build = loop._build

    def watched() -> None:
        build()
        assert loop.net is not None
        loop.net.rnn.register_forward_hook(lambda rnn, *_: seen.add(rnn.dropout) if torch.is_grad_enabled() else None)

    loop._build = watched  # type: ignore[method-assign]
    loop.run()
    assert loop.net is not None
    return seen, loop.net.rnn.dropout


def test_one_placement_switches_the_rnns_dropout_off_for_its_steps() -> None:
    assert dropout_seen("rnn-train-dropout-zero") == ({0.0}, 0.5)
    assert dropout_seen("rnn-train-rest-eval") == ({0.5}, 0.5)


@pytest.mark.parametrize(
    ("name", "axis", "during"),
    [("train-always", "on", True), ("train-always", "off", False), ("eval-cudnn-off-process", "on", False)],
)
def test_the_cudnn_flag_is_what_axis_and_placement_say(name: str, axis: str, during: bool) -> None:
    loop_of(placement=name, cudnn=axis)
    assert torch.backends.cudnn.enabled is during


AXES: list[dict[str, Value]] = [
    {"cell": "gru"},
    {"cell": "rnn-relu"},
    {"bidirectional": True},
    {"cudnn": "off"},
    {"layers": 1, "dropout": 0.0},
    {"layers": 3},
    {"dropout": 0.0},
    {"dtype": "float64"},
    {"dtype": "bfloat16"},
    {"autocast": "bfloat16"},
    {"packed": True},
    {"packed": True, "batch_first": True, "bidirectional": True},
    {"proj_size": 2},
    {"proj_size": 2, "bidirectional": True},
    {"batch_first": True},
    {"bias": False},
    {"norm": "batch-norm"},
    {"norm": "batch-norm", "packed": True},
    {"batch": 1},
    {"seq_len": 1},
    {"hidden_size": 1},
    {"input_size": 1},
    {"bidirectional": True, "packed": True, "proj_size": 3, "dtype": "float64", "norm": "batch-norm", "bias": False},
]


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("name", ["train-each-epoch", "rnn-eval-rest-train", "eval-output-reused"])
def test_every_axis_trains(axes: dict[str, Value], name: str) -> None:
    record = run(placement=name, **axes)
    assert record.outcome is Outcome.OK, (record.error_message, record.traceback_tail)
    assert record.path in {KernelPath.NATIVE, KernelPath.MKLDNN}
    assert record.sequences_per_step == axes.get("batch", 3)
    assert record.first_loss is not None
    assert math.isfinite(record.first_loss)
    assert record.losses_digest
    assert record.weights_digest


@pytest.mark.parametrize(
    ("axes", "check"),
    [
        ({"cell": "gru"}, lambda rnn: isinstance(rnn, torch.nn.GRU)),
        ({"cell": "rnn-relu"}, lambda rnn: rnn.nonlinearity == "relu"),
        ({"cell": "rnn-tanh"}, lambda rnn: rnn.nonlinearity == "tanh"),
        ({"cell": "lstm", "proj_size": 2}, lambda rnn: rnn.proj_size == 2),
        ({"bidirectional": True}, lambda rnn: rnn.bidirectional),
        ({"layers": 3}, lambda rnn: rnn.num_layers == 3),
        ({"dropout": 0.25}, lambda rnn: rnn.dropout == 0.25),
        ({"bias": False}, lambda rnn: not rnn.bias),
        ({"batch_first": True}, lambda rnn: rnn.batch_first),
        ({"dtype": "float64"}, lambda rnn: rnn.weight_hh_l0.dtype is torch.float64),
        ({"input_size": 7, "hidden_size": 9}, lambda rnn: rnn.weight_ih_l0.shape[1] == 7 and rnn.hidden_size == 9),
    ],
)
def test_an_axis_reaches_the_layer(axes: dict[str, Value], check: Any) -> None:
    loop = loop_of(replace(SETTINGS, epochs=1, steps=1, warmup_epochs=0), **axes)
    assert loop.net is not None
    assert check(loop.net.rnn)


def test_layout_changes_nothing_but_the_layout() -> None:
    """One seed gives one network and one batch, however the batch lies in memory."""
    one, other = run(batch_first=False, dropout=0.0), run(batch_first=True, dropout=0.0)
    assert one.first_loss == pytest.approx(other.first_loss, rel=1e-5)
    assert one.last_loss == pytest.approx(other.last_loss, rel=1e-5)
    assert one.timesteps_per_step == other.timesteps_per_step == 12


def test_packed_sequences_count_their_own_time_steps() -> None:
    record = run(packed=True, batch=8)
    assert record.sequences_per_step == 8
    assert record.timesteps_per_step is not None
    assert 8 + 3 <= record.timesteps_per_step < 32


def test_autocast_computes_in_the_lower_precision() -> None:
    assert run(autocast="bfloat16").losses_digest != run().losses_digest


def test_an_empty_batch_is_nan_and_not_zero() -> None:
    for cell in ("lstm", "gru", "rnn-relu"):
        record = run(batch=0, cell=cell)
        assert record.outcome is Outcome.OK, record.error_message
        assert record.sequences_per_step == record.timesteps_per_step == 0
        assert record.first_loss is not None
        assert math.isnan(record.first_loss)


def test_batch_norm_refuses_a_batch_of_one_in_train_mode_only() -> None:
    record = run(norm="batch-norm", batch=1)
    assert (record.outcome, record.phase, record.epoch, record.step) == (Outcome.ERROR, Phase.FORWARD, 1, 1)
    assert record.error_type == "ValueError"
    assert run(norm="batch-norm", batch=1, placement="eval-always").outcome is Outcome.OK


def digests(record: Record) -> tuple[str | None, str | None]:
    assert record.losses_digest
    assert record.weights_digest
    return record.losses_digest, record.weights_digest


@pytest.mark.parametrize("name", ["train-each-epoch", "eval-output-reused", "rnn-eval-rest-train"])
def test_one_seed_gives_one_result(name: str) -> None:
    once = digests(run(placement=name))
    torch.rand(17)
    assert digests(run(placement=name)) == once
    other = digests(run(replace(SETTINGS, seed=1), placement=name))
    assert not set(other) & set(once)


def test_a_digest_is_of_every_bit() -> None:
    ones = torch.ones(3)
    assert digest([ones]) == digest([torch.ones(3)])
    assert digest([ones]) != digest([torch.nextafter(ones, torch.tensor(2.0))])
    assert digest([torch.zeros(1)]) != digest([-torch.zeros(1)])
    assert digest([ones, torch.zeros(1)]) != digest([torch.zeros(1), ones])


def test_blocks_are_timed_raw_with_the_first_step_and_the_warm_up_marked() -> None:
    record = run(Settings(epochs=3, steps=4, evaluation_steps=0, warmup_epochs=2))
    assert [(s.epoch, s.steps, s.warmup) for s in record.samples] == [
        (1, 1, True),
        (1, 3, True),
        (2, 4, True),
        (3, 4, False),
    ]
    assert all(sample.wall_s > 0 and sample.device_s is None for sample in record.samples)
    assert record.first_step_s == record.samples[0].wall_s
    assert record.wall_s is not None
    assert sum(sample.wall_s for sample in record.samples) < record.wall_s


def test_one_step_an_epoch_leaves_no_empty_block() -> None:
    record = run(Settings(epochs=2, steps=1, evaluation_steps=0, warmup_epochs=0))
    assert [(s.epoch, s.steps) for s in record.samples] == [(1, 1), (2, 1)]


def test_losses_are_counted_over_all_steps() -> None:
    assert len(loop_of(Settings(epochs=3, steps=4, evaluation_steps=5)).losses) == 12


def test_the_breadcrumb_says_where_an_attempt_is() -> None:
    places: list[tuple[Phase, int, int]] = []

    class Noted(Breadcrumb):
        def drop(self, phase: Phase, epoch: int = 0, step: int = 0) -> None:
            places.append((phase, epoch, step))

    Loop(order(Settings(epochs=2, steps=2, evaluation_steps=1)), Noted(bytearray(BREADCRUMB_SIZE))).run()
    step = [Phase.FORWARD, Phase.BACKWARD, Phase.STEP]
    assert places == [
        (Phase.BUILD, 0, 0),
        *((phase, 1, 1) for phase in step),
        *((phase, 1, 2) for phase in step),
        *[(Phase.EVALUATE, 1, 2)] * 2,  # its beginning, and its step
        *((phase, 2, 1) for phase in step),
        *((phase, 2, 2) for phase in step),
        *[(Phase.EVALUATE, 2, 2)] * 2,
    ]


def test_the_record_says_whose_it_is() -> None:
    asked = replace(order(), replicate=2, attempt=3)
    record = run_order(asked, Breadcrumb(bytearray(BREADCRUMB_SIZE)))
    assert (record.run, record.key, record.label) == (asked.run, asked.variant.key, asked.variant.label)
    assert (record.device, record.replicate, record.attempt) == (Device.CPU, 2, 3)
    assert record.started is not None
    assert record.peak_memory_bytes is not None
    assert record.peak_memory_bytes > 10 << 20
    assert record.facts["torch"] == str(torch.__version__)


@pytest.mark.parametrize("error", [RuntimeError("CUDA error: an illegal address"), ValueError("no"), MemoryError()])
@pytest.mark.parametrize("before", [None, KeyError("first")])
def test_a_device_that_cannot_be_read_afterwards_is_a_finding(
    monkeypatch: pytest.MonkeyPatch, error: Exception, before: Exception | None
) -> None:
    """After a sticky CUDA error every question to the device raises; the record survives it with the first error."""

    def fail(*_: object, **__: object) -> None:
        raise error

    def stop(_: Loop) -> None:
        if before is not None:
            raise before

    monkeypatch.setattr(attempt, "_memory", fail)
    monkeypatch.setattr(Loop, "run", stop)
    record = run()
    kept = before or error
    assert record.error_type == type(kept).__name__
    assert record.error_message == str(kept)
    assert record.outcome is (Outcome.OOM if kept is error and isinstance(error, MemoryError) else Outcome.ERROR)
    assert record.phase is Phase.BUILD


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), RecursionError("x")], ids=repr)
def test_whatever_a_variant_raises_is_in_its_record(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def stop(loop: Loop) -> None:
        loop.phase, loop.epoch, loop.step = Phase.STEP, 4, 2
        raise error

    monkeypatch.setattr(Loop, "run", stop)
    record = run()
    assert (record.outcome, record.phase, record.epoch, record.step) == (Outcome.ERROR, Phase.STEP, 4, 2)
    assert record.error_type == type(error).__name__


PROGRAM = """
import json
class Result:
    def to_json(self):
        {to_json}
def parse_arguments(argv):
    return argv
def run(config, *, on_step, result):
    {run}
"""


def run_text(tmp_path: Path, *, body: str = "pass", to_json: str = "return '{}'", text: str | None = None) -> Record:
    file = tmp_path / "made_program.py"
    file.write_text(PROGRAM.format(run=body, to_json=to_json) if text is None else text)
    asked = replace(order(), program=str(file), arguments=("--limit", "3"))
    record = run_order(asked, Breadcrumb(bytearray(BREADCRUMB_SIZE)))
    assert repr(load(Record, dump(record))) == repr(record)
    return record


def test_a_program_gets_its_arguments_and_device_and_gives_results(tmp_path: Path) -> None:
    record = run_text(tmp_path, body="global seen; seen = config", to_json="return json.dumps({'config': seen})")
    assert (record.outcome, record.phase) == (Outcome.OK, Phase.EVALUATE)
    assert record.results == {"config": ["--limit", "3", "--device", "cpu"]}


@pytest.mark.parametrize(
    ("to_json", "error"),
    [
        ("raise ValueError('no')", "ValueError"),
        ("return 'garbage'", "json.decoder.JSONDecodeError"),
        ("return '[1]'", "TypeError"),
        ("return None", "TypeError"),
        ("return json.dumps({'failed_at': {'epoch': 1}})", "KeyError"),
        ("raise SystemExit(1)", "SystemExit"),
    ],
)
def test_a_result_that_cannot_be_told_is_the_programs_own_failure(tmp_path: Path, to_json: str, error: str) -> None:
    record = run_text(tmp_path, to_json=to_json)
    assert (record.outcome, record.error_type) == (Outcome.ERROR, error)
    record = run_text(tmp_path, body="raise LookupError('first')", to_json=to_json)
    assert (record.outcome, record.error_type) == (Outcome.ERROR, "LookupError")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "AttributeError"),
        ("def", "SyntaxError"),
        ("import nothing_of_that_name", "ModuleNotFoundError"),
        ("raise SystemExit('bye')", "SystemExit"),
        ("Result = 5", "TypeError"),
        ("\0", "SyntaxError"),
    ],
)
def test_a_program_that_is_none_is_an_error(tmp_path: Path, text: str, error: str) -> None:
    record = run_text(tmp_path, text=text)
    assert (record.outcome, record.error_type, record.results) == (Outcome.ERROR, error, {})


def test_a_program_that_is_missing_is_an_error(tmp_path: Path) -> None:
    asked = replace(order(), program=str(tmp_path / "none.py"))
    record = run_order(asked, Breadcrumb(bytearray(BREADCRUMB_SIZE)))
    assert (record.outcome, record.error_type) == (Outcome.ERROR, "FileNotFoundError")


def test_what_a_program_reports_on_the_way_is_kept_when_it_fails(tmp_path: Path) -> None:
    record = run_text(
        tmp_path,
        body="from types import SimpleNamespace as S; on_step(S(epoch=1, step=4)); raise RuntimeError("
        "'cudnn RNN backward can only be called in training mode')",
        to_json="return json.dumps({'failed_at': {'epoch': 2, 'step': 1}, 'losses': [0.5]})",
    )
    assert (record.outcome, record.phase) == (Outcome.BACKWARD_ERROR, Phase.BACKWARD)
    assert (record.epoch, record.step) == (2, 1)
    assert json.dumps(record.results) == json.dumps({"failed_at": {"epoch": 2, "step": 1}, "losses": [0.5]})
