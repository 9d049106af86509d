"""Records -> DataFrame -> tables -> markdown, CSV, JSON and plots. The only room that imports pandas."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from harness.files import write_whole
from harness.model import Plan, Record
from harness.report.evidence import Evidence
from harness.report.frame import read_results, results_frame, to_csv
from harness.report.markdown import to_markdown
from harness.report.plots import draw
from harness.report.summary import Summary, summary
from harness.sittings import Sitting

__all__ = ["Format", "Summary", "read_results", "render", "results_frame", "summary", "write_report"]

Format = Literal["md", "csv", "json"]


def render(
    plan: Plan,
    records: Sequence[Record],
    format: Format,
    extra_caveats: Sequence[str] = (),
    sittings: Sequence[Sitting] = (),
) -> str:
    """The report on ``records`` as markdown, or its rows as CSV or JSON (a list of objects; absent is null)."""
    evidence = Evidence.of(plan, records, extra_caveats, sittings)
    match format:
        case "md":
            return to_markdown(evidence)
        case "csv":
            return to_csv(evidence.frame)
        case "json":
            return _to_json(evidence)


def write_report(
    folder: Path,
    plan: Plan,
    records: Sequence[Record],
    extra_caveats: Sequence[str] = (),
    sittings: Sequence[Sitting] = (),
) -> list[Path]:
    """Write ``report.md``, ``results.csv`` and plots into ``folder``, each whole or not at all.

    Raises:
        StoreError: the folder cannot be written.
    """
    evidence = Evidence.of(plan, records, extra_caveats, sittings)
    plots = draw(evidence)
    contents: dict[str, str | bytes] = {
        "report.md": to_markdown(evidence),
        "results.csv": to_csv(evidence.frame),
        **plots,
    }
    return [write_whole(folder / name, content) for name, content in contents.items()]


def _to_json(evidence: Evidence) -> str:
    rows = evidence.frame.to_json(orient="records", double_precision=15, force_ascii=False, indent=1)
    return f"{rows}\n"
