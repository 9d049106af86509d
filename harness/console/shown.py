"""What a command prints when it is done, on stdout: plain lines that a pipe can use."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from harness.campaign import Chosen, Finished
from harness.model import Device, Outcome, Record
from harness.quoting import one_line, public
from harness.store.layout import Store


def show_plan(chosen: Chosen) -> None:
    """One line per variant, its key and label; the counts and the exclusions' reasons go to stderr."""
    for variant in chosen.expansion.variants:
        click.echo(f"{variant.key}  {variant.label}")
    excluded = Counter(exclusion.reason for exclusion in chosen.expansion.exclusions)
    click.echo(
        f"{len(chosen.expansion.variants)} variants of {one_line(chosen.name)}, {excluded.total()} excluded", err=True
    )
    for reason, count in excluded.most_common():
        click.echo(f"  {count} excluded: {one_line(reason)}", err=True)


def show_finished(finished: Finished, store: Store, *, quiet: bool = False) -> None:
    """What came out, in a few sentences, and where to look; only the latter if ``quiet``."""
    from harness.report import summary

    if not quiet:
        said = summary(finished.plan, finished.records)
        click.echo(said.headline)
        click.echo(said.meaning)
    _show_places(finished, store)


def show_seed(finished: Finished, store: Store) -> None:
    """What a seed program reported on each device."""
    for record in finished.records:
        _show_seed_record(record)
    _show_places(finished, store)


def _show_seed_record(record: Record) -> None:
    results = record.results
    where = "stub (PyTorch's CUDA path, no GPU)" if record.device is Device.STUB else str(record.device)
    click.echo(f"{_said(results, 'program') or one_line(record.label)}, {_said(results, 'variant')}, on {where}:")
    if results.get("dataset"):
        click.echo(f"  data: {_said(results, 'dataset')}. {_said(results, 'dataset_reason')}")
    for epoch in results.get("epochs", ()):
        click.echo(
            f"  epoch {epoch['epoch']}: training loss {_number(epoch['train_loss'])}, "
            f"test loss {_number(epoch['test_loss'])}, test accuracy {_number(epoch['test_accuracy'], '.1%')}"
        )
    if record.outcome is Outcome.OK:
        click.echo("  finished without an error" + _cpu_words(record))
    else:
        at = f" in epoch {record.epoch}, step {record.step}" if record.epoch else ""
        click.echo(f"  {record.outcome}{at}: {one_line(record.error_message or record.reason or '')}")
    for name in ("plot", "checkpoint"):
        if results.get(name):
            click.echo(f"  {name}: {_near(Path(results[name]))}")


def _said(results: Mapping[str, Any], name: str) -> str:
    """What the program said under that name, on one line; nothing where it said nothing."""
    return one_line(str(results.get(name, "")), 1000)


def _cpu_words(record: Record) -> str:
    faulty = record.results.get("variant") == "as-written"
    return (
        "; a CPU cannot show it, since no forward takes the cuDNN path"
        if record.device is Device.CPU and faulty
        else ""
    )


def _number(value: Any, form: str = ".4f") -> str:
    return "not a number" if value is None else format(value, form)


def _opened_by(store: Store) -> str:
    if store.uri.lower().startswith(("http:", "https:")):
        return ""  # the address is the UI
    return f" (`{store.command('ui', tracking=True)}` opens it)"


def _show_places(finished: Finished, store: Store) -> None:
    for file in finished.files:
        if file.suffix in (".md", ".csv"):  # the report links its plots
            click.echo(f"{file.stem}: {_near(file)}")
    if finished.tracked:
        click.echo(f"MLflow: {public(store.uri)}{_opened_by(store)}")
    for caveat in finished.caveats:
        tell(caveat)  # what to do about it stands at its end


def _near(path: Path) -> Path:
    """``path`` from the current folder where it lies below it: shorter, and what a person would type."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def tell(sentence: str) -> None:
    """Something that the person should know, beside what the command is about."""
    click.echo(f"note: {one_line(sentence, 1000)}", err=True)


def show_synced(run: str, uri: str) -> None:
    """Which run is now where."""
    click.echo(f"run {run} is in {public(uri)}")


def serve_ui(store: Store, port: int, run: str | None) -> None:
    """Serve MLflow's UI until the person stops it, and say where to look.

    Raises:
        HarnessError: see ``harness.store.ui``.
    """
    from harness.store.ui import links, serving
    from harness.store.views import MOST_COMPARED

    if run is not None or store.uri == store.default_uri:  # a database named on purpose may hold the runs of others
        store.find(run)  # before anything is started or made
    with serving(store, port, tell=tell) as process:
        found = links(store, port, run)
        click.echo(f"MLflow's UI: {found.home} (on this machine only; Ctrl-C ends it)")
        if found.table:
            click.echo(f"run {found.run}, its variants as a table:\n  {found.table}")
        if found.comparison:
            click.echo(
                f"a comparison of its variants, {MOST_COMPARED} at most (for others tick them in the table, and press "
                f"Compare):\n  {found.comparison}"
            )
        if found.run and not found.table:
            sync = store.command("sync", found.run, tracking=True)
            click.echo(f"run {found.run} is not in MLflow; `{sync}` writes it there")
        if not found.run:
            click.echo(
                f"there are no runs in {one_line(str(store.root.absolute()))} yet; `harness run matrix` makes one"
            )
        sys.stdout.flush()
        try:
            process.wait()
        except KeyboardInterrupt:
            click.echo("stopped", err=True)


def show_stub() -> None:
    """What was built, for which PyTorch, and what it covers.

    Raises:
        StubUnavailableError: it cannot be built here.
    """
    from harness import stub

    info = stub.info()
    for name, fact in info.facts.items():
        click.echo(f"{name}: {fact}")
    for title, sentences in (("covers", info.covers), ("does not", info.does_not)):
        click.echo(f"{title}:")
        for sentence in sentences:
            click.echo(f"  - {sentence}")
