"""The 24 placements against the table that they were declared from, written out by hand."""

import re

import pytest

from harness.model import Wants
from harness.placements import PLACEMENTS, Action, Around, Placement, Second

T, E, N = Wants.TRAIN, Wants.EVAL, Wants.NOTHING

# name -> (raises on a cuDNN path, which gradient the person wants)
EXPECTED: dict[str, tuple[bool, Wants]] = {
    "train-always": (False, T),
    "train-each-epoch": (False, T),
    "train-each-step": (False, T),
    "eval-after-epoch": (True, T),
    "eval-by-helper": (True, T),
    "eval-always": (True, E),
    "eval-then-use": (True, E),
    "train-before-backward": (True, T),
    "eval-before-backward": (False, T),
    "rnn-eval-rest-train": (True, E),
    "rnn-frozen-in-train": (False, E),
    "inner-loop-in-eval": (True, E),
    "eval-output-reused": (True, T),
    "eval-output-detached": (False, T),
    "eval-output-unused": (False, T),
    "rnn-train-rest-eval": (False, E),
    "rnn-train-dropout-zero": (False, E),
    "dropout-norm-eval": (False, E),
    "train-for-gradient": (False, E),
    "eval-cudnn-off-forward": (False, E),
    "eval-cudnn-off-backward": (True, E),
    "eval-cudnn-off-process": (False, E),
    "train-in-forward": (False, E),
    "eval-no-grad": (False, N),
}

HOOKS = ["start", "epoch_start", "mid_epoch", "before_forward", "inside_forward", "after_forward", "after_step"]
HOOKS += ["before_evaluation"]


def test_there_are_these_24_and_no_others() -> None:
    assert list(PLACEMENTS) == list(EXPECTED)
    assert len(EXPECTED) == 24


@pytest.mark.parametrize("name", EXPECTED)
def test_a_placement_is_declared_as_the_table_says(name: str) -> None:
    placement = PLACEMENTS[name]
    assert (placement.name, placement.raises, placement.wants) == (name, *EXPECTED[name])
    assert placement.summary


def test_summaries_are_one_line_and_tell_placements_apart() -> None:
    summaries = [placement.summary for placement in PLACEMENTS.values()]
    assert len(set(summaries)) == 24
    assert all("\n" not in summary and len(summary) < 120 for summary in summaries)


def test_no_summary_leans_on_another() -> None:
    """Each is also read alone: by `show`, at the top of a repro script, in a report of a few placements."""
    leaning = re.compile(r"\b(the same|as above|likewise|ditto|this time|the other|the previous)\b", re.IGNORECASE)
    assert [name for name, placement in PLACEMENTS.items() if leaning.search(placement.summary)] == []


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recipe_belongs_to_what_does_not_raise_and_reaches_a_goal(name: str) -> None:
    placement = PLACEMENTS[name]
    assert bool(placement.recipe) == (not placement.raises and placement.wants is not N)
    assert "\n" not in placement.recipe and "`" not in placement.recipe and len(placement.recipe) < 110
    compile(placement.recipe, name, "exec")  # a line that can be pasted


def test_no_two_placements_do_the_same() -> None:
    def deeds(placement: Placement) -> tuple[object, ...]:
        others = ("around_forward", "around_backward", "cudnn_off_process", "second", "freeze_rnn", "inner_loop")
        return tuple(getattr(placement, name) for name in (*HOOKS, *others, "applies"))

    told = {}
    for placement in PLACEMENTS.values():
        assert deeds(placement) not in told, (placement.name, told[deeds(placement)])
        told[deeds(placement)] = placement.name


def test_every_action_context_and_second_forward_is_used() -> None:
    actions = {action for p in PLACEMENTS.values() for hook in HOOKS for action in getattr(p, hook)}
    assert actions == set(Action)
    arounds = {p.around_forward for p in PLACEMENTS.values()} | {p.around_backward for p in PLACEMENTS.values()}
    assert arounds == {*Around, None}
    assert {p.second for p in PLACEMENTS.values()} == {*Second, None}


def rnn_trains_at_forward(placement: Placement) -> set[bool]:
    """The RNN's modes at the forwards that a gradient reaches, by walking through two epochs of a declaration."""
    seen: set[bool] = set()
    training = True

    def act(actions: tuple[Action, ...]) -> None:
        nonlocal training
        for action in actions:
            if action in {Action.TRAIN, Action.RNN_TRAIN}:
                training = True
            elif action in {Action.EVAL, Action.RNN_EVAL}:
                training = False

    act(placement.start)
    for _epoch in range(2):
        act(placement.epoch_start)
        for step in range(2):
            if step == 1:
                act(placement.mid_epoch)
            if placement.second is Second.SPLICED:
                seen.add(False)
            if placement.second is not None:
                training = True
            act(placement.before_forward)
            act(placement.inside_forward)
            if placement.around_forward is None:
                seen.add(training)
            act(placement.after_forward)
            act(placement.after_step)
        act(placement.before_evaluation)
        if placement.inner_loop:
            seen.add(training)
    return seen


@pytest.mark.parametrize("name", EXPECTED)
def test_the_prediction_follows_from_the_declaration(name: str) -> None:
    """The rule: an eval forward on the cuDNN path whose output a gradient reaches, and nothing else."""
    placement = PLACEMENTS[name]
    assert placement.raises == (False in rnn_trains_at_forward(placement) and not placement.cudnn_off_process)
