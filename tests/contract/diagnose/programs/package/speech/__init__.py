"""A program of several files, run with ``-m``."""
