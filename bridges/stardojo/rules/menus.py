"""Menus: what ``choose_option`` does in the open one; dialogues and chests."""

from __future__ import annotations

from bridges.stardojo.rules import making
from bridges.stardojo.rules.registry import ANSWER, MENUS, MenuRule
from bridges.stardojo.rules.world import Facts, Menu, World


def choose(
    world: World, option: int, quantity: int, outward: bool, *, faithful: bool = False
) -> None:
    """Chooses in the open menu.

    Args:
        world: the valley.
        option: 1 for the first entry; 0 or less closes the menu.
        quantity: pieces, where that matters.
        outward: sell or put, not buy or take.
        faithful: as the mod does it: menus that it does not know close, an option of a chest counts
            from 0, and a quantity of 0 buys nothing; otherwise 0 means one piece.
    """
    menu = world.menu
    if menu is None:
        return
    rule = MENUS[menu.kind]
    if option <= 0 or (faithful and not rule.operable):
        close(world)
        return
    if faithful:
        if menu.kind == "chest":
            option += 1
        if quantity < 0:
            quantity = 1
    else:
        quantity = max(1, quantity)
    rule.choose(world, menu, option - 1, quantity, not outward)


def close(world: World) -> None:
    """Closes the menu; a profession that is to be chosen comes back at night."""
    world.menu = None


def _responses(world: World, menu: Menu) -> list[str]:
    return [text for _, text in menu.facts["responses"]]


def _answer(world: World, menu: Menu, index: int, quantity: int, inward: bool) -> None:
    responses = menu.facts["responses"]
    if not responses:
        menu.facts["pages"].pop(0)
        if not menu.facts["pages"]:
            world.menu = None
        return
    if not 0 <= index < len(responses):
        return
    world.menu = None
    rule = ANSWER.get(menu.facts["then"])
    if rule is not None:
        rule(world, responses[index][0], menu.facts["about"])


def _dialogue(world: World, menu: Menu) -> Facts:
    pages = list(menu.facts["pages"])
    spoken = bool(menu.facts.get("speaker"))
    return {
        "dialogues": pages[:1],
        "chats": pages[::-1] if spoken else [],
        "responses": [
            {"responseKey": key, "responseText": text} for key, text in menu.facts["responses"]
        ],
    }


def _in_chest(world: World, menu: Menu) -> list[str]:
    return [f"{name} x{count}" for name, count, *_ in making.chest_items(world, menu)]


def _show_chest(world: World, menu: Menu) -> Facts:
    inside = making.chest_items(world, menu)
    return {"ItemsInChest": [{"Name": each[0], "Quantity": each[1]} for each in inside]}


def _use_chest(world: World, menu: Menu, index: int, quantity: int, inward: bool) -> None:
    (making.from_chest if inward else making.to_chest)(world, index, quantity)


def _nothing(world: World, menu: Menu, index: int, quantity: int, inward: bool) -> None:
    world.menu = None


MENUS["dialogue"] = MenuRule("DialogueBox", _responses, _answer, _dialogue, operable=True)
MENUS["chest"] = MenuRule("Chest", _in_chest, _use_chest, _show_chest, operable=True)
MENUS["map"] = MenuRule("", lambda world, menu: [], _nothing)
