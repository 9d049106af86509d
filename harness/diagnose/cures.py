"""The smallest change that cures a finding, with the place to put it: as a sentence and as edits."""

from __future__ import annotations

import ast
import itertools

from harness.diagnose import patterns
from harness.diagnose.because import where
from harness.diagnose.edits import Edit, EditAction
from harness.diagnose.facts import Fact
from harness.diagnose.findings import Cure
from harness.diagnose.handles import Handle, handle_of, import_edits, own_place
from harness.diagnose.restoring import restore_mode
from harness.diagnose.source import Fork, Loop, Spot, assigns, called_name, first_line, pauses
from harness.diagnose.training import where_it_trains

_WANT_TRAIN = (patterns.AFTER_EPOCH, patterns.BY_HELPER, patterns.BEFORE_BACKWARD)
_COMPOUND = (Loop, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.Match, ast.FunctionDef, ast.ClassDef)
_GRAPHS_OFF = ("no_grad", "inference_mode", "set_grad_enabled")
_EVAL_GRADIENTS = "harness.eval_gradients({})"


def cure_of(fact: Fact, pattern: str, *, helper: bool = True) -> Cure:
    """The cure of a fact whose pattern is known; without ``helper``, one that leaves helpers as they are."""
    if fact.what in _SILENT:
        return _SILENT[fact.what](fact)
    if pattern == patterns.NOT_RESTORED:
        pattern = patterns.placement_of(fact)
    restored = restore_mode(fact) if helper and pattern == patterns.BY_HELPER else None
    if restored is not None:
        return restored
    if pattern in _WANT_TRAIN or (pattern == patterns.THEN_USE and patterns.came_in_eval(fact)):
        return _train_first(fact)
    if pattern == patterns.OFF_BACKWARD:
        return _cudnn_off(fact)
    return _no_grad(fact) if pattern == patterns.REUSED else _eval_gradients(fact)


def _cudnn_off(fact: Fact) -> Cure:
    return _around(
        fact,
        "cudnn-off-forward",
        "torch.backends.cudnn.flags(enabled=False)",
        "turn cuDNN off around the forward; around the backward it does nothing",
        needs="torch",
    )


def _eval_gradients(fact: Fact) -> Cure:
    return _around(
        fact,
        "eval-gradients",
        _EVAL_GRADIENTS,
        "run this forward where a gradient in eval mode is allowed: outputs stay those of eval mode, no flag changes",
        needs="harness",
    )


def _around(fact: Fact, name: str, context: str, purpose: str, *, needs: str) -> Cure:
    """A ``with`` around the statement of the forward."""
    handle = handle_of(fact)
    if handle is None:
        return Cure(name, f"{purpose}: `with {context.format('model')}:`.")
    header = f"with {context.format(handle.name)}:"
    first, last, _ = handle.spot.whole_lines(handle.spot.statements[-1])
    edits = (*import_edits(handle, needs), Edit(handle.file, first, EditAction.WRAP, header, end_line=last))
    return Cure(name, f"{purpose}: `{header}` around {where(handle.spot.place)}.", edits)


def _train_first(fact: Fact) -> Cure:
    handle = where_it_trains(fact)
    late = [call for call in fact.train_calls if call.when == "after-forward" and call.holds == "rnn"]
    moved = f" (the train() at {where(own_place(late[-1].chain))} is too late)" if late else ""
    if handle is None:
        return Cure("train-first", f"call train() on the model before this forward{moved}.")
    target, place = _top(fact, handle)
    code, line = f"{handle.name}.train()", handle.spot.whole_lines(target)[0]
    undone = _eval_right_before(handle, target)
    if undone is not None:
        first, last = undone
        edit = Edit(handle.file, first, EditAction.REPLACE, code, end_line=last)
        return Cure("train-first", f"`{code}` in place of the eval() at {handle.file}:{first}{moved}.", (edit,))
    if _switches_in_the_same_lines(fact, handle, target):
        within = _within_line(handle.spot, target, f"{code}; ")
        return Cure(
            "train-first", f"`{code}` right before the forward in {handle.file}:{target.lineno}{moved}.", within
        )
    edit = Edit(handle.file, line, EditAction.INSERT_BEFORE, code)
    return Cure("train-first", f"`{code}` {place} {handle.file}:{line}{moved}.", (edit,))


def _switches_in_the_same_lines(fact: Fact, handle: Handle, target: ast.stmt) -> bool:
    """Whether a line before that of ``target`` would come before the switch to eval mode, which would undo it."""
    parting = patterns.parting_of(fact)
    if parting is None or parting.right != handle.spot.place or target in Spot(parting.left).statements:
        return False
    first, last, _ = handle.spot.whole_lines(target)
    return first <= parting.left.line <= last


def _within_line(spot: Spot, statement: ast.stmt, text: str, *, instead: bool = False) -> tuple[Edit, ...]:
    """``text`` right before ``statement``, or ``instead`` of it, in its own line; none where it has several."""
    if isinstance(statement, _COMPOUND) or statement.end_lineno != statement.lineno:
        return ()
    line = spot.source.lines[statement.lineno - 1].encode()
    first, last = statement.col_offset, statement.end_col_offset if instead else statement.col_offset
    changed = (line[:first] + text.encode() + line[last:]).decode().lstrip()
    return (Edit(spot.place.file, statement.lineno, EditAction.REPLACE, changed, end_line=statement.lineno),)


def _eval_right_before(handle: Handle, target: ast.stmt) -> tuple[int, int] | None:
    """The lines of a statement right before ``target`` that only switches the model to eval mode.

    ``train()`` behind it would undo it at once, and read as if both were meant.
    """
    spot = handle.spot
    block = spot.block(target)
    before = block[: block.index(target)][-1:]
    switches = (f"{handle.name}.eval()", f"{handle.name}.train(False)", f"{handle.name}.train(mode=False)")
    if not before or ast.unparse(before[0]) not in switches:
        return None
    first, last, shared = spot.whole_lines(before[0])
    return (first, last) if shared == before and last < spot.whole_lines(target)[0] else None


def _top(fact: Fact, handle: Handle) -> tuple[ast.stmt, str]:
    """The statement before which ``train()`` goes: the outermost loop around the forward where nobody switches back."""
    spot = handle.spot
    parting = patterns.parting_of(fact)
    here = parting is not None and (parting.right.file, parting.right.starts) == (spot.place.file, spot.place.starts)
    switch = Spot(parting.left) if parting is not None and here else None
    free = _free_loops(fact, handle, parting, switch)
    target = _earlier(spot, switch, free[0] if free else _step(spot))
    where_it_goes = "before the loop over the batches, at" if free else "before the forward, at"
    return target, where_it_goes


def _free_loops(fact: Fact, handle: Handle, parting: Fork | None, switch: Spot | None) -> list[Loop]:
    """The loops around the forward, outermost first, in which nobody switches to eval mode."""
    if parting is None or fact.switch is None:
        return []  # in another thread, say: the switch may come at any time
    helpers = {place.function.rpartition(".")[2] for place in fact.switch.chain[: parting.left_deeper]}
    loops = [loop for loop in handle.spot.loops if switch is None or loop not in switch.loops]
    return [loop for loop in loops if not assigns(loop, handle.name) and not _rules_out(loop, helpers)]


def _step(spot: Spot) -> ast.stmt:
    """The statement of the forward, or the one around it that stands in the body of its loop or function."""
    for statement in spot.statements:
        loops, around = spot.loops[-1:], [one for one in spot.statements if isinstance(one, Loop)]
        if any(statement in loop.body for loop in loops) or not around:
            return statement
    return spot.statements[-1]


def _rules_out(loop: Loop, helpers: set[str]) -> bool:
    """Whether the mode may be switched in ``loop``: a ``train()`` in front of it would not outlive the first round."""
    if pauses(loop):
        return True
    calls = [node for node in ast.walk(loop) if isinstance(node, ast.Call)]
    evals = [call for call in calls if isinstance(call.func, ast.Attribute) and not call.args]
    return any(called_name(call) == "eval" for call in evals) or any(called_name(call) in helpers for call in calls)


def _earlier(spot: Spot, switch: Spot | None, target: ast.stmt) -> ast.stmt:
    """Where a condition in front of the target switches to eval mode, ``train()`` goes in front of the condition."""
    block = spot.block(target)
    before = block[: block.index(target)]
    conditions = [one for one in switch.statements if one in before and isinstance(one, ast.If)] if switch else []
    return conditions[0] if conditions else target


def _no_grad(fact: Fact) -> Cure:
    purpose = "nothing is to learn from this forward, so let it leave no graph"
    handle = handle_of(fact)
    entry = Spot(fact.chain[fact.entry]) if fact.entry < len(fact.chain) else None
    if entry is not None and entry.place.own and entry.beside_def:
        # Around the call of its function there may be more, from which something is to learn.
        behind = _detached(entry)
        return Cure("detach", f"{purpose}: `.detach()` behind it at {where(entry.place)}.", (behind,) if behind else ())
    if handle is None:
        return Cure("no-grad", f"{purpose}: `with torch.no_grad():` around it, or detach() its output.")
    detached = None if _stands_alone(handle.spot) else _detached(handle.spot)
    if detached is not None:
        return Cure("detach", f"{purpose}: `.detach()` behind it at {where(handle.spot.place)}.", (detached,))
    return _around(fact, "no-grad", "torch.no_grad()", purpose, needs="torch")


def _stands_alone(spot: Spot) -> bool:
    """Whether the forward is all that its statement computes."""
    value = getattr(spot.statements[-1], "value", None)
    while isinstance(value, ast.Subscript | ast.Attribute) or (
        isinstance(value, ast.Call) and value is not spot.call and isinstance(value.func, ast.Attribute)
    ):
        value = value.func if isinstance(value, ast.Call) else value.value
    return value is spot.call and spot.call is not None


def _detached(spot: Spot) -> Edit | None:
    """``.detach()`` behind the forward's output, or behind the part of it that is taken at once."""
    if spot.call is None:
        return None
    node: ast.expr = spot.call
    for outer in reversed(spot.path[:-1]):
        if not (isinstance(outer, ast.Subscript) and outer.value is node):
            break
        node = outer
    line, column = node.end_lineno or node.lineno, node.end_col_offset or 0
    text = spot.source.lines[line - 1].encode()
    changed = (text[:column] + b".detach()" + text[column:]).decode()
    return Edit(spot.place.file, line, EditAction.REPLACE, changed.lstrip(), end_line=line)


def _enable_grad(fact: Fact) -> Cure:
    purpose = "record a graph for this forward"
    if fact.seen.inference:
        return Cure("enable-grad", "run this forward outside inference_mode(): it leaves no graph for the backward.")
    handle = handle_of(fact)
    name = handle.name if handle else "model"
    in_eval = fact.switch is not None or not fact.seen.root_training
    context = f"torch.enable_grad(), {_EVAL_GRADIENTS.format(name)}" if in_eval else "torch.enable_grad()"
    inside = _turned_off_inside(fact, handle) if handle else None
    if inside is not None:
        return Cure("enable-grad", f"{purpose}, within {inside}, which turns graphs off: `with {context}:`.")
    cure = _around(fact, "enable-grad", context, purpose, needs="torch")
    if handle is None or not in_eval:
        return cure
    return Cure(cure.id, cure.sentence, (*import_edits(handle, "harness"), *cure.edits))


def _turned_off_inside(fact: Fact, handle: Handle) -> str | None:
    """The function that turns graphs off, further in than ``handle``, where nothing around its call undoes that."""
    way = itertools.takewhile(lambda place: place != handle.spot.place, fact.chain[fact.entry :])
    functions = [function for place in way if (function := Spot(place).function) is not None]
    off = (one.name for one in functions if any(word in ast.unparse(one) for word in _GRAPHS_OFF))
    return next(off, None)


def _remove_train(fact: Fact) -> Cure:
    place = own_place(fact.switch.chain) if fact.switch else None
    purpose = "take train() out of forward(): it undoes every eval() that the program calls"
    if place is None or not Spot(place).known:
        return Cure("remove-train", f"{purpose}.")
    spot = Spot(place)
    statement = spot.statements[-1]
    first, last, shared = spot.whole_lines(statement)
    alone = shared == [statement] and first == first_line(statement)
    edits: tuple[Edit, ...] = (
        (Edit(place.file, first, EditAction.REPLACE, "pass", end_line=last),)
        if alone
        else _within_line(spot, statement, "pass", instead=True)
    )
    sentence = f"{purpose}, at {where(place)}"
    if fact.seen.changed:
        instead = _train_first(fact) if fact.seen.trained_here else _eval_gradients(fact)
        edits += instead.edits
        sentence += f"; since it is what allowed a backward here, also {instead.sentence.rstrip('.')}"
    return Cure("remove-train", f"{sentence}.", edits)


def _dropout_zero(fact: Fact) -> Cure:
    purpose = "turn the RNN's own dropout off; train() has turned it on, and Dropout modules in eval() do not touch it"
    for place in fact.chain:
        name = place.names.get("rnn")
        spot = Spot(place)
        if place.own and name and spot.statements and not (spot.later or spot.beside_def):
            code = f"{name}.dropout = 0.0"
            line = spot.whole_lines(spot.statements[-1])[0]
            edit = Edit(place.file, line, EditAction.INSERT_BEFORE, code)
            return Cure("dropout-zero", f"{purpose}: `{code}` before {place.file}:{line}.", (edit,))
    return Cure("dropout-zero", f"{purpose}: set its `dropout` to 0.0.")


_SILENT = {
    "no-graph": _enable_grad,
    "train-in-forward": _remove_train,
    "frozen-dropout": _dropout_zero,
    "rest-eval": _dropout_zero,
}
