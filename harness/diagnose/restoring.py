"""The cure of a helper that leaves eval mode on: it puts back the mode that it found."""

from __future__ import annotations

import ast

from harness.diagnose import patterns
from harness.diagnose.edits import Edit, EditAction, step_of
from harness.diagnose.facts import Fact, Place
from harness.diagnose.findings import Cure
from harness.diagnose.handles import own_place, plain
from harness.diagnose.source import Spot, assigns, first_line

_NOTED = "was_training"


def restore_mode(fact: Fact) -> Cure | None:
    """The cure as a change of the helper; None where its lines do not allow it, or where it has not returned."""
    place = _helpers_line(fact)
    if place is None:
        return None
    spot = Spot(place)
    if not spot.statements or spot.call is None or not isinstance(spot.call.func, ast.Attribute):
        return None
    statement, receiver = spot.statements[-1], spot.call.func.value
    rest = _behind(spot, statement)
    if not rest or not plain(receiver) or _keeps_it_on_purpose(spot, rest, ast.unparse(receiver)):
        return None
    first, _, together = spot.whole_lines(statement)
    if together != [statement]:
        return None
    return _cure(place, ast.unparse(receiver), first, rest, step_of(spot.source.lines[first - 1]))


def _helpers_line(fact: Fact) -> Place | None:
    if fact.switch is None or fact.switch.how == "copied":
        return None
    parting = patterns.parting_of(fact)
    # Without a common function the two ran in different threads, or the forward was called back by PyTorch.
    returned = bool(parting.left_deeper) if parting else not patterns.entry_chain(fact)
    return own_place(fact.switch.chain) if returned else None


def _behind(spot: Spot, statement: ast.stmt) -> list[ast.stmt]:
    """What the helper does behind the switch, in the same block."""
    if spot.function is None or not isinstance(statement, ast.Expr):
        return []
    block = spot.block(statement)
    return block[block.index(statement) + 1 :]


def _keeps_it_on_purpose(spot: Spot, rest: list[ast.stmt], receiver: str) -> bool:
    """Whether what follows does not need eval mode, so that leaving it on is all that the function is for.

    Nor is it a helper where the mode is switched module by module, or where the function goes on later.
    """
    function = spot.function
    if function is None or (function.name.startswith("__") and function.name != "__call__"):
        return True
    if any(isinstance(node, ast.Yield | ast.YieldFrom | ast.Await) for node in ast.walk(function)):
        return True
    if any(assigns(loop, receiver) for loop in spot.loops):
        return True
    return not any(isinstance(node, ast.Call) for one in rest for node in ast.walk(one))


def _cure(place: Place, model: str, line: int, rest: list[ast.stmt], step: str) -> Cure:
    note, back = f"{_NOTED} = {model}.training", f"{model}.train({_NOTED})"
    end = rest[-1].end_lineno or rest[-1].lineno
    restored = f"finally:\n{step}{back}"
    wrap = Edit(place.file, first_line(rest[0]), EditAction.WRAP, "try:", end_line=end, end=restored)
    sentence = (
        f"have {place.function} put back the mode that it finds: `{note}` before {place.file}:{line}, "
        f"and `{back}` when it is done."
    )
    return Cure("restore-mode", sentence, (Edit(place.file, line, EditAction.INSERT_BEFORE, note), wrap))
