"""Names in the valley's content, with the tables that they refer to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from bridges.stardojo.rules.world import SEASONS, WEEKDAYS

SKILLS = ("farming", "fishing", "foraging", "mining", "combat")
_LEARNED = (
    *("starter", "shop", "television", "special order", "museum", "cellar", "festival", "letter"),
    *("greenhouse", "desert trader", "island trader", "travelling cart"),
    *(f"{skill} {word}" for skill in SKILLS for word in ("level", "mastery")),
)
_REACHED = ("year", "friend", "mine", "dating", "rain", "house", "days")
_CONDITIONS = (*SEASONS, *WEEKDAYS, *SKILLS, *_REACHED)
_DAYS = ("default", "rain", *SEASONS, *WEEKDAYS, *map(str, range(1, 29)))


@dataclass(frozen=True)
class Names:
    """The valid values of a name: the entries of a table, or some words.

    Attributes:
        table: of ``Content``, or ``categories`` of items; in ``<>`` a category stands for its
            items.
        words: valid beside the names of the table.
        parts: the names in the text.
    """

    table: str = ""
    words: Sequence[str] = ()
    parts: Callable[[str], Sequence[str]] = lambda text: [text]


def _first(text: str) -> Sequence[str]:
    return text.split()[:1]


def _learned(text: str) -> Sequence[str]:
    word, _, level = text.rpartition(" ")
    return [f"{word} level" if word in SKILLS else word] if level.isdigit() else [text]


Item = Annotated[str, Names("items")]
Monster = Annotated[str, Names("monsters")]
Season = Annotated[str, Names(words=SEASONS)]
Weekday = Annotated[str, Names(words=WEEKDAYS)]
Materials = Mapping[Item, int]
Profession = Annotated[str, Names("profession_ids")]
ItemChances = Mapping[Item, float]
Learned = Annotated[str, Names("residents", _LEARNED, _learned)]
Condition = Annotated[str, Names(words=_CONDITIONS, parts=_first)]
Birthday = Annotated[str, Names(words=SEASONS, parts=_first)]
Days = Annotated[str, Names(words=_DAYS, parts=str.split)]
Quest = Annotated[str, Names("quests")]
Building = Annotated[str, Names("buildings")]
Resident = Annotated[str, Names("residents")]
BundleItem = Annotated[str, Names("items", ("gold",))]
Taken = Annotated[str, Names("items", ("laid", "dug"))]
Crafting = Annotated[str, Names("crafting")]
Letter = Annotated[str, Names("letters")]
Room = Annotated[str, Names("rooms")]
Bundle = Annotated[str, Names("bundles")]
Shop = Annotated[str, Names("shops")]
Skill = Annotated[str, Names(words=SKILLS)]
