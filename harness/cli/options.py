"""Options that several commands share, and what they come to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from harness.campaign import Conditions, Selection
    from harness.store.layout import Store


def _given(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Refuse an empty value: a shell's unset variable, taken for the default, would mean what nobody asked for."""
    if value == "":
        raise click.BadParameter("it is empty; leave the option out for the default")
    return value


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
    "--tracking-uri",
    metavar="URI",
    callback=_given,
    help="Another MLflow store or server. [default: mlflow.db in the store]",
)

RUN = click.option("--run", "run_id", metavar="RUN", callback=_given, help="Which run. [default: the latest]")
EXPECTED = click.option(
    "--expected",
    metavar="NAME|FILE",
    callback=_given,
    help="Other expectations than experiments/expected.yaml, or those that ship.",
)


def selection(name: str, options: dict[str, Any]) -> Selection:
    """The variants that a command was asked for."""
    from harness.campaign import Selection

    return Selection(name, options["overrides"], options["globs"])


def store_at(root: Path, options: dict[str, Any]) -> Store:
    """The store that a command works on."""
    from harness.store.layout import Store

    return Store(root, options.get("tracking_uri"))


def conditions(store: Path, options: dict[str, Any]) -> Conditions:
    """How a run is to be carried out."""
    from harness.campaign import Conditions
    from harness.quoting import public

    return Conditions(
        store=store_at(store, options),
        device=options["device"],
        replicates=options.get("replicates"),
        tracked=not options["no_tracking"],
        command=("harness", *map(public, sys.argv[1:])),  # no password is kept
    )
