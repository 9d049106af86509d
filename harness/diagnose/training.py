"""Where a person's program trains, and nothing but trains: where ``train()`` can go without reaching a validation."""

from __future__ import annotations

import ast

from harness.diagnose import patterns
from harness.diagnose.facts import Fact, Place
from harness.diagnose.handles import Handle, handles
from harness.diagnose.source import Fork, Spot, called_name, fork, source_of


def where_it_trains(fact: Fact) -> Handle | None:
    """The innermost function around the forward that nothing but the training calls, or the one that does both.

    None where the lines that are left to act on are also called by what has to stay in eval mode.
    """
    parting = patterns.parting_of(fact)
    found = list(handles(fact, inwards=False))
    if parting is None:
        return found[0] if found else None
    found = [one for one in found if one.spot.place not in parting.shared]
    alone = [one for one in found if one.spot.place == parting.right or not _shared(fact, one, parting)]
    return alone[0] if alone else None


def _shared(fact: Fact, handle: Handle, parting: Fork) -> bool:
    """Whether others come to the function of ``handle`` too, whichever of the functions on the way they call."""
    evaluated = _evaluated_in(fact)
    last = fact.entry + parting.right_deeper
    way = range(fact.chain.index(handle.spot.place), last)
    return any(_function(fact.chain[depth]) in evaluated or _called_elsewhere(fact, depth) for depth in way)


def _evaluated_in(fact: Fact) -> set[tuple[str, int]]:
    """The functions through which an evaluation was seen to come, from where its way and the training's part."""
    found: set[tuple[str, int]] = set()
    for chain in fact.seen.evaluation_chains:
        parting = fork(chain, patterns.entry_chain(fact))
        found.update(map(_function, chain[: parting.left_deeper if parting else len(chain)]))
    return found


def _function(place: Place) -> tuple[str, int]:
    return place.file, place.starts


def _called_elsewhere(fact: Fact, depth: int) -> bool:
    """Whether the source has another call of this function: perhaps an evaluation, which has to stay in eval mode."""
    name = fact.chain[depth].function.rpartition(".")[2]
    caller = Spot(fact.chain[depth + 1]).call if depth + 1 < len(fact.chain) else None
    files = dict.fromkeys(place.file for place in fact.chain if place.own)
    trees = [tree for file in files if (tree := source_of(file).tree) is not None]
    calls = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(called_name(call) == name for call in calls if call is not caller)
