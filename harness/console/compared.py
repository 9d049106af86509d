"""Two runs side by side on stdout; whether that is a failure is for the person to say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from harness.errors import CheckFailedError
from harness.store.brought import read_run
from harness.store.layout import Store

if TYPE_CHECKING:
    from harness.report.compare import Comparison


def show_comparison(
    store: Store, runs: tuple[str, str], *, form: str, threshold: str, fail_on: Sequence[str] = ()
) -> None:
    """Print what became of the first run in the second.

    Raises:
        CheckFailedError: what ``fail_on`` names was found.
        UsageError: a run or the threshold makes no sense, or both runs are the same.
    """
    from harness.report.compare import compare, parse_threshold
    from harness.report.compare.document import to_json
    from harness.report.compare.markdown import to_markdown

    rules = parse_threshold(threshold)
    first, second = (read_run(store, run) for run in runs)
    comparison = compare(first, second, rules)
    click.echo(to_json(comparison) if form == "json" else to_markdown(comparison), nl=False)
    found = [sentence for what in dict.fromkeys(fail_on) if (sentence := _CHECKS[what](comparison))]
    if found:
        raise CheckFailedError(
            f"compared with run {comparison.a.plan.run}, {' and '.join(found)}",
            f"`harness show KEY --run {comparison.b.plan.run}` has everything about a variant.",
        )


def _outcomes(comparison: Comparison) -> str | None:
    """What is no longer as it was; two runs without anything in common agree on nothing."""
    if not comparison.shared:
        return "there is no outcome in common"
    amount = len(comparison.serious)
    return f"{amount:,} outcome{'s are' if amount > 1 else ' is'} not the same" if amount else None


def _slower(comparison: Comparison) -> str | None:
    if not comparison.timings.judged:
        click.echo("note: no times could be compared, so nothing was looked at for --fail-on slower", err=True)
    amount = len(comparison.slower)
    return f"{amount:,} cell{'s are' if amount > 1 else ' is'} slower" if amount else None


_CHECKS = {"outcome": _outcomes, "slower": _slower}
