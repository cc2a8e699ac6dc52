"""The ten actions of StarDojo (paper, table 4), as the released wrapper plays them or sensibly.

A game is a valley or the real one behind its mod: it has ``ACTIONS``, ``act`` and ``advance``.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Protocol

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from bridges.stardojo import facts
from bridges.stardojo.facts import Observation
from bridges.stardojo.rules.content import content
from rollout.errors import InputError, UnknownNameError

Mode = Literal["strict", "faithful"]

DIRECTIONS = ("up", "right", "down", "left")
WAIT, WAIT_RELEASED, SETTLE_RELEASED = 420, 120, 180
"""Ticks of a wait: ten minutes of the game; of the release: 2 s without, 3 s after an action."""
RETRIES = ((0, 1), (-1, 0), (0, -1), (1, 0), (0, 2))
"""Offsets of the further targets that the release tries where a move fails."""
RECIPES = {
    f"{season} Seeds": f"Wild Seeds ({season[:2]})"
    for season in ("Spring", "Summer", "Fall", "Winter")
}
"""Recipes that are not named after their item."""


class Playable(Protocol):
    """A game in which actions are played."""

    @property
    def ACTIONS(self) -> Collection[str]:  # noqa: N802 - a constant of its classes
        """Names of the commands that ``act`` knows."""
        ...

    def act(self, name: str, args: tuple[Any, ...] = ()) -> bool | None:
        """Plays a command to its end; returns what a move replies."""
        ...

    def advance(self, ticks: int) -> None:
        """Advances game time."""
        ...


@dataclass(frozen=True)
class Skill:
    """One action: its name and its arguments in order, missing ones None."""

    name: str
    args: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if self.name not in PARAMETERS:
            raise UnknownNameError("action", self.name, PARAMETERS)
        if len(self.args) != len(PARAMETERS[self.name]):
            raise InputError(f"{self.name}: expected {PARAMETERS[self.name]}, got {self.args}")

    def __str__(self) -> str:
        arguments = [repr(each) for each in self.args]
        while arguments and arguments[-1] == "None":
            arguments.pop()
        return f"{self.name}({', '.join(arguments)})"


PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "wait": (),
    "move": ("x", "y"),
    "use": ("direction",),
    "interact": ("direction",),
    "choose_item": ("slot_index",),
    "choose_option": ("option_index", "quantity", "direction"),
    "craft": ("item",),
    "attach_item": ("slot_index",),
    "detach_item": (),
    "menu": ("option", "menu_name"),
    "navigate": ("name",),
}
"""The actions and their arguments; ``wait`` is the release's step without an action."""
_OPTIONAL = ("quantity", "menu_name")
_WHOLE = ("x", "y", "slot_index", "option_index", "quantity")


def called(name: str, args: Sequence[Any]) -> Skill:
    """Returns an action of an expert, which may leave out arguments and name ways by number."""
    given = [*args, *[None] * (len(PARAMETERS.get(name, ())) - len(args))]
    if name == "menu" and given[0] == "close":
        given[1] = None
    if name == "choose_option" and isinstance(given[2], int):
        given[2] = "out" if given[2] else "in"
    return Skill(name, tuple(given))


def parse(text: str) -> Skill:
    """Returns the action of a call such as ``choose_option(2, quantity=5, direction="in")``.

    Arguments are literals; nothing is executed. ``unattach_item`` is another name of
    ``detach_item``.

    Raises:
        InputError: it is no such call.
    """
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise InputError(f"expected a call such as move(3, -1), got {text!r}")
        name = call.func.id.replace("unattach_item", "detach_item")
        names = PARAMETERS.get(name, ())
        given = dict(zip(names, map(ast.literal_eval, call.args), strict=False))
        keywords = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    except (SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise InputError(f"expected a call such as move(3, -1), got {text!r}") from error
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"arguments are literals, such as use('up'); got {text!r}") from error
    if name not in PARAMETERS:
        raise UnknownNameError("action", name, PARAMETERS)
    wrong = [each for each in keywords if each not in names or each in given]
    given |= keywords
    optional = [*_OPTIONAL, *(["direction"] if name == "choose_option" else [])]
    missing = [each for each in names if each not in given and each not in optional]
    if wrong or missing or len(call.args) > len(names):
        raise InputError(f"{name}: expected the arguments {names}, got {text!r}")
    for each, value in given.items():
        if each in _WHOLE and type(value) is not int and not (value is None and each in optional):
            raise InputError(f"{name}: {each} is a whole number, got {value!r}")
        if each not in _WHOLE and not isinstance(value, str | None):
            raise InputError(f"{name}: {each} is text, got {value!r}")
    return Skill(name, tuple(given.get(each) for each in names))


def perform(game: Playable, skill: Skill, seen: Observation, mode: Mode) -> bool | None:
    """Plays an action; returns what a move replies, None for others.

    Args:
        game: in which.
        skill: what.
        seen: the last observation.
        mode: ``strict``, or ``faithful`` with what the released wrapper does: a move that fails
            tries five further targets; a missing quantity is 0, which buys nothing; an option of a
            chest counts from 0; ``detach_item`` and ``navigate`` do nothing; every menu but the
            map stays closed; the game runs for three seconds after each action.
    """
    reply = (_faithful if mode == "faithful" else _strict)(game, skill, seen)
    if mode == "faithful" and skill.name != "wait":
        game.advance(SETTLE_RELEASED)
    return reply


def _faithful(game: Playable, skill: Skill, seen: Observation) -> bool | None:
    reply: bool | None = None
    match skill.name, skill.args:
        case "wait", _:
            game.advance(WAIT_RELEASED)
        case "move", (x, y):
            reply = game.act("move_relative", (x, y))
            for dx, dy in RETRIES:
                if reply is not False:
                    break
                reply = game.act("move_relative", (x + dx, y + dy))
        case "choose_option", (option, quantity, way):
            game.act("choose_option", (option, quantity or 0, int(way == "out")))
        case "craft", (item,):
            game.act("craft", (item,))
        case "menu", (option, name):
            if option == "close":
                game.act("exit_menu")
            elif name == "map":
                game.act("open_map")
        case "detach_item" | "navigate", _:
            pass
        case _:
            _common(game, skill)
    return reply


def _strict(game: Playable, skill: Skill, seen: Observation) -> bool | None:
    reply: bool | None = None
    match skill.name, skill.args:
        case "wait", _:
            game.advance(WAIT)
        case "move", (x, y):
            reply = game.act("move_relative", (x, y))
        case "navigate", (name,):
            reply = game.act("navigate", (name,))
        case "choose_option", (option, quantity, way):
            _choose(game, seen, option, max(quantity or 1, 1), way == "out")
        case "craft", (item,):
            game.act("craft", (RECIPES.get(item, item),))
        case "detach_item", _:
            game.act("detach")
        case "menu", (option, name):
            opened = f"open_{name or 'map'}"
            if option == "close":
                game.act("exit_menu")
            elif opened in game.ACTIONS:
                game.act(opened)
        case _:
            _common(game, skill)
    return reply


def _choose(game: Playable, seen: Observation, option: int, quantity: int, out: bool) -> None:
    menu = seen.get("CurrentMenuData") or {}
    if menu.get("type") == "Chest" and option > 0:
        # The mod counts these from 0 in choose_option, where 0 closes the chest.
        game.act("put_to_chest" if out else "take_from_chest", (option - 1, quantity))
    else:
        game.act("choose_option", (option, quantity, int(out)))


def _common(game: Playable, skill: Skill) -> None:
    match skill.name, skill.args:
        case "use" | "interact", (direction,):
            game.act("turn", (DIRECTIONS.index(direction) if direction in DIRECTIONS else 0,))
            game.act(skill.name)
        case "choose_item", (slot,):
            game.act("choose_item", (slot,))
        case "attach_item", (slot,):
            game.act("attach", (slot,))


CRAFTS = ("Torch", "Wood Fence", "Chest", "Furnace", "Scarecrow", "Sprinkler", "Cherry Bomb",
          "Basic Retaining Soil", "Spring Seeds", "Field Snack", "Cookout Kit")  # fmt: skip
MAPS = ("Farm", "FarmHouse", "Coop", "Deluxe Coop", "Deluxe Barn", "BusStop", "Backwoods", "Forest",
        "Town", "Mountain", "Mine", "Beach", "SeedShop", "AnimalShop", "FishShop", "ScienceHouse",
        "Saloon", "Blacksmith", "Hospital", "JojaMart")  # fmt: skip
LATER = ("Staircase",)  # recorded actions are numbers, so older names keep theirs
REACHES, _WAYS = (1, 2, 4, 8), ((0, -1), (1, 0), (0, 1), (-1, 0))
SLOTS, OPTIONS, SALES = 12, 12, 12


@cache
def flat() -> tuple[Skill, ...]:
    """Returns the actions of the flat layout, for small networks: a selection of all."""
    moves = [Skill("move", (dx * n, dy * n)) for n in REACHES for dx, dy in _WAYS]
    moves += [Skill("move", (dx, dy)) for dx in (-1, 1) for dy in (-1, 1)]
    return (
        Skill("wait"),
        *moves,
        *(Skill(name, (each,)) for name in ("use", "interact") for each in DIRECTIONS),
        *(Skill("choose_item", (slot,)) for slot in range(SLOTS)),
        *(Skill("choose_option", (n, 1, "in")) for n in range(1, OPTIONS + 1)),
        *(Skill("choose_option", (n, 1, "out")) for n in range(1, SALES + 1)),
        *(Skill("craft", (item,)) for item in CRAFTS),
        Skill("menu", ("close", None)),
        Skill("menu", ("open", "journal")),
        *(Skill("navigate", (name,)) for name in MAPS),
    )


@cache
def labels() -> tuple[str, ...]:
    """Returns the actions of the flat layout as text, which ``parse`` reads."""
    return tuple(map(str, flat()))


def mask(seen: Observation) -> NDArray[np.bool_]:
    """Returns which actions of the flat layout can have an effect, ``(len(flat()),)``.

    It knows of what is observed only: a menu that the mod does not report blocks in secret.
    """
    menu = seen.get("CurrentMenuData") or {}
    opened = menu.get("type") not in (None, "No Menu")
    lists = ("responses", "shopMenuData", "animalsMenuData", "ItemsInChest")
    entries = max((len(menu.get(each) or ()) for each in lists), default=0) or int(opened)
    bag = [bool(each.get("Name")) for each in facts.listed(seen["Player"].get("Inventory"))]
    trades = menu.get("type") in ("ShopMenu", "Chest")
    ways = {str(each.get("target")) for each in facts.listed(seen.get("Exits"))}
    ways |= {str(each.get("name")) for each in facts.listed(seen.get("Buildings"))}

    def allowed(skill: Skill) -> bool:
        free = not opened
        match skill.name, skill.args:
            case "wait", _:
                free = True
            case "choose_item", (slot,):
                free = slot < len(bag) and bag[slot]
            case "choose_option", (option, _, "out"):
                free = trades and option <= len(bag) and bag[option - 1]
            case "choose_option", (option, _, _):
                free = opened and option <= entries
            case "menu", (option, _):
                free = opened or option == "open"
            case "navigate", (name,):
                free = not opened and name in ways
        return free

    return np.fromiter(map(allowed, flat()), np.bool_, len(flat()))


THEN = "then/"
"""Prefix of the columns of the second action of a step."""
NONE = "none"
CALLS = (
    *(name for name in PARAMETERS if name != "menu"),
    *("close_menu", "open_map", "open_journal"),
)


@cache
def names() -> tuple[str, ...]:
    """Returns what can be crafted and where one can go, in this order."""
    return (*sorted({*content().crafting, *CRAFTS} - {"Spring Seeds", *LATER}), *MAPS, *LATER)


def call_space(count: int) -> dict[str, spaces.Space[Any]]:
    """Returns the columns of the layout of calls: the name of an action, and all arguments.

    Args:
        count: actions of a step, 1 or 2; the second is ``none`` unless it is given.
    """
    one: dict[str, spaces.Space[Any]] = {
        "x": spaces.Discrete(201, start=-100),
        "y": spaces.Discrete(201, start=-100),
        "direction": spaces.Discrete(len(DIRECTIONS)),
        "slot": spaces.Discrete(36),
        "option": spaces.Discrete(200),
        "quantity": spaces.Discrete(1000),
        "out": spaces.Discrete(2),
        "text": spaces.Discrete(len(names())),
    }
    found = {"name": spaces.Discrete(len(CALLS)), **one}
    if count == 1:
        return found
    second = {"name": spaces.Discrete(len(CALLS) + 1), **one}
    return {**found, **{THEN + name: leaf for name, leaf in second.items()}}


def call_labels(count: int) -> dict[str, tuple[str, ...]]:
    """Returns the names of the values of those columns."""
    one = {"direction": DIRECTIONS, "out": ("in", "out"), "text": names()}
    found = {"name": CALLS, **one}
    if count == 1:
        return found
    return {**found, **{THEN + k: v for k, v in {**one, "name": (NONE, *CALLS)}.items()}}


def from_row(actions: Mapping[str, NDArray[Any]], row: int) -> list[Skill]:
    """Returns the actions of a row of the layout of calls, in their order."""
    found = [_called(CALLS[int(actions["name"][row])], actions, row, "")]
    if THEN + "name" in actions and (second := int(actions[THEN + "name"][row])):
        found.append(_called(CALLS[second - 1], actions, row, THEN))
    return found


def _called(name: str, actions: Mapping[str, NDArray[Any]], row: int, prefix: str) -> Skill:
    def given(column: str) -> int:
        return int(actions[prefix + column][row])

    match name:
        case "move":
            return Skill(name, (given("x"), given("y")))
        case "use" | "interact":
            return Skill(name, (DIRECTIONS[given("direction")],))
        case "choose_item" | "attach_item":
            return Skill(name, (given("slot"),))
        case "choose_option":
            out = ("in", "out")[given("out")]
            return Skill(name, (given("option"), given("quantity"), out))
        case "craft" | "navigate":
            return Skill(name, (names()[given("text")],))
    return Skill("menu", _MENUS[name]) if name in _MENUS else Skill(name)


_MENUS = {
    "close_menu": ("close", None),
    "open_map": ("open", "map"),
    "open_journal": ("open", "journal"),
}


def to_row(skill: Skill) -> dict[str, int]:
    """Returns the values of the columns of the layout of calls, the inverse of ``from_row``."""
    named = next((k for k, v in _MENUS.items() if skill.name == "menu" and v == skill.args), "")
    found = {
        **dict.fromkeys(("x", "y", "direction", "slot", "option", "quantity", "out", "text"), 0),
        "name": CALLS.index(named or skill.name),
    }
    given = dict(zip(PARAMETERS[skill.name], skill.args, strict=True))
    for name, column in (("x", "x"), ("y", "y"), ("slot_index", "slot")):
        found[column] = given.get(name, 0)
    if skill.name == "choose_option":
        option, quantity, way = skill.args
        found |= {"option": option, "quantity": quantity or 0, "out": int(way == "out")}
    elif "direction" in given:
        found["direction"] = DIRECTIONS.index(given["direction"])
    text = given.get("item", given.get("name"))
    if text is not None:
        found["text"] = names().index(RECIPES.get(text, text))
    return found
