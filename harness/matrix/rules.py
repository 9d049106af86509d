"""Combinations that cannot exist, with the reason: excluded from every matrix and counted in its report."""

from __future__ import annotations

from collections.abc import Callable

from harness.model import Variant

Rule = tuple[Callable[[Variant], bool], str]

RULES: tuple[Rule, ...] = (
    (
        lambda v: v["proj-size"] != 0 and v["cell"] != "lstm",
        "a projection (proj_size) exists for the LSTM only",
    ),
    (
        lambda v: int(v["proj-size"]) >= int(v["hidden-size"]),
        "proj_size has to be smaller than hidden_size",
    ),
    (
        lambda v: v["dropout"] != 0 and v["layers"] == 1,
        "an RNN's dropout acts between its layers, and there is only one",
    ),
    (
        lambda v: v["autocast"] != "off" and v["dtype"] != "float32",
        "autocast is for float32 networks: with other weights the cast would come from two places",
    ),
    (
        lambda v: v["packed"] is True and v["batch"] == 0,
        "a packed sequence needs at least one sequence",
    ),
)


def impossible(variant: Variant) -> str | None:
    """Why ``variant`` cannot exist, or None."""
    return next((reason for applies, reason in RULES if applies(variant)), None)
