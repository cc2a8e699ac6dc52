"""StarDojo's actions: what each sends, in both modes; their text, their mask."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.stardojo.skills import Skill, called, flat, labels, mask, parse, perform
from rollout.errors import InputError

QUIET = {"CurrentMenuData": {"type": "No Menu"}}
CHEST = {"CurrentMenuData": {"type": "Chest"}}


class Notes:
    """Writes down what it is asked, and answers moves as told."""

    ACTIONS = ("open_map", "open_journal")

    def __init__(self, *replies):
        self.asked, self.replies = [], list(replies)

    def act(self, name, args=()):
        self.asked.append((name, *args))
        moves = name in ("move_relative", "navigate")
        return self.replies.pop(0) if moves and self.replies else None

    def advance(self, ticks):
        self.asked.append(("advance", ticks))


def sent(text, mode, *replies, seen=QUIET):
    game = Notes(*replies)
    perform(game, parse(text), seen, mode)
    return game.asked


@pytest.mark.parametrize(
    ("text", "strict", "faithful"),
    [
        ("wait()", [("advance", 420)], [("advance", 120)]),
        ("use('left')", [("turn", 3), ("use",)], [("turn", 3), ("use",)]),
        ("interact('sideways')", [("turn", 0), ("interact",)], [("turn", 0), ("interact",)]),
        ("choose_item(3)", [("choose_item", 3)], [("choose_item", 3)]),
        ("choose_option(2)", [("choose_option", 2, 1, 0)], [("choose_option", 2, 0, 0)]),
        ("choose_option(2, 5, 'out')", [("choose_option", 2, 5, 1)], [("choose_option", 2, 5, 1)]),
        ("choose_option(2, 5, 'up')", [("choose_option", 2, 5, 0)], [("choose_option", 2, 5, 0)]),
        ("craft('Spring Seeds')", [("craft", "Wild Seeds (Sp)")], [("craft", "Spring Seeds")]),
        ("attach_item(4)", [("attach", 4)], [("attach", 4)]),
        ("unattach_item()", [("detach",)], []),
        ("menu('close', 'map')", [("exit_menu",)], [("exit_menu",)]),
        ("menu('open', 'map')", [("open_map",)], [("open_map",)]),
        ("menu('open', 'journal')", [("open_journal",)], []),
        ("menu('open', 'shop')", [], []),
        ("navigate('Town')", [("navigate", "Town")], []),
    ],
)
def test_what_an_action_sends(text, strict, faithful):
    assert sent(text, "strict") == strict
    settled = [] if text == "wait()" else [("advance", 180)]
    assert sent(text, "faithful") == faithful + settled


def test_a_move_that_fails_is_tried_five_more_times_in_faithful():
    """The release also moves to (x, y+1), (x-1, y), (x, y-1), (x+1, y) and (x, y+2)."""
    tried = [call[1:] for call in sent("move(3, -1)", "faithful", *[False] * 6)[:-1]]
    assert tried == [(3, -1), (3, 0), (2, -1), (3, -2), (4, -1), (3, 1)]
    assert len(sent("move(3, -1)", "faithful", False, True)) == 3
    assert len(sent("move(3, -1)", "faithful", None)) == 2, "a timeout ends it"
    assert sent("move(3, -1)", "strict", False) == [("move_relative", 3, -1)]


def test_options_of_a_chest_count_from_1_in_strict_only():
    assert sent("choose_option(1, 2)", "strict", seen=CHEST) == [("take_from_chest", 0, 2)]
    assert sent("choose_option(1, 2, 'out')", "strict", seen=CHEST) == [("put_to_chest", 0, 2)]
    assert sent("choose_option(0)", "strict", seen=CHEST) == [("choose_option", 0, 1, 0)]
    assert sent("choose_option(1, 2)", "faithful", seen=CHEST)[0] == ("choose_option", 1, 2, 0)


@pytest.mark.parametrize(
    "text",
    ["", "move", "move(1)", "move(1, 2, 3)", "move(1.5, 2)", "move(x=1)", "use(up)", "use(1)",
     "jump(1)", "move(1, y=2, x=3)", "__import__('os').system('x')", "[use('up')]", "use('up'",
     "move(True, 2)", "craft(item=print('x'))", "move(*[1, 2])", "move(**{'x': 1})"],
)  # fmt: skip
def test_text_that_is_no_action_is_refused(text):
    with pytest.raises(InputError):
        parse(text)


def test_text_may_name_its_arguments():
    assert parse("move(x=3, y=-1)") == Skill("move", (3, -1))
    assert parse("choose_option(option_index=2)") == Skill("choose_option", (2, None, None))
    assert parse("menu('close')") == Skill("menu", ("close", None))


def test_an_expert_may_send_numbers_and_leave_arguments_out():
    assert called("choose_option", (7, 1, 1)) == Skill("choose_option", (7, 1, "out"))
    assert called("choose_option", (2,)) == Skill("choose_option", (2, None, None))
    assert called("menu", ("close", "")) == Skill("menu", ("close", None))


def test_the_flat_layout_reads_back_and_has_no_action_twice():
    assert [parse(label) for label in labels()] == list(flat())
    assert len(set(labels())) == len(flat())


@given(st.text(max_size=30))
def test_any_text_is_an_action_or_an_error(text):
    with contextlib.suppress(InputError):
        assert parse(str(parse(text))) == parse(text)


def allowed(**seen):
    player = {"Inventory": [{"Name": "Axe", "Quantity": 1}, {"Name": None, "Quantity": None}]}
    found = mask({"Player": player, **QUIET, **seen})
    return {label for label, may in zip(labels(), found, strict=True) if may}


def test_the_mask_knows_menus_bag_and_exits():
    open_air = allowed(Exits=[{"target": "BusStop"}])
    assert {"wait()", "move(0, -1)", "choose_item(0)", "navigate('BusStop')"} <= open_air
    assert not {"choose_item(1)", "navigate('Town')", "menu('close')"} & open_air
    assert not [each for each in open_air if each.startswith("choose_option")]
    shop = allowed(CurrentMenuData={"type": "ShopMenu", "shopMenuData": [{"name": "Beer"}] * 2})
    assert shop == {
        "wait()", "choose_item(0)", "choose_option(1, 1, 'in')", "choose_option(2, 1, 'in')",
        "choose_option(1, 1, 'out')", "menu('close')", "menu('open', 'journal')",
    }  # fmt: skip
