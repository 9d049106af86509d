"""Will a run work on this machine, and will each of its failures be told as what it is?

Facts are asked for, each question with a limit of its own; then the known faults are injected, as real attempts, and
each has to come out as its own class.
"""
