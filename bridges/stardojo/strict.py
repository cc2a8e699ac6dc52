"""StarDojo's evaluators without their quirks.

Every rule compares with the observation at the reset, so the first step counts. What is counted has
an identity (a tile with its map, an animal, a building) and counts once, however often it leaves
and comes back. Items count only if they came or went as the task says.

A rule is one of three: the *identities* that were achieved in the step, which are collected; the
*level* compared with the reset, of which the highest counts; or the *gain* of the step, which is
added.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any

from bridges.stardojo import evaluators, facts
from bridges.stardojo.facts import Observation, held, kinds, location, money, point

if TYPE_CHECKING:
    from bridges.stardojo.task_row import TaskRow

Identities = Callable[["TaskRow", Observation, Observation, Observation], set[Hashable]]
Number = Callable[["TaskRow", Observation, Observation, Observation], float]
"""From the task, the observations at the reset, before and after the step."""

IDENTITIES, LEVEL, GAIN = "identities", "level", "gain"

_REAL = {"Unknown_20": "Blacksmith", "Unknown_21": "Prospector", "Unknown_22": "Excavator",
         "Unknown_23": "Gemologist", "Unknown_24": "Fighter", "Unknown_25": "Scout"}  # fmt: skip
"""Professions whose ids the mod has no names for."""
_BIN = "Shipping Bin"
_REACH = 2  # tiles from which the shipping bin can be used, counted from its left tile


def _same_map(last: Observation, now: Observation) -> bool:
    return location(last) == location(now)


def _tiles(
    last: Observation, now: Observation, field: str, hit: Callable[[str, str], bool]
) -> set[Hashable]:
    if not _same_map(last, now):
        return set()
    before, after = facts.tiles(last, field), facts.tiles(now, field)
    both = [place for place in before if place in after]
    return {(location(now), place) for place in both if hit(before[place], after[place])}


def _clear(task: TaskRow, base: Observation, last: Observation, now: Observation) -> set[Hashable]:
    names = evaluators.DEBRIS if task.object == "Debris" else {task.object}
    return _tiles(last, now, "object_at_tile", lambda a, b: a in names and b not in names)


def _terrain(kind: str) -> Identities:
    return lambda task, base, last, now: _tiles(
        last, now, "terrain_at_tile", lambda a, b: a != kind and b == kind
    )


def _crops(seen: Observation, keep: Callable[[Mapping[str, Any]], bool]) -> set[Hashable]:
    return {(location(seen), point(c.get("position"))) for c in facts.crops(seen) if keep(c)}


def _sow(task: TaskRow, base: Observation, last: Observation, now: Observation) -> set[Hashable]:
    if task.object == "Tile":
        return _terrain(facts.FRUIT_TREE)(task, base, last, now)
    if not _same_map(last, now):
        return set()
    sown = _crops(now, lambda c: c.get("current_phase") == 0 and c["seed"] == task.tool)
    return sown - _crops(last, lambda c: True)


def _water(task: TaskRow, base: Observation, last: Observation, now: Observation) -> set[Hashable]:
    if not _same_map(last, now) or evaluators.days(last) != evaluators.days(now):
        return set()  # rain waters at night

    def wet(crop: Mapping[str, Any]) -> bool:
        return bool(crop.get("isWatered")) and task.object in ("Crop", crop["seed"])

    return _crops(now, wet) & _crops(last, lambda c: not c.get("isWatered"))


def _fertilize(task: TaskRow, base: Observation, last: Observation, now: Observation) -> float:
    lost = held(last, {task.tool or ""}) - held(now, {task.tool or ""})
    if lost <= 0 or not _same_map(last, now) or money(now) > money(last) or _menus(last, now):
        return 0
    here = point(now["Player"].get("Position")) or (0, 0)
    dirt = [
        place
        for place, terrain in facts.tiles(now, "terrain_at_tile").items()
        if terrain == facts.HOE_DIRT
        and max(abs(place[0] - here[0]), abs(place[1] - here[1])) <= _REACH
    ]
    return min(lost, len(dirt))


def _menus(*seen: Observation) -> bool:
    return any(evaluators.menu(each).get("type") in ("Chest", "ShopMenu") for each in seen)


def _made(task: TaskRow, base: Observation, last: Observation, now: Observation) -> float:
    """Items that came in other ways than for money, less those that were put away, not sold."""
    change = held(now, {task.object}) - held(last, {task.object})
    if change < 0:
        return 0 if money(now) > money(last) or _at_bin(now) else change
    return 0 if money(now) < money(last) else change


def _bought(task: TaskRow, base: Observation, last: Observation, now: Observation) -> float:
    change = held(now, {task.object}) - held(last, {task.object})
    return change if change > 0 and money(now) < money(last) else 0


def _sold(task: TaskRow, base: Observation, last: Observation, now: Observation) -> float:
    lost = held(last, {task.object}) - held(now, {task.object})
    if lost <= 0:
        return 0
    if task.tool == _BIN:
        return lost if _at_bin(now) and _same_map(last, now) else 0
    return lost if money(now) > money(last) else 0


def _at_bin(seen: Observation) -> bool:
    bins = [point(b.get("position")) for b in facts.buildings(seen) if b.get("type") == _BIN]
    here = point(seen["Player"].get("Position"))
    if location(seen) != "Farm" or here is None:
        return False
    return any(b and max(abs(here[0] - b[0]), abs(here[1] - b[1])) <= _REACH for b in bins)


def _broken(task: TaskRow, base: Observation, last: Observation, now: Observation) -> float:
    lost = held(last, {task.object}) - held(now, {task.object})
    return lost if lost > 0 and money(now) < money(last) else 0


def _buildings(keep: Callable[[TaskRow, Mapping[str, Any]], bool]) -> Identities:
    """Buildings that are so now and were not before the step."""

    def found(
        task: TaskRow, base: Observation, last: Observation, now: Observation
    ) -> set[Hashable]:
        before = {each.get("id"): keep(task, each) for each in facts.buildings(last)}
        mine = [each for each in facts.buildings(now) if keep(task, each)]
        return {each.get("id") for each in mine if before.get(each.get("id")) is False}

    return found


def _door(wanted: bool) -> Identities:
    return _buildings(
        lambda task, each: (
            each.get("type") in task.object.split(", ")
            and bool(each.get("isAnimalDoorOpen")) is wanted
        )
    )


def _name(each: Mapping[str, Any]) -> Hashable:
    return each.get("Type"), each.get("Name")


def _pet(task: TaskRow, base: Observation, last: Observation, now: Observation) -> set[Hashable]:
    # A pet that is not on the farm is not listed; one that returns was petted where no one saw it.
    before = {_name(each) for each in facts.creatures(last) if each.get("isTouched")}
    return {_name(e) for e in facts.creatures(now) if evaluators.petted(task, e)} - before


def _herd(task: TaskRow, seen: Observation) -> set[Hashable]:
    return {_name(e) for e in facts.animals(seen) if e.get("Type") in kinds(task.object)}


def _hatched(
    task: TaskRow, base: Observation, last: Observation, now: Observation
) -> set[Hashable]:
    return set() if money(now) < money(last) else _herd(task, now) - _herd(task, last)


def _purchased(
    task: TaskRow, base: Observation, last: Observation, now: Observation
) -> set[Hashable]:
    new = _herd(task, now) - _herd(task, base)
    return new if money(now) < money(base) else set()


def _gone(task: TaskRow, base: Observation, last: Observation, now: Observation) -> set[Hashable]:
    return (
        (_herd(task, last) - _herd(task, now)) & _herd(task, base)
        if money(now) > money(last)
        else set()
    )


def _since(level: evaluators.Level) -> Number:
    return lambda task, base, last, now: level(task, now) - level(task, base)


def _befriended(task: TaskRow, base: Observation, last: Observation, now: Observation) -> float:
    if task.object == "Animal":
        return evaluators.animal_friendship(task, now)
    before = {_name(e): e.get("Friendship") or 0 for e in facts.creatures(base)}
    mine = [e for e in facts.creatures(now) if e.get("Type") == task.object]
    return max(((e.get("Friendship") or 0) - before.get(_name(e), 0) for e in mine), default=0)


def _state(level: evaluators.Level) -> Number:
    return lambda task, base, last, now: level(task, now)


def _slept(task: TaskRow, base: Observation, last: Observation, now: Observation) -> float:
    late = int(last["GameState"].get("Time") or 0) >= 2600
    new_day = evaluators.days(now) > evaluators.days(base)
    return float(new_day and location(now) == "FarmHouse" and not late)


def _silo(task: TaskRow, base: Observation, last: Observation, now: Observation) -> float:
    gain = evaluators.hay(task, now) - evaluators.hay(task, last)
    return gain if gain > 0 and held(now, {"Hay"}) >= held(last, {"Hay"}) else 0


def _profession(task: TaskRow, base: Observation, last: Observation, now: Observation) -> float:
    def has(seen: Observation) -> bool:
        return task.object in {_REAL.get(e, e) for e in facts.names_of(seen, "Professions")}

    return float(has(now) and not has(base))


def _quests(seen: Observation, done: bool) -> list[str]:
    return [str(q.get("id")) for q in evaluators.quests(seen) if bool(q.get("completed")) is done]


def _left(done: bool) -> Number:
    """How many quests left the log that were, or were not, completed."""

    def gain(task: TaskRow, base: Observation, last: Observation, now: Observation) -> float:
        before, after = _quests(last, done), _quests(now, True) + _quests(now, False)
        return sum(max(before.count(e) - after.count(e), 0) for e in set(before))

    return gain


def _helped(task: TaskRow, base: Observation, last: Observation, now: Observation) -> float:
    # The quests of the board have no id; a story quest has one.
    before, after = (_quests(seen, True).count("None") for seen in (last, now))
    return max(after - before, 0)


def _story(task: TaskRow, base: Observation, last: Observation, now: Observation) -> float:
    # A quest without a reward leaves the log when it is completed. Stories cannot be cancelled.
    return float(bool(evaluators.pending(task, last)) and not evaluators.pending(task, now))


def _built(task: TaskRow, seen: Observation) -> dict[Hashable, facts.Tile | None]:
    mine = [each for each in facts.buildings(seen) if each.get("type") == task.object]
    return {each.get("id"): point(each.get("position")) for each in mine}


def _moved(task: TaskRow, base: Observation, last: Observation, now: Observation) -> set[Hashable]:
    before, after = _built(task, last), _built(task, now)
    return {each for each in before.keys() & after.keys() if before[each] != after[each]}


def _talked(task: TaskRow, base: Observation, last: Observation, now: Observation) -> float:
    then, today = (facts.resident(seen, task.object) for seen in (last, now))
    return float(bool(today.get("isTalked")) and not then.get("isTalked"))


def _given(task: TaskRow, base: Observation, last: Observation, now: Observation) -> float:
    then, today = (facts.resident(seen, task.object) for seen in (last, now))
    gifts = (today.get("GiftsToday") or 0) - (then.get("GiftsToday") or 0)
    lost = held(last, {task.tool}) - held(now, {task.tool}) if task.tool else gifts
    return max(min(gifts, lost), 0)


def _backpack(task: TaskRow, base: Observation, last: Observation, now: Observation) -> float:
    return (evaluators.slots(task, now) - evaluators.slots(task, base)) / 12


STRICT: Mapping[tuple[str, str], tuple[str, Identities | Number]] = {
    ("farming", "clear"): (IDENTITIES, _clear),
    ("farming", "till"): (IDENTITIES, _terrain(facts.HOE_DIRT)),
    ("farming", "sow"): (IDENTITIES, _sow),
    ("farming", "water"): (IDENTITIES, _water),
    ("farming", "fertilize"): (GAIN, _fertilize),
    ("farming", "harvest"): (GAIN, _made),
    ("farming", "skill"): (LEVEL, _since(evaluators.skill_level("Farming"))),
    ("farming", "open"): (IDENTITIES, _door(True)),
    ("farming", "close"): (IDENTITIES, _door(False)),
    ("farming", "pet"): (IDENTITIES, _pet),
    ("farming", "fill"): (IDENTITIES, _buildings(evaluators.full)),
    ("farming", "incubate"): (IDENTITIES, _hatched),
    ("farming", "friendship"): (LEVEL, _befriended),
    ("farming", "mood"): (LEVEL, _state(evaluators.happy)),
    ("farming", "profession"): (LEVEL, _profession),
    ("crafting", "craft"): (GAIN, _made),
    ("combat", "kill"): (LEVEL, _since(lambda task, seen: facts.kills(seen, task.object))),
    ("combat", "skill"): (LEVEL, _since(evaluators.skill_level("Combat"))),
    ("combat", "profession"): (LEVEL, _profession),
    ("exploration", "harvest"): (GAIN, _made),
    ("exploration", "exchange"): (GAIN, _made),
    ("exploration", "silo"): (GAIN, _silo),
    ("exploration", "skill"): (LEVEL, _since(evaluators.skill_level(""))),
    ("exploration", "profession"): (LEVEL, _profession),
    ("exploration", "location"): (LEVEL, _state(evaluators.at_place)),
    ("exploration", "sleep"): (LEVEL, _slept),
    ("exploration", "bundle"): (LEVEL, _since(evaluators.flag("Bundles", "name"))),
    ("exploration", "museum"): (LEVEL, _since(evaluators.museum)),
    ("exploration", "repair"): (LEVEL, _since(evaluators.flag("Repairs", "project"))),
    ("exploration", "accept"): (LEVEL, _since(evaluators.accepted)),
    ("exploration", "quit"): (GAIN, _left(False)),
    ("exploration", "reward"): (GAIN, _left(True)),
    ("exploration", "complete_help"): (GAIN, _helped),
    ("exploration", "complete_story"): (LEVEL, _story),
    ("exploration", "watch"): (LEVEL, _state(evaluators.forecast)),
    ("exploration", "read"): (LEVEL, _state(evaluators.reads)),
    ("social", "sell"): (GAIN, _sold),
    ("social", "break"): (GAIN, _broken),
    ("social", "retrieve"): (GAIN, _made),
    ("social", "purchase"): (GAIN, _bought),
    ("social", "harvest"): (GAIN, _made),
    ("social", "upgrade_tool"): (LEVEL, _since(evaluators.items)),
    ("social", "jojamart"): (LEVEL, _since(evaluators.joja)),
    ("social", "backpack"): (LEVEL, _backpack),
    ("social", "purchase_animal"): (IDENTITIES, _purchased),
    ("social", "sell_animal"): (IDENTITIES, _gone),
    ("social", "build"): (IDENTITIES, lambda t, b, last, now: {*_built(t, now)} - {*_built(t, b)}),
    ("social", "demolish"): (
        IDENTITIES,
        lambda t, b, last, now: {*_built(t, b)} - {*_built(t, now)},
    ),
    ("social", "move"): (IDENTITIES, _moved),
    ("social", "upgrade_farmhouse"): (LEVEL, _since(evaluators.farmhouse)),
    ("social", "talk"): (LEVEL, _talked),
    ("social", "gift"): (GAIN, _given),
    ("social", "date"): (LEVEL, _since(evaluators.partner("DatingPartners"))),
    ("social", "breakup"): (
        LEVEL,
        lambda t, b, last, now: -_since(evaluators.partner("DatingPartners"))(t, b, last, now),
    ),
    ("social", "propose"): (LEVEL, _since(evaluators.partner("Spouse"))),
    ("social", "friendship"): (LEVEL, _since(evaluators.resident_friendship)),
    ("open", "human"): (GAIN, lambda t, b, last, now: 0),
}
"""The rules by category and evaluator, with how their results count."""
