"""The README's own matrix, and the docs' lists of axes and settings, are what the code has."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import yaml

from harness.cli.running import run_matrix
from harness.matrix.axes import AXES
from harness.matrix.document import parse_document
from harness.matrix.expand import expand
from harness.matrix.shelf import NO_MATRIX
from harness.model import Settings

ROOT = Path(__file__).parents[2]


def test_the_matrix_in_the_readme_is_one() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    expansion = expand(parse_document(example, "README.md"))
    assert len(expansion.variants) == 6
    assert {exclusion.reason for exclusion in expansion.exclusions} == {yaml.safe_load(example)["exclude"][0]["reason"]}


def test_the_docs_name_every_axis_and_setting_and_no_other() -> None:
    axes, settings = (ROOT / "docs" / "matrix.md").read_text().split("## Settings")
    _, axes = axes.split("## Axes")
    assert _first_cells(axes) == set(AXES)
    assert _first_cells(settings) == {field.name for field in fields(Settings)}


def test_the_readme_names_every_axis() -> None:
    text = (ROOT / "README.md").read_text()
    assert {name for name in AXES if f"`{name}`" not in text} == set()


def test_the_readme_and_the_help_name_every_shipped_matrix() -> None:
    shipped = {file.stem for file in (ROOT / "experiments").glob("*.yaml")} - NO_MATRIX
    (row,) = re.findall(r"^\| `harness run matrix \[.*", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert {name for name in shipped if f"`{name}`" not in row} == set()
    (listed,) = re.findall(r"a shipped one \((.*?)\)", " ".join(str(run_matrix.help).split()))
    assert set(listed.split(", ")) == shipped


def _first_cells(text: str) -> set[str]:
    """The names in the first column of the tables in ``text``."""
    rows = re.findall(r"^\| (`[^|]*`) \|", text, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_the_readme_has_no_placeholder_left() -> None:
    """A line of one capitalised word is where something was to be filled in."""
    lines = (ROOT / "README.md").read_text().splitlines()
    assert [line for line in lines if re.fullmatch(r"[A-Z][A-Z_]{3,}", line.strip())] == []
