"""The seed programs, in this process: data, command lines, remedies, and what a failure leaves behind."""

import importlib
import json
import math
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
EVAL_MODE_ERROR = "cudnn RNN backward can only be called in training mode"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXPERIMENTS)


@pytest.fixture
def digits() -> ModuleType:
    return importlib.import_module("seed_digits")


@pytest.fixture
def brnn() -> ModuleType:
    return importlib.import_module("seed_brnn_mnist")


@pytest.fixture
def simple() -> ModuleType:
    return importlib.import_module("seed_simple_rnn")


@pytest.fixture
def like_cudnn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every RNN refuse a backward after a forward in eval mode, as cuDNN does."""

    def refuse(_: Tensor) -> None:
        raise RuntimeError(EVAL_MODE_ERROR)

    def strict(forward: Any) -> Any:
        def checked(self: nn.RNNBase, *args: Any) -> Any:
            outputs, hidden = forward(self, *args)
            states = hidden if isinstance(hidden, tuple) else (hidden,)
            for tensor in (outputs, *states):
                if tensor.requires_grad and not self.training:
                    tensor.register_hook(refuse)
            return outputs, hidden

        return checked

    for cell in (nn.RNN, nn.LSTM):
        monkeypatch.setattr(cell, "forward", strict(cell.forward))


# ------------------------------------------------------------------------------------------------------------- data


def test_digits_have_the_shape_and_range_of_mnist(digits: ModuleType) -> None:
    images = digits.load_images("digits", Path("unused"))
    pixels, labels = images.train[:]
    assert pixels.shape[1:] == images.test[:][0].shape[1:] == (28, 28)
    assert pixels.dtype == torch.float32
    assert pixels.min() == 0
    assert 0.9 < pixels.max() <= 1
    assert sorted(labels.unique().tolist()) == list(range(10))
    assert len(images.train) + len(images.test) == 1797
    assert len(images.train) == pytest.approx(4 * len(images.test), rel=0.01)


def test_digits_that_stand_in_for_mnist_say_so_and_why(
    digits: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(digits, "any_answers", lambda _: False)
    images = digits.load_images("auto", tmp_path / "data")
    assert "not MNIST" in images.name
    assert "MNIST cannot be had" in images.reason
    assert "download sites do not answer" in images.reason
    assert "8x8" in images.reason
    assert not (tmp_path / "data").exists()


def test_mnist_is_never_replaced_when_it_alone_is_asked_for(
    digits: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(digits, "any_answers", lambda _: False)
    with pytest.raises(digits.MnistUnavailableError, match="MNIST cannot be had"):
        digits.load_images("mnist", tmp_path)


def test_mnist_on_disk_is_used_and_named(digits: ModuleType, tmp_path: Path) -> None:
    write_small_mnist(tmp_path)
    images = digits.load_images("auto", tmp_path)
    assert images.name == "MNIST"
    assert str(tmp_path) in images.reason
    pixels, labels = images.train[:]
    assert pixels.shape == (6, 28, 28)
    assert pixels.max() == 1
    assert labels.tolist() == [0, 1, 2, 3, 4, 5]


def test_damaged_mnist_is_told_apart_from_absent_mnist(digits: ModuleType, tmp_path: Path) -> None:
    write_small_mnist(tmp_path)
    images_file = tmp_path / "MNIST" / "raw" / "train-images-idx3-ubyte"
    images_file.write_bytes(images_file.read_bytes()[:100])
    with pytest.raises(digits.MnistUnavailableError, match="damaged"):
        digits.load_images("mnist", tmp_path)


def test_a_download_arrives_in_the_data_folder(
    digits: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(digits, "any_answers", lambda _: True)
    monkeypatch.setattr(subprocess, "run", lambda command, **_: write_small_mnist(Path(command[-1])))
    images = digits.load_images("mnist", tmp_path / "data")
    assert "downloaded" in images.reason
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["MNIST"]


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (subprocess.TimeoutExpired("download", 90), "took over 90 seconds"),
        (subprocess.CalledProcessError(1, "download"), "download failed"),
    ],
)
def test_a_broken_download_leaves_nothing_behind(
    digits: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, failure: Exception, reason: str
) -> None:
    def half_a_download(command: list[str], **_: object) -> None:
        Path(command[-1], "train-images-idx3-ubyte.gz").write_bytes(b"half of it")
        raise failure

    monkeypatch.setattr(digits, "any_answers", lambda _: True)
    monkeypatch.setattr(subprocess, "run", half_a_download)
    images = digits.load_images("auto", tmp_path)
    assert reason in images.reason
    assert list(tmp_path.iterdir()) == []


@pytest.mark.timeout(60)
def test_a_site_that_never_answers_is_given_up_on(digits: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = digits.threading.Event()
    monkeypatch.setattr(digits, "PROBE_SECONDS", 0.05)
    monkeypatch.setattr(digits, "does_answer", lambda _: hanging.wait(timeout=120))
    assert digits.any_answers(["http://first.invalid/", "http://second.invalid/"]) is False
    hanging.set()


def test_one_answering_site_is_enough(digits: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digits, "does_answer", lambda url: "second" in url)
    assert digits.any_answers(["http://first.invalid/", "http://second.invalid/"]) is True


def write_small_mnist(data_dir: Path) -> None:
    """Write six training and six test images in MNIST's own format."""
    raw = data_dir / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for part in ("train", "t10k"):
        pixels = bytes(number % 256 for number in range(6 * 28 * 28))
        (raw / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">4i", 0x803, 6, 28, 28) + pixels)
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">2i", 0x801, 6) + bytes(range(6)))


# ----------------------------------------------------------------------------------------------------- command lines


@pytest.mark.parametrize(("argv", "fixed"), [([], False), (["--as-written"], False), (["--fixed"], True)])
def test_brnn_variants(brnn: ModuleType, argv: list[str], fixed: bool) -> None:
    assert brnn.parse_arguments(argv).fixed is fixed


@pytest.mark.parametrize(
    ("argv", "remedy"),
    [
        ([], None),
        (["--as-written"], None),
        (["--fixed"], "train-once"),
        (["--fixed", "train-in-loop"], "train-in-loop"),
        (["--fixed", "train-function"], "train-function"),
    ],
)
def test_simple_variants(simple: ModuleType, argv: list[str], remedy: str | None) -> None:
    assert simple.parse_arguments(argv).remedy == remedy


def test_common_flags_become_settings(simple: ModuleType) -> None:
    argv = ["--device=cpu", "--epochs=3", "--seed=7", "--limit=40", "--output-dir=out", "--json=out/result.json"]
    config = simple.parse_arguments(argv)
    expected = simple.Config(
        device="cpu", epochs=3, seed=7, limit=40, output_dir=Path("out"), json_path=Path("out/result.json")
    )
    assert config == expected


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--epochs", "0"], "'0' is not a whole number above zero"),
        (["--limit", "-5"], "'-5' is not a whole number above zero"),
        (["--fixed", "--as-written"], "not allowed with"),
        (["--fixed", "train-twice"], "choose from train-once, train-in-loop, train-function"),
        (["--device", "tpu"], "invalid choice"),
        (["--device", "cuda"], "finds no CUDA GPU"),
    ],
)
def test_bad_arguments_are_refused_in_words(
    simple: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    argv: list[str],
    words: str,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit) as stopped:
        simple.parse_arguments(argv)
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------- training and failing


def test_brnn_as_written_fails_where_the_second_epoch_begins(
    brnn: ModuleType, like_cudnn: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["--data", "digits", "--device", "cpu", "--limit", "200", "--output-dir", str(tmp_path)]
    assert brnn.main([*argv, "--json", str(tmp_path / "result.json")]) == 1

    result = json.loads((tmp_path / "result.json").read_text())
    assert result["failed_at"] == {"epoch": 2, "step": 1}
    assert (result["error_type"], result["error_message"]) == ("RuntimeError", EVAL_MODE_ERROR)
    assert [report["epoch"] for report in result["epochs"]] == [1]
    assert len(result["step_losses"]) == 2
    assert Path(result["plot"]).read_bytes().startswith(b"\x89PNG")
    assert torch.load(result["checkpoint"], weights_only=True).keys() == brnn.RowReader().state_dict().keys()
    printed = capsys.readouterr()
    assert "Raised in epoch 2, step 1." in printed.err
    assert "Traceback" not in printed.err


def test_brnn_fixed_survives_the_same_check(brnn: ModuleType, like_cudnn: None, tmp_path: Path) -> None:
    heard: list[Any] = []
    config = brnn.Config(fixed=True, data="digits", device="cpu", limit=200, output_dir=tmp_path)
    result = brnn.run(config, on_step=heard.append, on_epoch=heard.append)
    assert [(report.epoch, getattr(report, "step", "end")) for report in heard] == [
        (1, 1), (1, 2), (1, "end"), (2, 1), (2, 2), (2, "end"),
    ]  # fmt: skip
    assert result.failed_at is None
    assert result.epochs[1].train_loss == pytest.approx(sum(result.step_losses[2:]) / 2)


def test_simple_as_written_fails_at_its_first_step_and_run_passes_the_error_on(
    simple: ModuleType, like_cudnn: None, tmp_path: Path
) -> None:
    result = importlib.import_module("seed_results").Result()
    with pytest.raises(RuntimeError, match=EVAL_MODE_ERROR):
        simple.run(simple.Config(device="cpu", limit=100, output_dir=tmp_path), result=result)
    assert (result.failed_at.epoch, result.failed_at.step) == (1, 1)
    assert result.epochs == result.step_losses == []
    assert result.plot is None
    assert result.checkpoint is None


@pytest.mark.parametrize("remedy", ["train-once", "train-in-loop", "train-function"])
def test_every_remedy_of_the_simple_program_works(
    simple: ModuleType, like_cudnn: None, tmp_path: Path, remedy: str
) -> None:
    config = simple.Config(remedy=simple.Remedy(remedy), device="cpu", output_dir=tmp_path)
    result = simple.run(config)
    assert result.remedy == remedy
    assert result.epochs[-1].test_accuracy > 0.85
    assert result.epochs[-1].test_loss < result.step_losses[0] / 2


def test_results_that_are_not_finite_stay_honest_json() -> None:
    results = importlib.import_module("seed_results")
    result = results.Result(step_losses=[1.5, math.nan, math.inf])
    assert json.loads(result.to_json(), parse_constant=pytest.fail)["step_losses"] == [1.5, None, None]


@pytest.fixture(autouse=True, scope="module")
def forget_the_programs() -> Iterator[None]:
    """Leave no module of the experiments folder behind for other tests."""
    yield
    for name in [name for name in sys.modules if name.startswith("seed_")]:
        del sys.modules[name]


@pytest.mark.parametrize(("device_name", "computes"), [("harness stub (no GPU)", False), ("NVIDIA H200", True)])
def test_a_device_that_computes_nothing_is_told_before_its_numbers(
    device_name: str, computes: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    result = importlib.import_module("seed_results").Result(device="cuda", device_name=device_name)
    importlib.import_module("seed_terminal").tell_start(result)
    assert ("computes nothing" in capsys.readouterr().out) is not computes
