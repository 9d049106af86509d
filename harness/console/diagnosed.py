"""A diagnosis for a person: like a compiler's message, with the lines that it is about."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import click

from harness.console.words import device_words
from harness.diagnose.edits import Edit, EditAction
from harness.diagnose.facts import Place
from harness.diagnose.findings import Diagnosis, Finding, Kind
from harness.diagnose.patterns import NOT_RESTORED
from harness.diagnose.source import source_of
from harness.errors import HarnessError, StoreError, UsageError
from harness.files import write_whole
from harness.quoting import clean

_WORDS = {
    Kind.ERROR: "error",
    Kind.WOULD_RAISE: "error that a GPU would raise",
    Kind.WARNING: "warning",
}

_WITHOUT_HARNESS = "`with torch.backends.cudnn.flags(enabled=False):` around the same forward; cuDNN runs nothing in it"


def check_target(path: str | None) -> None:
    """Refuse a place for the JSON that cannot be written to, before anything runs."""
    if path in (None, "-"):
        return
    if Path(path).is_dir():
        raise UsageError(f"{path} is a folder", "Name a file in it.")
    if not Path(path).absolute().parent.is_dir():
        raise UsageError(f"there is no folder for {path}", "Make it first, or name another file.")


def show_diagnosis(diagnosis: Diagnosis, path: str | None) -> None:
    """Print the diagnosis on stderr; as JSON to ``path`` too, where ``-`` is stdout."""
    here = f"{Path.cwd()}{os.sep}"
    for line in lines_of(diagnosis):
        click.echo(clean(line.replace(here, "")), err=True)
    if path is not None:
        text = json.dumps(diagnosis.as_json(), indent=1)
        if path == "-":
            click.echo(text)
        else:
            _write(Path(path), text + "\n")


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text)
    except StoreError as error:  # whose advice is of a store
        raise HarnessError(str(error), "Name another file with --json.") from error


def lines_of(diagnosis: Diagnosis) -> Iterator[str]:
    """The diagnosis, line by line."""
    yield ""
    yield f"harness diagnose: {_headline(diagnosis)}"
    for finding in diagnosis.findings:
        yield ""
        yield from _finding_lines(finding)
    for note in diagnosis.notes:
        yield ""
        yield f"note: {note}"


def _headline(diagnosis: Diagnosis) -> str:
    if not diagnosis.forwards and diagnosis.ended_unseen:
        return f"an error of an RNN that was not seen, on {device_words(diagnosis.device)}; no other was seen to run."
    if not diagnosis.forwards:
        return f"no RNN was seen to run, on {device_words(diagnosis.device)}, so there is nothing to say."
    counts = {kind: sum(one.kind is kind for one in diagnosis.findings) for kind in Kind}
    found = ", ".join(_many(count, *_WORDS[kind].split(" ", 1)) for kind, count in counts.items() if count)
    by_cudnn = "that cuDNN ran" if diagnosis.on_gpu else "that cuDNN would run on a GPU"
    several = diagnosis.forwards > 1
    graphs = (
        f"{diagnosis.cudnn_forwards} of them with" if several else "with" if diagnosis.cudnn_forwards else "without"
    )
    saw = (
        f"{_many(diagnosis.forwards, 'RNN forward')}, {graphs} a graph {by_cudnn}, and "
        f"{_many(diagnosis.backwards, 'backward pass')} that reached {'one' if several else 'it'}, "
        f"on {device_words(diagnosis.device)}"
    )
    unseen = "an error of an RNN that was not seen" if diagnosis.ended_unseen else ""
    return f"{' and '.join(filter(None, (unseen, found))) or 'nothing wrong'}; saw {saw}."


def _many(count: int, noun: str, rest: str = "") -> str:
    plural = "es" if noun.endswith("s") else "s"
    return f"{count} {noun}{plural * (count != 1)} {rest}".rstrip()


def _finding_lines(finding: Finding) -> Iterator[str]:
    yield f"{_WORDS[finding.kind]}: {finding.pattern}: {finding.summary}"
    label = f"{finding.kind_of_rnn} {finding.module!r} of {finding.root}" if finding.module else finding.kind_of_rnn
    path = f" ({finding.path} kernels)" if finding.path else ""
    yield f"  layer: {label}{path}; {_count(finding)}"
    yield from _snippet(finding.forward, _FORWARD.get(finding.pattern, "this forward ran in eval mode"))
    if finding.call is not None and finding.call != finding.forward:
        yield from _snippet(finding.call, f"called from here, on {finding.root}")
    yield from _switch_lines(finding)
    if finding.kind is not Kind.WARNING or finding.pattern == NOT_RESTORED:
        yield f"  train(): {finding.train_since}"
    yield f"  cure: {finding.cure.sentence}"
    for edit in finding.cure.edits:
        yield from _edit_lines(edit)
    if finding.cure.id == "eval-gradients":
        yield f"  or, without harness: {_WITHOUT_HARNESS}"


def _count(finding: Finding) -> str:
    backward = f", in the {_nth(finding.nth_backward)} backward pass that reached it" if finding.nth_backward else ""
    times = f"; {finding.times} times in all" if finding.times > 1 else ""
    return f"its {_nth(finding.nth_forward)} forward{backward}{times}"


def _nth(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


_FORWARD = {
    "frozen-dropout-on": "this forward ran in train mode, with its own dropout on",
    "rnn-train-rest-eval": "this forward ran in train mode, with its own dropout on",
    "train-in-forward": "this forward runs after train(), whatever the mode was",
    "eval-no-grad": "this forward left no graph",
}


def _switch_lines(finding: Finding) -> Iterator[str]:
    switch = finding.switch
    if switch is None:
        if finding.kind is not Kind.WARNING:
            yield "  who put it into eval mode was not seen"
        return
    inside = f", which contains it as {switch.name!r}" if switch.name else " itself"
    through = f" on {switch.through}{inside}" if switch.through else ""
    mode = "train" if finding.pattern == "train-in-forward" else "eval"
    what = (
        "copied or loaded, already in eval mode"
        if switch.how == "copied"
        else f"put into {mode} mode: {switch.how}{through}"
    )
    yield from _snippet(switch.place, what)
    if switch.library is not None:
        yield f"      by {switch.library.file}:{switch.library.line} in {switch.library.function}"


def _snippet(place: Place | None, what: str) -> Iterator[str]:
    if place is None:
        return
    yield f"  --> {place.file}:{place.line} in {place.function}: {what}"
    lines = source_of(place.file).lines
    if 0 < place.line <= len(lines):
        yield f"  {place.line:5} | {lines[place.line - 1]}"


def _edit_lines(edit: Edit) -> Iterator[str]:
    lines = source_of(edit.file).lines
    line = lines[edit.line - 1] if 0 < edit.line <= len(lines) else ""
    indent = line[: len(line) - len(line.lstrip())]
    code = [f"        + {indent}{one}" for one in edit.code.split("\n")]
    yield f"  at {edit.file}:{edit.line}"
    match edit.action:
        case EditAction.INSERT_BEFORE:
            yield from code
            yield f"  {edit.line:5} | {line}"
        case EditAction.REPLACE:
            yield f"        - {line}"
            yield from code
        case EditAction.WRAP:
            yield from code
            yield from (f"  {number:5} |     {lines[number - 1]}" for number in _some(edit.line, edit.last))
            yield from (f"        + {indent}{one}" for one in (edit.end.split("\n") if edit.end else ()))


def _some(first: int, last: int) -> list[int]:
    """The lines from first to last, or those at both ends where there are many."""
    numbers = list(range(first, last + 1))
    return numbers if len(numbers) <= 6 else [*numbers[:3], *numbers[-2:]]
