"""Commands that run something, or say what would run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from harness.cli.options import (
    DEVICE,
    GLOBS,
    NO_TRACKING,
    OVERRIDES,
    REPLICATES,
    TRACKING_URI,
    conditions,
    selection,
    store_at,
)
from harness.cli.resuming import ONLY_FAILED, RESUME, RETRY, resumption
from harness.cli.root import cli


@cli.group()
def run() -> None:
    """Run a matrix of variants, or one of the two programs that the project started from.

    \b
    Examples:
      harness run matrix quick
      harness run seed brnn-mnist
    """


@run.command("matrix")
@click.argument("name", default="matrix", metavar="[NAME|FILE]")
@OVERRIDES
@GLOBS
@DEVICE
@REPLICATES
@RESUME
@RETRY
@ONLY_FAILED
@click.option("--dry-run", is_flag=True, help="List what would run, as `harness plan` does.")
@click.option("-q", "--quiet", is_flag=True, help="Print only where the report is.")
@NO_TRACKING
@TRACKING_URI
@click.pass_obj
def run_matrix(store: Path, /, name: str, dry_run: bool, quiet: bool, **options: Any) -> None:
    """Run every variant of a matrix: a shipped one (matrix, quick, full, fixes) or a YAML file.

    \b
    Examples:
      harness run matrix
      harness run matrix quick --device cpu
      harness run matrix -a cell=lstm,gru -a placement=eval-always
      harness run matrix -k 'cell=lstm*placement=eval*' --dry-run
      harness run matrix my-matrix.yaml
      harness run matrix --resume           goes on with the latest unfinished run
    """
    from harness import campaign, console

    asked = resumption(options)
    chosen = selection(name, options)
    if dry_run and asked:
        return console.show_remaining(*campaign.look_ahead(store_at(store, options), asked))
    if dry_run:
        return console.show_plan(campaign.choose(chosen))
    go = partial(campaign.resume_matrix, asked) if asked else partial(campaign.run_matrix, chosen)
    with console.RunConsole(quiet=quiet) as listener:
        finished = go(conditions(store, options), listener)
    return console.show_finished(finished, store_at(store, options), quiet=quiet)


@run.command("seed")
@click.argument("program", type=click.Choice(["simple-rnn", "brnn-mnist"]))
@click.option("--as-written/--fixed", "as_written", default=True, help="With its fault (the default), or cured.")
@click.option(
    "--remedy",
    type=click.Choice(["train-once", "train-in-loop", "train-function"]),
    help="Which cure, for simple-rnn. [default: train-once]",
)
@click.option("--epochs", type=click.IntRange(1), metavar="N", help="Epochs. [default: the program's own]")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Train on the first N samples only.")
@click.option("--data-dir", type=click.Path(file_okay=False, path_type=Path), help="Where MNIST is, or goes.")
@DEVICE
@click.option("-q", "--quiet", is_flag=True, help="Print only the results.")
@NO_TRACKING
@TRACKING_URI
@click.pass_obj
def run_seed(store: Path, /, quiet: bool, as_written: bool, **options: Any) -> None:
    """Run one of the two programs of the articles, as written (with its fault) or fixed.

    \b
    Examples:
      harness run seed brnn-mnist            fails in epoch 2, step 1
      harness run seed brnn-mnist --fixed
      harness run seed simple-rnn --fixed --remedy train-in-loop
    """
    from harness import console, seeds

    names = ("program", "remedy", "epochs", "limit", "data_dir")
    seed = seeds.Seed(fixed=not as_written, **{name: options[name] for name in names})
    with console.RunConsole(quiet=quiet) as listener:
        finished = seeds.run_seed(seed, conditions(store, options), listener)
    console.show_seed(finished, store_at(store, options))


@cli.command()
@click.argument("name", default="matrix", metavar="[NAME|FILE]")
@OVERRIDES
@GLOBS
def plan(name: str, **options: Any) -> None:
    """List the variants of a matrix, and what is excluded and why, without running anything.

    \b
    Examples:
      harness plan full
      harness plan -k placement=eval-always
    """
    from harness import campaign, console

    console.show_plan(campaign.choose(selection(name, options)))
