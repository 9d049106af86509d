"""``report.md``: its sections, in their order."""

from __future__ import annotations

from harness.report.evidence import Evidence
from harness.report.sections.advice import advice
from harness.report.sections.caveats import caveats
from harness.report.sections.claims import claims
from harness.report.sections.environment import environment
from harness.report.sections.errors import exclusions, not_run, other_errors
from harness.report.sections.fixes import fixes
from harness.report.sections.glossary import glossary
from harness.report.sections.headline import headline
from harness.report.sections.learnt import learnt_rule
from harness.report.sections.outcomes import outcomes
from harness.report.sections.throughput import throughput
from harness.report.sections.training import training
from harness.report.sections.variants import variants
from harness.report.sections.where import where

SECTIONS = (
    headline,
    advice,
    training,
    outcomes,
    fixes,
    where,
    learnt_rule,
    claims,
    throughput,
    other_errors,
    not_run,
    exclusions,
    environment,
    caveats,
    glossary,
    variants,
)


def to_markdown(evidence: Evidence) -> str:
    """The whole report."""
    written = (section(evidence).strip() for section in SECTIONS)
    return "\n\n".join(section for section in written if section) + "\n"
