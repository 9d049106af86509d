"""The command line: parse, compose, one call, exit code."""

from __future__ import annotations

from harness.cli import expecting, looking, running, stubbing
from harness.cli.entry import main
from harness.cli.root import cli

__all__ = ["cli", "expecting", "looking", "main", "running", "stubbing"]
