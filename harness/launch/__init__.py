"""The coordinator's side of isolation: starts zygotes, supervises attempts, and writes records for the dead.

Never imports ``trial``: between the two are a process and ``wire``.
"""
