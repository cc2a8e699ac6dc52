"""The five stage performances: the actors, their items, and the actions that must happen.

The ids are MineLand's; the plays and their actions are our own, based on MineLand's descriptions:
an action is *who*, *what* (``get``, ``eat``, ``chat``, ``combat``) and *whom or what*.
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


SCRIPTS: Mapping[str, Script] = {
    "2_agent_argue": Script(
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
    "1_agent_cook": Script(
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
    "3_agent_make_friends": Script(
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
    "2_agent_date": Script(
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
    "2_exchange_items": Script(
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
"""The plays by the last part of their ids."""
