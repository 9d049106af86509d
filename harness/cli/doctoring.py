"""The command that examines the machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.cli.options import DEVICE, TRACKING_URI, store_at
from harness.cli.root import cli


@cli.command()
@DEVICE
@click.option("--no-faults", is_flag=True, help="Only say what is there; inject nothing.")
@click.option("--json", "as_json", is_flag=True, help="For machines: one JSON object.")
@TRACKING_URI
@click.pass_obj
def doctor(store: Path, /, device: str, no_faults: bool, as_json: bool, **options: Any) -> None:
    """Say what is there, inject the known faults, and exit with 1 where one is not told as what it is.

    It takes about a quarter of a minute, and keeps nothing.

    \b
    Examples:
      harness doctor
      harness doctor --device stub
      harness doctor --no-faults --json
    """
    from harness.console.examined import show_examination

    show_examination(store_at(store, options), device, faults=not no_faults, as_json=as_json)
