"""An examination as one JSON object, for machines."""

from __future__ import annotations

import json
from typing import Any

from harness.doctor.examination import Examination, Untested
from harness.doctor.facts import Fact
from harness.doctor.injection import Finding
from harness.model import Record
from harness.wire import dump

SCHEMA = 1

_DETAILS = ("phase", "epoch", "step", "error_type", "error_message", "reason", "signal", "exit_code", "wall_s")


def to_json(seen: Examination) -> str:
    """``seen`` as JSON, with a newline at the end; what was not observed is left out."""
    document = {
        "schema": SCHEMA,
        "as_it_should_be": not seen.differences,
        "differences": seen.differences,
        "facts": [_fact(group, fact) for group, facts in seen.facts.items() for fact in facts],
        "faults": [_finding(finding) for finding in seen.findings],
        "not_tested": [_untested(one) for one in seen.untested],
    }
    return json.dumps(document, indent=1) + "\n"


def _fact(group: str, fact: Fact) -> dict[str, Any]:
    said = {"advice": fact.advice or None, "value": fact.value}
    return {"group": group, "name": fact.name, "state": fact.state, "text": fact.text} | _without_none(said)


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "fault": finding.fault.name,
        "device": finding.device,
        "what": finding.fault.what,
        "expected": finding.fault.outcome,
        "outcome": finding.record.outcome,
        "differences": list(finding.differs),
        **_details(finding.record),
    }


def _details(record: Record) -> dict[str, Any]:
    plain = json.loads(dump(record))  # what a journal would hold, so that no value is one that JSON lacks
    return _without_none({name: plain.get(name) for name in _DETAILS} | {"stall": record.stall})


def _untested(one: Untested) -> dict[str, Any]:
    said = {"what": one.what, "why": one.why, "advice": one.advice or None, "counts_as_a_difference": one.wanted}
    return _without_none(said)


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
