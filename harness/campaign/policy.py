"""Which attempts a resume makes: those without a record, and those whose outcome is worth another try. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from harness.campaign.orders import orders_of
from harness.errors import UsageError
from harness.model import Device, Order, Outcome, Plan, Record
from harness.results import collect

RETRIED = (Outcome.CRASH, Outcome.TIMEOUT, Outcome.OOM, Outcome.NOT_RUN)
"""What may be the machine's doing rather than the variant's: tried again unless the person says otherwise."""

FAILED = tuple(outcome for outcome in Outcome if outcome not in (Outcome.OK, Outcome.SKIPPED))
"""Every outcome that ``--retry`` can name. An ``ok`` is no failure, and what was skipped was not to be run."""


@dataclass(frozen=True, slots=True)
class Policy:
    """``retry``: attempts that ended so are made again; ``missing``: those without a record are made."""

    retry: frozenset[Outcome] = frozenset(RETRIED)
    missing: bool = True

    @classmethod
    def parse(cls, text: str | None, *, only_failed: bool = False) -> Policy:
        """The policy that ``--retry TEXT`` and ``--only-failed`` ask for; None is the default.

        Raises:
            UsageError: ``text`` names something that is no failed outcome, or nothing is left to be done.
        """
        retry = frozenset(RETRIED) if text is None else frozenset(_outcomes(text))
        if only_failed and not retry:
            raise UsageError("--only-failed with --retry none leaves nothing to be run", "Leave one of them out.")
        return cls(retry, missing=not only_failed)


def _outcomes(text: str) -> Iterator[Outcome]:
    words = [word.strip().lower() for word in text.split(",")]
    if words in (["all"], ["none"]):
        yield from FAILED if words == ["all"] else ()
        return
    known = {outcome.value: outcome for outcome in FAILED}
    for word in words:
        if word not in known:
            raise UsageError(
                f"--retry takes outcomes, and {word[:40]!r} is none that can be tried again",
                f"Name some of {', '.join(known)}, joined by commas; or all, or none.",
            )
        yield known[word]


@dataclass(frozen=True, slots=True)
class Todo:
    """An attempt that is to be made; ``before`` is how the last one at it ended, None where none was made."""

    order: Order
    before: Outcome | None = None


def remaining(plan: Plan, records: Iterable[Record], policy: Policy, sitting: int = 1) -> list[Todo]:
    """What is left to be done, device by device, in the order of the plan. A repeated attempt counts one up."""
    return list(_remaining(plan, records, policy, sitting))


def _remaining(plan: Plan, records: Iterable[Record], policy: Policy, sitting: int) -> Iterator[Todo]:
    latest: dict[tuple[str, Device, int], Record] = {
        (result.key, result.device, record.replicate): record
        for result in collect(plan, records).results
        for record in result.records
    }
    for device in plan.devices:
        for planned in orders_of(plan, device):
            record = latest.get((planned.variant.key, device, planned.replicate))
            order = replace(planned, sitting=sitting)
            if record is None and policy.missing:
                yield Todo(order)
            elif record is not None and record.outcome in policy.retry:
                yield Todo(replace(order, attempt=record.attempt + 1), record.outcome)
