"""Messages that no client should send: none of them ends the server or breaks its valley."""

import asyncio
import json
from dataclasses import is_dataclass
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridges.stardojo.commands import setup_values, table
from bridges.stardojo.faults import Faults
from bridges.stardojo.pictures import draw
from bridges.stardojo.rules.valley import Valley
from bridges.stardojo.rules.world import World
from bridges.stardojo.server import Game
from rollout.errors import InputError

pytestmark = pytest.mark.heavy

SETUP, RECEIVED = table("commands")["setup"], "Message received"
FIT = {
    "name": ["Parsnip Seeds", "Axe", "Robin", "Cow", "Chest", "Town", "Coop", "Chicken"],
    "location": ["Farm", "Town", "UndergroundMine7", "UndergroundMine0", "Coop", "current"],
    "type": ["Coop", "Barn", "Silo", "Stable", "cat", "White Chicken", "crafting", "collect"],
    "id": ["472", "(O)472", "628", "130", "9", "1", "(T)Axe"],
    "item": ["472", "130", "(BC)13", "0"],
    "entity": ["crops", "debris", "everything", "furniture"],
    "npc": ["robin", "Pierre", "dwarf", "Abigail", "Krobus"],
    "season": ["spring", "autumn", "winter"],
    "terrain": ["dirt", "tree", "grass", "fruittree"],
    "monster": ["Bug", "Green Slime"],
    "recipe": ["Chest", "Fried Egg"],
    "room": ["0", "5"],
    "force": ["True", "False"],
    "seedid": ["472", "770", "628"],
}  # fmt: skip
ODD = st.sampled_from(["None", "True", "", "abc", "-1", "1.5", " 7", "+3", "9" * 30, "?"])
NUMBERS = st.one_of(
    st.integers(-3, 80).map(str),
    st.sampled_from(["610", "2600", "120", "2147483647", "-2147483648"]),
)


def words(arguments):
    return st.tuples(
        *(st.one_of(st.sampled_from(FIT.get(each, ["1"])), NUMBERS, ODD) for each in arguments)
    )


def messages(commands):
    return st.one_of(*(st.tuples(st.just(name), words(given)) for name, given in commands.items()))


@cache
def start(save):
    valley = Valley(save, 1, faithful=True)
    valley.setup("warp_home" if save == "save_new" else "warp_mine")
    return valley.snapshot()


@cache
def hints(kind):
    return get_type_hints(kind)


def fits(value, hint):
    """Whether a value and all that is in it have their types."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is dict:
        return all(fits(key, args[0]) and fits(each, args[1]) for key, each in value.items())
    if origin in (list, tuple):
        kinds = args if origin is tuple else args * len(value)
        return type(value) is origin and all(map(fits, value, kinds))
    if origin is not None:
        return any(fits(value, each) for each in args)
    if is_dataclass(hint):
        fields = hints(hint).items()
        return type(value) is hint and all(fits(getattr(value, each), of) for each, of in fields)
    return hint is Any or type(value) is hint or (hint is float and type(value) is int)


def whole(valley):
    """The valley can be played on: each value has its type, it is shown, drawn and kept."""
    assert fits(valley.world, World)
    assert 0 <= valley.world.farmer.slot < len(valley.world.farmer.bag)
    json.dumps(valley.observe(3))
    assert draw(valley, 64, 36).shape == (36, 64, 3)
    kept = valley.snapshot()
    valley.restore(kept)
    assert valley.snapshot() == kept


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    st.sampled_from(["save_farming", "save_new"]), st.lists(messages(SETUP), min_size=1, max_size=6)
)
def test_a_setup_that_is_refused_changes_nothing(save, commands):
    valley = Valley(faithful=True)
    valley.restore(start(save))
    for name, given_words in commands:
        before = valley.snapshot()
        try:
            valley.setup(name, setup_values(name, given_words))
        except InputError:
            assert valley.snapshot() == before
        valley.advance(60)
    whole(valley)


async def answered(game, text, seconds=30):
    """The reply to one message; None if none came while ``seconds`` of the game passed."""
    reply = asyncio.create_task(game._answer(text))
    for _ in range(seconds * 10):
        await asyncio.sleep(0)
        if reply.done():
            return reply.result()
        game.advance(6)
    reply.cancel()
    return None


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    st.lists(
        st.one_of(
            st.one_of(messages(SETUP), messages(table("commands")["actions"])).map(
                lambda each: "%".join([each[0], *each[1]])
            ),
            st.text(st.characters(max_codepoint=127), max_size=20),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_any_messages_leave_a_server_that_answers(requests):
    async def session():
        game = Game(Faults(viewport=(32, 18), screenshot=False), draw)
        game.valley = Valley(faithful=True)
        game.valley.restore(start("save_farming"))
        silent = table("commands")["asynchronous"]
        for text in requests:
            reply = await answered(game, text)
            assert reply is not None or game.paused or text.split("%")[0] in silent
        assert await answered(game, "resume") == RECEIVED
        if game.valley is not None:
            assert (await answered(game, "observe_v2%3")).startswith("{")
            whole(game.valley)

    asyncio.run(session())


@pytest.mark.parametrize(
    "text",
    ["set_health%abc", "set_date%1%spring%x", "build%Coop%True%a%b", "set_backpack_size%999999999",
     "set_stamina%1.5", "warp%Town%5%None", "grow_crop%2000000000%64%15", "warp_mine%-5",
     "set_terrain%tree%9%64%16", "place_crop%16%60%20", "choose_item%99999999999"],
)  # fmt: skip
def test_a_command_that_does_not_parse_is_received_and_changes_nothing(text):
    async def session():
        game = Game(Faults(screenshot=False), draw)
        game.valley = Valley(faithful=True)
        before = game.valley.snapshot()
        reply = asyncio.create_task(game._answer(text))
        await asyncio.sleep(0)
        game.advance(0)
        assert await reply == RECEIVED
        assert game.valley.snapshot() == before
        game.advance(600)

    asyncio.run(session())
