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
    """A group that tells of a reader who has left. Click would exit with 1, which here means that a check failed."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """See ``click.Command``."""
        with _noticing_readers():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        """See ``click.Command``."""
        with _noticing_readers():
            return super().invoke(ctx)


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
