"""A bidirectional LSTM that reads MNIST row by row, and forgets to return to training mode.

An image is a sequence of 28 rows of 28 pixels. After every epoch the program evaluates its model, and for that calls
model.eval(). As written, nothing calls model.train() afterwards, so epoch 2 runs its forward pass in eval mode. On a
GPU its first backward pass then raises

    RuntimeError: cudnn RNN backward can only be called in training mode

while a CPU trains on and says nothing. The cure is one line at the top of every epoch.

    python seed_brnn_mnist.py              as written: on a GPU, fails in epoch 2, step 1
    python seed_brnn_mnist.py --fixed      calls model.train() at the top of every epoch
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from seed_digits import PIXELS, Images, load_images
from seed_results import Batches, EpochReport, Result, Settings, StepReport, TrainingLog, ignore
from seed_terminal import choose_device, command_line, parse, tell_epoch, tell_outcome, tell_start, tell_step
from torch import Tensor, nn
from torch.utils.data import DataLoader, Subset

CLASSES = 10
HIDDEN = 128
LAYERS = 2
BATCH = 100
LEARNING_RATE = 0.01


class RowReader(nn.Module):
    """Reads an image's rows downwards and upwards, then names the digit."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(PIXELS, HIDDEN, LAYERS, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * HIDDEN, CLASSES)

    def forward(self, images: Tensor) -> Tensor:
        """Return a score per class for every image."""
        _, (hidden, _) = self.lstm(images)
        downwards, upwards = hidden[-2], hidden[-1]  # where the last layer's two directions ended
        scores: Tensor = self.head(torch.cat((downwards, upwards), dim=1))
        return scores


def train(model: RowReader, batches: Batches, test: Batches, config: "Config", log: TrainingLog) -> None:
    """Train the model and evaluate it after every epoch."""
    device = next(model.parameters()).device
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    for epoch in range(1, config.epochs + 1):
        if config.fixed:
            model.train()  # The cure: whatever the model went through before, an epoch starts in training mode.
        for images, labels in log.steps(epoch, batches):
            loss = criterion(model(images.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()  # On a GPU, this raises if the forward pass above ran in eval mode.
            optimizer.step()
            log.step_done(loss.item())
        log.epoch_done(model, *evaluate(model, test))


@torch.no_grad()
def evaluate(model: RowReader, batches: Batches) -> tuple[float, float]:
    """Return the mean loss and the accuracy, and leave the model in eval mode."""
    device = next(model.parameters()).device
    model.eval()  # The mistake begins here: right for an evaluation, and nobody undoes it.
    loss = correct = samples = 0.0
    for images, labels in batches:
        scores, targets = model(images.to(device)), labels.to(device)
        loss += nn.functional.cross_entropy(scores, targets, reduction="sum").item()
        correct += (scores.argmax(dim=1) == targets).sum().item()
        samples += len(targets)
    return loss / samples, correct / samples


@dataclass(frozen=True)
class Config(Settings):
    """What to run. ``data`` is ``mnist``, ``digits``, or ``auto``: MNIST if it can be had, and else the digits."""

    fixed: bool = False
    data: str = "auto"
    data_dir: Path = Path("data")


def run(
    config: Config,
    *,
    on_start: Callable[[Result], None] = ignore,
    on_step: Callable[[StepReport], None] = ignore,
    on_epoch: Callable[[EpochReport], None] = ignore,
    result: Result | None = None,
) -> Result:
    """Train as ``config`` says. What training raises is passed on; hand in a ``result`` to keep what came before."""
    result = Result() if result is None else result
    result.program = "brnn-mnist"
    result.variant, result.remedy = ("fixed", "train-each-epoch") if config.fixed else ("as-written", None)
    result.summary = "train() at the top of every epoch" if config.fixed else "train() forgotten after evaluation"
    log = TrainingLog(result, config, on_start, on_step, on_epoch)
    with log.keeping():
        torch.manual_seed(config.seed)
        device = choose_device(config.device)
        images = load_images(config.data, config.data_dir)
        result.dataset, result.dataset_reason = images.name, images.reason
        batches, test = batched(images, config.limit)
        model = RowReader().to(device)
        log.start(device, batches, test)
        train(model, batches, test, config, log)
    return result


def batched(images: Images, limit: int | None) -> tuple[Batches, Batches]:
    """Return the training batches, in a new order every epoch, and the test batches."""
    train = Subset(images.train, range(min(limit or len(images.train), len(images.train))))
    return DataLoader(train, BATCH, shuffle=True), DataLoader(images.test, BATCH)


def parse_arguments(argv: Sequence[str] | None = None) -> Config:
    """Read the command line."""
    parser = command_line(__doc__ or "", defaults=Config())
    variant = parser.add_mutually_exclusive_group()
    variant.add_argument("--fixed", action="store_true", help="call train() at the top of every epoch")
    variant.add_argument("--as-written", dest="fixed", action="store_false", help="forget train() (the default)")
    parser.set_defaults(fixed=False)
    parser.add_argument(
        "--data",
        choices=("auto", "mnist", "digits"),
        default="auto",
        help="auto is MNIST if it can be had, and else scikit-learn's handwritten digits",
    )
    parser.add_argument(
        "--data-dir", type=Path, default=Path("data"), metavar="DIR", help="where MNIST is or goes; default: data"
    )
    return Config(**parse(parser, argv))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program in a terminal."""
    config = parse_arguments(argv)
    result = Result()
    return tell_outcome(
        result,
        lambda: run(config, on_start=tell_start, on_step=tell_step, on_epoch=tell_epoch, result=result),
        cure="call model.train() at the top of every epoch. See it work: add --fixed",
    )


if __name__ == "__main__":
    sys.exit(main())
