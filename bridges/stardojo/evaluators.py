"""StarDojo's evaluators: how far a task is, from the observations of the game.

``RULES`` has two rules for each. The *released* ones are functions of two observations, with the
quirks of the released code: positions are compared whatever map they are of, what leaves a list and
comes back counts again, any loss of an item is a sale.

The *strict* ones compare with the observation at the reset, so the first step counts. What is
counted has an identity (a tile with its map, an animal, a building) and counts once, however often
it leaves and comes back. Items count only if they came or went as the task says.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from bridges.stardojo import facts
from bridges.stardojo.facts import Observation, count, held, kinds, location, money, point

if TYPE_CHECKING:
    from bridges.stardojo.task_row import TaskRow

Change = Callable[["TaskRow", Observation, Observation], float]
"""From the task, the last and the present observation to the change of the count."""
Level = Callable[["TaskRow", Observation], float]
"""From the task and an observation to the count."""
STICKY, ABSOLUTE, FIRST = "sticky", "absolute", "absolute from the first call"
Released: TypeAlias = Change | tuple[str, Level]
"""The change of the count; or how the count itself is used, and the count."""

IDENTITIES, LEVEL, GAIN = "identities", "level", "gain"
"""What a strict rule returns: the identities that were achieved in the step, which are collected;
a level compared with the reset, of which the highest counts; or the gain of the step, which is
added."""

DEBRIS = {"Weeds", "Stone", "Twig"}
PROJECTS = ("Greenhouse", "Bridge Repair", "Glittering Boulder Removed", "Minecarts Repaired",
            "Bus Repair")  # fmt: skip


def rises(level: Level) -> Change:
    """Returns the rule that counts what is gained, and never loses it."""
    return lambda task, last, now: max(level(task, now) - level(task, last), 0)


def falls(level: Level) -> Change:
    """Returns the rule that counts what is lost, and never gets it back."""
    return lambda task, last, now: max(level(task, last) - level(task, now), 0)


def differs(level: Level) -> Change:
    """Returns the rule that counts both ways."""
    return lambda task, last, now: level(task, now) - level(task, last)


def _clear_released(task: TaskRow, last: Observation, now: Observation) -> float:
    if task.object == "Stone":
        return max(held(now, {"Stone"}) - held(last, {"Stone"}), 0)
    names = DEBRIS if task.object == "Debris" else {task.object}
    before, after = facts.tiles(last, "object_at_tile"), facts.tiles(now, "object_at_tile")
    return count(before, lambda p: before[p] in names and p in after and after[p] not in names)


def _terrain_released(kind: str) -> Change:
    """Returns the rule that counts tiles that have a terrain now and had another."""

    def change(task: TaskRow, last: Observation, now: Observation) -> float:
        before, after = facts.tiles(last, "terrain_at_tile"), facts.tiles(now, "terrain_at_tile")
        return count(after, lambda p: after[p] == kind and p in before and before[p] != kind)

    return change


def items(task: TaskRow, seen: Observation) -> float:
    """Returns how many of the items of the task are held."""
    return held(seen, {task.object})


def _tool(task: TaskRow, seen: Observation) -> float:
    return held(seen, {task.tool or ""})


def _sow_released(task: TaskRow, last: Observation, now: Observation) -> float:
    if task.object == "Tile":
        return _terrain_released(facts.FRUIT_TREE)(task, last, now)
    return rises(_sown)(task, last, now)


def _sown(task: TaskRow, seen: Observation) -> float:
    young = [each for each in facts.crops(seen) if each.get("current_phase") == 0]
    return count(young, lambda each: each["seed"] == task.tool)


def _wet(task: TaskRow, seen: Observation) -> float:
    wet = [each for each in facts.crops(seen) if each.get("isWatered")]
    return count(wet, lambda each: task.object in ("Crop", each["seed"]))


def _doors_released(wanted: bool) -> Level:
    def level(task: TaskRow, seen: Observation) -> float:
        types = task.object.split(", ") if "Deluxe" in task.object else [task.object]
        doors = [e.get("isAnimalDoorOpen") for e in facts.buildings(seen) if e.get("type") in types]
        return count(doors, lambda each: each is wanted)

    return level


def petted(task: TaskRow, each: Mapping[str, object]) -> bool:
    """Returns whether an animal or pet counts for a task to pet some."""
    return bool(each.get("isTouched")) and task.object in ("Animal", each.get("Type"))


def full(task: TaskRow, each: Mapping[str, object]) -> bool:
    """Returns whether a building counts for a task to fill benches or bowls."""
    if task.object == "Feeding Bench":
        return each.get("type") in ("Deluxe Coop", "Deluxe Barn") and each.get("hayNumber") == 12
    return each.get("type") == task.object and bool(each.get("isBowlFull"))


def _animals(task: TaskRow, seen: Observation) -> float:
    return count(facts.animals(seen), lambda each: each.get("Type") in kinds(task.object))


def animal_friendship(task: TaskRow, seen: Observation) -> float:
    """Returns the friendship of the first animal of a type; of ``Animal`` how many have 100."""
    all_of_them = facts.creatures(seen)
    if task.object == "Animal":
        return count(all_of_them, lambda each: (each.get("Friendship") or 0) >= 100)
    mine = [each for each in all_of_them if each.get("Type") == task.object]
    return float(mine[0].get("Friendship") or 0) if mine else 0.0


def happy(task: TaskRow, seen: Observation) -> float:
    """Returns how many animals could not be happier."""
    return count(facts.animals(seen), lambda each: (each.get("Happiness") or 0) >= 255)


def _profession_released(task: TaskRow, seen: Observation) -> float:
    return count(facts.names_of(seen, "Professions"), lambda each: task.object in each)


def skill_level(name: str) -> Level:
    """Returns the level of a skill as a count; without a name, of the one the task is about."""
    by_task = {"Foraging Skill": "Foraging", "Mining Skill": "Mining"}
    return lambda task, seen: facts.skill(seen, name or by_task.get(task.object, "Fishing"))


def hay(task: TaskRow, seen: Observation) -> float:
    """Returns the hay in the first silo."""
    silos = [each for each in facts.buildings(seen) if each.get("type") == "Silo"]
    return float(silos[0].get("hayNumber") or 0) if silos else 0.0


def at_place(task: TaskRow, seen: Observation) -> float:
    """Returns 1 on the map that the task names."""
    return float(facts.location(seen) == task.object)


def museum(task: TaskRow, seen: Observation) -> float:
    """Returns how many pieces the museum has, or whether it has a certain one."""
    pieces = facts.listed(facts.progression(seen, "Museum"))
    if task.object == "Item":
        return len(pieces)
    return float(any(each.get("itemName") == task.object for each in pieces))


def _museum_released(task: TaskRow, last: Observation, now: Observation) -> float:
    return (differs if task.object == "Item" else rises)(museum)(task, last, now)


def joja(task: TaskRow, seen: Observation) -> float:
    """Returns 1 if what the task wants of JojaMart is done."""
    if task.object == "Joja Membership":
        return float(bool(facts.progression(seen, "JojaMembership")))
    if task.object == "Movie Theater":
        return float(bool(facts.progression(seen, "MovieTheater")))
    wanted = PROJECTS if "Form" in task.object else (task.object,)
    return float(all(facts.completed(seen, "Repairs", "project", each) for each in wanted))


def flag(part: str, field: str) -> Level:
    """Returns whether a bundle or project is completed, as a count."""
    return lambda task, seen: facts.completed(seen, part, field, task.object)


def _room_in_log(task: TaskRow, seen: Observation) -> float:
    return -len(facts.quests(seen))


def _finished(task: TaskRow, seen: Observation) -> float:
    return count(facts.quests(seen), lambda each: each.get("completed"))


def pending(task: TaskRow, seen: Observation) -> float:
    """Returns whether the quest of the task is in the log and not completed."""
    mine = [each for each in facts.quests(seen) if str(each.get("id")) == task.object]
    return float(any(not each.get("completed") for each in mine))


def forecast(task: TaskRow, seen: Observation) -> float:
    """Returns whether a dialogue tells the forecast."""
    said = facts.menu(seen).get("dialogues")
    return float(isinstance(said, list) and bool(said) and "forecast" in str(said[0]))


def reads(task: TaskRow, seen: Observation) -> float:
    """Returns whether a letter is open."""
    return facts.menu(seen).get("type") == "Letter"


def accepted(task: TaskRow, seen: Observation) -> float:
    """Returns how many quests of the log have no id, which are those of the board."""
    return count(facts.quests(seen), lambda each: each.get("id") is None)


def _typed(task: TaskRow, seen: Observation) -> float:
    return count(facts.buildings(seen), lambda each: each.get("type") == task.object)


def _moved_released(task: TaskRow, last: Observation, now: Observation) -> float:
    places = {each.get("id"): point(each.get("position")) for each in facts.buildings(last)}
    mine = [each for each in facts.buildings(now) if each.get("type") == task.object]
    return count(
        mine,
        lambda each: (
            each.get("id") in places and places[each.get("id")] != point(each.get("position"))
        ),
    )


def farmhouse(task: TaskRow, seen: Observation) -> float:
    """Returns the level of the farmhouse."""
    houses = [each for each in facts.buildings(seen) if each.get("type") == "Farmhouse"]
    return float(houses[0].get("upgradeLevel") or 0) if houses else 0.0


def partner(field: str) -> Level:
    """Returns whether the resident of the task is among the partners of the player."""
    return lambda task, seen: task.object in facts.names_of(seen, field)


def resident_friendship(task: TaskRow, seen: Observation) -> float:
    """Returns the friendship of the resident of the task."""
    return float(facts.resident(seen, task.object).get("Friendship") or 0)


def _of_resident(field: str) -> Level:
    return lambda task, seen: bool(facts.resident(seen, task.object).get(field))


def _counted(
    rows: Callable[[Observation], list[Mapping[str, object]]], keep: Callable[..., bool]
) -> Level:
    return lambda task, seen: count(rows(seen), lambda each: keep(task, each))


def slots(task: TaskRow, seen: Observation) -> float:
    """Returns the number of slots of the backpack."""
    return len(seen["Player"].get("Inventory") or ())


# The strict rules.


class Step(NamedTuple):
    """A task with the observations at the reset, before a step and after it."""

    task: TaskRow
    base: Observation
    last: Observation
    now: Observation

    @property
    def same_map(self) -> bool:
        """True if the player is on the map where it was before the step."""
        return location(self.last) == location(self.now)

    @property
    def earned(self) -> int:
        """Money that the step brought; negative if it cost some."""
        return money(self.now) - money(self.last)

    def gained(self, name: str) -> int:
        """Returns how many more items of a name are held than before the step."""
        return held(self.now, {name}) - held(self.last, {name})


Identities = Callable[[Step], set[Hashable]]
Number = Callable[[Step], float]
Strict: TypeAlias = tuple[str, Identities | Number]
"""What the rule returns, and the rule."""
_Thing: TypeAlias = Mapping[str, Any]

_REAL = {"Unknown_20": "Blacksmith", "Unknown_21": "Prospector", "Unknown_22": "Excavator",
         "Unknown_23": "Gemologist", "Unknown_24": "Fighter", "Unknown_25": "Scout"}  # fmt: skip
"""Professions whose ids the mod has no names for."""
_BIN = "Shipping Bin"
_REACH = 2  # tiles from which the shipping bin can be used, counted from its left tile


def _tiles(step: Step, field: str, hit: Callable[[str, str], bool]) -> set[Hashable]:
    if not step.same_map:
        return set()
    before, after = facts.tiles(step.last, field), facts.tiles(step.now, field)
    both = [place for place in before if place in after]
    return {(location(step.now), place) for place in both if hit(before[place], after[place])}


def _clear(step: Step) -> set[Hashable]:
    names = DEBRIS if step.task.object == "Debris" else {step.task.object}
    return _tiles(step, "object_at_tile", lambda a, b: a in names and b not in names)


def _terrain(kind: str) -> Identities:
    return lambda step: _tiles(step, "terrain_at_tile", lambda a, b: a != kind and b == kind)


def _crops(seen: Observation, keep: Callable[[_Thing], bool]) -> set[Hashable]:
    return {(location(seen), point(c.get("position"))) for c in facts.crops(seen) if keep(c)}


def _sow(step: Step) -> set[Hashable]:
    if step.task.object == "Tile":
        return _terrain(facts.FRUIT_TREE)(step)
    if not step.same_map:
        return set()
    tool = step.task.tool
    sown = _crops(step.now, lambda c: c.get("current_phase") == 0 and c["seed"] == tool)
    return sown - _crops(step.last, lambda c: True)


def _water(step: Step) -> set[Hashable]:
    if not step.same_map or facts.days(step.last) != facts.days(step.now):
        return set()  # rain waters at night

    def wet(crop: _Thing) -> bool:
        return bool(crop.get("isWatered")) and step.task.object in ("Crop", crop["seed"])

    return _crops(step.now, wet) & _crops(step.last, lambda c: not c.get("isWatered"))


def _fertilize(step: Step) -> float:
    lost = -step.gained(step.task.tool or "")
    trades = any(facts.menu(each).get("type") in ("Chest", "ShopMenu") for each in step[2:])
    if lost <= 0 or not step.same_map or step.earned > 0 or trades:
        return 0
    x, y = point(step.now["Player"].get("Position")) or (0, 0)
    dirt = [
        place
        for place, terrain in facts.tiles(step.now, "terrain_at_tile").items()
        if terrain == _TILLED and max(abs(place[0] - x), abs(place[1] - y)) <= _REACH
    ]
    return min(lost, len(dirt))


def _made(step: Step) -> float:
    """Items that came in other ways than for money, less those that were put away, not sold."""
    change = step.gained(step.task.object)
    if change < 0:
        return 0 if step.earned > 0 or _at_bin(step.now) else change
    return 0 if step.earned < 0 else change


def _bought(step: Step) -> float:
    return max(step.gained(step.task.object), 0) if step.earned < 0 else 0


def _sold(step: Step) -> float:
    binned = _at_bin(step.now) and step.same_map
    sold = binned if step.task.tool == _BIN else step.earned > 0
    return max(-step.gained(step.task.object), 0) if sold else 0


def _at_bin(seen: Observation) -> bool:
    bins = [point(b.get("position")) for b in facts.buildings(seen) if b.get("type") == _BIN]
    here = point(seen["Player"].get("Position"))
    if location(seen) != "Farm" or here is None:
        return False
    return any(b and max(abs(here[0] - b[0]), abs(here[1] - b[1])) <= _REACH for b in bins)


def _broken(step: Step) -> float:
    return max(-step.gained(step.task.object), 0) if step.earned < 0 else 0


def _buildings(keep: Callable[[TaskRow, _Thing], bool]) -> Identities:
    """Buildings that are so now and were not before the step."""

    def found(step: Step) -> set[Hashable]:
        before = {each.get("id"): keep(step.task, each) for each in facts.buildings(step.last)}
        mine = [each for each in facts.buildings(step.now) if keep(step.task, each)]
        return {each.get("id") for each in mine if before.get(each.get("id")) is False}

    return found


def _door(wanted: bool) -> Identities:
    return _buildings(
        lambda task, each: (
            each.get("type") in task.object.split(", ")
            and bool(each.get("isAnimalDoorOpen")) is wanted
        )
    )


def _name(each: _Thing) -> Hashable:
    return each.get("Type"), each.get("Name")


def _pet(step: Step) -> set[Hashable]:
    # A pet that is not on the farm is not listed; one that returns was petted where no one saw it.
    before = {_name(each) for each in facts.creatures(step.last) if each.get("isTouched")}
    return {_name(e) for e in facts.creatures(step.now) if petted(step.task, e)} - before


def _herd(task: TaskRow, seen: Observation) -> set[Hashable]:
    return {_name(e) for e in facts.animals(seen) if e.get("Type") in kinds(task.object)}


def _hatched(step: Step) -> set[Hashable]:
    new = _herd(step.task, step.now) - _herd(step.task, step.last)
    return set() if step.earned < 0 else new


def _purchased(step: Step) -> set[Hashable]:
    new = _herd(step.task, step.now) - _herd(step.task, step.base)
    return new if money(step.now) < money(step.base) else set()


def _gone(step: Step) -> set[Hashable]:
    left = _herd(step.task, step.last) - _herd(step.task, step.now)
    return left & _herd(step.task, step.base) if step.earned > 0 else set()


def _since(level: Level) -> Strict:
    return LEVEL, lambda step: level(step.task, step.now) - level(step.task, step.base)


def _state(level: Level) -> Strict:
    return LEVEL, lambda step: level(step.task, step.now)


def _befriended(step: Step) -> float:
    if step.task.object == "Animal":
        return animal_friendship(step.task, step.now)
    before = {_name(e): e.get("Friendship") or 0 for e in facts.creatures(step.base)}
    mine = [e for e in facts.creatures(step.now) if e.get("Type") == step.task.object]
    return max(((e.get("Friendship") or 0) - before.get(_name(e), 0) for e in mine), default=0)


def _slept(step: Step) -> float:
    late = int(step.last["GameState"].get("Time") or 0) >= 2600
    new_day = facts.days(step.now) > facts.days(step.base)
    return float(new_day and location(step.now) == "FarmHouse" and not late)


def _silo(step: Step) -> float:
    gain = hay(step.task, step.now) - hay(step.task, step.last)
    return gain if gain > 0 and step.gained("Hay") >= 0 else 0


def _profession(step: Step) -> float:
    def has(seen: Observation) -> bool:
        return step.task.object in {_REAL.get(e, e) for e in facts.names_of(seen, "Professions")}

    return float(has(step.now) and not has(step.base))


def _quests(seen: Observation, done: bool) -> list[str]:
    return [str(q.get("id")) for q in facts.quests(seen) if bool(q.get("completed")) is done]


def _left(done: bool) -> Number:
    """Returns the rule that counts quests, completed or not, that left the log."""

    def gain(step: Step) -> float:
        before, after = _quests(step.last, done), _quests(step.now, True) + _quests(step.now, False)
        return sum(max(before.count(e) - after.count(e), 0) for e in set(before))

    return gain


def _helped(step: Step) -> float:
    # The quests of the board have no id; a story quest has one.
    before, after = (_quests(seen, True).count("None") for seen in step[2:])
    return max(after - before, 0)


def _story(step: Step) -> float:
    # A quest without a reward leaves the log when it is completed. Stories cannot be cancelled.
    return float(bool(pending(step.task, step.last)) and not pending(step.task, step.now))


def _built(task: TaskRow, seen: Observation) -> dict[Hashable, facts.Tile | None]:
    mine = [each for each in facts.buildings(seen) if each.get("type") == task.object]
    return {each.get("id"): point(each.get("position")) for each in mine}


def _moved(step: Step) -> set[Hashable]:
    before, after = _built(step.task, step.last), _built(step.task, step.now)
    return {each for each in before.keys() & after.keys() if before[each] != after[each]}


def _talked(step: Step) -> float:
    then, today = (facts.resident(seen, step.task.object) for seen in step[2:])
    return float(bool(today.get("isTalked")) and not then.get("isTalked"))


def _given(step: Step) -> float:
    then, today = (facts.resident(seen, step.task.object) for seen in step[2:])
    gifts = (today.get("GiftsToday") or 0) - (then.get("GiftsToday") or 0)
    lost = -step.gained(step.task.tool) if step.task.tool else gifts
    return max(min(gifts, lost), 0)


def _kills(task: TaskRow, seen: Observation) -> float:
    return facts.kills(seen, task.object)


def _backpack(step: Step) -> float:
    return (slots(step.task, step.now) - slots(step.task, step.base)) / 12


_TILLED = facts.HOE_DIRT
_LEVEL_OF = skill_level("")  # the skill that the task is about
_BUNDLE, _REPAIR = flag("Bundles", "name"), flag("Repairs", "project")
_DATES, _SPOUSE = partner("DatingPartners"), partner("Spouse")

RULES: Mapping[tuple[str, str], tuple[Released, Strict]] = {
    ("farming", "clear"): (_clear_released, (IDENTITIES, _clear)),
    ("farming", "till"): (_terrain_released(_TILLED), (IDENTITIES, _terrain(_TILLED))),
    ("farming", "sow"): (_sow_released, (IDENTITIES, _sow)),
    ("farming", "water"): (rises(_wet), (IDENTITIES, _water)),
    ("farming", "fertilize"): (falls(_tool), (GAIN, _fertilize)),
    ("farming", "harvest"): (rises(items), (GAIN, _made)),
    ("farming", "skill"): (differs(skill_level("Farming")), _since(skill_level("Farming"))),
    ("farming", "open"): (rises(_doors_released(True)), (IDENTITIES, _door(True))),
    ("farming", "close"): (rises(_doors_released(False)), (IDENTITIES, _door(False))),
    ("farming", "pet"): (rises(_counted(facts.creatures, petted)), (IDENTITIES, _pet)),
    ("farming", "fill"): (rises(_counted(facts.buildings, full)), (IDENTITIES, _buildings(full))),
    ("farming", "incubate"): (rises(_animals), (IDENTITIES, _hatched)),
    ("farming", "friendship"): ((ABSOLUTE, animal_friendship), (LEVEL, _befriended)),
    ("farming", "mood"): ((ABSOLUTE, happy), _state(happy)),
    ("farming", "profession"): (rises(_profession_released), (LEVEL, _profession)),
    ("crafting", "craft"): ((FIRST, items), (GAIN, _made)),
    ("combat", "kill"): (differs(_kills), _since(_kills)),
    ("combat", "skill"): (differs(skill_level("Combat")), _since(skill_level("Combat"))),
    ("combat", "profession"): (rises(_profession_released), (LEVEL, _profession)),
    ("exploration", "harvest"): (rises(items), (GAIN, _made)),
    ("exploration", "exchange"): (rises(items), (GAIN, _made)),
    ("exploration", "silo"): (rises(hay), (GAIN, _silo)),
    ("exploration", "skill"): (differs(_LEVEL_OF), _since(_LEVEL_OF)),
    ("exploration", "profession"): (rises(_profession_released), (LEVEL, _profession)),
    ("exploration", "location"): ((STICKY, at_place), _state(at_place)),
    ("exploration", "sleep"): ((STICKY, lambda task, seen: facts.days(seen) > 1), (LEVEL, _slept)),
    ("exploration", "bundle"): (rises(_BUNDLE), _since(_BUNDLE)),
    ("exploration", "museum"): (_museum_released, _since(museum)),
    ("exploration", "repair"): (rises(_REPAIR), _since(_REPAIR)),
    ("exploration", "accept"): (rises(accepted), _since(accepted)),
    ("exploration", "quit"): (differs(_room_in_log), (GAIN, _left(False))),
    ("exploration", "reward"): (falls(_finished), (GAIN, _left(True))),
    ("exploration", "complete_help"): (rises(_finished), (GAIN, _helped)),
    ("exploration", "complete_story"): (falls(pending), (LEVEL, _story)),
    ("exploration", "watch"): ((STICKY, forecast), _state(forecast)),
    ("exploration", "read"): ((STICKY, reads), _state(reads)),
    ("social", "sell"): (falls(items), (GAIN, _sold)),
    ("social", "break"): (falls(items), (GAIN, _broken)),
    ("social", "retrieve"): (rises(items), (GAIN, _made)),
    ("social", "purchase"): (rises(items), (GAIN, _bought)),
    ("social", "harvest"): (rises(items), (GAIN, _made)),
    ("social", "upgrade_tool"): (rises(items), _since(items)),
    ("social", "jojamart"): (differs(joja), _since(joja)),
    ("social", "backpack"): (differs(slots), (LEVEL, _backpack)),
    ("social", "purchase_animal"): (rises(_animals), (IDENTITIES, _purchased)),
    ("social", "sell_animal"): (falls(_animals), (IDENTITIES, _gone)),
    ("social", "build"): (
        rises(_typed),
        (IDENTITIES, lambda s: {*_built(s.task, s.now)} - {*_built(s.task, s.base)}),
    ),
    ("social", "demolish"): (
        falls(_typed),
        (IDENTITIES, lambda s: {*_built(s.task, s.base)} - {*_built(s.task, s.now)}),
    ),
    ("social", "move"): (_moved_released, (IDENTITIES, _moved)),
    ("social", "upgrade_farmhouse"): (rises(farmhouse), _since(farmhouse)),
    ("social", "talk"): (rises(_of_resident("isTalked")), (LEVEL, _talked)),
    ("social", "gift"): (rises(_of_resident("GiftsToday")), (GAIN, _given)),
    ("social", "date"): (rises(_DATES), _since(_DATES)),
    ("social", "breakup"): (falls(_DATES), _since(lambda task, seen: -_DATES(task, seen))),
    ("social", "propose"): (rises(_SPOUSE), _since(_SPOUSE)),
    ("social", "friendship"): ((ABSOLUTE, resident_friendship), _since(resident_friendship)),
    ("open", "human"): (lambda task, last, now: 0, (GAIN, lambda step: 0)),
}
"""The released and the strict rule by category and evaluator."""
