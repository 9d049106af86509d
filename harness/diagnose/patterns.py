"""Names what the facts mean: which placement of ``harness.placements`` a person's program is."""

from __future__ import annotations

import ast

from harness.diagnose.facts import Chain, Fact
from harness.diagnose.source import Fork, Spot, fork, pauses, shares_loop

AFTER_EPOCH, BY_HELPER = "eval-after-epoch", "eval-by-helper"
REUSED, BEFORE_BACKWARD = "eval-output-reused", "train-before-backward"
REST_TRAIN, INNER_LOOP = "rnn-eval-rest-train", "inner-loop-in-eval"
THEN_USE, ALWAYS = "eval-then-use", "eval-always"
OFF_BACKWARD, NO_GRAD = "eval-cudnn-off-backward", "eval-no-grad"
NOT_RESTORED = "mode-not-restored"

_SILENT = {
    "no-graph": NO_GRAD,
    "train-in-forward": "train-in-forward",
    "frozen-dropout": "frozen-dropout-on",
    "rest-eval": "rnn-train-rest-eval",
}


def pattern_of(fact: Fact) -> str:
    """The name of what ``fact`` is a case of: a placement, or a silent form that is none."""
    if fact.what in _SILENT:
        return _SILENT[fact.what]
    return placement_of(fact) if fact.raises else NOT_RESTORED


def placement_of(fact: Fact) -> str:
    """The name of the placement that a gradient of a forward in eval mode is a case of."""
    seen = fact.seen
    if seen.cudnn_off_at_backward and fact.raises:
        return OFF_BACKWARD
    if seen.train_forward_since or _mixed(fact):
        return REUSED
    if seen.switched_after:
        return BEFORE_BACKWARD
    if _held_still(fact):
        return REST_TRAIN
    if seen.trained_here:
        return _left_in_eval(fact)
    return _never_trained_here(fact)


def _never_trained_here(fact: Fact) -> str:
    """The line has always run in eval mode, which is mostly what the person wants."""
    seen = fact.seen
    if seen.reaches_optimizer and not (seen.root_in_optimizer or seen.input_grad or seen.frozen):
        return REUSED  # an optimizer uses this backward, but not what it does here
    used = applied(fact)
    if seen.input_grad and used and (seen.frozen or seen.others_train):
        return REST_TRAIN
    if seen.rnn_in_optimizer and used and (_trained_from_elsewhere(fact) or (seen.evaluated and _forgotten(fact))):
        return _left_in_eval(fact)
    if any(_in_one_loop(fact, chain) for chain in seen.train_chains):
        return INNER_LOOP
    return THEN_USE if used and seen.optimizers else ALWAYS


def _held_still(fact: Fact) -> bool:
    """Whether the RNN, or a part around it, was put into eval mode on its own, and not just for a while."""
    seen = fact.seen
    rest = seen.root_training or seen.rest_training
    return rest and seen.switched_part == "part" and (seen.frozen or not seen.trained_here)


def _trained_from_elsewhere(fact: Fact) -> bool:
    """Whether the same step, called from another line, trained in train mode: a stage before, or a notebook's cell.

    A step is all from the RNN out to the function that applies the gradient. A loss function, or one that takes a
    gradient, is none: a training and a saliency may share it.
    """
    applying, meeting = _applied_at(fact), fork(fact.backward, entry_chain(fact))
    if applying is None or meeting is None:
        return False
    around = len(fact.backward) - max(applying, meeting.left_deeper)
    step = fact.chain[: len(fact.chain) - around + 1]
    return len(step) > fact.entry and any(chain[: len(step)] == step for chain in fact.seen.train_chains)


def entry_chain(fact: Fact) -> Chain:
    """The lines from the one that called the root module outwards."""
    return fact.chain[fact.entry :]


def parting_of(fact: Fact) -> Fork | None:
    """Where the switch to eval mode and the call of the root module part; None where nothing joins them."""
    return fork(fact.switch.chain, entry_chain(fact)) if fact.switch else None


def _mixed(fact: Fact) -> bool:
    """Whether the same function made a forward in train mode for the same backward."""
    if fact.seen.input_grad:
        return False
    mine = entry_chain(fact)[:1]
    functions = {(place.file, place.starts) for place in mine}
    return any((place.file, place.starts) in functions for chain in fact.seen.pending for place in chain)


def _left_in_eval(fact: Fact) -> str:
    """A validation after an epoch, or a helper between two steps: by the loops around both."""
    if fact.switch is None:
        return AFTER_EPOCH
    parting = parting_of(fact)
    if parting is None:
        again = not fact.seen.trained_here and _trained_from_elsewhere(fact)
        return AFTER_EPOCH if again else BY_HELPER
    switched, stepped = Spot(parting.left).loops, Spot(parting.right).loops
    outside = any(loop not in switched for loop in stepped[-1:]) or _loops_deeper(fact, parting.right_deeper)
    if outside or any(map(_of_epochs, stepped[-1:])):
        return AFTER_EPOCH
    return BY_HELPER if parting.left_deeper or len(stepped) > 1 else AFTER_EPOCH


def _loops_deeper(fact: Fact, deeper: int) -> bool:
    """Whether a loop over steps runs in what the function that both have in common calls, and from end to end.

    One that yields after each step is driven by that function, which may do something else between two of them.
    """
    inside = entry_chain(fact)[:deeper]
    steps = {(place.file, place.starts): Spot(place).loops for place in fact.backward}
    loops = [(place, loop) for place in inside for loop in Spot(place).loops if not pauses(loop)]
    return any(loop in steps.get((place.file, place.starts), []) for place, loop in loops)


def _of_epochs(loop: ast.AST) -> bool:
    head = [loop.target, loop.iter] if isinstance(loop, ast.For | ast.AsyncFor) else []
    return any("epoch" in ast.unparse(node).lower() for node in head)


def _forgotten(fact: Fact) -> bool:
    """Whether the latest ``eval()`` belongs to something that is over, not to what is going on."""
    call = fact.eval_call or (fact.switch.chain if fact.switch else ())
    parting = fork(call, entry_chain(fact))
    return parting is None or parting.left_deeper > 0 or not fact.seen.trained


def came_in_eval(fact: Fact) -> bool:
    """Whether the model came in eval mode, from a function that made it or a file, and nobody asked for that since."""
    if fact.switch is None or fact.seen.trained:
        return False
    if fact.switch.how == "copied":
        call = next((Spot(place).call for place in fact.switch.chain if place.own), None)
        return call is not None and (_loads(call) or (_copies(call) and not _in_one_loop(fact, fact.switch.chain)))
    parting = fork(fact.eval_call or fact.switch.chain, entry_chain(fact))
    return parting is not None and parting.left_deeper > 0


def _loads(call: ast.Call) -> bool:
    return "load" in ast.unparse(call.func).lower()


def _copies(call: ast.Call) -> bool:
    """A copy made once is another network, a student say; one made for each round is adapted to what comes there."""
    return "copy" in ast.unparse(call.func).lower()


def _in_one_loop(fact: Fact, trained: Chain) -> bool:
    parting = fork(entry_chain(fact), trained)
    return parting is not None and shares_loop(parting)


def applied(fact: Fact) -> bool:
    """Whether an optimizer's ``step()`` follows the backward, before another backward does: read from the source.

    Where there is no source, as in a notebook, a gradient that reaches a weight of an optimizer is taken for applied.
    """
    return _applied_at(fact) is not None


def _applied_at(fact: Fact) -> int | None:
    """Which line of the backward's call stack a ``step()`` follows, counted from the inside."""
    own = [(depth, Spot(place)) for depth, place in enumerate(fact.backward) if place.own]
    if own and not own[0][1].known:
        return own[0][0] if fact.seen.reaches_optimizer else None
    for depth, spot in own:
        for statement in reversed(spot.statements):
            block = spot.block(statement)
            for later in block[block.index(statement) + 1 :]:
                for call in _calls(later):
                    if _is_step(call):
                        return depth
                    if _is_backward(call):
                        return None
    return None


def _calls(statement: ast.stmt) -> list[ast.Call]:
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return sorted(calls, key=lambda call: (call.lineno, call.col_offset))


def _is_step(call: ast.Call) -> bool:
    named = isinstance(call.func, ast.Attribute) and call.func.attr in ("step", "optimizer_step")
    return named and "sched" not in ast.unparse(call).lower()


def _is_backward(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in ("backward", "grad")
