"""What `harness doctor` found: the facts, a table of the injected faults, and what is not as it has to be."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.doctor.document import to_json
from harness.doctor.examination import Examination, examine
from harness.doctor.facts import Fact, State
from harness.doctor.injection import Finding
from harness.doctor.known import NAMES
from harness.errors import CheckFailedError
from harness.model import Device
from harness.quoting import one_line
from harness.store.layout import Store

PIPED_WIDTH = 120
"""Columns where nobody's terminal sets them."""

_LONGEST = 1000
_STYLES = {State.OK: "green", State.WARNING: "yellow", State.ABSENT: "dim"}


def show_examination(store: Store, device: str, *, faults: bool, as_json: bool) -> None:
    """Examine this machine and say what was found.

    Raises:
        CheckFailedError: a fault did not come out as its own class, or could not be tested though it had to be.
    """
    with _progress() as say:
        seen = examine(store, device, faults=faults, say=say)
    if as_json:
        click.echo(to_json(seen), nl=False)
    else:
        _show(seen, faults=faults)
    differences = seen.differences
    if differences:
        count = len(differences)
        raise CheckFailedError(
            f"{count} thing{' is' if count == 1 else 's are'} not as {'it has' if count == 1 else 'they have'} to be "
            "on this machine",
            _advice(seen),
        )


def _advice(seen: Examination) -> str:
    if any(finding.differs for finding in seen.findings):
        return "Until that is cured, do not trust the outcomes of a run here."
    return "What is missing is said above."  # no fault was told as another one


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """What is being done, on a terminal; nothing elsewhere."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("") as status:
        yield lambda words: status.update(Text(f"{one_line(words)} ..."))


def _show(seen: Examination, *, faults: bool) -> None:
    console = Console(highlight=False)
    if not console.is_terminal and not os.environ.get("COLUMNS"):
        console = Console(highlight=False, width=PIPED_WIDTH)
    with console.capture() as captured:
        _print(console, seen, faults=faults)
    for line in captured.get().splitlines():
        click.echo(line.rstrip(), color=True)  # tables are filled up with spaces; colours are the console's decision


def _print(console: Console, seen: Examination, *, faults: bool) -> None:
    for group, facts in seen.facts.items():
        console.print(Text(group, style="bold"))
        console.print(_fact_table(facts))
    if faults:
        console.print(Text("injected faults", style="bold"))
        if seen.findings:
            console.print(_fault_table(seen.findings))
        for line in _closing_lines(seen):
            console.print(line)
    count = len(seen.warnings)
    if count:
        console.print(Text(f"{count} warning{'' if count == 1 else 's'} above", style="yellow"))
    for sentence in seen.differences:
        console.print(Text(f"WRONG  {one_line(sentence, _LONGEST)}", style="red"))
    for advice in dict.fromkeys(one.advice for one in seen.untested if one.wanted and one.advice):
        console.print(Text(f"       {one_line(advice, _LONGEST)}", style="italic"))


def _fact_table(facts: list[Fact]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for fact in facts:
        words = Text(one_line(fact.text, _LONGEST))
        if fact.advice:
            words.append(f"\n{one_line(fact.advice, _LONGEST)}", style="italic")
        table.add_row(Text(f"  {fact.state:7}", style=_STYLES[fact.state]), Text(fact.name), words)
    return table


def _fault_table(findings: list[Finding]) -> Table:
    """A row per fault, a column per device; a dash is where it does not apply."""
    devices = list(dict.fromkeys(finding.device for finding in findings))
    cells = {(finding.fault.name, finding.device): finding for finding in findings}
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    table.add_column("  fault", no_wrap=True)
    table.add_column("an attempt that", overflow="fold")
    for device in devices:
        table.add_column(_device_words(device), overflow="fold")
    for name in NAMES:
        what = next((finding.fault.what for finding in findings if finding.fault.name == name), None)
        if what is None:
            continue
        table.add_row(Text(f"  {name}"), Text(what), *(_cell(cells.get((name, device))) for device in devices))
    return table


def _device_words(device: Device) -> str:
    return "stub (no GPU)" if device is Device.STUB else str(device)


def _cell(finding: Finding | None) -> Text:
    if finding is None:
        return Text("-", style="dim")
    record = finding.record
    details = [str(record.stall) if record.stall else "", record.signal or ""]
    details += [f"code {record.exit_code}"] if record.exit_code is not None else []
    words = " ".join([str(record.outcome), *filter(None, details)])
    return Text(f"{words} - WRONG", style="red") if finding.differs else Text(words, style="green")


def _closing_lines(seen: Examination) -> Iterator[Text]:
    """What was tested and where; what was not, and why, unless that is a difference: those stand further down."""
    if seen.findings:
        good = sum(not finding.differs for finding in seen.findings)
        devices = " and ".join(_device_words(device) for device in dict.fromkeys(f.device for f in seen.findings))
        yield Text(f"  {good} of {len(seen.findings)} came out as what they are, on {devices}")
    for one in seen.untested:
        if not one.wanted:
            yield Text(f"  not tested: {one_line(one.what)}: {one_line(one.why, _LONGEST)}", style="yellow")
        if one.advice and not one.wanted:
            yield Text(f"    {one_line(one.advice, _LONGEST)}", style="italic")
