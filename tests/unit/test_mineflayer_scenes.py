"""Scenes in the embedded world: what their commands and blocks do, as the agents see it."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.node import packages_problem
from bridges.mineflayer.scene import make_scene
from bridges.mineflayer.spaces import neutral
from rollout.api import Start
from rollout.errors import StateError

PATIENT_S = 120.0
pytestmark = [
    pytest.mark.process,
    pytest.mark.heavy,
    pytest.mark.slow,
    pytest.mark.skipif(bool(packages_problem()), reason="run `make mineflayer`"),
]
SPACE = MineflayerBridge().spec.state_space
CALM = {"difficulty": "easy", "site": "flat", "time": "noon", "weather": "clear", "mobs": 0}


def start(**values):
    first = {factor.name: factor.values[0] for factor in SPACE}
    return Start(SPACE.state(SPACE.index(first | CALM | values)), 7)


@pytest.fixture(scope="module")
def game(tmp_path_factory):
    bridge = MineflayerBridge(spawning=False, view_distance=2, ticks_per_step=1)
    instance = bridge.launch(tmp_path_factory.mktemp("game"), (), width=1, timeout_s=PATIENT_S)
    yield instance
    instance.close()


def begin(game, *commands, blocks=None, players=None, steps=1, **values):
    """The frame a few ticks after the start of an episode with a scene."""
    scene = make_scene(blocks or {}, commands, players or {}, ["a0"])
    game._shape = replace(game._shape, scene=scene)
    frame = game.reset([0], [start(**values)], timeout_s=PATIENT_S)
    for _ in range(steps):
        frame = game.step(neutral("low_level", 1), timeout_s=PATIENT_S)
    return frame


def carried(frame):
    items = Counter()
    for item in frame.details[0]["inventory_all"].values():
        items[item["name"]] += item["count"]
    return items


def creatures(frame):
    return Counter(each["kind"] for each in frame.details[0]["entities"])


def at(frame, kind):
    """Places of the creatures of a kind relative to the agent."""
    here = frame.observations["position"][0]
    return [
        tuple(np.round(np.array(each["position"]) - here, 1).tolist())
        for each in frame.details[0]["entities"]
        if each["kind"] == kind
    ]


def block(frame, dx, dy, dz):
    return frame.details[0]["voxels"]["block_name"][dx + 1][dy + 1][dz + 1]


def turned(frame):
    """Where the agent looks as commands count it: yaw 0 is south, pitch grows downwards."""
    yaw, pitch = np.degrees(frame.observations["look"][0])
    return (round(180 - yaw) % 360, round(-pitch))


FORMS = (  # every kind of command that mcu-spec.md counts in MCU, and those of MineStudio's copy
    "/give @s minecraft:oak_planks 10",
    "/give @p minecraft:map",
    '/give @p minecraft:trident{Enchantments:[{id:"minecraft:looting",lvl:1}]} 1',
    '/give @p minecraft:potion{Potion:"minecraft:harming"} 1',
    "/replaceitem entity @s weapon.mainhand minecraft:diamond_sword",
    "/replaceitem entity @s weapon.offhand minecraft:shield 1",
    "/replaceitem entity @s armor.head minecraft:iron_helmet",
    "/replaceitem entity @s armor.chest minecraft:iron_chestplate",
    "/replaceitem entity @s armor.legs minecraft:iron_leggings",
    "/replaceitem entity @s armor.feet minecraft:iron_boots",
    "/summon minecraft:sheep ~2 ~ ~",
    "/summon minecraft:sheep",
    "summon minecraft:pig ~-3 ~ ~3 {IsBaby:1b}",
    "/summon minecraft:villager ~2 ~ ~",
    "/setblock ~1 ~ ~ minecraft:crafting_table",
    "/setblock ~ ~ ~1 white_bed",
    '/setblock ~-1 ~ ~ chest{Items:[{Slot:0b,id:"minecraft:bread",Count:3b}]}',
    "/fill ~5 ~ ~5 ~8 ~ ~8 minecraft:gravel",
    "/execute as @p at @s run fill ~2 ~3 ~ ~3 ~3 ~ minecraft:diamond_ore",
    "/execute as @p at @s run fill ~10 ~-3 ~10 ~-10 ~10 ~-10 minecraft:grass_block keep",
    "/time set night",
    "/time set 14000",
    "/weather thunder",
    "/effect give @a minecraft:night_vision 99999 250 true",
    "/tp @s ~ ~10 ~",
    "/difficulty hard",
    "/gamerule keepInventory true",
    "/setworldspawn",
)


def test_every_kind_of_command_that_mcu_has_is_executed(game):
    frame = begin(game, *FORMS)
    had = carried(frame)
    # The planks were in the hand that then got a sword.
    assert [had[name] for name in ("oak_planks", "map", "trident", "potion")] == [0, 1, 1, 1]
    equipped = {place: item[0] for place, item in frame.details[0]["equip"].items()}
    assert equipped == {
        "main hand": "diamond_sword",
        "off hand": "shield",
        "head": "iron_helmet",
        "body": "iron_chestplate",
        "legs": "iron_leggings",
        "feet": "iron_boots",
    }
    assert frame.details[0]["time"] == 14_001
    assert frame.observations["weather"][0].tolist() == [1, 1]
    assert frame.details[0]["difficulty"] == "hard"


def test_creatures_are_as_their_tags_say(game):
    tags = '{Color:14,Age:-1000,NoAI:1b,Health:3f,CustomName:\'{"text":"Dolly"}\',Tags:[wanted]}'
    frame = begin(
        game,
        f"/summon sheep ~3 ~ ~ {tags}",
        "/summon slime ~-4 ~ ~ {Size:0,NoAI:1b}",
        "/summon zombie ~ ~ ~-6 {NoAI:1b,ArmorItems:[{},{},{},{id:iron_helmet,Count:1b}]}",
        "/summon item ~ ~ ~3 {Item:{id:diamond,Count:2b}}",
        "/execute as @e[tag=wanted] at @s run summon pig ~ ~ ~3 {NoAI:1b}",
        steps=3,
    )
    (sheep,) = (each for each in frame.details[0]["entities"] if each["kind"] == "sheep")
    assert (sheep["name"], sheep["health"], sheep["position"]) == ("Dolly", 3, [3.5, 64, 0.5])
    assert at(frame, "pig") == [(3.0, 0.0, 3.0)]
    assert creatures(frame)["zombie"] == creatures(frame)["slime"] == 1
    frame = begin(game, "/summon item ~ ~ ~1 {Item:{id:diamond,Count:2b}}", steps=15)
    assert carried(frame) == {"diamond": 2}


def test_coordinates_are_the_places_own_and_turned_ones(game):
    still = "{NoAI:1b}"
    frame = begin(
        game,
        "/tp @s ~ ~ ~ 90 0",  # to the west
        f"/execute as @s at @s run summon cow ^ ^ ^4 {still}",
        f"/execute as @s at @s run summon chicken ^2 ^ ^ {still}",  # its left: the south
        f"/execute at @s facing ~ ~ ~-9 run summon pig ^ ^ ^5 {still}",
        f"/execute positioned ~3 ~ ~3 run summon rabbit ~1 ~ ~ {still}",
        f"/execute align xz run summon bat ~ ~2 ~ {still}",
        f"/execute rotated 0 -90 positioned ~ ~ ~ run summon parrot ^ ^ ^3 {still}",
        "/execute anchored eyes facing entity @e[type=cow] eyes run tp @s ~ ~ ~ ~ ~",
        steps=3,
    )
    assert [at(frame, kind)[0] for kind in ("cow", "chicken", "pig", "rabbit")] == [
        *((-4.0, 0.0, 0.0), (0.0, 0.0, 2.0)),
        *((0.0, 0.0, -5.0), (4.0, 0.0, 3.0)),
    ]
    assert at(frame, "bat")[0] == (-0.5, 2.0, -0.5)
    assert at(frame, "parrot")[0] == (0.0, 3.0, 0.0)
    yaw, pitch = turned(frame)
    assert (yaw, 0 < pitch < 15) == (90, True)
    frame = begin(game, "/tp @s 10 70 -4 0 45", "/setblock ~ ~-1 ~ stone")
    assert frame.observations["position"][0].tolist() == [10.5, 70, -3.5]
    assert turned(frame) == (0, 45)


def test_selectors_choose(game):
    row = [
        f"/summon {kind} ~{k} ~ ~ {{NoAI:1b}}"
        for k, kind in enumerate(("cow", "cow", "pig", "sheep", "sheep", "chicken"), start=2)
    ]
    frame = begin(
        game,
        *row,
        "/kill @e[type=cow,sort=furthest,limit=1]",
        "/kill @e[type=!player,distance=5..6,type=sheep]",
        "/kill @e[type=chicken,x=0,y=60,z=0,dx=3,dy=9,dz=3]",
        "/execute if entity @e[type=pig] run give @a apple",
        "/execute unless entity @e[type=pig] run give @a bread",
        "/execute if block ~ ~-1 ~ grass_block run give @r carrot",
        "/kill @e[type=wither]",
        steps=30,
    )
    assert creatures(frame) - Counter(item=9) == {"cow": 1, "pig": 1, "chicken": 1}
    assert at(frame, "cow") == [(2.0, 0.0, 0.0)]
    assert set(carried(frame)) == {"apple", "carrot"}


def test_blocks_of_scenes_and_commands_change_the_world(game):
    frame = begin(
        game,
        "/fill ~-1 ~ ~-1 ~1 ~1 ~1 glass outline",
        "/setblock ~1 ~ ~ oak_log[axis=x]",
        "/setblock ~-1 ~ ~ dirt keep",
        "/fill ~-1 ~1 ~-1 ~1 ~1 ~1 gold_block replace glass",
        "/clone ~1 ~ ~ ~1 ~ ~ ~ ~-1 ~1",
        blocks={"0 0 0": "torch", "0 -1 0": "diamond_ore", "-1 -1 0": "oak_stairs[facing=west]"},
    )
    assert [block(frame, *place) for place in ((1, 0, 0), (-1, 0, 0), (0, 0, 1))] == [
        *("oak_log", "glass", "glass")
    ]
    assert block(frame, 1, 1, 0) == "gold_block"
    assert block(frame, 0, -1, 1) == "oak_log"
    assert [block(frame, 0, -1, 0), block(frame, -1, -1, 0)] == ["diamond_ore", "oak_stairs"]
    assert block(frame, 0, 0, 0) == "glass"  # a box of two layers has no inside


def test_players_are_changed(game):
    frame = begin(
        game,
        "/xp add @s 5 levels",
        "/xp add @s 3",
        "/give @s iron_sword",
        "/enchant @s sharpness 3",
        "/give @s dirt 64",
        "/clear @s dirt 60",
        "/item replace entity @s inventory.3 with stone 7",
        "/gamemode adventure @s",
        "/effect give @s instant_damage 1 0",
        "/tag @s add it",
        "/execute as @a[tag=it,gamemode=adventure,level=5] run give @s emerald",
        "/spawnpoint @s ~5 ~ ~5",
        "/say hello",
        steps=0,
    )
    assert frame.details[0]["life_stats"]["xp_level"] == 5
    assert carried(frame) == {"iron_sword": 1, "dirt": 4, "stone": 7, "emerald": 1}
    assert frame.observations["inventory_count"][0, 3] == 7
    assert frame.details[0]["life_stats"]["life"] == 14
    frame = begin(game, "/spreadplayers 0 0 5 30 false @s", steps=0)
    assert np.abs(frame.observations["position"][0]).max() <= 64


def test_what_fails_is_the_error_of_the_start(game):
    for line, said in (
        ("/effect give @e[type=cow] speed", "No entity was found"),
        ("/fill ~-50 ~ ~-50 ~50 ~9 ~50 stone", "Too many blocks in the specified area"),
        ("/setblock ~ ~250 ~ stone", "That position is out of this world!"),
        ("/replaceitem block ~ ~-1 ~ container.0 stone", "is not a container"),
    ):
        with pytest.raises(
            StateError, match=f"^the command {line.split()[0]} .* failed: .*{said}"
        ) as e:
            begin(game, "/give @s stone", line)
        assert len(str(e.value)) < 300
    assert carried(begin(game)) == {}  # and the next start has its own scene


def test_a_start_sets_the_condition_of_the_agent(game):
    frame = begin(
        game,
        health=1,
        food=0,
        experience=5,
        effect="night_vision",
        loadout="2_bread",
        difficulty="normal",
    )
    health, _, food, saturation, _, points, level, progress = frame.observations["life"][0]
    assert [health, food, saturation, level, progress] == [1, 0, 0, 5, 0]
    assert points == 7 + 9 + 11 + 13 + 15
    assert np.flatnonzero(frame.observations["effects"][0]).tolist() == [16 - 1]
    assert carried(frame) == {"bread": 2}
    for steps in range(200):  # the hungry lose health every 4 s
        frame = game.step(neutral("low_level", 1), timeout_s=PATIENT_S)
        assert frame.signals["health"][0] == 1, steps  # but on normal nobody starves to death
    assert frame.observations["effects"][0, 15] == 1
    frame = begin(game, health=10, effect="regeneration", steps=60)
    assert frame.signals["health"][0] > 10
    frame = begin(game, "/effect give @s speed 9 250", "/effect clear @s hunger", effect="hunger")
    assert frame.observations["effects"][0].tolist() == [251] + [0] * 31


ADA = {
    "at": "4 0 0",
    "items": {"bread": 3, "iron_helmet": 1},
    "script": [
        {"say": "I am Ada. How many?"},
        {"wait": 10},
        {"give": {"item": "bread", "count": 2}},
        {"go": "9 0 0"},
        {"say": "Here I am."},
        {"follow": "a0"},
    ],
}


BEN = {"at": "-3 0 -3", "answers": {"how many|how much": "Eight, please."}}


def test_scripted_players_talk_give_walk_and_follow(game):
    frame = begin(game, "/tag Ada add friend", players={"Ada": ADA, "Ben": BEN}, steps=0)
    heard, far = [], []
    for _ in range(120):
        frame = game.step(neutral("low_level", 1), timeout_s=PATIENT_S)
        heard += frame.details[0]["chat"]
        seen = {each["name"]: each["distance"] for each in frame.details[0]["entities"]}
        far.append(seen["Ada"])
    assert [line.partition("> ")[2] for line in heard] == [
        *("I am Ada. How many?", "Eight, please.", "Here I am.")
    ]
    assert carried(frame) == {"bread": 2}
    assert far[0] == pytest.approx(4, abs=0.1)
    assert max(far) > 8.5  # it went away
    assert far[-1] < 3  # and came back
    assert seen["Ben"] == pytest.approx(18**0.5, abs=0.1)


def test_two_starts_of_one_scene_are_the_same(game):
    def played():
        frame = begin(game, "/summon sheep ~4 ~ ~", "/spreadplayers ~ ~ 3 20 false @e", steps=40)
        return {key: value.copy() for key, value in frame.observations.items()}

    first, second = played(), played()
    for key, value in first.items():
        np.testing.assert_array_equal(value, second[key], err_msg=key)
