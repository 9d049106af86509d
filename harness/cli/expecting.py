"""Commands that hold a run against what is expected."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.options import EXPECTED, store_at
from harness.cli.root import cli


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

    console.show_check(store_at(store, {}).find(run), expected)


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

    console.show_accept(store_at(store, {}).find(run), expected, reason, dry_run=dry_run)
