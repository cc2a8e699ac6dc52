"""The fault table: real runs with faults injected from outside, then checked.

Every row is a run of a script as a user starts it, on the chaos game, and a fault of the list in
``docs/reliability.md``. A run that the fault ended is continued with ``--resume``. After each, the
same conditions are checked: see ``benchmarks.faults.check``.
"""
