"""What ought to have happened: the rule over what an attempt saw, and the prediction for each placement.

The rule: an attempt raises exactly when a forward took the cuDNN path, in eval mode, and a gradient reached its output.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.model import KernelPath, Outcome, Record, Sighting
from harness.placements import PLACEMENTS, Around
from harness.results import Result

JUDGED = (Outcome.OK, Outcome.BACKWARD_ERROR, Outcome.ERROR)
"""Outcomes the rule speaks about: an attempt that was killed or ran out of memory never got to say."""


def _raises(sighting: Sighting) -> bool | None:
    """Whether this forward must raise; None where a fact that decides it was not observed."""
    if sighting.training or sighting.path not in (KernelPath.CUDNN, None) or sighting.gradient_reached is False:
        return False
    return None if sighting.path is None or sighting.gradient_reached is None else True


def rule_says(record: Record) -> bool | None:
    """Whether ``record`` had to raise, judging by its own sightings; None where they do not tell."""
    verdicts = {_raises(sighting) for sighting in record.sightings}
    if True in verdicts:
        return True
    return None if None in verdicts or not verdicts else False


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """How the rule fared: records that it explains, that contradict it, and that saw too little to judge by."""

    explained: int
    contradictions: tuple[Record, ...]
    unjudged: int


def check_rule(results: Iterable[Result]) -> RuleCheck:
    """Hold the rule against every record that counts."""
    explained, unjudged, contradictions = 0, 0, []
    for record in (record for result in results for record in result.records):
        expected = rule_says(record) if record.outcome in JUDGED else None
        if expected is None:
            unjudged += 1
        elif expected == (record.outcome is Outcome.BACKWARD_ERROR):
            explained += 1
        else:
            contradictions.append(record)
    return RuleCheck(explained, tuple(contradictions), unjudged)


def placement_says(result: Result) -> bool | None:
    """Whether ``result`` had to raise by its placement's prediction and the path it was seen to take."""
    placement = PLACEMENTS.get(str(result.variant.axes.get("placement")))
    if placement is None or result.decisive is None or result.decisive.path is None:
        return None
    return placement.raises and result.decisive.path is KernelPath.CUDNN


def differs(result: Result) -> bool:
    """Whether the outcome of ``result`` is not what its placement predicts; without a prediction nothing differs."""
    expected = placement_says(result)
    if expected is None or result.outcome not in JUDGED:
        return False
    return expected != (result.outcome is Outcome.BACKWARD_ERROR)


def prediction(placement: str, cudnn: str | None = None) -> str:
    """The prediction in the words of the outcome table: on the cuDNN path / elsewhere.

    Where all is with ``cudnn`` "on" or "off", the word for that side alone.
    """
    known = PLACEMENTS.get(placement)
    if known is None:
        return "-"
    if known.around_forward is Around.NO_GRAD:
        return "error"
    if not known.raises:
        return "ok"
    return {"on": "RAISES", "off": "ok"}.get(cudnn or "", "RAISES / ok")
