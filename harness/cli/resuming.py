"""The options of a resume, and what they come to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.campaign import Resumption

RESUME = click.option(
    "--resume",
    "resumed",
    is_flag=False,
    flag_value="latest",
    metavar="[RUN]",
    help="Go on with RUN, or with the latest unfinished run of a matrix: make the attempts that have no record, and "
    "those that --retry names.",
)
RETRY = click.option(
    "--retry",
    metavar="OUTCOMES",
    help="With --resume: make attempts again whose latest record has one of these outcomes, joined by commas; "
    "all: whatever did not end ok, the backward error included; none: only what is missing. "
    "[default: crash,timeout,oom,not-run]",
)
ONLY_FAILED = click.option(
    "--only-failed",
    is_flag=True,
    help="With --resume: make only attempts again that --retry names, and leave those without a record out.",
)

_FROM_THE_PLAN = {"name": "NAME", "overrides": "-a", "globs": "-k", "device": "--device", "replicates": "--replicates"}
"""What a resume takes from the plan of its run."""

_ONLY_WITH_RESUME = {"retry": "--retry", "only_failed": "--only-failed"}


def resumption(options: dict[str, Any]) -> Resumption | None:
    """What ``--resume`` asks for; None where it was not given.

    Raises:
        UsageError: the options contradict each other.
    """
    if options["resumed"] is None:
        for name in _given(_ONLY_WITH_RESUME):
            raise UsageError(f"{name} says what a resume does", "Add --resume, or leave it out.")
        return None
    given = list(_given(_FROM_THE_PLAN))
    if given:
        raise UsageError(
            f"a resume goes by the plan of its run, which says already what {', '.join(given)} would say",
            "Write `harness run matrix --resume [RUN]`, or leave out --resume to start a new run.",
        )
    from harness.campaign import Policy, Resumption

    return Resumption(options["resumed"], Policy.parse(options["retry"], only_failed=options["only_failed"]))


def _given(names: dict[str, str]) -> list[str]:
    """How a person spells those parameters that are on the command line."""
    source = click.get_current_context().get_parameter_source
    return [spelt for name, spelt in names.items() if source(name) is ParameterSource.COMMANDLINE]
