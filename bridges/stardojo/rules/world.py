"""The state of a valley: plain values only, so that one codec saves and restores all of it.

Every class here holds numbers, texts, lists, dicts and one another. Rules are functions in other
modules. ``facts`` is a dict of JSON values for what a rule keeps with a thing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

Tile: TypeAlias = tuple[int, int]
Facts: TypeAlias = dict[str, Any]

SEASONS = ("spring", "summer", "fall", "winter")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WAYS: tuple[Tile, ...] = ((0, -1), (1, 0), (0, 1), (-1, 0))
"""The step of each facing direction: up, right, down, left."""
TICKS_PER_SECOND = 60
TEN_MINUTES = 420
"""Ticks of ten minutes of the game: seven seconds."""


@dataclass(slots=True)
class Item:
    """Pieces of an item; a tool keeps its water or what is attached to it in ``facts``."""

    name: str
    count: int = 1
    quality: int = 0
    facts: Facts = field(default_factory=dict)


@dataclass(slots=True)
class Thing:
    """An object on a tile: debris, a node, forage, a machine, a chest, a fixture.

    Attributes:
        name: the name that observations give.
        kind: key of the rule tables ``STRIKE`` and ``TOUCH``.
        blows: strength that is left to it.
        passable: whether one can walk over it.
    """

    name: str
    kind: str
    blows: int = 1
    passable: bool = False
    facts: Facts = field(default_factory=dict)


@dataclass(slots=True)
class Crop:
    """A plant on tilled ground: its seed, its phase, and the days it spent in that phase."""

    seed: str
    phase: int = 0
    days: int = 0
    dead: bool = False
    regrown: bool = False


@dataclass(slots=True)
class Ground:
    """A terrain feature: ``dirt``, ``grass``, ``tree``, ``fruit_tree`` or ``floor``.

    Attributes:
        name: the seed of a tree or the kind of floor.
        stage: of a tree, 0 (a seed) to 5 (grown; 4 for fruit trees); tufts of grass.
        blows: strength that is left.
        fruit: pieces that hang on a fruit tree; of a tree, 1 if it can be shaken.
    """

    kind: str
    name: str = ""
    watered: bool = False
    fertilizer: str = ""
    crop: Crop | None = None
    stage: int = 0
    days: int = 0
    blows: int = 0
    fruit: int = 0
    stump: bool = False


@dataclass(slots=True)
class Furniture:
    """A piece of furniture, ``tile`` being its top left."""

    name: str
    tile: Tile
    size: Tile = (1, 1)
    facts: Facts = field(default_factory=dict)


@dataclass(slots=True)
class Building:
    """A building of the farm; ``inside`` is the key of its place, empty if it has none.

    Attributes:
        days: nights until it is finished; 0 for a finished one.
        becomes: what an upgrade makes of it when ``days`` are over.
        hay: pieces that a silo holds (the hay of the farm is counted together in ``World.hay``).
        full: whether a pet bowl holds water.
    """

    kind: str
    tile: Tile
    size: Tile
    id: str
    inside: str = ""
    gate_open: bool = False
    full: bool = False
    days: int = 0
    becomes: str = ""


@dataclass(slots=True, kw_only=True)
class Being:
    """The common fields of animals, pets and residents."""

    name: str
    place: str
    tile: Tile
    friendship: int = 0
    facts: Facts = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Animal(Being):
    """An animal of the farm; ``home`` is the id of its building."""

    kind: str
    home: str
    happiness: int = 150
    age: int = 99
    touched: bool = False
    fed: bool = False
    produce: str = ""


@dataclass(slots=True, kw_only=True)
class Pet(Being):
    """A cat or a dog."""

    kind: str
    touched: bool = False


@dataclass(slots=True, kw_only=True)
class Resident(Being):
    """Somebody who lives in the valley; ``tie`` is ``""``, dating, engaged, married or ended."""

    facing: int = 2
    talked: bool = False
    gifts: int = 0
    gifts_week: int = 0
    tie: str = ""


@dataclass(slots=True)
class Monster:
    """A monster of a mine's floor; ``x`` and ``y`` are tiles with fractions."""

    name: str
    x: float
    y: float
    health: int
    facts: Facts = field(default_factory=dict)

    @property
    def tile(self) -> Tile:
        """The tile it is on."""
        return round(self.x), round(self.y)


@dataclass(slots=True)
class Quest:
    """A quest of the log; ``id`` is empty for help that was wanted."""

    id: str
    title: str
    kind: str
    what: str
    number: int
    reward: int
    have: int = 0
    done: bool = False
    facts: Facts = field(default_factory=dict)


@dataclass(slots=True)
class Menu:
    """The open menu; ``kind`` is a key of the rule table ``MENUS``."""

    kind: str
    facts: Facts = field(default_factory=dict)


@dataclass(slots=True)
class Place:
    """One map with what is on it.

    Attributes:
        key: unique; the inside of a building is ``"Coop:<id>"``.
        name: as observations give it, e.g. ``Coop`` or ``UndergroundMine5``.
        plan: name of its layout in ``maps``.
        drops: items that lie on the ground.
    """

    key: str
    name: str
    plan: str
    things: dict[Tile, Thing] = field(default_factory=dict)
    ground: dict[Tile, Ground] = field(default_factory=dict)
    drops: dict[Tile, list[Item]] = field(default_factory=dict)
    furniture: list[Furniture] = field(default_factory=list)
    monsters: list[Monster] = field(default_factory=list)
    facts: Facts = field(default_factory=dict)


@dataclass(slots=True)
class Farmer:
    """The player. ``bag`` has one entry per slot; skills are experience points."""

    name: str
    place: str = "Farm"
    tile: Tile = (64, 15)
    facing: int = 2
    health: int = 100
    most_health: int = 100
    energy: float = 270.0
    most_energy: int = 270
    money: int = 500
    slot: int = 0
    bag: list[Item | None] = field(default_factory=lambda: [None] * 12)
    points: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            ("farming", "mining", "combat", "fishing", "foraging"), 0
        )
    )
    professions: list[str] = field(default_factory=list)
    recipes: list[str] = field(default_factory=list)
    dishes: list[str] = field(default_factory=list)
    kills: dict[str, int] = field(default_factory=dict)
    worn: dict[str, str] = field(default_factory=dict)
    safe_ticks: int = 0

    @property
    def hand(self) -> Item | None:
        """The item in the hand, or None."""
        return self.bag[self.slot]

    @property
    def ahead(self) -> Tile:
        """The tile in front."""
        step = WAYS[self.facing]
        return self.tile[0] + step[0], self.tile[1] + step[1]


@dataclass(slots=True)
class World:
    """A whole valley.

    Attributes:
        random_state: of ``rules.random``; the only source of randomness.
        ticks: since 6:00 of this day; ``time`` follows from it.
        busy: ticks until the farmer can act again.
        days_started: as ``CallBackData.OnDayStarted``.
        fortune: the day's, -0.1 to 0.1 (what the game calls daily luck).
        hay: in all silos.
        mail: letters in the mailbox; ``read`` those that were read or flags that were received.
        orders: what is finished after some nights: ``{"what", "nights", ...}``.
        facts: what rule modules keep, one key for each: ``{"quests": ...}``.
    """

    save: str
    seed: int
    random_state: int
    farmer: Farmer
    year: int = 1
    season: str = "spring"
    day: int = 1
    ticks: int = 0
    busy: int = 0
    weather: str = "sun"
    tomorrow: str = "sun"
    fortune: float = 0.0
    lucky: int = 0
    days_started: int = 1
    days_played: int = 0
    hay: int = 0
    shipped: list[Item] = field(default_factory=list)
    places: dict[str, Place] = field(default_factory=dict)
    buildings: list[Building] = field(default_factory=list)
    animals: list[Animal] = field(default_factory=list)
    pets: list[Pet] = field(default_factory=list)
    residents: dict[str, Resident] = field(default_factory=dict)
    quests: list[Quest] = field(default_factory=list)
    mail: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    bundles: dict[str, list[str]] = field(default_factory=dict)
    repairs: list[str] = field(default_factory=list)
    museum: list[str] = field(default_factory=list)
    joja: bool = False
    theater: bool = False
    mine_level: int = 0
    cavern_level: int = 0
    house_level: int = 0
    orders: list[Facts] = field(default_factory=list)
    menu: Menu | None = None
    facts: Facts = field(default_factory=dict)

    @property
    def time(self) -> int:
        """The clock as HHMM in steps of ten minutes, 600 to 2600."""
        return self.minutes // 60 * 100 + self.minutes % 60

    @property
    def minutes(self) -> int:
        """The clock as minutes since midnight, 360 to 1560."""
        return 360 + self.ticks // TEN_MINUTES * 10

    @property
    def weekday(self) -> str:
        """The day of the week; the first of each season is a Monday."""
        return WEEKDAYS[(self.day - 1) % 7]

    @property
    def here(self) -> Place:
        """The place where the farmer is."""
        return self.places[self.farmer.place]
