"""Every example of docs/guard.md runs, and prints what the page says it prints."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "guard.md"
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_prints_what_the_page_says(number: int) -> None:
    code, expected = EXAMPLES[number]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "docs/guard.md", "exec"), {"__name__": "__main__"})
    assert printed.getvalue() == expected


def test_every_block_of_the_page_is_an_example() -> None:
    assert len(EXAMPLES) == PAGE.read_text().count("```python") == 3
