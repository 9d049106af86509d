"""Whatever a program, a file or a journal says, no writer of the harness lets it act: every one, with any text."""

from __future__ import annotations

import ast
import contextlib
import csv
import io
import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from builders import HOSTILE, fail, make_plan, make_record
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from harness.console.live import RunConsole
from harness.console.shown import tell
from harness.console.variant import variant_lines
from harness.errors import JournalError
from harness.model import Device, Exclusion, Outcome, Plan, Record, Variant
from harness.report import read_results, render
from harness.report.compare import Rules, compare
from harness.report.compare.document import to_json
from harness.report.compare.markdown import to_markdown
from harness.repro.case import case_of
from harness.repro.script import script_of
from harness.results import collect, decisive_first
from harness.store import notes
from harness.store.content import child_content, parent_content
from harness.store.journal import read_plan
from harness.store.layout import Store
from harness.wire import dump

ROOT = Path(__file__).parents[2]
SMALL = make_plan(placements=("train-always", "eval-always"), cells=("lstm",), directions=(False,))
assert len(SMALL.variants) == 4
GFM = MarkdownIt("commonmark").enable("table")

SEEDS = (
    HOSTILE, "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "'=1", "＝1", "<script>alert(1)</script>",
    "<!--", "-->", "</details>", "[x](javascript:alert(1))", "![x](http://evil.example/x.png)", "http://evil.example",
    "www.evil.example", "`", "``", "\\`", "|", "\\|", "# heading", "\n# heading\n", "---", "***", "> quote", "1. list",
    "\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\x07", "\x00", "\u202e", "\u2028", "\x7f", "[red]red[/red]", "[/]",
    "&lt;", "&#60;", "null", "$(x)", "{x}", "%s", "%(x)s", '"""', "'''\nexit(1)", "a\r\nb", "${x}", "é", "\U0001f600",
)  # fmt: skip
hostile = (
    st.sampled_from(SEEDS) | st.text(max_size=40) | st.tuples(st.sampled_from(SEEDS), st.text(max_size=9)).map("".join)
)


texts = st.lists(hostile, min_size=8, max_size=8)
FEW = settings(max_examples=12)
"""Each example has eight texts, and a report of them takes a while."""


def story(told: list[str]) -> tuple[Plan, list[Record]]:
    """A plan and its records in which everything that is free text is hostile: another text in each record."""
    text = told[0]
    plan = replace(
        SMALL,
        description=text,
        matrix=told[1],
        selection=told[2],
        command=("harness", told[3]),
        notes=(told[4],),
        environment={"git_commit": told[5], text: text, "x": {told[6]: [told[7]]}},
        exclusions=(Exclusion(text, told[1]),),
    )
    records = []
    for variant, bad_text, odd_text in zip(plan.variants, told[::2], told[1::2], strict=True):
        bad = fail(make_record(plan, variant, Device.STUB), Outcome.ERROR, bad_text, bad_text)
        records.append(replace(bad, **free(bad_text)))
        records.append(replace(make_record(plan, variant, Device.CPU), **free(odd_text)))
    dead = replace(records[0], outcome=Outcome.CRASH, error_type=None, error_message=None, fingerprint=None)
    return plan, [dead, *records[1:]]


def free(text: str) -> dict[str, object]:
    facts = {"torch": text, "cudnn": text, "device_name": text, text: text}
    results = {
        "program": text,
        "dataset": text,
        "dataset_reason": text,
        text: [text],
        "epochs": [{"epoch": 1, text: text}],
    }
    fields = ("label", "fingerprint", "reason", "traceback_tail", "output_tail", "signal", "memory_source")
    return {**dict.fromkeys(fields, text), "facts": facts, "results": results}


def assert_tame(text: str) -> None:
    """Nothing in ``text`` steers a terminal."""
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", text)


def assert_no_markup(markdown: str, harmless: str | None = None) -> None:
    """No HTML, link or image comes out of ``markdown``, and its headings and lists are those of ``harmless``."""
    assert_tame(markdown)
    for token in GFM.parse(markdown):
        kinds = {token.type, *(child.type for child in token.children or [])}
        assert not kinds & {"html_block", "html_inline", "link_open", "image", "fence", "code_block", "hr"}, token
    if harmless is not None:
        assert headings(markdown) == headings(harmless)


def headings(markdown: str) -> list[str]:
    tokens = GFM.parse(markdown)
    return [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]


@FEW
@given(texts)
def test_the_report_is_ours_whatever_it_quotes(told: list[str]) -> None:
    plan, records = story(told)
    tame = render(SMALL, records, "md")
    assert_no_markup(render(plan, records, "md", told), tame)


@FEW
@given(texts)
def test_no_cell_is_a_formula_and_every_text_comes_back(told: list[str]) -> None:
    plan, records = story(told)
    written = render(plan, records, "csv")
    assert_tame(written)
    header, *rows = csv.reader(io.StringIO(written))
    assert len(rows) == len(plan.variants) * 2
    for row in (header, *rows):
        assert len(row) == len(header)
        for cell in row:
            assert not re.match(r"[=+@\t\r＝＋－＠]|-(?![\d.])", cell), cell
    frame = read_results(written)
    assert set(frame["run"]) == {plan.run}
    loaded = json.loads(render(plan, records, "json"))
    assert [row["key"] for row in loaded] == list(frame["key"])


@FEW
@given(texts)
def test_what_mlflow_shows_is_text(told: list[str]) -> None:
    plan, records = story(told)
    results = collect(plan, records).results
    for variant in plan.variants:
        mine = [result for result in results if result.key == variant.key]
        assert_no_markup(notes.variant_note(variant, decisive_first(mine)))
        content = child_content(plan, variant, [record for record in records if record.key == variant.key])
        for said in (content.name, *content.tags.values(), *content.params.values()):
            said.encode()
        assert all(re.fullmatch(r"[\w\-. /:]+", point.name) for point in content.metrics), content.metrics
    parent = parent_content(plan, records, status="FINISHED")
    assert_no_markup(parent.tags["mlflow.note.content"])


@FEW
@given(texts)
def test_the_terminal_is_steered_by_nobody(told: list[str]) -> None:
    plan, records = story(told)
    for variant in plan.variants:
        for line in variant_lines(plan, variant, tuple(r for r in records if r.key == variant.key)):
            assert_tame(line)
            assert "\n" not in line


@FEW
@given(texts)
def test_the_lines_of_a_run_are_one_each_and_mean_no_markup(told: list[str]) -> None:
    plan, records = story(told)
    said = io.StringIO()
    with RunConsole() as listener:
        listener._console.file = said
        listener.started(plan)
        for record in records:
            listener.recorded(record)
        listener.noted(told[0])
        listener.finishing(told[1])
    assert_tame(said.getvalue())
    lines = said.getvalue().splitlines()
    assert len(lines) <= 2 + len(records) + 1


@given(hostile)
def test_a_note_is_one_line(text: str) -> None:
    with contextlib.redirect_stderr(io.StringIO()) as said:
        tell(text)
    assert_tame(said.getvalue())
    assert len(said.getvalue().splitlines()) == 1


@FEW
@given(texts)
def test_a_script_holds_nothing_of_it_but_comments(told: list[str]) -> None:
    plan, records = story(told)
    variant = plan.variants[0]
    written = script_of(case_of(plan, variant, tuple(records)))
    harmless = script_of(case_of(SMALL, variant, ()))
    assert ast.dump(ast.parse(written)) == ast.dump(ast.parse(harmless))
    assert_tame(written)


@FEW
@given(texts)
def test_a_comparison_is_ours_whatever_it_quotes(told: list[str]) -> None:
    plan, records = story(told)
    said = compare((SMALL, records), (replace(plan, run=f"{plan.run}-b"), records), Rules())
    assert_no_markup(to_markdown(said))
    json.loads(to_json(said))


FORGED = {
    "an id that leads out of the store": {"run": "../../etc"},
    "an id that is a path": {"run": "/etc"},
    "an id that steers a terminal": {"run": "\x1b[2J"},
    "a label that steers a terminal": {"variants": (Variant({"cell": "lstm"}, "\x1b[2J"),)},
    "a label of two lines": {"variants": (Variant({"cell": "lstm"}, "a\nb"),)},
    "an axis that is a formula": {"variants": (Variant({"=1+1": "lstm"}, "a"),)},
    "an axis that steers a terminal": {"variants": (Variant({"\x1b[2J": "lstm"}, "a"),)},
    "a value that steers a terminal": {"variants": (Variant({"cell": "\x1b[2J"}, "a"),)},
    "a time that steers a terminal": {"created": "\x1b[2J"},
}


@pytest.mark.parametrize("forged", FORGED)
def test_a_plan_that_no_harness_wrote_is_none(tmp_path: Path, forged: str) -> None:
    folder = Store(tmp_path).folder(SMALL.run)
    folder.path.mkdir(parents=True)
    folder.plan.write_text(dump(replace(SMALL, **FORGED[forged])))  # type: ignore[arg-type]
    with pytest.raises(JournalError, match="not a plan of a run") as caught:
        read_plan(folder)
    assert "\x1b" not in str(caught.value)
    folder.plan.write_text(dump(SMALL))
    assert read_plan(folder) == SMALL


# --- nothing is unpickled, no YAML makes objects, no text becomes code


SOURCES = [file for room in ("harness", "experiments") for file in sorted((ROOT / room).rglob("*.py"))]


BANNED_MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "jsonpickle"}
BANNED_CALLS = {"eval", "exec", "compile", "__import__"}
BANNED_METHODS = {
    "read_pickle",
    "to_pickle",
    "unsafe_load",
    "full_load",
    "unsafe_load_all",
    "full_load_all",
    "load_all",
}
SAFE_LOADERS = {"SafeLoader", "CSafeLoader", "_Loader"}


def name_of(call: ast.Call) -> str:
    return ast.unparse(call.func)


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_nothing_is_unpickled_and_no_text_becomes_code(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert not BANNED_MODULES & {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert str(node.module).partition(".")[0] not in BANNED_MODULES
        elif isinstance(node, ast.Call):
            name, keywords = name_of(node), {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            assert name not in BANNED_CALLS, f"{file}:{node.lineno}"
            assert name.rpartition(".")[2] not in BANNED_METHODS, f"{file}:{node.lineno}"
            assert keywords.get("shell", "False") == "False", f"{file}:{node.lineno}"
            assert keywords.get("allow_pickle", "False") == "False", f"{file}:{node.lineno}"
            if name == "torch.load":
                assert keywords.get("weights_only") == "True", f"{file}:{node.lineno}"
            if name in {"yaml.load", "yaml.compose"}:
                assert keywords.get("Loader", "").rpartition(".")[2] in SAFE_LOADERS, f"{file}:{node.lineno}"


def test_the_loader_of_ours_is_a_safe_one() -> None:
    import yaml

    from harness.matrix import strict_yaml

    assert issubclass(strict_yaml._Loader, yaml.SafeLoader)
