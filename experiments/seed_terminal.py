"""The seed programs' command line and the words they print."""

import argparse
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from seed_results import EpochReport, Result, Settings, StepReport

EVAL_MODE_ERROR = "RNN backward can only be called in training mode"  # "cudnn RNN ...", or "miopen RNN ..." on ROCm

ON_A_CPU = """\
This run cannot show the error: it ran on a CPU, and the check that raises the error is part of cuDNN's RNN backward,
which runs on CUDA GPUs only. The mistake is in the program all the same; on a CPU it just goes unnoticed."""
NO_ERROR = """\
No error, though this is the program with the mistake. It shows on a CUDA GPU, with cuDNN enabled, once a backward pass
follows a forward pass in eval mode."""
WHY = """\
Why: the forward pass ran in eval mode, where cuDNN keeps nothing that a backward pass could use. Calling train() just
before backward() does not help; the mode counts when the forward pass runs."""


def command_line(description: str, defaults: Settings) -> argparse.ArgumentParser:
    """Return a parser with the flags that the programs share; the names of its values are those of ``Settings``."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="auto is cuda where there is a GPU")
    add("--epochs", type=positive, default=defaults.epochs, metavar="N", help=f"default: {defaults.epochs}")
    add("--seed", type=int, default=defaults.seed, metavar="N", help=f"default: {defaults.seed}")
    add("--limit", type=positive, metavar="N", help="train on the first N samples only")
    add(
        "--output-dir",
        type=Path,
        default=defaults.output_dir,
        metavar="DIR",
        help=f"folder for plot and checkpoint; default: {defaults.output_dir}",
    )
    add("--json", type=Path, dest="json_path", metavar="FILE", help="write the result here, even after a failure")
    return parser


def positive(text: str) -> int:
    """Read a whole number above zero."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above zero")
    return int(text)


def parse(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> dict[str, Any]:
    """Parse the command line into settings, and refuse a GPU that is not there."""
    values = vars(parser.parse_args(argv))
    if values["device"] == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: PyTorch finds no CUDA GPU here; use --device cpu or auto")
    return values


def choose_device(choice: str) -> torch.device:
    """Return the device asked for; ``auto`` is a CUDA GPU where there is one."""
    if choice == "auto":
        choice = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(choice)


def tell_start(result: Result) -> None:
    """Print what runs, where, and on which data."""
    say(f"{result.program}, {result.variant}: {result.summary}")
    say(f"Device: {result.device} ({result.device_name}), PyTorch {result.torch_version}")
    if not result.computes:
        say("This device computes nothing: every number below is a zero that nobody calculated. Errors are real.")
    say(f"Data: {result.dataset}, {result.training_samples} samples to train on, {result.test_samples} to test with")
    say(textwrap.fill(result.dataset_reason, width=110, initial_indent="      ", subsequent_indent="      "))


def tell_step(report: StepReport) -> None:
    """Print the loss of every hundredth step."""
    if report.step % 100 == 0:
        say(f"Epoch {report.epoch}, step {report.step} of {report.steps}: loss {report.loss:.4f}")


def tell_epoch(report: EpochReport) -> None:
    """Print what an epoch achieved."""
    say(
        f"Epoch {report.epoch}: training loss {report.train_loss:.4f}, test loss {report.test_loss:.4f}, "
        f"test accuracy {report.test_accuracy:.1%}"
    )


def tell_outcome(result: Result, training: Callable[[], object], cure: str) -> int:
    """Run the training, print how it ended, and return the exit code.

    0: trained to the end; 1: training raised; 2: it could not be done as asked; 130: interrupted.
    """
    try:
        training()
    except OSError as error:
        complain(f"{result.program}: {error}")
        return 2
    except KeyboardInterrupt:
        complain(f"Interrupted after {len(result.epochs)} epochs.")
        tell_files(result)
        return 130
    except RuntimeError as error:
        complain(f"{type(error).__name__}: {error}")
        if result.failed_at is not None:
            complain(f"Raised in epoch {result.failed_at.epoch}, step {result.failed_at.step}.")
        if EVAL_MODE_ERROR in str(error):
            complain(f"{WHY}\nCure: {cure}")
        tell_files(result)
        return 1
    tell_files(result)
    if result.variant == "as-written":
        say(ON_A_CPU if result.device == "cpu" else NO_ERROR)
    return 0


def tell_files(result: Result) -> None:
    """Print where the plot and the checkpoint are."""
    if result.plot is not None:
        say(f"Plot: {result.plot}")
    if result.checkpoint is not None:
        say(f"Checkpoint after epoch {len(result.epochs)}: {result.checkpoint}")


def say(text: str) -> None:
    """Print at once, also into a pipe."""
    print(text, flush=True)


def complain(text: str) -> None:
    """Print to standard error."""
    print(text, file=sys.stderr, flush=True)
