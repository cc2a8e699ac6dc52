"""StarDojo's evaluators as the released code has them: functions of two observations.

A rule says how far a task is: most by how much the count changes from one observation to the next,
some by the count itself. The quirks are those of the release and kept: positions are compared
whatever map they are of, what leaves a list and comes back counts again, any loss of an item is a
sale. ``strict`` has the rules without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from bridges.stardojo import facts
from bridges.stardojo.facts import Observation, count, held, kinds

if TYPE_CHECKING:
    from bridges.stardojo.task_row import TaskRow

Change = Callable[["TaskRow", Observation, Observation], float]
"""From the task, the last and the present observation to the change of the count."""
Level = Callable[["TaskRow", Observation], float]
"""From the task and an observation to the count."""

DEBRIS = {"Weeds", "Stone", "Twig"}
PROJECTS = ("Greenhouse", "Bridge Repair", "Glittering Boulder Removed", "Minecarts Repaired",
            "Bus Repair")  # fmt: skip


def cleared(last: Observation, now: Observation, names: set[str]) -> int:
    """Returns how many tiles had an object of these names and have none of them now."""
    before, after = facts.tiles(last, "object_at_tile"), facts.tiles(now, "object_at_tile")
    return count(before, lambda p: before[p] in names and p in after and after[p] not in names)


def added(last: Observation, now: Observation, terrain: str) -> int:
    """Returns how many tiles have this terrain now and had another."""
    before, after = facts.tiles(last, "terrain_at_tile"), facts.tiles(now, "terrain_at_tile")
    return count(after, lambda p: after[p] == terrain and p in before and before[p] != terrain)


def rises(level: Level) -> Change:
    """Returns the rule that counts what is gained, and never loses it."""
    return lambda task, last, now: max(level(task, now) - level(task, last), 0)


def falls(level: Level) -> Change:
    """Returns the rule that counts what is lost, and never gets it back."""
    return lambda task, last, now: max(level(task, last) - level(task, now), 0)


def differs(level: Level) -> Change:
    """Returns the rule that counts both ways."""
    return lambda task, last, now: level(task, now) - level(task, last)


def _clear(task: TaskRow, last: Observation, now: Observation) -> float:
    if task.object == "Stone":
        return max(held(now, {"Stone"}) - held(last, {"Stone"}), 0)
    return cleared(last, now, DEBRIS if task.object == "Debris" else {task.object})


def items(task: TaskRow, seen: Observation) -> float:
    """Returns how many of the items of the task are held."""
    return held(seen, {task.object})


def _tool(task: TaskRow, seen: Observation) -> float:
    return held(seen, {task.tool or ""})


def _sow(task: TaskRow, last: Observation, now: Observation) -> float:
    if task.object == "Tile":
        return added(last, now, facts.FRUIT_TREE)
    return rises(_sown)(task, last, now)


def _sown(task: TaskRow, seen: Observation) -> float:
    young = [each for each in facts.crops(seen) if each.get("current_phase") == 0]
    return count(young, lambda each: each["seed"] == task.tool)


def _watered(task: TaskRow, seen: Observation) -> float:
    wet = [each for each in facts.crops(seen) if each.get("isWatered")]
    return count(wet, lambda each: task.object in ("Crop", each["seed"]))


def doors(task: TaskRow) -> list[str]:
    """Returns the types of building that a task to open or close doors is about."""
    return task.object.split(", ") if "Deluxe" in task.object else [task.object]


def _doors(wanted: bool) -> Level:
    return lambda task, seen: count(
        facts.buildings(seen),
        lambda each: each.get("type") in doors(task) and each.get("isAnimalDoorOpen") is wanted,
    )


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


def _profession(task: TaskRow, seen: Observation) -> float:
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


def _museum(task: TaskRow, last: Observation, now: Observation) -> float:
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


def quests(seen: Observation) -> list[Mapping[str, object]]:
    """Returns the quests of the log."""
    return facts.listed(facts.progression(seen, "Quests"))


def _finished(task: TaskRow, seen: Observation) -> float:
    return count(quests(seen), lambda each: each.get("completed"))


def pending(task: TaskRow, seen: Observation) -> float:
    """Returns whether the quest of the task is in the log and not completed."""
    mine = [each for each in quests(seen) if str(each.get("id")) == task.object]
    return float(any(not each.get("completed") for each in mine))


def menu(seen: Observation) -> Mapping[str, object]:
    """Returns the open menu."""
    found = seen.get("CurrentMenuData")
    return found if isinstance(found, Mapping) else {}


def forecast(task: TaskRow, seen: Observation) -> float:
    """Returns whether a dialogue tells the forecast."""
    said = menu(seen).get("dialogues")
    return float(isinstance(said, list) and bool(said) and "forecast" in str(said[0]))


def reads(task: TaskRow, seen: Observation) -> float:
    """Returns whether a letter is open."""
    return menu(seen).get("type") == "Letter"


def accepted(task: TaskRow, seen: Observation) -> float:
    """Returns how many quests of the log have no id, which are those of the board."""
    return count(quests(seen), lambda each: each.get("id") is None)


def days(seen: Observation) -> int:
    """Returns how many days began since the game was loaded, the first included."""
    return int((seen.get("CallBackData") or {}).get("OnDayStarted") or 0)


def _typed(task: TaskRow, seen: Observation) -> float:
    return count(facts.buildings(seen), lambda each: each.get("type") == task.object)


def _moved(task: TaskRow, last: Observation, now: Observation) -> float:
    places = {each.get("id"): facts.point(each.get("position")) for each in facts.buildings(last)}
    mine = [each for each in facts.buildings(now) if each.get("type") == task.object]
    return count(
        mine,
        lambda each: (
            each.get("id") in places and places[each.get("id")] != facts.point(each.get("position"))
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


STICKY, ABSOLUTE, FIRST = "sticky", "absolute", "absolute from the first call"

RULES: Mapping[tuple[str, str], Change | tuple[str, Level]] = {
    ("farming", "clear"): _clear,
    ("farming", "till"): lambda task, last, now: added(last, now, facts.HOE_DIRT),
    ("farming", "sow"): _sow,
    ("farming", "water"): rises(_watered),
    ("farming", "fertilize"): falls(_tool),
    ("farming", "harvest"): rises(items),
    ("farming", "skill"): differs(skill_level("Farming")),
    ("farming", "open"): rises(_doors(True)),
    ("farming", "close"): rises(_doors(False)),
    ("farming", "pet"): rises(_counted(facts.creatures, petted)),
    ("farming", "fill"): rises(_counted(facts.buildings, full)),
    ("farming", "incubate"): rises(_animals),
    ("farming", "friendship"): (ABSOLUTE, animal_friendship),
    ("farming", "mood"): (ABSOLUTE, happy),
    ("farming", "profession"): rises(_profession),
    ("crafting", "craft"): (FIRST, items),
    ("combat", "kill"): differs(lambda task, seen: facts.kills(seen, task.object)),
    ("combat", "skill"): differs(skill_level("Combat")),
    ("combat", "profession"): rises(_profession),
    ("exploration", "harvest"): rises(items),
    ("exploration", "exchange"): rises(items),
    ("exploration", "silo"): rises(hay),
    ("exploration", "skill"): differs(skill_level("")),
    ("exploration", "profession"): rises(_profession),
    ("exploration", "location"): (STICKY, at_place),
    ("exploration", "sleep"): (STICKY, lambda task, seen: days(seen) > 1),
    ("exploration", "bundle"): rises(flag("Bundles", "name")),
    ("exploration", "museum"): _museum,
    ("exploration", "repair"): rises(flag("Repairs", "project")),
    ("exploration", "accept"): rises(accepted),
    ("exploration", "quit"): lambda task, last, now: len(quests(last)) - len(quests(now)),
    ("exploration", "reward"): falls(_finished),
    ("exploration", "complete_help"): rises(_finished),
    ("exploration", "complete_story"): falls(pending),
    ("exploration", "watch"): (STICKY, forecast),
    ("exploration", "read"): (STICKY, reads),
    ("social", "sell"): falls(items),
    ("social", "break"): falls(items),
    ("social", "retrieve"): rises(items),
    ("social", "purchase"): rises(items),
    ("social", "harvest"): rises(items),
    ("social", "upgrade_tool"): rises(items),
    ("social", "jojamart"): differs(joja),
    ("social", "backpack"): differs(slots),
    ("social", "purchase_animal"): rises(_animals),
    ("social", "sell_animal"): falls(_animals),
    ("social", "build"): rises(_typed),
    ("social", "demolish"): falls(_typed),
    ("social", "move"): _moved,
    ("social", "upgrade_farmhouse"): rises(farmhouse),
    ("social", "talk"): rises(_of_resident("isTalked")),
    ("social", "gift"): rises(_of_resident("GiftsToday")),
    ("social", "date"): rises(partner("DatingPartners")),
    ("social", "breakup"): falls(partner("DatingPartners")),
    ("social", "propose"): rises(partner("Spouse")),
    ("social", "friendship"): (ABSOLUTE, resident_friendship),
    ("open", "human"): lambda task, last, now: 0,
}
"""The rules by category and evaluator: of the change, or of the count (see ``judging``)."""
