"""The `harness` command itself; the commands below it join it in their own modules."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

import harness

CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class ReaderLeftError(Exception):
    """Whoever read our output has left, as ``| head`` does."""


class Commands(click.Group):
    """A group that tells of a reader who has left. Click would exit with 1, which here means that a check failed.

    An option of its own that stands after a command, where Click knows nothing of it, is told where it goes.
    """

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """See ``click.Command``."""
        with _noticing_readers():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """See ``click.Command``."""
        try:
            with _noticing_readers():
                return super().invoke(ctx)
        except click.NoSuchOption as error:
            placed = self._placed(error, ctx)
            if placed is None:
                raise
            raise placed from error

    def _placed(self, error: click.NoSuchOption, ctx: click.Context) -> click.UsageError | None:
        """What is wrong where the option that a command does not know is one of this group; else None."""
        name = error.option_name
        option = next((each for each in self.get_params(ctx) if name in each.opts), None)
        if option is None or error.ctx is None:
            return None
        right = f"harness {name}"
        if not option.is_eager:  # as --version is, which is all there is to do
            command = error.ctx.command_path.removeprefix(f"{ctx.command_path} ")
            right += f" {option.make_metavar(ctx)} {command} ..."
        return click.UsageError(f"{name} goes before the command: {right}", error.ctx)


class _Folder(click.Path):
    """A folder that has a name: an empty one, as a shell's unset variable leaves it, is not the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See ``click.Path``."""
        if value == "":
            self.fail("it is empty; leave the option out for the current folder", param, ctx)
        try:
            folder = Path(os.fsdecode(super().convert(value, param, ctx)))
            folder.is_dir()
        except (OSError, ValueError):  # too long for this system, or with a null byte
            self.fail("it is no path that this system knows", param, ctx)
        return folder


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
    type=_Folder(file_okay=False, path_type=Path),
    metavar="DIR",
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
