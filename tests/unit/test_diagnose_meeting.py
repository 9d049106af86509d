"""Edits that meet in the same lines, whatever their order, and lines counted as Python counts them."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path

import pytest

from harness.diagnose import edits
from harness.diagnose.edits import Edit, EditAction, apply_to, contradict, lines_of
from harness.diagnose.source import source_of
from tests.watched import PRELUDE, cured, findings

TEXT = "a()\nb()\nc()\nd()\ne()\nf()\n"


def insert(line: int, code: str = "new()") -> Edit:
    return Edit("f", line, EditAction.INSERT_BEFORE, code)


def replace(line: int, last: int | None = None, code: str = "other()") -> Edit:
    return Edit("f", line, EditAction.REPLACE, code, end_line=last)


def wrap(line: int, last: int | None = None, code: str = "with x:", end: str | None = None) -> Edit:
    return Edit("f", line, EditAction.WRAP, code, end_line=last, end=end)


TRY = {"code": "try:", "end": "finally:\n    z()"}
MEETING = {
    "an insertion and a replacement": ([insert(2), replace(2)], "a()\nnew()\nother()\nc()\nd()\ne()\nf()\n"),
    "one of several lines": ([insert(2), replace(2, 3)], "a()\nnew()\nother()\nd()\ne()\nf()\n"),
    "one that leaves nothing": ([insert(2), replace(2, 3, "")], "a()\nnew()\nd()\ne()\nf()\n"),
    "an insertion and a wrap": ([insert(2), wrap(2)], "a()\nnew()\nwith x:\n    b()\nc()\nd()\ne()\nf()\n"),
    "an insertion in a wrap": (
        [insert(3), wrap(2, 4)],
        "a()\nwith x:\n    b()\n    new()\n    c()\n    d()\ne()\nf()\n",
    ),
    "an insertion behind a wrap": (
        [insert(3), wrap(2, **TRY)],
        "a()\ntry:\n    b()\nfinally:\n    z()\nnew()\nc()\nd()\ne()\nf()\n",
    ),
    "a replacement and a wrap": ([replace(2), wrap(2)], "a()\nwith x:\n    other()\nc()\nd()\ne()\nf()\n"),
    "a replacement at the end of a wrap": (
        [replace(3, 4), wrap(2, 4, **TRY)],
        "a()\ntry:\n    b()\n    other()\nfinally:\n    z()\ne()\nf()\n",
    ),
    "a wrap in a wrap": (
        [wrap(3, 5, "with x:"), wrap(4, 4, "with y:")],
        "a()\nb()\nwith x:\n    c()\n    with y:\n        d()\n    e()\nf()\n",
    ),
    "a wrap where a wrap begins": (
        [wrap(3, 5, "with x:"), wrap(3, 3, "with y:")],
        "a()\nb()\nwith x:\n    with y:\n        c()\n    d()\n    e()\nf()\n",
    ),
    "a wrap where a wrap ends": (
        [wrap(3, 5, **TRY), wrap(5, 5, "try:", "except E:\n    y()")],
        "a()\nb()\ntry:\n    c()\n    d()\n    try:\n        e()\n    except E:\n        y()\nfinally:\n    z()\nf()\n",
    ),
    "all of them": (
        [insert(3), replace(3), wrap(3, code="with y:"), wrap(2, 4)],
        "a()\nwith x:\n    b()\n    new()\n    with y:\n        other()\n    d()\ne()\nf()\n",
    ),
}


@pytest.mark.parametrize("name", MEETING)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_edits_that_meet_are_made_alike_in_any_order(name: str, newline: str) -> None:
    made, text = MEETING[name]
    for order in itertools.permutations(made):
        assert apply_to(TEXT.replace("\n", newline), order) == text.replace("\n", newline)
    ast.parse(text)
    assert not any(contradict(one, other) for one, other in itertools.permutations(made, 2))


CONTRADICT = {
    "two of one line": [replace(2), replace(2, code="third()")],
    "two that share a line": [replace(2, 3), replace(3, 4)],
    "into what is replaced": [insert(3), replace(2, 4)],
    "a wrap of what is replaced": [wrap(3), replace(2, 4)],
    "half of what is replaced": [wrap(3, 5), replace(2, 3)],
    "two wraps that cross": [wrap(2, 4), wrap(3, 5, "with y:")],
}


@pytest.mark.parametrize("name", CONTRADICT)
def test_edits_that_cannot_both_be_made_are_told(name: str) -> None:
    for one, other in itertools.permutations(CONTRADICT[name]):
        assert contradict(one, other)
        with pytest.raises(ValueError, match="two edits of f contradict each other: of lines"):
            apply_to(TEXT, [one, other])


def test_edits_of_other_files_and_lines_do_not_contradict() -> None:
    assert not contradict(replace(2), replace(3))
    assert not contradict(replace(2), Edit("g", 2, EditAction.REPLACE, "third()"))
    assert not contradict(replace(2), replace(2))


def test_what_stands_behind_a_string_is_indented_with_the_rest() -> None:
    text = "if a:\n    b = '''x\n  y'''\nc()\n"
    inner, outer = wrap(2, 3, **TRY), wrap(1, 3)
    expected = (
        "with x:\n    if a:\n        try:\n            b = '''x\n  y'''\n        finally:\n            z()\nc()\n"
    )
    assert apply_to(text, [outer, inner]) == expected
    changed = apply_to(text, [replace(3, code="y''' + q"), outer])
    assert changed == "with x:\n    if a:\n        b = '''x\n  y''' + q\nc()\n"


ODD = ["\f", "\v", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


@pytest.mark.parametrize("odd", ODD)
def test_lines_are_those_that_python_counts(tmp_path: Path, odd: str) -> None:
    text = f"a = 'x{odd}y'\nb = 2\nc = 3\n"
    assert lines_of(text) == [f"a = 'x{odd}y'", "b = 2", "c = 3"]
    assert apply_to(text, [replace(2, code="b = 4")]) == f"a = 'x{odd}y'\nb = 4\nc = 3\n"
    assert apply_to(text, [replace(1, code=f"a = '{odd}'"), wrap(1)]) == f"with x:\n    a = '{odd}'\nb = 2\nc = 3\n"
    path = tmp_path / "odd.py"
    path.write_text(text, encoding="utf-8")
    assert source_of(str(path)).lines[1] == "b = 2"


def test_a_form_feed_between_the_functions_moves_no_edit(tmp_path: Path) -> None:
    feeds = "\fnet = Net().eval()\n\f\ndef step():\n    assert '\f'\n\f\n    net(x).sum().backward()\n\nstep()\n"
    (found,) = findings(tmp_path, feeds)
    assert [edit.action for edit in found.cure.edits] == [EditAction.INSERT_BEFORE, EditAction.WRAP]
    assert cured(tmp_path, found) == ()
    ((_, text),) = edits.apply(found.cure.edits).items()
    assert text == f"import harness\n{PRELUDE}{feeds}".replace(
        "    net(x)", "    with harness.eval_gradients(net):\n        net(x)"
    )


def test_at_a_form_feed_the_indentation_begins_anew() -> None:
    text = apply_to("if a:\n    b()\n\fc()\n", [wrap(1, 3)])
    assert text == "with x:\n    if a:\n        b()\n\f    c()\n"
    ast.parse(text)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_any_end_of_a_line_is_one(newline: str) -> None:
    assert lines_of(f"a{newline}{newline}b{newline}") == ["a", "", "b"]
    assert lines_of(f"a{newline}b") == ["a", "b"]
    assert lines_of("") == []


def test_cures_of_two_forwards_in_one_line_do_not_undo_each_other(tmp_path: Path) -> None:
    program = """
    net, one, two = Net().train(), Net().eval(), Net().eval()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for batch in [x, x]:
        loss = net(batch).sum() + one(batch).sum() + two(batch).sum()
        loss.backward()
        optimizer.step()
    """
    found = findings(tmp_path, program)
    assert {one.cure.id for one in found} == {"detach"}
    for one in found:
        ((_, text),) = edits.apply(one.cure.edits).items()
        ast.parse(text)
        assert text.count(".detach()") == len(one.cure.edits) == 1
