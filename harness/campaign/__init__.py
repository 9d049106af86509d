"""From a selection to a report, the loop that joins the rooms; and going on with what was stopped."""

from __future__ import annotations

from harness.campaign.choosing import Chosen, Selection, choose
from harness.campaign.conditions import Conditions, Finished, Listener, check
from harness.campaign.loop import carry_out, run_matrix
from harness.campaign.orders import OrderMaker, orders_of
from harness.campaign.policy import Policy, Todo, remaining
from harness.campaign.resume import Resumption, look_ahead, resume_matrix
from harness.campaign.standing import Standing, State, Unreadable, standing, standings
from harness.campaign.syncing import sync_run

__all__ = [
    "Chosen",
    "Conditions",
    "Finished",
    "Listener",
    "OrderMaker",
    "Policy",
    "Resumption",
    "Selection",
    "Standing",
    "State",
    "Todo",
    "Unreadable",
    "carry_out",
    "check",
    "choose",
    "look_ahead",
    "orders_of",
    "remaining",
    "resume_matrix",
    "run_matrix",
    "standing",
    "standings",
    "sync_run",
]
