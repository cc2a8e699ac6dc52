"""Gamut from Python: ``import gamut``.

::

    run = gamut.train("train.yaml", output="runs/first", env_steps=100_000)
    run.metrics                     # a list of rows
    action, memory = gamut.load(run).predict(observation)

Each function does what the command of its name does. See docs/python.md, which also says what else
is public: the commands, and a few modules of ``rollout``.
"""

from rollout.errors import GamutError, InputError
from rollout.interface.calls import Run, check, collect, evaluate, sweep, train
from rollout.interface.player import Player, load
from rollout.train.callbacks import UpdateRecord

__all__ = [
    "GamutError",
    "InputError",
    "Player",
    "Run",
    "UpdateRecord",
    "check",
    "collect",
    "evaluate",
    "load",
    "sweep",
    "train",
]
