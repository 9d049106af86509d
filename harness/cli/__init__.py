"""The command line: parse, compose, one call, exit code."""

from __future__ import annotations

from harness.cli import diagnosing, doctoring, expecting, looking, running, stubbing
from harness.cli.entry import main
from harness.cli.root import cli

__all__ = ["cli", "diagnosing", "doctoring", "expecting", "looking", "main", "running", "stubbing"]
