"""Gamut's collection: games in processes, policies beside them or in an inference actor."""

from __future__ import annotations

import tempfile
from typing import Any

from benchmarks.throughput.peers.libraries.gamut import PICTURES
from benchmarks.throughput.peers.libraries.turns import Turn, serve
from rollout.cli import Session
from rollout.collect import collect
from rollout.config import CollectConfig, make_config
from rollout.signals import Stop


class _OverError(Exception):
    """The turn is over."""


def train(turn: Turn) -> None:
    """Plays without learning for a turn; its variant is the number of inference actors."""
    seen = set[int]()

    def watch(fragment: Any) -> None:
        if len(seen) < turn.size:  # games that have not played
            seen.add(fragment.instance)
            turn.begin()
        elif turn.add(fragment.env_steps):
            raise _OverError

    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "output": f"{folder}/run",
            "bridge": {"name": "crafter"},
            "policy": {"name": "actor_critic", **PICTURES},
            "instances": turn.size,
            "width": 1,
            "host": {"isolation": "subprocess"},
            "inference": {"actors": int(turn.variant)},
            "fragment": {"steps": 64},
            "episodes": 10**6,
            "recording": {"enabled": False},
            "seed": turn.seed,
            "log": {"level": "error"},
        }
        try:
            collect(make_config(CollectConfig, settings), Session(False, Stop()), watch=watch)
        except _OverError:
            return


if __name__ == "__main__":
    serve(train)
