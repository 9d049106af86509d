"""What the facts about gradients come to: is it the one that was wanted, and is it the same every time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.measured import Exactness
from harness.model import Record


class Verdict(StrEnum):
    """What is said of a placement's gradient on one device."""

    EXACT = "exact"
    DIFFERS = "differs"
    NOT_REPEATABLE = "not repeatable"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its reason, and what else the attempts of one variant on one device agree on.

    ``repeatable`` says whether two attempts with one seed gave the same gradient to the bit; None with only one.
    ``changed`` lists what the placement leaves behind otherwise than it was. The errors are the largest that any
    attempt saw; None where there is nothing to compare with.
    """

    verdict: Verdict
    reason: str
    repeatable: bool | None
    outputs_equal_eval: bool | None
    changed: tuple[str, ...]
    gradient_error_weights: float | None
    gradient_error_input: float | None


def judge(records: Sequence[Record]) -> Judgement | None:
    """What the attempts of one variant on one device, all with one seed, say about its gradient.

    None where no attempt looked at it: none was ok, or kernels do not compute there. What was seen of the modes
    decides before any number does: a gradient with an unwanted dropout in it is random, whatever its error is today.
    """
    seen = [record.exactness for record in records if record.exactness is not None]
    if not seen:
        return None
    repeatable = _repeatable(seen)
    verdict, reason = _verdict(seen, repeatable)
    equal = {one.outputs_equal_eval for one in seen if one.outputs_equal_eval is not None}
    return Judgement(
        verdict,
        reason,
        repeatable,
        None if not equal else equal == {True},
        tuple(dict.fromkeys(name for one in seen for name in one.changed)),
        _largest([one.gradient_error_weights for one in seen]),
        _largest([one.gradient_error_input for one in seen]),
    )


def _verdict(seen: Sequence[Exactness], repeatable: bool | None) -> tuple[Verdict, str]:
    reasons = dict.fromkeys(reason for one in seen for reason in (*_modes(one), *_precision(one)))
    if reasons:
        return Verdict.DIFFERS, "; ".join(reasons)
    if repeatable is False:
        return Verdict.NOT_REPEATABLE, "two attempts with one seed gave different gradients"
    hindrance = next((one.not_comparable for one in seen if one.not_comparable is not None), None)
    if hindrance is not None:
        return Verdict.NOT_COMPARABLE, hindrance
    return Verdict.EXACT, f"within what {seen[0].precision} rounds"


def _modes(seen: Exactness) -> Iterator[str]:
    """Modules that ran the forward otherwise than the person wanted."""
    wanted = set(seen.train_wanted)
    for what, names, in_train in (
        ("dropout active", seen.active_dropout, True),
        ("batch statistics used", seen.batch_statistics, True),
        ("dropout off", seen.inactive_dropout, False),
        ("running statistics used", seen.running_statistics, False),
    ):
        wrong = [name for name in names if (name in wanted) is not in_train]
        if wrong:
            yield f"{what} ({', '.join(wrong)})"


def _precision(seen: Exactness) -> Iterator[str]:
    """Only where the modes are right: otherwise they explain the error."""
    largest = _largest([seen.gradient_error_weights, seen.gradient_error_input])
    if largest is None or seen.tolerance is None or any(_modes(seen)):
        return
    if not largest <= seen.tolerance:  # a NaN is not within any tolerance
        yield f"precision: {seen.precision} gradient, relative error {largest:.1g}"


def _repeatable(seen: Sequence[Exactness]) -> bool | None:
    digests = [one.gradient_digest for one in seen if one.gradient_digest is not None]
    return None if len(digests) < 2 else len(set(digests)) == 1


def _largest(errors: Sequence[float | None]) -> float | None:
    """The largest; a NaN is larger than any number."""
    present = [error for error in errors if error is not None]
    return max(present, key=lambda error: (error != error, error), default=None)  # noqa: PLR0124
