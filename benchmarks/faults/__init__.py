"""The fault table: real runs, hurt from outside while they go on, then counted.

Every row is a run of a script as a user starts it, on the chaos game, and a fault of the list in
``docs/reliability.md``. A run that the fault ended is continued with ``--resume``. After each, the
same is checked of all: see ``benchmarks.faults.check``.
"""
