"""One of StarDojo's tasks: the fields of its files, what it needs, how long it lasts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from bridges.stardojo.commands import parse_call

STEPS = {"easy": 30, "medium": 50, "hard": 150}
"""Steps of the paper, section 4.1."""
RELEASED_STEPS = {"easy": 31, "medium": 51, "hard": 201}
"""Steps that the released code plays: its test comes after one more, and hard tasks have 200."""

PROGRESSION, MENUS, KILLS, DAYS = "progression", "menus", "monster_kills", "multi_day"
_PROGRESSION = {"bundle", "museum", "repair", "quit", "reward", "complete_help", "complete_story",
                "jojamart"}  # fmt: skip
_MENUS = {"break", "purchase_animal", "sell_animal", "build", "move", "demolish", "quit", "reward",
          "complete_help", "bundle", "museum"}  # fmt: skip
_DAYS = {"sleep", "incubate", "upgrade_tool", "upgrade_farmhouse", "profession"}


def plain(name: str) -> str:
    """Returns a name without quotation marks."""
    return re.sub(r"['\"]", "", name)


@dataclass(frozen=True)
class TaskRow:
    """One task, with the fields of StarDojo's files.

    Attributes:
        category: such as farming.
        key: the name in its file, which is the text that the released agent is given.
        id: position in its file.
        object: what it is about; a quest is named by its id in the game.
        quantity: how many.
        tool: what to use; None for anything.
        save: the game it starts from, such as save_new.
        init_commands: what sets it up, as calls.
        evaluator: name of its rule, see ``rules``.
        difficulty: easy, medium or hard.
    """

    category: str
    key: str
    id: int
    object: str
    quantity: int
    tool: str | None
    save: str
    init_commands: tuple[str, ...]
    evaluator: str
    difficulty: str
    setup: tuple[tuple[str, tuple[str, ...]], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "setup", tuple(map(parse_call, self.init_commands)))

    @property
    def name(self) -> str:
        """The key without quotation marks."""
        return plain(self.key)

    @property
    def goal(self) -> str:
        """The key as a sentence."""
        return self.key.replace("_", " ").capitalize() + "."

    @property
    def features(self) -> frozenset[str]:
        """Its requirements: ``progression``, ``menus``, ``monster_kills``, ``multi_day``.

        ``progression`` and ``monster_kills`` are needed to judge it. ``menus`` stands for menus
        that the released mod closes when an option is chosen; ``multi_day`` for a night at least.
        """
        tools = {*(self.tool or "").split(", ")}
        known = {
            PROGRESSION: self.evaluator in _PROGRESSION,
            MENUS: self.evaluator in _MENUS
            or bool(tools & {"Stove", "Cookout Kit", "Elevator"})
            or (self.evaluator == "jojamart" and self.object != "Joja Membership"),
            KILLS: self.evaluator == "kill",
            DAYS: self.evaluator in _DAYS or self.key.startswith("cultivate"),
        }
        return frozenset(name for name, needed in known.items() if needed)

    def steps(self, limits: str) -> int | None:
        """Returns the most steps of an episode: of the ``paper``, as ``released``, or ``none``."""
        if limits == "none":
            return None
        return (STEPS if limits == "paper" else RELEASED_STEPS)[self.difficulty]
