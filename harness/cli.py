"""The command line: parse, compose, one call, exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import harness
from harness.errors import HarnessError

if TYPE_CHECKING:
    from harness.campaign import Conditions, Selection
    from harness.store.layout import Store

CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
DEVICE = click.option(
    "--device",
    type=click.Choice(["auto", "cuda", "stub", "cpu"]),
    default="auto",
    show_default=True,
    help="auto: the GPU if there is one; else outcomes from the stub, throughput from the CPU.",
)
REPLICATES = click.option(
    "--replicates", type=click.IntRange(1, 1000), metavar="N", help="Attempts per variant on a device that computes."
)
OVERRIDES = click.option(
    "-a", "--axis", "overrides", multiple=True, metavar="AXIS=V1,V2", help="Set or narrow an axis; may be repeated."
)
GLOBS = click.option("-k", "globs", multiple=True, metavar="GLOB", help="Only variants whose label matches.")
NO_TRACKING = click.option("--no-tracking", is_flag=True, help="Leave MLflow alone; `harness sync` can write it later.")
TRACKING_URI = click.option(
    "--tracking-uri", metavar="URI", help="Another MLflow store or server. [default: mlflow.db in the store]"
)

RUN = click.option("--run", "run_id", metavar="RUN", help="Which run. [default: the latest]")
EXPECTED = click.option(
    "--expected", metavar="NAME|FILE", help="Other expectations than experiments/expected.yaml, or those that ship."
)


class ReaderLeftError(Exception):
    """Whoever read our output has left, as ``| head`` does."""


class Commands(click.Group):
    """A group that tells of a reader who has left. Click would exit with 1, which here means that a check failed."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """See ``click.Command``."""
        with _noticing_readers():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """See ``click.Command``."""
        with _noticing_readers():
            return super().invoke(ctx)


@contextmanager
def _noticing_readers() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderLeftError from error


@click.group(cls=Commands, context_settings=CONTEXT)
@click.version_option(harness.__version__, prog_name="harness")
@click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="HARNESS_STORE",
    default=Path(),
    help="Folder for mlflow.db and mlruns/. [default: the current folder; also HARNESS_STORE]",
)
@click.pass_context
def cli(context: click.Context, /, store: Path) -> None:
    """Reproduce `cudnn RNN backward can only be called in training mode`, and see what each fix does.

    \b
    Examples:
      harness run matrix                    every cell, direction and placement
      harness run matrix quick -a cell=gru  a small matrix, one cell
      harness report                        the latest run's report
      harness ui                            MLflow's UI on these runs
    """
    context.obj = store


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
@click.option("--dry-run", is_flag=True, help="List what would run, as `harness plan` does.")
@click.option("-q", "--quiet", is_flag=True, help="Print only where the report is.")
@NO_TRACKING
@TRACKING_URI
@click.pass_obj
def run_matrix(store: Path, /, name: str, dry_run: bool, quiet: bool, **options: Any) -> None:
    """Run every variant of a matrix: a shipped one (matrix, quick, full) or a YAML file.

    \b
    Examples:
      harness run matrix
      harness run matrix quick --device cpu
      harness run matrix -a cell=lstm,gru -a placement=eval-always
      harness run matrix -k 'cell=lstm*placement=eval*' --dry-run
      harness run matrix my-matrix.yaml
    """
    from harness import campaign, console

    selection = _selection(name, options)
    if dry_run:
        return console.show_plan(campaign.choose(selection))
    with console.RunConsole(quiet=quiet) as listener:
        finished = campaign.run_matrix(selection, _conditions(store, options), listener)
    return console.show_finished(finished, _store(store, options), quiet=quiet)


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
        finished = seeds.run_seed(seed, _conditions(store, options), listener)
    console.show_seed(finished, _store(store, options))


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

    console.show_plan(campaign.choose(_selection(name, options)))


@cli.command()
@click.argument("run", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["md", "csv", "json"]),
    default="md",
    show_default=True,
    help="md: for people; csv and json: one row per planned variant and device.",
)
@click.pass_obj
def report(store: Path, /, run: str | None, form: Any) -> None:
    """Print the report of a run (the latest by default) from its plan and journal.

    \b
    Examples:
      harness report
      harness report --format csv > results.csv
    """
    from harness.report import render
    from harness.store.journal import read_plan, read_records

    folder = _store(store, {}).find(run)
    click.echo(render(read_plan(folder), read_records(folder), form), nl=False)


@cli.command()
@click.argument("what", metavar="KEY|GLOB")
@RUN
@click.pass_obj
def show(store: Path, /, what: str, run_id: str | None) -> None:
    """Show everything about a variant of a run: axes, placement, each record, and what the rule says about it.

    KEY may be the beginning of a key; a GLOB is tried on labels, and lists the variants where it means several.

    \b
    Examples:
      harness show 219cf0
      harness show 'cell=gru*placement=eval-always' --run latest
    """
    from harness import console

    console.show_variant(_store(store, {}).find(run_id), what)


@cli.command()
@click.argument("what", metavar="KEY|LABEL")
@RUN
@click.pass_obj
def repro(store: Path, /, what: str, run_id: str | None) -> None:
    """Print a stand-alone script that reproduces what a variant's record says; it needs nothing but PyTorch.

    Without a run of that variant it is written from the matrix that plans it, or from the label's axes.

    \b
    Examples:
      harness repro 219cf0 > repro.py
      harness repro cell=gru,placement=eval-always > repro.py
    """
    from harness import console

    console.show_script(_store(store, {}), what, run_id)


@cli.command()
@click.argument("run", required=False)
@EXPECTED
@click.pass_obj
def check(store: Path, /, run: str | None, expected: str | None) -> None:
    """Hold a run (the latest by default) against the expectations; exit with 1 where anything differs.

    It looks both ways: an error that is gone counts like a new one, and so does a variant without a record.

    \b
    Examples:
      harness check
      harness check --expected my-expectations.yaml
    """
    from harness import console

    console.show_check(_store(store, {}).find(run), expected)


@cli.command()
@click.argument("run", required=False)
@click.option("--reason", required=True, metavar="TEXT", help="Why this is to be expected from now on.")
@click.option("--dry-run", is_flag=True, help="Show the change, but leave the file as it is.")
@EXPECTED
@click.pass_obj
def accept(store: Path, /, run: str | None, expected: str | None, reason: str, dry_run: bool) -> None:
    """Change the expectations, on purpose, to what a run did, and show the change.

    Timeouts, crashes, out-of-memory and missing records are never accepted.

    \b
    Examples:
      harness accept --reason 'torch 2.5 runs bfloat16 natively' --dry-run
    """
    from harness import console

    console.show_accept(_store(store, {}).find(run), expected, reason, dry_run=dry_run)


@cli.command()
@click.argument("first", metavar="RUN")
@click.argument("second", metavar="RUN")
@click.option("--format", "form", type=click.Choice(["md", "json"]), default="md", show_default=True, help="For whom.")
@click.option("--threshold", default="2%", show_default=True, metavar="P%", help="The change of a time that matters.")
@click.option(
    "--fail-on",
    type=click.Choice(["outcome", "slower"]),
    multiple=True,
    help="Exit with 1 where an outcome is not the same, or a cell is slower; may be repeated.",
)
@click.pass_obj
def compare(store: Path, /, first: str, second: str, **options: Any) -> None:
    """Hold the second run against the first: what differs around them, outcomes, then the time of a step.

    RUN is a run's id, the beginning of one, `latest`, or the path of a run's folder or of a reference file.

    \b
    Examples:
      harness compare 20260301-101500-7k3fq latest
      harness compare reference.jsonl.gz latest --fail-on outcome
    """
    from harness import console

    console.show_comparison(_store(store, {}), (first, second), **options)


@cli.command()
@click.argument("run", required=False)
@click.option("--port", type=int, default=5000, show_default=True, help="Where the UI listens.")
@TRACKING_URI
@click.pass_obj
def ui(store: Path, /, run: str | None, port: int, **options: Any) -> None:
    """Serve MLflow's UI on this machine only, and print links to a run's table and comparison.

    \b
    Examples:
      harness ui
      harness ui --port 5001
    """
    from harness import console

    console.serve_ui(_store(store, options), port, run)


@cli.command()
@click.argument("run", required=False)
@TRACKING_URI
@click.pass_obj
def sync(store: Path, /, run: str | None, **options: Any) -> None:
    """Write a run into MLflow from its journal; doing it twice changes nothing.

    \b
    Examples:
      harness sync
      harness sync --tracking-uri http://127.0.0.1:5000
    """
    from harness import campaign, console

    target = _store(store, options)
    console.show_synced(campaign.sync_run(target, run), target.uri)


@cli.group("stub")
def stub_group() -> None:
    """The stub device: PyTorch's own CUDA code on a machine with no GPU.

    \b
    Examples:
      harness stub info
      harness stub run -- python train.py
    """


@stub_group.command("info")
def stub_info() -> None:
    """Say what was built, for which PyTorch, and what it covers.

    \b
    Example:
      harness stub info
    """
    from harness import console

    console.show_stub()


@stub_group.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND [ARGS]...")
@click.pass_context
def stub_run(context: click.Context, /, command: tuple[str, ...]) -> None:
    """Run any command with the stub in front; its exit code becomes this one's.

    \b
    Example:
      harness stub run -- python train.py
    """
    from harness import stub

    context.exit(stub.run(command))


def _selection(name: str, options: dict[str, Any]) -> Selection:
    from harness.campaign import Selection

    return Selection(name, options["overrides"], options["globs"])


def _store(root: Path, options: dict[str, Any]) -> Store:
    from harness.store.layout import Store

    return Store(root, options.get("tracking_uri"))


def _conditions(store: Path, options: dict[str, Any]) -> Conditions:
    from harness.campaign import Conditions
    from harness.store.connection import public

    return Conditions(
        store=_store(store, options),
        device=options["device"],
        replicates=options.get("replicates"),
        tracked=not options["no_tracking"],
        command=("harness", *map(public, sys.argv[1:])),  # no password is kept
    )


def main() -> None:
    """The entry point: every way to fail becomes a sentence, an advice and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a file name that is no text, a terminal without Unicode
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _main()
    except (ReaderLeftError, BrokenPipeError):
        _silence()
        code = 0
    sys.exit(code)


def _silence() -> None:
    """Nobody reads us any more; without this Python would complain while it closes the streams."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _main() -> int:
    try:
        code = cli.main(standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where a full disk can still be told
        return code if isinstance(code, int) else 0
    except HarnessError as error:
        return _told(str(error), error.advice, error.exit_code)
    except click.ClickException as error:
        with _unheard():
            error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return _told("interrupted", "", 130)
    except (ReaderLeftError, BrokenPipeError):
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _told(f"{where}{error.strerror or error}", "Is the disk full, or the place not yours to write to?", 4)
    except Exception:
        traceback.print_exc()
        return _told("a fault in harness itself, see above", "Please report it with the lines above.", 4)


def _told(sentence: str, advice: str, code: int) -> int:
    with _unheard():
        click.echo(f"harness: {sentence}", err=True)
        if advice:
            click.echo(advice, err=True)
    return code


@contextmanager
def _unheard() -> Iterator[None]:
    """Nobody may be there to be told; the exit code says it too."""
    try:
        yield
    except OSError:
        _silence()
