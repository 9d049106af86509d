"""The smallest descriptions, axis by axis, of some variants that leave out all others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from harness.model import Value, Variant

Box = dict[str, tuple[Value, ...]]
"""Axis names with the values that are allowed there."""


def boxes(wanted: Sequence[Variant], others: Sequence[Variant]) -> list[Box]:
    """Boxes that together hold every one of ``wanted`` and none of ``others``; a single empty one if that does."""
    left, found = list(wanted), list[Box]()
    candidates = list(_candidates(wanted, others))
    while left:
        best = max(candidates, key=lambda box: sum(_holds(box, variant) for variant in left))
        left = [variant for variant in left if not _holds(best, variant)]
        found.append(best)
    return found


def _candidates(wanted: Sequence[Variant], others: Sequence[Variant]) -> Iterator[Box]:
    """One box where that can do, else those of the parts along the axis that leaves the fewest."""
    everybody = (*wanted, *others)
    full = {axis: _of(axis, wanted) for axis in wanted[0].axes if len(_of(axis, everybody)) > 1}
    if not _hold_any(full, others):
        yield _pruned(full, others)
        return
    axis = min((axis for axis in full if len(full[axis]) > 1), key=lambda axis: len(full[axis]))
    for value in full[axis]:
        yield from _candidates([variant for variant in wanted if variant.axes.get(axis) == value], others)


def _pruned(box: Box, others: Sequence[Variant]) -> Box:
    """``box`` without the axes that it can do without, those that say least about it first."""
    for axis in sorted(box, key=lambda axis: -len(box[axis])):
        rest = {name: values for name, values in box.items() if name != axis}
        if not _hold_any(rest, others):
            box = rest
    return box


def _hold_any(box: Box, variants: Iterable[Variant]) -> bool:
    return any(_holds(box, variant) for variant in variants)


def _holds(box: Box, variant: Variant) -> bool:
    return all(variant.axes.get(axis) in values for axis, values in box.items())


def _of(axis: str, variants: Iterable[Variant]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(variant.axes[axis] for variant in variants))
