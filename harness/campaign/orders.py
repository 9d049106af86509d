"""A plan -> the attempts that it asks for, in the order in which they are to be started."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from typing import Protocol

from harness.model import Device, Order, Plan, Variant


class OrderMaker(Protocol):
    """What has to be done for a plan on one device."""

    def __call__(self, plan: Plan, device: Device) -> Iterator[Order]:
        """The orders, in the order in which they are to be started."""
        ...


def orders_of(plan: Plan, device: Device) -> Iterator[Order]:
    """One order per variant and replicate. Replicates are the outer loop, so that a drift hits all variants alike.

    Where attempts are timed, each replicate has the variants in an order of its own: the plan's seed gives it, so it
    can be told from the plan alone.
    """
    for replicate in range(plan.replicates_on(device)):
        variants = plan.variants
        if device.computes:
            variants = tuple(sorted(variants, key=partial(_draw, plan.settings.seed, replicate)))
        for variant in variants:
            yield Order(plan.run, variant, device, plan.settings, replicate)


def _draw(seed: int, replicate: int, variant: Variant) -> bytes:
    """A lot that is the same in every version of Python, and does not depend on what else is planned."""
    return hashlib.sha256(f"{seed}/{replicate}/{variant.key}".encode()).digest()
