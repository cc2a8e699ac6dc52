"""How rules join the valley: one table for each kind of event, filled by decorators.

A rule is a function that changes the world. The modules that ``valley.py`` imports fill the
tables; which module a rule is in does not matter to anyone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from bridges.stardojo.rules.world import Facts, Item, Menu, Place, Thing, Tile, World
from rollout.errors import InputError

Rule = TypeVar("Rule", bound=Callable[..., Any])


class Table(dict[str, Rule]):
    """Rules by key; used as a decorator with the keys that a function is for."""

    def __init__(self, doc: str) -> None:
        super().__init__()
        self.doc = doc

    def __call__(self, *keys: str) -> Callable[[Rule], Rule]:
        """Returns a decorator that enters a rule under some keys."""

        def enter(rule: Rule) -> Rule:
            for key in keys:
                if key in self:
                    raise ValueError(f"{self.doc}: two rules for {key!r}")
                self[key] = rule
            return rule

        return enter


class Hooks(Generic[Rule]):
    """Functions that are all called, in the order of their names: the order of imports is none."""

    def __init__(self, doc: str) -> None:
        self.doc = doc
        self.rules: list[Rule] = []

    def __call__(self, rule: Rule) -> Rule:
        """Enters a rule; for use as a decorator."""
        self.rules.append(rule)
        self.rules.sort(key=lambda each: f"{each.__module__}.{each.__qualname__}")
        return rule

    def call(self, *args: Any) -> None:
        """Calls all of them."""
        for rule in self.rules:
            rule(*args)

    def first(self, *args: Any) -> bool:
        """Calls them until one returns True; returns True if one did."""
        return any(rule(*args) for rule in self.rules)


UseRule: TypeAlias = Callable[[World, Item, Tile], int]
StrikeRule: TypeAlias = Callable[[World, Item, Tile, Thing], None]
TouchRule: TypeAlias = Callable[[World, Tile, Thing], bool]
SpotRule: TypeAlias = Callable[[World, Tile, Sequence[str]], bool]
FurnitureRule: TypeAlias = Callable[[World, Any], bool]
CreatureRule: TypeAlias = Callable[[World, Tile], bool]
AnswerRule: TypeAlias = Callable[[World, str, Facts], None]
CommandRule: TypeAlias = Callable[..., Any]

USE: Table[UseRule] = Table("use a tool or weapon")
"""By the kind of the tool in hand (``items.use_kind``: axe, pickaxe, hoe, can, scythe, sword,
dagger, club, pail, shears, rod, pan): what happens on the tile ahead; returns its ticks."""
STRIKE: Table[StrikeRule] = Table("strike a thing")
"""By ``"<tool kind> <thing kind>"``, e.g. ``"pickaxe node"``."""
TOUCH: Table[TouchRule] = Table("interact with a thing")
"""By the kind of the thing ahead; returns whether something happened."""
SPOT: Table[SpotRule] = Table("interact with a spot of a map")
"""By the first word of the map's spot ahead (``shop SeedShop``, ``billboard``, ``tv``); gets the
other words."""
FURNITURE: Table[FurnitureRule] = Table("interact with furniture")
"""By the name of the piece of furniture ahead, or its kind (``items.furniture_kind``)."""
ANSWER: Table[AnswerRule] = Table("answer of a dialogue")
"""By the ``then`` of ``ask``: gets the key of the response and the ``about`` of the question."""
COMMAND: Table[CommandRule] = Table("command of InitTaskAPI")
"""By name: ``(world, *arguments)``."""
PLACE: Table[Callable[[World, str], Place]] = Table("make a place when it is first entered")
"""By the plan (e.g. ``UndergroundMine``): gets the place's key, returns the place."""

CREATURE: Hooks[CreatureRule] = Hooks("interact with what stands on a tile and moves")
"""Residents, animals, pets: called in turn until one returns True."""
HIT: Hooks[Callable[[World, Item, Sequence[Tile]], bool]] = Hooks("a weapon sweeps over tiles")
NEW: Hooks[Callable[[World], None]] = Hooks("a save was built: add your own state")
TEN: Hooks[Callable[[World], None]] = Hooks("ten minutes passed")
TICKS: Hooks[Callable[[World, int], None]] = Hooks("some ticks passed where monsters are")
EVENING: Hooks[Callable[[World], None]] = Hooks("the day ends, before the date changes")
MORNING: Hooks[Callable[[World], None]] = Hooks("a new day, after the date changed")
ENTER: Hooks[Callable[[World, Place], None]] = Hooks("the farmer came into a place")
GAIN: Hooks[Callable[[World, str, int], None]] = Hooks("items came into the bag")
DID: Hooks[Callable[[World, str, str, int], None]] = Hooks("something that quests ask about")
"""Deed, what, number: ``("harvest", "Parsnip", 1)``, craft, build, kill, mine, visit, meet."""


@dataclass(frozen=True)
class MenuRule:
    """A kind of menu.

    Attributes:
        type: ``CurrentMenuData.type`` of the game; empty if the mod does not know the menu and says
            ``No Menu``.
        entries: texts of what can be chosen, in order.
        choose: gets the 0-based index, the quantity and whether it is in (buy, take).
        show: fields of ``CurrentMenuData`` beside ``type``; None: only ``responses`` from entries.
        operable: whether the mod's ``choose_option`` can drive it; otherwise it closes it
            (``faithful`` valleys), while ``strict`` valleys always can.
    """

    type: str
    entries: Callable[[World, Menu], list[str]]
    choose: Callable[[World, Menu, int, int, bool], None]
    show: Callable[[World, Menu], Facts] | None = None
    operable: bool = False


MENUS: dict[str, MenuRule] = {}
"""Kinds of menus by ``Menu.kind``."""


def say(world: World, *pages: str, speaker: str = "") -> None:
    """Opens a dialogue without a question."""
    world.menu = Menu("dialogue", {"pages": list(pages), "responses": [], "speaker": speaker})


def ask(
    world: World,
    text: str,
    responses: Sequence[tuple[str, str]],
    then: str,
    about: Facts | None = None,
) -> None:
    """Opens a question; ``ANSWER[then]`` gets the key of the chosen response and ``about``."""
    world.menu = Menu(
        "dialogue",
        {
            "pages": [text],
            "responses": [list(r) for r in responses],
            "then": then,
            "about": about or {},
        },
    )


def close_menu(world: World, menu: Menu, index: int, number: int, into: bool) -> None:
    """Closes the menu, whatever is chosen: a ``choose`` of ``MenuRule``."""
    world.menu = None


def random(world: World) -> float:
    """Returns the next number in [0, 1) (SplitMix64 over ``world.random_state``)."""
    world.random_state = z = (world.random_state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return ((z ^ (z >> 31)) >> 11) / 9007199254740992.0


def below(world: World, n: int) -> int:
    """Returns a random number from 0 to ``n`` - 1."""
    return int(random(world) * n)


def between(world: World, least: int, most: int) -> int:
    """Returns a random number from ``least`` to ``most``."""
    return least + below(world, most - least + 1)


Kind = TypeVar("Kind")


def weighted(world: World, weights: dict[Kind, float]) -> Kind:
    """Returns a random key, by weight."""
    left = random(world) * sum(weights.values())
    for key, weight in weights.items():
        left -= weight
        if left < 0:
            return key
    return key


# Arguments of commands: the types of a rule's parameters say what each may be.

MOST = 2**31 - 1
"""The largest whole number of the game."""
Whole: TypeAlias = Annotated[int, Field(ge=-MOST - 1, le=MOST)]
Natural: TypeAlias = Annotated[int, Field(ge=0, le=MOST)]
Positive: TypeAlias = Annotated[int, Field(ge=1, le=MOST)]
Days: TypeAlias = Annotated[int, Field(ge=0, le=1000)]
Quality: TypeAlias = Literal[0, 1, 2, 4]
Id: TypeAlias = str | int


def checked(name: str, rule: Callable[..., Any], given: Sequence[Any]) -> None:
    """Checks the arguments of a command before anything is changed.

    Args:
        name: of the command.
        rule: its function; the first parameter is the world.
        given: the arguments that follow it.

    Raises:
        InputError: their number, or the type or range of one.
    """
    try:
        signature(rule).bind(None, *given)
    except TypeError as error:
        raise InputError(f"{name}: {error}; got {given!r}") from error
    for (argument, kind), value in zip(_kinds(rule).items(), given, strict=False):
        try:
            kind.validate_python(value)
        except ValidationError as error:
            message = error.errors()[-1]["msg"]
            raise InputError(f"{name}: {argument}: {message}, got {value!r}") from None


@cache
def _kinds(rule: Callable[..., Any]) -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(rule, include_extras=True)
    strict = ConfigDict(strict=True)
    return {
        each: TypeAdapter(hints[each], config=strict) for each in [*signature(rule).parameters][1:]
    }
