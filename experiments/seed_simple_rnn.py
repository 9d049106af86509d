"""A small RNN that is put in eval mode before it is trained, and three remedies.

The task: read twenty random numbers one by one and say whether they add up to more than zero. As written, the program
calls model.eval() before training. On a GPU the very first backward pass then raises

    RuntimeError: cudnn RNN backward can only be called in training mode

while a CPU trains on and says nothing. Each remedy calls model.train() before the forward pass; they differ in where.

    python seed_simple_rnn.py                          as written: on a GPU, fails in epoch 1, step 1
    python seed_simple_rnn.py --fixed                  calls train() once, before the loop (train-once)
    python seed_simple_rnn.py --fixed train-in-loop    calls train() before every step
    python seed_simple_rnn.py --fixed train-function   leaves it to a function, train_model, that no caller gets wrong
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import torch
from seed_results import Batches, EpochReport, Result, Settings, StepReport, TrainingLog, ignore
from seed_terminal import choose_device, command_line, parse, tell_epoch, tell_outcome, tell_start, tell_step
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

TRAINING_SAMPLES, TEST_SAMPLES = 2000, 500
LENGTH = 20
HIDDEN = 32
BATCH = 50
LEARNING_RATE = 0.002


class Remedy(StrEnum):
    """Where ``model.train()`` is called."""

    TRAIN_ONCE = "train-once"
    TRAIN_IN_LOOP = "train-in-loop"
    TRAIN_FUNCTION = "train-function"


SUMMARIES = {
    None: "eval() before training",
    Remedy.TRAIN_ONCE: "train() once, before the loop",
    Remedy.TRAIN_IN_LOOP: "train() before every step",
    Remedy.TRAIN_FUNCTION: "train() in the function that trains",
}


class SumSign(nn.Module):
    """Reads numbers one by one, then says whether their sum is above zero."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.RNN(1, HIDDEN, batch_first=True)
        self.head = nn.Linear(HIDDEN, 2)

    def forward(self, sequences: Tensor) -> Tensor:
        """Return a score for "no" and a score for "yes" for every sequence."""
        outputs, _ = self.rnn(sequences)
        scores: Tensor = self.head(outputs[:, -1])
        return scores


@dataclass
class Trainer:
    """What a training loop needs."""

    model: SumSign
    batches: Batches
    test: Batches
    epochs: int
    log: TrainingLog
    optimizer: torch.optim.Optimizer = field(init=False)

    def __post_init__(self) -> None:
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=LEARNING_RATE)


def train(trainer: Trainer, remedy: Remedy | None) -> None:
    """Train the model as written (``None``), or with one of the remedies."""
    model = trainer.model
    model.eval()  # The mistake: an evaluation, a loaded checkpoint or a habit has left the model in eval mode.
    match remedy:
        case None:
            training_loop(trainer)
        case Remedy.TRAIN_ONCE:
            model.train()
            training_loop(trainer)
        case Remedy.TRAIN_IN_LOOP:
            training_loop(trainer, before_step=model.train)
        case Remedy.TRAIN_FUNCTION:
            train_model(trainer)


def train_model(trainer: Trainer) -> None:
    """Put the model in training mode and train it: whoever calls this cannot forget the first half."""
    trainer.model.train()
    training_loop(trainer)


def training_loop(trainer: Trainer, before_step: Callable[[], object] = lambda: None) -> None:
    """Train the model in whichever mode it is in, and evaluate it after every epoch."""
    model, optimizer, log = trainer.model, trainer.optimizer, trainer.log
    device = next(model.parameters()).device
    criterion = nn.CrossEntropyLoss()
    for epoch in range(1, trainer.epochs + 1):
        for sequences, labels in log.steps(epoch, trainer.batches):
            before_step()
            loss = criterion(model(sequences.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()  # On a GPU, this raises if the forward pass above ran in eval mode.
            optimizer.step()
            log.step_done(loss.item())
        log.epoch_done(model, *evaluate(model, trainer.test))


@torch.no_grad()
def evaluate(model: SumSign, batches: Batches) -> tuple[float, float]:
    """Return the mean loss and the accuracy, and put the model back into the mode it was in."""
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    loss = correct = samples = 0.0
    for sequences, labels in batches:
        scores, targets = model(sequences.to(device)), labels.to(device)
        loss += nn.functional.cross_entropy(scores, targets, reduction="sum").item()
        correct += (scores.argmax(dim=1) == targets).sum().item()
        samples += len(targets)
    model.train(was_training)  # Without this, train-once would fail in epoch 2.
    return loss / samples, correct / samples


@dataclass(frozen=True)
class Config(Settings):
    """What to run: ``remedy`` is ``None`` for the program as written."""

    remedy: Remedy | None = None
    epochs: int = 5


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
    result.program = "simple-rnn"
    result.variant = "as-written" if config.remedy is None else "fixed"
    result.remedy, result.summary = config.remedy, SUMMARIES[config.remedy]
    result.dataset = "random sequences"
    result.dataset_reason = f"Made for this program: {LENGTH} random numbers; is their sum above zero?"
    log = TrainingLog(result, config, on_start, on_step, on_epoch)
    with log.keeping():
        torch.manual_seed(config.seed)
        device = choose_device(config.device)
        batches = DataLoader(make_sequences(config.limit or TRAINING_SAMPLES), BATCH, shuffle=True)
        test = DataLoader(make_sequences(TEST_SAMPLES), BATCH)
        model = SumSign().to(device)
        log.start(device, batches, test)
        train(Trainer(model, batches, test, config.epochs, log), config.remedy)
    return result


def make_sequences(samples: int) -> TensorDataset:
    """Return random sequences, and for each whether (1) or not (0) it adds up to more than zero."""
    sequences = torch.randn(samples, LENGTH, 1)
    return TensorDataset(sequences, (sequences.sum(dim=(1, 2)) > 0).long())


def parse_arguments(argv: Sequence[str] | None = None) -> Config:
    """Read the command line."""
    parser = command_line(__doc__ or "", defaults=Config())
    variant = parser.add_mutually_exclusive_group()
    variant.add_argument(
        "--as-written", dest="remedy", action="store_const", const=None, help="train in eval mode (the default)"
    )
    variant.add_argument(
        "--fixed",
        dest="remedy",
        type=remedy,
        nargs="?",
        const=Remedy.TRAIN_ONCE,
        metavar="REMEDY",
        help=f"where to call train(): {', '.join(Remedy)}; default: {Remedy.TRAIN_ONCE}",
    )
    return Config(**parse(parser, argv))


def remedy(text: str) -> Remedy:
    """Read the name of a remedy."""
    try:
        return Remedy(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no remedy; choose from {', '.join(Remedy)}") from None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program in a terminal."""
    config = parse_arguments(argv)
    result = Result()
    return tell_outcome(
        result,
        lambda: run(config, on_start=tell_start, on_step=tell_step, on_epoch=tell_epoch, result=result),
        cure="call model.train() before the forward pass. See it work: add --fixed",
    )


if __name__ == "__main__":
    sys.exit(main())
