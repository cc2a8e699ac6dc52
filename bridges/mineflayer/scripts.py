"""Five plays of our own, ``data/plays.yaml``: actors, items, and the actions that must happen.

An action is *who*, *what* (``get``, ``eat``, ``chat``, ``combat``) and *whom or what*. MineLand's
plays come from a user's copy of its files; see ``task_files``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from rollout.yaml12 import load_yaml

_FILE = Path(__file__).parent / "data" / "plays.yaml"

Act: TypeAlias = tuple[str, str, str]
"""Actor, verb, object."""

VERBS = ("get", "eat", "chat", "combat")


@dataclass(frozen=True)
class Script:
    """One play.

    Attributes:
        goal: the play in words, for the actors.
        actors: names of the agents, in the order of their slots.
        acts: the actions that must happen, in this order.
        give: initial items of actors, ``{"name.item": n}``.
        mob: kind of one creature that is present; empty for none.
    """

    goal: str
    actors: tuple[str, ...]
    acts: tuple[Act, ...]
    give: Mapping[str, int] = field(default_factory=dict)
    mob: str = ""

    @property
    def text(self) -> str:
        """The play as its actors are shown it: the goal, and the actions in their order."""
        acts = "; ".join(" ".join(act) for act in self.acts)
        return f"{self.goal} In this order: {acts}"


def _script(row: Mapping[str, Any]) -> Script:
    acts = tuple((actor, verb, what) for actor, verb, what in row["acts"])
    return Script(**{**row, "actors": tuple(row["actors"]), "acts": acts})


SCRIPTS: Mapping[str, Script] = {
    name: _script(row) for name, row in load_yaml(_FILE, ours=True).items()
}
"""The plays by name; the task is ``play_NAME``."""
