"""How episodes are played."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PlayOptions:
    """How episodes are played.

    Attributes:
        steps: maximum number of steps in a fragment.
        seconds: a fragment is returned after this time even if it is not full; None waits.
        explore: whether the policy samples.
        retries: number of retries of a lost episode.
        prompt: whether a fragment is returned as soon as none of its slots plays, so that finished
            episodes are safe at once; otherwise only when it is full, or nothing is left to play.
        gather_s: how long a fragment may wait for others, to be sent together, in seconds.
    """

    steps: int = 64
    seconds: float | None = None
    explore: bool = True
    retries: int = 20
    prompt: bool = True
    gather_s: float = 0.5
