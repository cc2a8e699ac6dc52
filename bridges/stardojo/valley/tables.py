"""The types of the valley's content: what a row of a file in ``data/`` says.

A row is a list of the fields in their order here, without the name; fields with a default may
follow as a mapping at its end. ``bridges.stardojo.valley.data`` reads the files and checks that
every name leads somewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

Amounts = Mapping[str, int]
Chances = Mapping[str, float]
SKILLS = ("farming", "fishing", "foraging", "mining", "combat")
TASTES = ("loves", "likes", "neutral", "dislikes", "hates")
KINDS = {"big": "BC", "furniture": "F", "tool": "T", "weapon": "W", "scythe": "W", "boots": "B"}


@dataclass(frozen=True)
class Item:
    """Anything that can be carried or lies on the ground; ``key`` is unique, ``name`` is shown."""

    key: str
    category: str
    id: str
    price: int
    edibility: int | None = None
    name: str = ""

    @property
    def qualified(self) -> str:
        """Returns the id with its kind, e.g. ``(O)24``."""
        return f"({KINDS.get(self.category, 'O')}){self.id}"

    @property
    def stack(self) -> int:
        """Returns the most pieces in one slot."""
        return 1 if self.category in ("tool", "weapon", "scythe", "ring", "boots") else 999


@dataclass(frozen=True)
class Weapon:
    """A weapon: damage at least and at most of one hit; ``speed`` as the game counts it."""

    id: str
    kind: str
    least: int
    most: int
    speed: int
    level: int
    price: int


@dataclass(frozen=True)
class Crop:
    """What a seed becomes: days of each phase of growth, seasons, and how it is harvested."""

    harvest: str
    phases: tuple[int, ...]
    seasons: tuple[str, ...]
    regrow: int | None = None
    yields: tuple[int, int] = (1, 1)
    extra: float = 0.0
    trellis: bool = False
    scythe: bool = False
    giant: bool = False
    wild: tuple[str, ...] = ()


@dataclass(frozen=True)
class FruitTree:
    """A fruit tree: what it bears, in which season."""

    fruit: str
    season: str


@dataclass(frozen=True)
class WildTree:
    """A wild tree: its seed, what a tapper draws from it, and in how many days."""

    seed: str
    syrup: str
    days: int


@dataclass(frozen=True)
class Fertilizer:
    """What a fertilizer changes: steps of quality, chance to stay wet, share of days saved."""

    quality: int = 0
    keeps_water: float = 0.0
    speed: float = 0.0


@dataclass(frozen=True)
class Recipe:
    """What is made from what; ``learned`` is a word, a skill with its level, or a friend."""

    needs: Amounts
    learned: str
    makes: str = ""
    count: int = 1


@dataclass(frozen=True)
class Product:
    """What a machine makes of one kind of input, after how many minutes."""

    product: str
    minutes: int
    takes: int = 1
    needs: str | None = None
    count: int = 1


@dataclass(frozen=True)
class Offer:
    """One line of a shop: a price, and the conditions that must all hold (seasons: any of them)."""

    price: int
    conditions: tuple[str, ...] = ()
    limit: int | None = None


@dataclass(frozen=True)
class Shop:
    """A counter: where, who must stand behind it and when, what it sells, buys and offers."""

    map: str
    counter: tuple[int, int]
    hours: tuple[int, int]
    stock: Mapping[str, Offer]
    keeper: str | None = None
    closed: tuple[str, ...] = ()
    menu: tuple[str, ...] = ("shop",)
    buys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Place:
    """Where a resident stands from a time on; the tile is a hint."""

    time: int
    map: str
    x: int
    y: int


@dataclass(frozen=True)
class Resident:
    """Who lives in the valley: birthday, home, tastes, and the places of each kind of day."""

    born: str
    home: tuple[str, int, int]
    days: Mapping[str, tuple[Place, ...]]
    datable: bool = False
    social: bool = True
    from_year: int = 1
    loves: tuple[str, ...] = ()
    likes: tuple[str, ...] = ()
    neutral: tuple[str, ...] = ()
    dislikes: tuple[str, ...] = ()
    hates: tuple[str, ...] = ()


@dataclass(frozen=True)
class Animal:
    """A farm animal; days to grow up and for each product, and how products are taken."""

    house: str
    size: int
    price: int
    grows: int
    every: int
    product: str
    large: str
    taken: str
    hatches: str | None = None
    shop: str | None = None


@dataclass(frozen=True)
class Building:
    """A farm building: what it costs, days to build, its size in tiles; doors are tiles within."""

    gold: int
    materials: Amounts
    days: int
    size: tuple[int, int]
    upgrades: str | None = None
    animals: int = 0
    troughs: int = 0
    hay: int = 0
    door: tuple[int, int] | None = None
    gate: tuple[int, int] | None = None


@dataclass(frozen=True)
class Upgrade:
    """What a better tool or a larger house costs."""

    gold: int
    materials: Amounts


@dataclass(frozen=True)
class Pack:
    """A backpack: its slots and price."""

    slots: int
    price: int


@dataclass(frozen=True)
class Area:
    """An area of the mines: floors from and to, blows for a stone, what stones and ground hold."""

    floors: tuple[int, int]
    name: str
    stone: int
    geode: str
    geode_chance: float
    coal: float
    ores: Chances
    gems: Chances
    forage: Chances
    dig: Chances
    monsters: Chances


@dataclass(frozen=True)
class FloorRule:
    """How full a floor is: the share of tiles with a stone; monsters and forage, least and most.

    ``sure`` names monsters that are on all floors from one to another.
    """

    stones: float
    monsters: tuple[int, int]
    forage: tuple[int, int]
    sure: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Node:
    """A stone that gives something: pieces, blows of a basic pickaxe, experience."""

    gives: str
    pieces: tuple[int, int]
    blows: int
    experience: int


@dataclass(frozen=True)
class Monster:
    """A monster; ``speed`` in tiles a second, ``moves`` names how it moves."""

    health: int
    damage: int
    resilience: int
    speed: float
    experience: int
    moves: str
    drops: Chances


@dataclass(frozen=True)
class Quest:
    """A quest of the story: what ends it (kind, what, number), gold, and what follows."""

    title: str
    ends: tuple[str, str, int]
    reward: int
    follows: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class HelpWanted:
    """What people ask for on the notice board."""

    collect: Amounts
    slay: Amounts
    delivery: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Letter:
    """A letter: who writes what, what lies in it, what it teaches, what it starts."""

    sender: str
    text: str
    item: str | None
    count: int
    recipe: str | None
    quest: str | None


@dataclass(frozen=True)
class Channel:
    """A television channel; no weekdays means every day."""

    title: str
    weekdays: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Bundle:
    """A bundle of the community centre; ``slots`` of its items complete it, 0 means all."""

    id: int
    reward: str
    pieces: int
    slots: int
    items: Amounts


@dataclass(frozen=True)
class Project:
    """A repair: its number, its price with Joja, and the room whose bundles do the same."""

    id: int
    price: int
    room: str


@dataclass(frozen=True)
class Content:
    """Everything of ``data/``, by name. Loaded once by ``bridges.stardojo.valley.data.content``."""

    items: Mapping[str, Item]
    weapons: Mapping[str, Weapon]
    crops: Mapping[str, Crop]
    mixed: Mapping[str, tuple[str, ...]]
    fruit_trees: Mapping[str, FruitTree]
    wild_trees: Mapping[str, WildTree]
    fertilizers: Mapping[str, Fertilizer]
    forage: Mapping[str, Mapping[str, Chances]]
    spots: Mapping[str, Chances]
    crafting: Mapping[str, Recipe]
    cooking: Mapping[str, Recipe]
    machines: Mapping[str, Mapping[str, Product]]
    shops: Mapping[str, Shop]
    everyone: Mapping[str, tuple[str, ...]]
    points: Amounts
    quality: tuple[float, ...]
    residents: Mapping[str, Resident]
    talk: tuple[tuple[int, str], ...]
    thanks: Mapping[str, str]
    animals: Mapping[str, Animal]
    rules: Amounts
    buildings: Mapping[str, Building]
    house: Mapping[int, Upgrade]
    backpack: Mapping[str, Pack]
    upgrades: Mapping[str, Upgrade]
    ladder: Chances
    floor: FloorRule
    areas: tuple[Area, ...]
    from_floor: Amounts
    nodes: Mapping[str, Node]
    chests: Mapping[int, str]
    monsters: Mapping[str, Monster]
    geodes: Mapping[str, Chances]
    geode_price: int
    quests: Mapping[str, Quest]
    help: HelpWanted
    letters: Mapping[str, Letter]
    mail: tuple[tuple[str, str, int, int], ...]
    television: Mapping[str, Channel]
    tips: tuple[str, ...]
    moods: tuple[str, ...]
    prizes: tuple[tuple[str, int], ...]
    rooms: Mapping[str, tuple[str, ...]]
    bundles: Mapping[str, Bundle]
    projects: Mapping[str, Project]
    joja: Amounts
    museum: Mapping[int, tuple[str, int]]
    levels: tuple[int, ...]
    professions: Mapping[str, Mapping[str, tuple[str, ...]]]
    profession_ids: Amounts
    by_id: Mapping[str, Item] = field(default_factory=dict)
    by_name: Mapping[str, Item] = field(default_factory=dict)
