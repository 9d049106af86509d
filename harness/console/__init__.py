"""Events and results -> what a person sees on the terminal. Progress goes to stderr, results to stdout."""

from __future__ import annotations

from harness.console.checked import show_accept, show_check
from harness.console.compared import show_comparison
from harness.console.live import RunConsole
from harness.console.shown import serve_ui, show_finished, show_plan, show_seed, show_stub, show_synced, tell
from harness.console.standing import show_remaining, show_standings
from harness.console.variant import show_script, show_variant

__all__ = [
    "RunConsole",
    "serve_ui",
    "show_accept",
    "show_check",
    "show_comparison",
    "show_finished",
    "show_plan",
    "show_remaining",
    "show_script",
    "show_seed",
    "show_standings",
    "show_stub",
    "show_synced",
    "show_variant",
    "tell",
]
