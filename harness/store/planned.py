"""Is this the plan of a run? What JSON and its types cannot say: it plans something, and its names are names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.errors import JournalError, UsageError
from harness.model import Plan
from harness.quoting import one_line
from harness.store.layout import checked_run_id

_AXIS = re.compile(r"[A-Za-z][\w.-]*", re.ASCII)


def planning(plan: Plan) -> Plan:
    """``plan``, if a harness can have written it.

    Its run, axes and labels are names that the harness gave itself; they are printed, used as paths and pasted into a
    shell. A plan that came from elsewhere must not lead out of the store with them or steer a terminal.

    Raises:
        JournalError: it plans nothing, against which every check would hold, or a name in it is none.
    """
    if not plan.variants or not plan.devices:
        raise JournalError(f"not a plan of a run: it has no {'devices' if plan.variants else 'variants'}")
    problem = next(_strange(plan), None)
    if problem is not None:
        raise JournalError(f"not a plan of a run: {problem}")
    return plan


def _strange(plan: Plan) -> Iterator[str]:
    try:
        checked_run_id(plan.run)
    except UsageError as error:
        yield str(error)
    names = {name for variant in plan.variants for name in variant.axes}
    yield from (f"{_shown(name)} is no axis" for name in names if not _AXIS.fullmatch(name))
    values = {value for variant in plan.variants for value in variant.axes.values() if isinstance(value, str)}
    for text in (plan.created, *values, *(variant.label for variant in plan.variants)):
        if not text.isprintable():
            yield f"{_shown(text)} cannot be printed"


def _shown(text: str) -> str:
    return repr(one_line(text, 60))
