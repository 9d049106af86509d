"""What a run of a seed program leaves behind: losses, accuracy, a checkpoint, a plot, a JSON file.

Nothing here is about the error that the programs show; read seed_simple_rnn.py and seed_brnn_mnist.py for that.
"""

import json
import math
import platform
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor, nn
from torch.utils.data import DataLoader

Batches = DataLoader[tuple[Tensor, ...]]

BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "#555555"  # of Okabe and Ito: told apart by colour-blind eyes too


@dataclass(frozen=True)
class Settings:
    """The settings that the programs have in common."""

    device: str = "auto"
    epochs: int = 2
    seed: int = 0
    limit: int | None = None
    output_dir: Path = Path("seed-output")
    json_path: Path | None = None


@dataclass(frozen=True)
class Position:
    """A training step; epochs and steps count from 1."""

    epoch: int
    step: int


@dataclass(frozen=True)
class StepReport:
    """A finished training step, one of ``steps`` in its epoch."""

    epoch: int
    step: int
    steps: int
    loss: float


@dataclass(frozen=True)
class EpochReport:
    """A finished epoch: the mean loss of its steps, then loss and accuracy (0 to 1) on the test set."""

    epoch: int
    train_loss: float
    test_loss: float
    test_accuracy: float


@dataclass
class Result:
    """All that a run leaves behind, filled in as the run goes: a failure loses nothing that came before it."""

    program: str = ""
    variant: str = ""  # "as-written" or "fixed"
    remedy: str | None = None
    summary: str = ""  # the variant in words
    seed: int = 0
    device: str = ""
    device_name: str = ""
    torch_version: str = str(torch.__version__)
    dataset: str = ""
    dataset_reason: str = ""
    training_samples: int = 0
    test_samples: int = 0
    steps_per_epoch: int = 0
    epochs: list[EpochReport] = field(default_factory=list)
    step_losses: list[float] = field(default_factory=list)
    failed_at: Position | None = None  # the last step begun, if the run failed; None if it failed before the first
    error_type: str | None = None
    error_message: str | None = None
    plot: Path | None = None
    checkpoint: Path | None = None

    @property
    def computes(self) -> bool:
        """Whether the device computes anything; a stub, a GPU in name only, gives zeros that are no losses."""
        return "stub" not in self.device_name

    @property
    def name(self) -> str:
        """A name for the run's files, such as ``brnn-mnist-as-written``."""
        return "-".join(part for part in (self.program, self.variant, self.remedy) if part)

    def to_json(self) -> str:
        """Return the result as strict JSON, in which a number that is not finite is null."""
        return json.dumps(plain(asdict(self)), indent=2, allow_nan=False) + "\n"


def plain(value: object) -> object:
    """Return ``value`` built of nothing but what strict JSON knows."""
    match value:
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list():
            return [plain(item) for item in value]
        case float():
            return value if math.isfinite(value) else None
        case Path():
            return str(value)
    return value


def ignore(_report: object) -> None:
    """Hear a report and do nothing."""


@dataclass
class TrainingLog:
    """Goes along with a training loop, keeps what happens in ``result`` and tells it to the three listeners."""

    result: Result
    settings: Settings
    on_start: Callable[[Result], None] = ignore
    on_step: Callable[[StepReport], None] = ignore
    on_epoch: Callable[[EpochReport], None] = ignore
    position: Position | None = None

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Whatever happens inside, note a failure, draw the plot and write the JSON file; hide no exception."""
        self.settings.output_dir.mkdir(parents=True, exist_ok=True)
        if self.settings.json_path is not None:
            self.settings.json_path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield
        except BaseException as error:
            self.result.failed_at = self.position
            self.result.error_type, self.result.error_message = type(error).__name__, str(error)
            raise
        finally:
            if self.result.step_losses:
                self.result.plot = plot_losses(self.result, self.settings.output_dir / f"{self.result.name}.png")
            if self.settings.json_path is not None:
                self.settings.json_path.write_text(self.result.to_json(), encoding="utf-8")

    def start(self, device: torch.device, train: Batches, test: Batches) -> None:
        """Note where the training runs and on how much data."""
        on_gpu = device.type == "cuda"
        self.result.seed = self.settings.seed
        self.result.device = device.type
        self.result.device_name = torch.cuda.get_device_name(device) if on_gpu else platform.machine()
        self.result.training_samples, self.result.test_samples = samples_in(train), samples_in(test)
        self.result.steps_per_epoch = len(train)
        self.on_start(self.result)

    def steps(self, epoch: int, batches: Batches) -> Iterator[Any]:
        """Yield the epoch's batches, and remember which of them is being worked on."""
        for step, batch in enumerate(batches, start=1):
            self.position = Position(epoch, step)
            yield batch

    def step_done(self, loss: float) -> None:
        """Note the loss of the step that was just taken."""
        assert self.position is not None, "a step is done only inside the loop over steps()"
        self.result.step_losses.append(loss)
        steps = self.result.steps_per_epoch
        self.on_step(StepReport(self.position.epoch, self.position.step, steps, loss))

    def epoch_done(self, model: nn.Module, test_loss: float, test_accuracy: float) -> None:
        """Note what the epoch achieved, and save the model: should the next epoch fail, this one is not lost."""
        epoch = len(self.result.epochs) + 1
        train_loss = fmean(self.result.step_losses[-self.result.steps_per_epoch :])
        checkpoint = self.settings.output_dir / f"{self.result.name}.pt"
        torch.save({name: tensor.cpu() for name, tensor in model.state_dict().items()}, checkpoint)
        self.result.checkpoint = checkpoint
        self.result.epochs.append(EpochReport(epoch, train_loss, test_loss, test_accuracy))
        self.on_epoch(self.result.epochs[-1])


def samples_in(batches: Batches) -> int:
    """Count the samples that one pass over ``batches`` sees."""
    return len(batches.dataset)  # type: ignore[arg-type]  # a TensorDataset has a length, but Dataset promises none


def plot_losses(result: Result, path: Path) -> Path:
    """Draw the loss of every training step and the test loss of every epoch, and say on which data."""
    figure = Figure(figsize=(8, 5), dpi=120, layout="constrained")
    axes = figure.subplots()
    epochs = [(number + 1) / result.steps_per_epoch for number in range(len(result.step_losses))]
    axes.plot(epochs, result.step_losses, color=BLUE, linewidth=1.2, label="training loss, every step")
    axes.plot(
        [report.epoch for report in result.epochs],
        [report.test_loss for report in result.epochs],
        color=VERMILION,
        linestyle="--",
        marker="o",
        label="test loss, after every epoch",
    )
    if result.failed_at is not None:
        mark_failure(axes, result, epochs[-1])
    axes.set(xlabel="epochs trained", ylabel="mean cross-entropy")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
    axes.legend(frameon=False)
    figure.suptitle(f"{result.program}, {result.variant}: {result.summary}", x=0.02, ha="left", weight="bold")
    device = f"{result.device} ({result.device_name})" + ("" if result.computes else ", which computes nothing")
    axes.set_title(f"Data: {result.dataset}. Device: {device}.", loc="left", fontsize=9)
    note = textwrap.fill(result.dataset_reason, width=140)
    figure.supxlabel(note, x=0.02, ha="left", fontsize=8, color=GREY)
    figure.savefig(path)
    return path


def mark_failure(axes: Axes, result: Result, where: float) -> None:
    """Draw a line where training stopped, and say why."""
    assert result.failed_at is not None, "only a failed run has a failure to mark"
    words = f"{result.error_type} in\nepoch {result.failed_at.epoch}, step {result.failed_at.step}"
    axes.axvline(where, color="black", linestyle=":", zorder=1)
    axes.annotate(words, (where, 0.5), xycoords=("data", "axes fraction"), xytext=(6, 0), textcoords="offset points")
    axes.set_xlim(right=max(where * 1.3, where + 0.5))
