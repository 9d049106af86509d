"""How a person names one variant: by its key, by the beginning of one, or by axes as labels spell them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.errors import UsageError
from harness.matrix.axes import make_variant, nearest, shown
from harness.matrix.expand import expand, parse_override
from harness.matrix.shelf import names, read_matrix
from harness.model import Settings, Variant

_KEY = re.compile(r"[0-9a-fA-F]{1,12}")


class UnknownVariantError(UsageError):
    """No variant has that key."""


def is_key(text: str) -> bool:
    """Whether ``text`` can be a key or the beginning of one."""
    return _KEY.fullmatch(text) is not None


def with_key(variants: Iterable[Variant], text: str, where: str) -> Variant:
    """The one of ``variants`` whose key begins with ``text``; ``where`` says in words which variants these are.

    Raises:
        UnknownVariantError: there is none; the advice names the nearest.
        UsageError: there are several.
    """
    by_key = {variant.key: variant for variant in variants}
    found = [key for key in by_key if key.startswith(text.lower())]
    if len(found) == 1:
        return by_key[found[0]]
    if found:
        some = ", ".join(found[:5]) + (" ..." if len(found) > 5 else "")
        raise UsageError(f"{len(found)} keys in {where} begin with {text!r}", f"Write more of it: {some}.")
    advice = nearest(text.lower(), by_key) if len(by_key) <= 5 else _nearest_of_many(text.lower(), by_key)
    raise UnknownVariantError(f"there is no variant with the key {shown(text)} in {where}", advice)


def _nearest_of_many(text: str, keys: Iterable[str]) -> str:
    """The advice for a key among many: the nearest, or how keys are found."""
    alike = max(keys, key=lambda key: _common_beginning(text, key))
    advice = f"Did you mean {alike!r}? " if _common_beginning(text, alike) >= 3 else ""
    return f"{advice}`harness plan` and `harness report` list keys."


def _common_beginning(one: str, other: str) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def from_label(text: str) -> Variant:
    """The variant that a label describes, such as ``cell=gru,placement=eval-always``; other axes keep their defaults.

    Raises:
        UsageError: an unknown axis or value, or an axis without exactly one value.
    """
    axes = {}
    for part in text.split(","):
        name, values = parse_override(part.strip())
        if len(values) != 1 or name in axes:
            raise UsageError(f"a label gives each axis one value, and {name!r} got several", "Keep one.")
        axes[name] = values[0]
    return make_variant(axes)


def in_matrices(text: str, besides: str = "") -> tuple[str, Settings, Variant]:
    """The variant with the key ``text`` in any matrix that can be named: the matrix, its settings, the variant.

    ``besides`` says in words where it was looked for before.

    Raises:
        UsageError: no matrix has it, several variants begin like it, or a matrix file is malformed.
    """
    documents = {name: read_matrix(name)[1] for name in names()}
    variants = {name: expand(document).variants for name, document in documents.items()}
    everything = (variant for planned in variants.values() for variant in planned)
    variant = with_key(everything, text, f"{besides}the matrices {', '.join(variants)}")
    name = next(name for name, planned in variants.items() if variant in planned)
    return name, documents[name].settings.settings(), variant
