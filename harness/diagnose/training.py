"""Where a person's program trains, and nothing but trains: where ``train()`` can go without reaching a validation."""

from __future__ import annotations

import ast

from harness.diagnose import patterns
from harness.diagnose.facts import Fact, Place
from harness.diagnose.handles import Handle, handles
from harness.diagnose.source import Fork, Function, Spot, called_name, fork, pauses, source_of


def where_it_trains(fact: Fact) -> Handle | None:
    """The innermost function around the forward that nothing but the training calls, or the one that does both.

    None where the lines that are left to act on are also called by what has to stay in eval mode.
    """
    parting = patterns.parting_of(fact)
    found = list(handles(fact, inwards=False))
    if parting is not None:
        found = [one for one in found if one.spot.place not in parting.shared]
    alone = [one for one in found if (parting and one.spot.place == parting.right) or not _shared(fact, one, parting)]
    return alone[0] if alone else None


def _shared(fact: Fact, handle: Handle, parting: Fork | None) -> bool:
    """Whether others come to the function of ``handle`` too, whichever of the functions on the way they call.

    Where nothing joins the training and the switch, as in two threads, the way is all of the training's.
    """
    evaluated = _evaluated_in(fact)
    last = fact.entry + parting.right_deeper if parting else len(fact.chain)
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
    function = Spot(fact.chain[depth]).function
    caller = Spot(fact.chain[depth + 1]).call if depth + 1 < len(fact.chain) else None
    files = dict.fromkeys(place.file for place in fact.chain if place.own)
    trees = [tree for file in files if (tree := source_of(file).tree) is not None]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    others = [call for call in calls if call is not caller and _may_call(call, fact.chain[depth], function)]
    # What goes on in a generator is called by whoever asks it for more; one call, anywhere, has made it.
    return len(others) > int(function is not None and pauses(function))


def _may_call(call: ast.Call, place: Place, function: Function | None) -> bool:
    """Whether ``call`` can be one of the function of ``place``: by its name, and by the arguments that it gives."""
    around, _, name = place.function.rpartition(".")
    if called_name(call) != name:
        return False
    if around.endswith("<locals>") and isinstance(call.func, ast.Attribute):
        return False  # a function in a function is nobody's attribute, whatever `optimizer.step` is called
    return function is None or any(_fits(call, function.args, bound) for bound in (False, bool(around)))


def _fits(call: ast.Call, takes: ast.arguments, bound: bool) -> bool:
    """Whether the arguments of ``call`` are such as the function takes; of a ``bound`` one all but the first."""
    named = {one.arg for one in call.keywords}
    if None in named or any(isinstance(one, ast.Starred) for one in call.args):
        return True
    known = [one.arg for one in (*takes.posonlyargs, *takes.args)]
    needed = known[: len(known) - len(takes.defaults)]
    known, needed, given = known[bound:], needed[bound:], len(call.args)
    by_name = [one.arg for one in takes.kwonlyargs]
    needed_by_name = [one for one, value in zip(by_name, takes.kw_defaults, strict=True) if value is None]
    if given > len(known) and takes.vararg is None:
        return False
    if named - {*known[given:], *by_name} and takes.kwarg is None:
        return False
    return named.issuperset([*needed[given:], *needed_by_name])
