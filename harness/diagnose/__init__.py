"""What happened inside a person's own script: which RNN ran in eval mode, who put it there, and what to do.

The script runs in a process of its own, started by ``run``; ``startup`` and ``witness`` watch it from inside and write
down facts. All else happens when it has ended, without PyTorch: ``patterns`` names what the facts mean, ``cures`` finds
the smallest change of the source.
"""
