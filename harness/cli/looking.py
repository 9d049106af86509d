"""Commands that look at what was recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from harness.cli.options import RUN, TRACKING_URI, store_at
from harness.cli.root import cli


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
    from harness.store.sittings import read_sittings

    folder = store_at(store, {}).find(run)
    plan = read_plan(folder)
    click.echo(render(plan, read_records(folder), form, sittings=read_sittings(folder, plan)), nl=False)


@cli.command()
@click.argument("run", required=False)
@click.option("--all", "every", is_flag=True, help="One line for each run of the store, oldest first.")
@click.option("--json", "as_json", is_flag=True, help="The same for programs: one object, or a list with --all.")
@click.pass_obj
def status(store: Path, /, run: str | None, every: bool, as_json: bool) -> None:
    """Show how a run (the latest by default) stands: planned, recorded, missing, and whether it is being run now.

    \b
    Examples:
      harness status
      harness status --all
      harness status 20260301-101500-7k3fq --json
    """
    from harness import console

    if every and run is not None:
        raise click.UsageError("--all is about every run: leave out RUN")
    console.show_standings(store_at(store, {}), run, every=every, as_json=as_json)


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

    console.show_variant(store_at(store, {}).find(run_id), what)


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

    console.show_script(store_at(store, {}), what, run_id)


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

    console.show_comparison(store_at(store, {}), (first, second), **options)


@cli.command()
@click.argument("run", required=False)
@click.option("--port", type=click.IntRange(1, 65535), default=5000, show_default=True, help="Where the UI listens.")
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

    console.serve_ui(store_at(store, options), port, run)


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

    target = store_at(store, options)
    console.show_synced(campaign.sync_run(target, run, console.tell), target.uri)
