"""Five plays of our own: the actors, their items, and the actions that must happen.

An action is *who*, *what* (``get``, ``eat``, ``chat``, ``combat``) and *whom or what*. MineLand's
plays come from a user's copy of its files; see ``task_files``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

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


SCRIPTS: Mapping[str, Script] = {
    "argue": Script(
        "Max says that the bread is his, and Emma says that it is hers. They argue; then Emma eats "
        "it, and Max says that he is sorry.",
        ("Max", "Emma"),
        (
            ("Max", "chat", "The bread is mine."),
            ("Emma", "chat", "No, it is mine."),
            ("Emma", "eat", "bread"),
            ("Max", "chat", "I am sorry."),
        ),
        {"Emma.bread": 1},
    ),
    "cook": Script(
        "Rose is hungry: she gets beef, cooks it, and eats it.",
        ("Rose",),
        (
            ("Rose", "get", "beef"),
            ("Rose", "get", "cooked_beef"),
            ("Rose", "eat", "cooked_beef"),
        ),
        {"Rose.iron_sword": 1, "Rose.furnace": 1, "Rose.coal": 4},
        "cow",
    ),
    "make_friends": Script(
        "Ann comes to the village and greets Ben and Cleo. They greet her, Ben gives her an apple, "
        "and she thanks him.",
        ("Ann", "Ben", "Cleo"),
        (
            ("Ann", "chat", "Hello, I am Ann."),
            ("Ben", "chat", "Hello Ann, I am Ben."),
            ("Cleo", "chat", "Hello Ann, I am Cleo."),
            ("Ann", "get", "apple"),
            ("Ann", "chat", "Thank you, Ben."),
        ),
        {"Ben.apple": 1},
    ),
    "date": Script(
        "Tom gives Lisa a poppy and asks her to dinner. She says yes, and both eat a cake's worth "
        "of cookies.",
        ("Tom", "Lisa"),
        (
            ("Lisa", "get", "poppy"),
            ("Tom", "chat", "Will you have dinner with me?"),
            ("Lisa", "chat", "Yes, gladly."),
            ("Tom", "eat", "cookie"),
            ("Lisa", "eat", "cookie"),
        ),
        {"Tom.poppy": 1, "Tom.cookie": 2, "Lisa.cookie": 2},
    ),
    "exchange_items": Script(
        "Ida has a diamond and wants emeralds; Otto has emeralds and wants a diamond. They agree "
        "and exchange them.",
        ("Ida", "Otto"),
        (
            ("Ida", "chat", "I give you a diamond for your emeralds."),
            ("Otto", "chat", "Agreed."),
            ("Otto", "get", "diamond"),
            ("Ida", "get", "emerald"),
        ),
        {"Ida.diamond": 1, "Otto.emerald": 4},
    ),
}
"""The plays by name; the task is ``play_NAME``."""
