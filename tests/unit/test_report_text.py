"""Words and numbers of the report, and that nothing in it can be forged by an error message."""

from __future__ import annotations

import re
from dataclasses import replace

import pandas as pd
from builders import HOSTILE, fail, make_plan, make_record
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from harness.model import Device, Outcome
from harness.report import render
from harness.report.text import clean, code, count, listed, number, plain, table

SMALL = make_plan(placements=("train-always", "eval-always"), cells=("lstm", "gru"))
GFM = MarkdownIt("commonmark").enable("table")


def _safe(report: str) -> None:
    """No HTML, link or image comes out of ``report``, and no heading but the harness's own."""
    before = ""
    for token in GFM.parse(report):
        kinds = {token.type, *(child.type for child in token.children or [])}
        assert not kinds & {"html_block", "html_inline", "link_open", "image", "fence", "code_block", "hr"}
        assert before != "heading_open" or not token.content.startswith("heading")
        before = token.type


def test_a_hostile_record_cannot_write_the_report() -> None:
    plan = replace(SMALL, description=HOSTILE, selection=HOSTILE, command=(HOSTILE,), environment={"x": HOSTILE})
    bad = fail(make_record(plan, plan.variants[0], Device.STUB), Outcome.ERROR, HOSTILE, HOSTILE)
    bad = replace(bad, fingerprint=HOSTILE, facts={"torch": HOSTILE}, reason=HOSTILE)
    report = render(plan, [bad], "md", extra_caveats=[HOSTILE])
    _safe(report)
    assert "\x1b" not in report and "\u202e" not in report


@given(st.text() | st.text(alphabet="|\\`<>*_[]()#-=\n ~!&;:/.w", max_size=20))
def test_any_text_stays_in_its_cell(hostile: str) -> None:
    frame = pd.DataFrame({"a": [plain(hostile)], "b": [code(hostile)], "c": ["end"]})
    tokens = GFM.parse(table(frame))
    inline = [token for token in tokens if token.type == "inline"]
    assert len(inline) == 6 and inline[-1].content == "end"
    assert {child.type for child in inline[4].children or []} == {"code_inline"}
    assert {child.type for child in inline[3].children or []} <= {"code_inline", "text"}
    _safe(table(frame))


@given(st.text())
def test_clean_text_can_be_written_and_leaves_nothing_to_act_on(text: str) -> None:
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", clean(text))
    clean(text).encode()


# --- words and numbers


def test_words_and_numbers() -> None:
    assert [number(x) for x in (12345.6, 12.345, 0.01234, float("nan"), None)] == ["12,346", "12.3", "0.0123", "", ""]
    assert (count(1, "variant"), count(1152, "variant")) == ("1 variant", "1,152 variants")
    assert listed("abc") == "a, b and c" and listed("a") == "a" and listed("") == ""
    assert listed("abcdef", limit=3) == "a, b and 4 more"
