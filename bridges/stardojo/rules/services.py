"""Services: shops, the smith's work, animals, the backpack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bridges.stardojo.rules import carpenter, community, creatures, farmer, items, registry
from bridges.stardojo.rules.content import content
from bridges.stardojo.rules.names import SKILLS
from bridges.stardojo.rules.registry import ask, below, say, weighted
from bridges.stardojo.rules.tables import Offer, Shop
from bridges.stardojo.rules.world import SEASONS, WEEKDAYS, Facts, Item, Menu, Tile, World

REACH = 3  # tiles between a counter and who stands behind it
GENEROUS = 2000  # friendship from which bouquets are sold
SMITHING = 2  # nights


@registry.SPOT("shop")
def counter(world: World, tile: Tile, words: Sequence[str]) -> bool:
    """Asks at a counter."""
    key = words[0]
    shop = content().shops[key]
    if not attended(world, shop):
        say(world, "Nobody is at the counter.")
        return True
    if key == "Blacksmith" and _fetch(world):
        return True
    if len(shop.menu) == 1:
        serve(world, shop.menu[0], {"shop": key})
    else:
        offers = [(each, content().services[each][0]) for each in shop.menu]
        ask(world, "How can I help?", [*offers, ("leave", "Leave")], "counter", {"shop": key})
    return True


def attended(world: World, shop: Shop) -> bool:
    """Returns True if a keeper is at the counter, or if a shop without one is open."""
    if shop.keeper is None:
        sells = not shop.stock or any(
            _holds(world, each.conditions) for each in shop.stock.values()
        )
        opened = shop.hours[0] <= world.time < shop.hours[1]
        return opened and sells and world.weekday not in shop.closed
    keeper = world.residents[shop.keeper]
    x, y = shop.counter
    near = abs(keeper.tile[0] - x) <= REACH and abs(keeper.tile[1] - y) <= REACH
    return keeper.place == shop.map and near


@registry.ANSWER("counter")
def serve(world: World, key: str, about: Facts) -> None:
    """Opens what was asked for."""
    if key == "joja":
        community.joja_desk(world)
    elif key == "house":
        carpenter.offer_house(world)
    elif key in content().services:
        world.menu = Menu(content().services[key][1], {"shop": about["shop"]})


def stock(world: World, key: str) -> list[tuple[str, Offer]]:
    """Returns what a shop sells today, in order."""
    bought: Facts = world.facts.get("bought", {})
    return [
        (name, replace(offer, price=offer.later) if offer.later and world.year > 1 else offer)
        for name, offer in content().shops[key].stock.items()
        if _holds(world, offer.conditions)
        and (offer.limit is None or bought.get(f"{key} {name}", 0) < offer.limit)
    ]


def _holds(world: World, conditions: Sequence[str]) -> bool:
    for names, now in ((SEASONS, world.season), (WEEKDAYS, world.weekday)):
        named = [each for each in conditions if each in names]
        if named and now not in named:
            return False
    return all(_least(world, each) for each in conditions)


def _least(world: World, condition: str) -> bool:
    word, _, number = condition.partition(" ")
    if word == "dating":
        points = int(number or GENEROUS)
        return any(each.friendship >= points for each in world.residents.values())
    if word == "rain":
        return world.weather in ("rain", "storm")
    if word in SKILLS:
        return farmer.level(world, word) >= int(number)
    reached = {"year": world.year, "mine": world.mine_level, "house": world.house_level}
    have = (reached | {"days": world.days_played}).get(word)
    return have is None or have >= int(number)


def _names(world: World, menu: Menu) -> list[str]:
    return [name for name, _ in stock(world, menu.facts["shop"])]


def _trade(world: World, menu: Menu, index: int, number: int, into: bool) -> None:
    key = menu.facts["shop"]
    if not into:
        sell(world, key, index)
        return
    offers = stock(world, key)
    if not 0 <= index < len(offers):
        return
    name, offer = offers[index]
    count = 1 if number < 0 else number
    bought = world.facts.setdefault("bought", {})
    left = None if offer.limit is None else offer.limit - bought.get(f"{key} {name}", 0)
    if count < 1 or offer.price * count > world.farmer.money or (left is not None and count > left):
        return
    lost = farmer.give(world, name, count)
    world.farmer.money -= offer.price * (count - lost)
    if left is not None:
        bought[f"{key} {name}"] = bought.get(f"{key} {name}", 0) + count - lost
    registry.DID.call(world, "buy", name, count - lost)


def sell(world: World, key: str, slot: int) -> bool:
    """Sells the stack of a slot to a shop that takes such things; returns True if it did."""
    bag = world.farmer.bag
    item = bag[slot] if 0 <= slot < len(bag) else None
    if item is None:
        return False
    if not any(items.matches(item.name, each) for each in content().shops[key].buys):
        return False
    price = items.price(item.name, item.quality)
    if price <= 0:
        return False
    bag[slot] = None
    world.farmer.money += price * item.count
    registry.DID.call(world, "sell", item.name, item.count)
    return True


def _goods(names: Sequence[str]) -> list[Facts]:
    """Names with the price that the game's menu data gives: what an item is worth."""
    known = content().by_name
    return [{"name": known[name].name, "price": known[name].price} for name in names]


registry.MENUS["shop"] = registry.MenuRule(
    type="ShopMenu",
    entries=_names,
    choose=_trade,
    show=lambda world, menu: {"shopMenuData": _goods(_names(world, menu))},
    operable=True,
)


@registry.MORNING
def restock(world: World) -> None:
    """Restocks goods that are sold in small numbers."""
    world.facts["bought"] = {}


def _better(world: World) -> list[tuple[int, str]]:
    """Slots of tools with the next better tool."""
    found = []
    for slot, item in enumerate(world.farmer.bag):
        if item is not None and items.use_kind(item.name) in ("axe", "pickaxe", "hoe", "can"):
            level = items.level(item.name)
            if level + 1 < len(items.LEVELS):
                base = item.name.removeprefix(f"{items.LEVELS[level]} ")
                found.append((slot, f"{items.LEVELS[level + 1]} {base}"))
    return found


def _tools(world: World, menu: Menu) -> list[str]:
    return [name for _, name in _better(world)]


def _upgrade(world: World, menu: Menu, index: int, number: int, into: bool) -> None:
    better = _better(world)
    if not (into and 0 <= index < len(better)) or _at_work(world):
        return
    slot, name = better[index]
    cost = content().upgrades[name.partition(" ")[0]]
    if not carpenter.pay(world, cost.gold, cost.materials):
        return
    world.farmer.bag[slot] = None
    world.orders.append({"what": "tool", "name": name, "nights": SMITHING})
    say(world, "It will be ready in two days.", speaker="Clint")


def _at_work(world: World) -> bool:
    return any(each["what"] == "tool" for each in world.orders)


def _fetch(world: World) -> bool:
    """Hands over a tool that is ready; returns True if there was one."""
    for order in world.orders:
        if order["what"] == "tool" and order["nights"] <= 0:
            if farmer.give(world, order["name"], 1) == 0:
                world.orders.remove(order)
                say(world, f"Here is your {order['name']}.", speaker="Clint")
                return True
            return False
    return False


registry.MENUS["upgrade"] = registry.MenuRule(
    type="ShopMenu",
    entries=_tools,
    choose=_upgrade,
    show=lambda world, menu: {"shopMenuData": _goods(_tools(world, menu))},
    operable=True,
)


@registry.MORNING
def smithing(world: World) -> None:
    """A night passes for tools and the farmhouse."""
    for order in world.orders:
        order["nights"] -= 1


def _geodes(world: World, menu: Menu) -> list[str]:
    known = content().geodes
    held = dict.fromkeys(item.name for item in world.farmer.bag if item and item.name in known)
    return list(held)


def _crack(world: World, menu: Menu, index: int, number: int, into: bool) -> None:
    held = _geodes(world, menu)
    if not 0 <= index < len(held):
        return
    for _ in range(max(number, 1)):
        if world.farmer.money < content().geode_price or not farmer.take(world, held[index], 1):
            return
        world.farmer.money -= content().geode_price
        farmer.give(world, weighted(world, dict(content().geodes[held[index]])), 1)
        registry.DID.call(world, "geode", held[index], 1)


registry.MENUS["geode"] = registry.MenuRule(type="", entries=_geodes, choose=_crack)


def _kinds() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for kind, known in content().animals.items():
        if known.shop is not None:
            found.setdefault(known.shop, []).append(kind)
    return found


def _price(name: str) -> int:
    return content().animals[_kinds()[name][0]].price


def _for_sale(world: World, menu: Menu) -> list[str]:
    if (kind := menu.facts.get("kind")) is not None:
        return [_site(each.kind, each.tile) for each in creatures.homes(world, kind)]
    return list(_kinds())


def _site(kind: str, tile: Tile) -> str:
    return f"{kind} at {tile[0]}, {tile[1]}"


def _buy_animal(world: World, menu: Menu, index: int, number: int, into: bool) -> None:
    entries = _for_sale(world, menu)
    if not 0 <= index < len(entries):
        return
    if (kind := menu.facts.get("kind")) is None:
        kinds = _kinds()[entries[index]]
        kind = kinds[below(world, len(kinds))]
        homes = creatures.homes(world, kind)
        if not homes:
            say(world, "There is no house with room for it on your farm.", speaker="Marnie")
            return
        if _price(entries[index]) > world.farmer.money:
            return
        menu.facts.update(kind=kind, name=entries[index])
        if len(homes) > 1:
            return
        index = 0
    home = creatures.homes(world, kind)[index]
    if not farmer.pay(world, _price(menu.facts["name"])):
        return
    made = creatures.add(world, kind, menu.facts["name"], home)
    say(world, f"{made.name} will be sent to your {home.kind}.", speaker="Marnie")


registry.MENUS["animals"] = registry.MenuRule(
    type="PurchaseAnimalsMenu",
    entries=_for_sale,
    choose=_buy_animal,
    show=lambda world, menu: {
        "animalsMenuData": [{"name": name, "price": _price(name)} for name in _kinds()]
    },
)


@registry.SPOT("backpack")
def backpack(world: World, tile: Tile, words: Sequence[str]) -> bool:
    """Offers the next larger backpack."""
    slots = len(world.farmer.bag)
    for name, pack in content().backpack.items():
        if pack.slots > slots:
            text = f"{name}: {pack.slots} slots for {pack.price} g."
            ask(world, text, [("yes", "Purchase"), ("no", "Not now")], "backpack", {"name": name})
            return True
    return False


@registry.ANSWER("backpack")
def enlarge(world: World, key: str, about: Facts) -> None:
    """Buys a backpack."""
    pack = content().backpack[about["name"]]
    if key == "yes" and farmer.pay(world, pack.price):
        empty: list[Item | None] = [None] * (pack.slots - len(world.farmer.bag))
        world.farmer.bag.extend(empty)
