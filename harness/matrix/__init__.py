"""Axes -> variants. Pure: nothing here starts a process, opens a store or imports a heavy library."""
