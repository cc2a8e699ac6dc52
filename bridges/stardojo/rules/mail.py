"""Letters and television."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bridges.stardojo.rules import farmer, quests, registry
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.registry import ask, say
from bridges.stardojo.rules.world import Facts, Menu, Tile, World

FORECAST = {"sun": "clear and sunny", "rain": "rain", "storm": "a storm", "snow": "snow"}


@registry.MORNING
def post(world: World) -> None:
    """The mail of the day."""
    today = (world.season, world.day, world.year)
    due = [name for name, *when in content().mail if tuple(when) == today]
    due += world.facts.pop("tomorrow", [])
    world.mail += [name for name in due if name not in world.read and name not in world.mail]


@registry.SPOT("mailbox")
def mailbox(world: World, tile: Tile, words: Sequence[str]) -> bool:
    """Opens the first letter."""
    if not world.mail:
        return False
    name = world.mail.pop(0)
    world.read.append(name)
    letter = content().letters.get(name)
    if letter is None:
        return True
    if letter.item is not None:
        farmer.gather(world, letter.item, letter.count)
    if letter.recipe is not None and letter.recipe not in world.farmer.recipes:
        world.farmer.recipes.append(letter.recipe)
    if letter.quest is not None:
        quests.start(world, letter.quest)
    world.menu = Menu("letter", {"text": f"{letter.text} - {letter.sender}"})
    return True


registry.MENUS["letter"] = registry.MenuRule(
    type="Letter",
    entries=lambda world, menu: ["Close"],
    choose=registry.close_menu,
    show=lambda world, menu: {"message": menu.facts["text"]},
)


@registry.COMMAND("receive_mail")
def receive(world: World, name: str) -> None:
    """Puts a letter into the mailbox; a name that is no letter counts as read."""
    (world.mail if name in content().letters else world.read).append(str(name))


@registry.COMMAND("seen_event")
def seen(world: World, number: registry.Id, flag: bool | str = True) -> None:
    """Remembers or forgets an event."""
    name = str(number)
    if str(flag) == "True" and name not in world.events:
        world.events.append(name)
    elif str(flag) != "True" and name in world.events:
        world.events.remove(name)


@registry.COMMAND("trigger_event")
def trigger(world: World, number: registry.Id) -> None:
    """Events of the story are not played: it counts as seen."""
    seen(world, number)


@registry.FURNITURE("tv")
def television(world: World, piece: Any) -> bool:
    """Asks for a channel."""
    channels = [
        (key, each.title)
        for key, each in content().television.items()
        if not each.weekdays or world.weekday in each.weekdays
    ]
    ask(world, "What do you want to watch?", [*channels, ("off", "Turn it off")], "tv")
    return True


@registry.ANSWER("tv")
def watch(world: World, key: str, about: Facts) -> None:
    """Shows a channel."""
    if key not in content().television:
        return
    moods, tips = content().moods, content().tips
    mood = moods[min(int((world.fortune + 0.1) / 0.2 * len(moods)), len(moods) - 1)]
    recipe = _lesson(world) if key == "cooking" else ""
    values = {
        "weather": FORECAST.get(world.tomorrow, world.tomorrow),
        "mood": mood,
        "tip": tips[world.days_played % len(tips)],
        "recipe": recipe,
    }
    say(world, content().television[key].text.format(**values))


def _lesson(world: World) -> str:
    """Teaches the dish of the week; returns its name."""
    dishes = [name for name, each in content().cooking.items() if each.learned == "television"]
    name = dishes[world.days_played // 7 % len(dishes)]
    if name not in world.farmer.dishes:
        world.farmer.dishes.append(name)
    return name
