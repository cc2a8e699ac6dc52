"""The types of the valley's content: the rows of the files in ``data/valley/``.

A row is a list of the fields in their order here, without the name; fields with a default may
follow as a mapping at its end. ``bridges.stardojo.rules.content`` reads the files and checks that
every name leads somewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bridges.stardojo.rules import names

Amounts = Mapping[str, int]
Chances = Mapping[str, float]
TASTES = ("loves", "likes", "neutral", "dislikes", "hates")
KINDS = {"big": "BC", "furniture": "F", "tool": "T", "weapon": "W", "scythe": "W", "boots": "B",
         "hat": "H"}  # fmt: skip


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
        return 1 if self.category in ("tool", "weapon", "scythe", "ring", "boots", "hat") else 999


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
    """The plant of a seed: days of each phase of growth, seasons, and how it is harvested."""

    harvest: names.Item
    phases: tuple[int, ...]
    seasons: tuple[names.Season, ...]
    regrow: int | None = None
    yields: tuple[int, int] = (1, 1)
    extra: float = 0.0
    trellis: bool = False
    scythe: bool = False
    giant: bool = False
    wild: tuple[names.Item, ...] = ()


@dataclass(frozen=True)
class FruitTree:
    """A fruit tree: what it bears, in which season."""

    fruit: names.Item
    season: str


@dataclass(frozen=True)
class WildTree:
    """A wild tree: its seed, what a tapper draws from it, and in how many days."""

    seed: names.Item
    syrup: names.Item
    days: int


@dataclass(frozen=True)
class Fertilizer:
    """The effects of a fertilizer: steps of quality, chance to stay wet, share of days saved."""

    quality: int = 0
    keeps_water: float = 0.0
    speed: float = 0.0


@dataclass(frozen=True)
class Recipe:
    """A recipe; ``learned`` is a word, a skill with its level, or a friend."""

    needs: names.Materials
    learned: names.Learned
    makes: names.Item = ""
    count: int = 1


@dataclass(frozen=True)
class Product:
    """The product of a machine from one kind of input, after some minutes."""

    product: names.Item
    minutes: int
    takes: int = 1
    needs: names.Item | None = None
    count: int = 1


@dataclass(frozen=True)
class Offer:
    """One line of a shop: a price, and the conditions that must all hold (seasons: any of them).

    ``later`` is the price from the second year on, if it is another.
    """

    price: int
    conditions: tuple[names.Condition, ...] = ()
    limit: int | None = None
    later: int | None = None


@dataclass(frozen=True)
class Shop:
    """A counter: where, who must stand behind it and when, what it sells, buys and offers."""

    map: str
    counter: tuple[int, int]
    hours: tuple[int, int]
    stock: Mapping[names.Item, Offer]
    keeper: names.Resident | None = None
    closed: tuple[names.Weekday, ...] = ()
    menu: tuple[str, ...] = ("shop",)
    buys: tuple[names.Item, ...] = ()


@dataclass(frozen=True)
class Place:
    """The place of a resident from a time on; the tile is a hint."""

    time: int
    map: str
    x: int
    y: int


@dataclass(frozen=True)
class Resident:
    """A resident of the valley: birthday, home, tastes, and the places of each kind of day."""

    born: names.Birthday
    home: tuple[str, int, int]
    days: Mapping[names.Days, tuple[Place, ...]]
    datable: bool = False
    social: bool = True
    from_year: int = 1
    loves: tuple[names.Item, ...] = ()
    likes: tuple[names.Item, ...] = ()
    neutral: tuple[names.Item, ...] = ()
    dislikes: tuple[names.Item, ...] = ()
    hates: tuple[names.Item, ...] = ()

    def __post_init__(self) -> None:
        if "default" not in self.days:
            raise ValueError("days: there is no 'default'")


@dataclass(frozen=True)
class Animal:
    """A farm animal; days to grow up and for each product, and how products are taken."""

    house: names.Building
    size: int
    price: int
    grows: int
    every: int
    product: names.Item
    large: names.Item
    taken: names.Taken
    hatches: names.Item | None = None
    shop: str | None = None


@dataclass(frozen=True)
class Building:
    """A farm building: what it costs, days to build, its size in tiles; doors are tiles within."""

    gold: int
    materials: names.Materials
    days: int
    size: tuple[int, int]
    upgrades: names.Building | None = None
    animals: int = 0
    troughs: int = 0
    hay: int = 0
    door: tuple[int, int] | None = None
    gate: tuple[int, int] | None = None


@dataclass(frozen=True)
class Upgrade:
    """The cost of a better tool or a larger house."""

    gold: int
    materials: names.Materials


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
    geode: names.Item
    geode_chance: float
    coal: float
    ores: names.ItemChances
    gems: names.ItemChances
    forage: names.ItemChances
    dig: names.ItemChances
    monsters: Mapping[names.Monster, float]


@dataclass(frozen=True)
class FloorRule:
    """The contents of a floor: share of tiles with a stone; least and most monsters and forage.

    ``sure`` names monsters that are on all floors from one to another.
    """

    stones: float
    monsters: tuple[int, int]
    forage: tuple[int, int]
    sure: Mapping[names.Monster, tuple[int, int]]


@dataclass(frozen=True)
class Node:
    """A stone that gives something: pieces, blows of a basic pickaxe, experience."""

    gives: names.Item
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
    drops: names.ItemChances


@dataclass(frozen=True)
class Quest:
    """A quest of the story: what ends it (kind, what, number), gold, and what follows."""

    title: str
    ends: tuple[str, str, int]
    reward: int
    follows: tuple[names.Quest, ...]
    text: str


@dataclass(frozen=True)
class HelpWanted:
    """The requests on the notice board."""

    collect: names.Materials
    slay: Mapping[names.Monster, int]
    delivery: Mapping[str, tuple[names.Item, ...]]


@dataclass(frozen=True)
class Letter:
    """A letter: who writes what, what lies in it, what it teaches, what it starts."""

    sender: str
    text: str
    item: names.Item | None
    count: int
    recipe: names.Crafting | None
    quest: names.Quest | None


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
    reward: names.Item
    pieces: int
    slots: int
    items: Mapping[names.BundleItem, int]


@dataclass(frozen=True)
class Project:
    """A repair: its number, its price with Joja, and the room whose bundles do the same."""

    id: int
    price: int
    room: names.Room


@dataclass(frozen=True)
class Content:
    """Everything of ``data/valley/``, by name; ``content.content`` loads it once."""

    items: Mapping[str, Item]
    weapons: Mapping[str, Weapon]
    crops: Mapping[names.Item, Crop]
    mixed: Mapping[str, tuple[names.Item, ...]]
    fruit_trees: Mapping[names.Item, FruitTree]
    wild_trees: Mapping[str, WildTree]
    fertilizers: Mapping[names.Item, Fertilizer]
    forage: Mapping[str, Mapping[str, names.ItemChances]]
    spots: Mapping[str, names.ItemChances]
    crafting: Mapping[str, Recipe]
    cooking: Mapping[str, Recipe]
    machines: Mapping[names.Item, Mapping[names.Item, Product]]
    shops: Mapping[str, Shop]
    everyone: Mapping[str, tuple[names.Item, ...]]
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
    from_floor: Mapping[names.Monster, int]
    nodes: Mapping[names.Item, Node]
    chests: Mapping[int, names.Item]
    monsters: Mapping[str, Monster]
    geodes: Mapping[names.Item, names.ItemChances]
    geode_price: int
    quests: Mapping[str, Quest]
    help: HelpWanted
    letters: Mapping[str, Letter]
    mail: tuple[tuple[names.Letter, str, int, int], ...]
    television: Mapping[str, Channel]
    tips: tuple[str, ...]
    moods: tuple[str, ...]
    prizes: tuple[tuple[names.Item, int], ...]
    rooms: Mapping[str, tuple[names.Bundle, ...]]
    bundles: Mapping[str, Bundle]
    projects: Mapping[str, Project]
    joja: Amounts
    museum: Mapping[int, tuple[names.Item, int]]
    levels: tuple[int, ...]
    professions: Mapping[names.Skill, Mapping[names.Profession, tuple[names.Profession, ...]]]
    profession_ids: Amounts
    keepers: Mapping[str, tuple[str, tuple[int, int], names.Resident, tuple[int, int] | None]]
    cleared: Mapping[str, tuple[str, ...]]
    counters: tuple[names.Shop, ...]
    terrains: Mapping[str, str]
    services: Mapping[str, tuple[str, str]]
    not_gifts: tuple[str, ...]
    tools: Mapping[str, str]
    placed: Mapping[names.Item, str]
    rain: Mapping[names.Season, float]
    festivals: Mapping[names.Season, tuple[int, ...]]
    by_id: Mapping[str, Item] = field(default_factory=dict)
    by_name: Mapping[str, Item] = field(default_factory=dict)
