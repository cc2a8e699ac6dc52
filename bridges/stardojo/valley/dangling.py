"""Finds names in the content that lead nowhere."""

from collections.abc import Callable, Collection, Iterable, Iterator

from bridges.stardojo.valley.tables import SKILLS, TASTES, Content
from bridges.stardojo.valley.world import SEASONS, WEEKDAYS
from rollout.errors import nearest

_LEARNED = (
    *("starter", "shop", "television", "special order", "museum", "cellar", "festival", "letter"),
    *("greenhouse", "desert trader", "island trader", "travelling cart"),
    *(f"{skill} mastery" for skill in SKILLS),
)
_CONDITIONS = ("year", "friend", "mine", *SKILLS)


def dangling(content: Content) -> Iterator[str]:
    """Yields a sentence for each name that leads nowhere."""
    categories = {item.category for item in content.items.values()}
    items = set(content.items)
    tables: tuple[Callable[[Content], Iterable[tuple[str, str]]], ...]
    tables = (_plants, _recipes, _shops, _people, _animals, _mines, _progress)
    for table in tables:
        for where, name in table(content):
            inside = name[1:-1] if name.startswith("<") and name.endswith(">") else None
            valid = items if inside is None else categories
            if (inside or name) not in valid:
                yield _sentence(where, inside or name, valid)
    for others in (_days, _houses, _quests, _learned):
        for where, name, names in others(content):
            if name not in names:
                yield _sentence(where, name, names)


def _sentence(where: str, name: str, valid: Iterable[str]) -> str:
    near = nearest(name, valid)
    return f"{where}: there is no {name!r}" + (f"; nearest: {', '.join(near)}" if near else "")


def _plants(content: Content) -> Iterator[tuple[str, str]]:
    for seed, crop in content.crops.items():
        yield from ((f"crops: {seed}", name) for name in (seed, crop.harvest, *crop.wild))
    for season, seeds in content.mixed.items():
        yield from ((f"mixed: {season}", seed) for seed in seeds)
    for sapling, tree in content.fruit_trees.items():
        yield from ((f"fruit_trees: {sapling}", name) for name in (sapling, tree.fruit))
    for name, wild in content.wild_trees.items():
        yield from ((f"wild_trees: {name}", each) for each in (wild.seed, wild.syrup))
    yield from (("fertilizers", name) for name in content.fertilizers)
    for place, seasons in content.forage.items():
        for season, found in seasons.items():
            yield from ((f"forage: {place}: {season}", name) for name in found)
    for place, found in content.spots.items():
        yield from ((f"spots: {place}", name) for name in found)


def _recipes(content: Content) -> Iterator[tuple[str, str]]:
    for table in ("crafting", "cooking"):
        for key, recipe in getattr(content, table).items():
            names = (recipe.makes or key, *recipe.needs)
            yield from ((f"{table}: {key}", name) for name in names)
    for machine, products in content.machines.items():
        yield ("machines", machine)
        for taken, made in products.items():
            names = (taken, made.product, *([made.needs] if made.needs else []))
            yield from ((f"machines: {machine}: {taken}", name) for name in names)


def _shops(content: Content) -> Iterator[tuple[str, str]]:
    for key, shop in content.shops.items():
        yield from ((f"shops: {key}", name) for name in shop.stock)
        yield from ((f"shops: {key}: buys", f"<{name}>") for name in shop.buys)


def _people(content: Content) -> Iterator[tuple[str, str]]:
    for taste, names in content.everyone.items():
        yield from ((f"everyone: {taste}", name) for name in names)
    for key, resident in content.residents.items():
        for taste in TASTES:
            yield from ((f"residents: {key}: {taste}", name) for name in getattr(resident, taste))


def _animals(content: Content) -> Iterator[tuple[str, str]]:
    for key, animal in content.animals.items():
        names = [animal.product, animal.large, *([animal.hatches] if animal.hatches else [])]
        names += [animal.taken] if animal.taken not in ("laid", "dug") else []
        yield from ((f"animals: {key}", name) for name in names)
    for table in ("buildings", "house", "upgrades"):
        for key, entry in getattr(content, table).items():
            yield from ((f"{table}: {key}", name) for name in entry.materials)


def _mines(content: Content) -> Iterator[tuple[str, str]]:
    for area in content.areas:
        names = (area.geode, *area.ores, *area.gems, *area.forage, *area.dig)
        yield from ((f"areas: {area.name}", name) for name in names)
    for key, node in content.nodes.items():
        yield from (("nodes", name) for name in (key, node.gives))
    yield from (("chests", name) for name in content.chests.values())
    for key, monster in content.monsters.items():
        yield from ((f"monsters: {key}", name) for name in monster.drops)
    for key, weights in content.geodes.items():
        yield from ((f"geodes: {key}", name) for name in (key, *weights))


def _progress(content: Content) -> Iterator[tuple[str, str]]:
    for wanted in (content.help.collect, *content.help.delivery.values()):
        yield from (("help", name) for name in wanted)
    lying = {key: each.item for key, each in content.letters.items()}
    yield from ((f"letters: {key}", name) for key, name in lying.items() if name)
    for key, bundle in content.bundles.items():
        names = (bundle.reward, *(name for name in bundle.items if name != "gold"))
        yield from ((f"bundles: {key}", name) for name in names)
    yield from (("museum", name) for name, _ in content.museum.values())
    yield from (("prizes", name) for name, _ in content.prizes)


def _days(content: Content) -> Iterator[tuple[str, str, Collection[str]]]:
    """Names of seasons, weekdays, conditions and residents, with the valid ones."""
    for key, crop in content.crops.items():
        yield from ((f"crops: {key}", season, SEASONS) for season in crop.seasons)
    for key, shop in content.shops.items():
        yield from ((f"shops: {key}: closed", day, WEEKDAYS) for day in shop.closed)
        if shop.keeper is not None:
            yield (f"shops: {key}", shop.keeper, content.residents)
        for item, offer in shop.stock.items():
            valid = (*SEASONS, *WEEKDAYS, *_CONDITIONS, "dating")
            names = [condition.split()[0] for condition in offer.conditions]
            yield from ((f"shops: {key}: {item}", name, valid) for name in names)
    for key, resident in content.residents.items():
        for day in resident.days:
            words = ("default", "rain", *SEASONS, *WEEKDAYS, *map(str, range(1, 29)))
            yield from ((f"residents: {key}: days", word, words) for word in day.split())
        yield (f"residents: {key}: days", "default", resident.days)
        yield (f"residents: {key}: born", resident.born.split()[0], SEASONS)


def _houses(content: Content) -> Iterator[tuple[str, str, Collection[str]]]:
    yield from (("animals", each.house, content.buildings) for each in content.animals.values())
    names = [each.upgrades for each in content.buildings.values() if each.upgrades]
    yield from (("buildings: upgrades", name, content.buildings) for name in names)
    for area in content.areas:
        yield from ((f"areas: {area.name}", name, content.monsters) for name in area.monsters)
    for monsters in (content.from_floor, content.floor.sure):
        yield from (("floors", name, content.monsters) for name in monsters)
    yield from (("help: slay", name, content.monsters) for name in content.help.slay)


def _quests(content: Content) -> Iterator[tuple[str, str, Collection[str]]]:
    for key, quest in content.quests.items():
        yield from ((f"quests: {key}", name, content.quests) for name in quest.follows)
    for key, letter in content.letters.items():
        if letter.recipe:
            yield (f"letters: {key}", letter.recipe, content.crafting)
        if letter.quest:
            yield (f"letters: {key}", letter.quest, content.quests)
    yield from (("mail", each[0], content.letters) for each in content.mail)
    for room, bundles in content.rooms.items():
        yield from ((f"rooms: {room}", name, content.bundles) for name in bundles)
    yield from (("projects", each.room, content.rooms) for each in content.projects.values())


def _learned(content: Content) -> Iterator[tuple[str, str, Collection[str]]]:
    for recipe in (*content.crafting.values(), *content.cooking.values()):
        word, _, level = recipe.learned.rpartition(" ")
        if level.isdigit():
            yield ("recipes: learned", word, (*SKILLS, *content.residents))
        else:
            yield ("recipes: learned", recipe.learned, (*_LEARNED, *content.residents))
    for skill, branches in content.professions.items():
        yield ("professions", skill, SKILLS)
        for name, later in branches.items():
            yield from (("professions", each, content.profession_ids) for each in (name, *later))
