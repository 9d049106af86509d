"""The worker side: a program of its own (``python -m harness.trial``) that runs attempts and writes records."""
