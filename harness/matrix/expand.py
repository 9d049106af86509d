"""A matrix document -> its variants, what was excluded and why, and the selection of a person."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from harness.errors import NothingSelectedError, UsageError
from harness.matrix.axes import AXES, full_label, make_variant, shown, spec_of
from harness.matrix.document import MatrixDocument
from harness.matrix.rules import impossible
from harness.model import Exclusion, Value, Variant

LARGEST = 100_000
"""More variants than this is a slip of the keyboard: at 30 ms each they would take the better part of an hour."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """The variants of a matrix, in order and without repeats, and what was left out."""

    variants: tuple[Variant, ...]
    exclusions: tuple[Exclusion, ...]


def parse_override(text: str) -> tuple[str, tuple[Value, ...]]:
    """``axis=v1,v2`` -> the axis and its values; ``axis=all`` takes every value of a choice axis.

    Raises:
        UsageError: no ``=``, no value, an unknown axis or value.
    """
    name, equals, values = text.partition("=")
    if not equals or not values.strip():
        raise UsageError(f"{text!r} is not an axis with values", "Write it as axis=v1,v2, such as -a cell=lstm,gru.")
    spec = spec_of(name)
    if values.strip() == "all" and spec.choices:
        return spec.name, spec.choices
    return spec.name, tuple(dict.fromkeys(spec.parse(value) for value in values.split(",")))


def expand(document: MatrixDocument, overrides: Sequence[str] = ()) -> Expansion:
    """Every variant that ``document`` describes.

    An override sets its axis everywhere, in ``axes`` and in every ``include`` block. A block leaves the axes that it
    does not name at their defaults.

    Raises:
        UsageError: a bad override, or more than ``LARGEST`` variants.
    """
    changes = _changes(overrides)
    blocks = [{**block, **changes} for block in (document.axes, *document.include)]
    _refuse_too_many(blocks)
    variants: dict[str, Variant] = {}
    exclusions: dict[str, Exclusion] = {}
    for axes in blocks:
        for variant in _product(axes):
            reason = impossible(variant) or _excluded_by(document, variant)
            if reason:
                exclusions[variant.key] = Exclusion(variant.label, reason)
            else:
                variants.setdefault(variant.key, variant)
    return Expansion(tuple(variants.values()), tuple(exclusions.values()))


def select(expansion: Expansion, globs: Sequence[str]) -> Expansion:
    """The part of ``expansion`` whose label matches any of ``globs``; a glob without wildcards matches anywhere.

    A glob is tried on the label and on the full label, which also names the axes at their defaults.

    Raises:
        NothingSelectedError: no variant matches; the advice shows a label.
        UsageError: a glob is empty, and would match everything.
    """
    if "" in globs:
        raise UsageError("an empty pattern names no variant", "Write a part of a label, such as cell=gru.")
    if not globs:
        if not expansion.variants:
            raise NothingSelectedError("the matrix has no variant left", _why_empty(expansion))
        return expansion
    patterns = [glob if any(c in glob for c in "*?[") else f"*{glob}*" for glob in globs]
    chosen = tuple(v for v in expansion.variants if _matches(v, patterns))
    if not chosen:
        example = f"Labels look like {expansion.variants[0].label!r}." if expansion.variants else _why_empty(expansion)
        raise NothingSelectedError(f"no variant matches {' or '.join(map(shown, globs))}", example)
    return replace(expansion, variants=chosen)


def _matches(variant: Variant, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(label, p) for p in patterns for label in (variant.label, full_label(variant)))


def _why_empty(expansion: Expansion) -> str:
    reasons = {exclusion.reason for exclusion in expansion.exclusions}
    return f"All were excluded: {'; '.join(sorted(reasons))}." if reasons else "Give its axes at least one value."


def _product(axes: Mapping[str, tuple[Value, ...]]) -> Iterator[Variant]:
    names = [name for name in AXES if name in axes]
    for values in itertools.product(*(axes[name] for name in names)):
        yield make_variant(dict(zip(names, values, strict=True)))


def _changes(overrides: Sequence[str]) -> dict[str, tuple[Value, ...]]:
    changes: dict[str, tuple[Value, ...]] = {}
    for name, values in map(parse_override, overrides):
        if name in changes:
            raise UsageError(f"the axis {name!r} is given twice", f"Write its values in one: -a {name}=v1,v2.")
        changes[name] = values
    return changes


def _refuse_too_many(blocks: Sequence[Mapping[str, tuple[Value, ...]]]) -> None:
    size = sum(math.prod(map(len, axes.values())) for axes in blocks)
    if size > LARGEST:
        raise UsageError(f"the matrix has {size:,} variants, more than {LARGEST:,}", "Narrow an axis with -a.")


def _excluded_by(document: MatrixDocument, variant: Variant) -> str | None:
    for exclude in document.exclude:
        if all(variant[name] in values for name, values in exclude.match.items()):
            return exclude.reason
    return None
