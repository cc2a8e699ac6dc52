"""What the player's hands do: how long digging takes, what it yields, placing, using, eating."""

import numpy as np
import pytest

from bridges.blockworld.rules import blocks, world
from bridges.blockworld.rules.aim import aim_block, aim_creature
from bridges.blockworld.rules.inventory import add_item, count_item
from bridges.blockworld.rules.items import DURABILITY, NUMBER
from bridges.blockworld.rules.tick import advance
from tests.unit.blockworld_scenes import block, control, creature, flat_world, give, index, put

pytestmark = [pytest.mark.heavy]

PLAYING = np.ones(1, np.uint8)
X = Z = 32
FEET = 12


def play(worlds, keys=0, ticks=1, pitch=0.0, yaw=0.0):
    advance(worlds, control(keys, pitch, yaw), PLAYING, ticks, 0, 1)


def facing(name, item=None):
    """A world with a block in front of the player's eyes, two blocks away, and a tool in hand."""
    worlds = flat_world()
    put(worlds, X, FEET + 1, Z + 2, name)
    if item:
        give(worlds, 0, item)
    return worlds


def ticks_to_break(name, item=None, most=400):
    worlds = facing(name, item)
    for tick in range(1, most):
        play(worlds, world.ATTACK)
        if block(worlds, X, FEET + 1, Z + 2) == "air":
            return tick, worlds
    return None, worlds


def lying(worlds):
    """Names and counts of the items that lie about or were picked up since."""
    names = {number: name for name, number in NUMBER.items()}
    w = worlds[0]
    found = {}
    for item, count in zip(w["d_item"], w["d_count"], strict=True):
        if item:
            found[names[int(item)]] = found.get(names[int(item)], 0) + int(count)
    return found


# Minecraft 1.16: seconds * 20, see https://minecraft.wiki/w/Breaking
@pytest.mark.parametrize(
    ("name", "item", "ticks", "drop"),
    [
        ("dirt", None, 15, {"dirt": 1}),  # 0.75 s
        ("dirt", "wooden_shovel", 8, {"dirt": 1}),  # 0.4 s
        ("grass_block", None, 18, {"dirt": 1}),  # 0.9 s
        ("oak_log", None, 60, {"oak_log": 1}),  # 3 s
        ("oak_log", "wooden_axe", 30, {"oak_log": 1}),  # 1.5 s
        ("stone", None, 150, {}),  # 7.5 s
        ("stone", "wooden_pickaxe", 23, {"cobblestone": 1}),  # 1.15 s
        ("stone", "diamond_pickaxe", 6, {"cobblestone": 1}),  # 0.3 s
        ("iron_ore", "wooden_pickaxe", 150, {}),  # 7.5 s
        ("iron_ore", "stone_pickaxe", 23, {"iron_ore": 1}),  # 1.15 s
        ("iron_ore", "golden_pickaxe", 25, {}),  # 1.25 s: fast, but as soft as wood
        ("diamond_ore", "iron_pickaxe", 15, {"diamond": 1}),  # 0.75 s
        ("oak_planks", "iron_pickaxe", 60, {"oak_planks": 1}),  # a wrong tool is a hand
        ("crafting_table", None, 75, {"crafting_table": 1}),  # 3.75 s
        ("torch", None, 1, {"torch": 1}),
        ("glass", None, 9, {}),
    ],
)
def test_digging_takes_as_long_as_in_minecraft(name, item, ticks, drop):
    took, worlds = ticks_to_break(name, item)
    assert took == ticks
    assert lying(worlds) == drop
    assert worlds[0]["mined"][blocks.NUMBER[name]] == 1


def test_bedrock_never_breaks():
    assert ticks_to_break("bedrock", "diamond_pickaxe", 100)[0] is None


def test_digging_under_water_takes_five_times_as_long():
    worlds = facing("dirt")
    put(worlds, X, FEET + 1, Z, "water")
    for _ in range(74):
        play(worlds, world.ATTACK)
        worlds[0]["y"], worlds[0]["vy"], worlds[0]["on_ground"] = FEET, 0, 1
    assert block(worlds, X, FEET + 1, Z + 2) == "dirt"
    for _ in range(2):
        play(worlds, world.ATTACK)
        worlds[0]["y"], worlds[0]["vy"], worlds[0]["on_ground"] = FEET, 0, 1
    assert block(worlds, X, FEET + 1, Z + 2) == "air"


def test_letting_go_starts_again():
    worlds = facing("dirt")
    play(worlds, world.ATTACK, 14)
    assert worlds[0]["dig_at"] == index(X, FEET + 1, Z + 2)
    play(worlds)
    assert worlds[0]["dig_at"] == -1
    play(worlds, world.ATTACK, 14)
    assert block(worlds, X, FEET + 1, Z + 2) == "dirt"
    play(worlds, world.ATTACK)
    assert block(worlds, X, FEET + 1, Z + 2) == "air"


def test_tools_wear_and_break():
    worlds = facing("dirt", "wooden_pickaxe")
    play(worlds, world.ATTACK, 15)
    assert worlds[0]["wear"][0] == 1
    put(worlds, X, FEET + 1, Z + 2, "dirt")
    worlds[0]["wear"][0] = DURABILITY[NUMBER["wooden_pickaxe"]] - 1
    play(worlds, world.ATTACK, 15)
    assert (worlds[0]["item"][0], worlds[0]["count"][0], worlds[0]["wear"][0]) == (0, 0, 0)


def test_a_bed_goes_as_a_whole_and_plants_fall_with_their_ground():
    worlds = facing("bed")
    put(worlds, X, FEET + 1, Z + 3, "bed")
    put(worlds, X, FEET + 2, Z + 2, "flower")
    play(worlds, world.ATTACK, 6)
    assert [block(worlds, X, FEET + 1, Z + d) for d in (2, 3)] == ["air", "air"]
    assert block(worlds, X, FEET + 2, Z + 2) == "air"
    assert lying(worlds) == {"bed": 1, "flower": 1}


def test_leaves_yield_one_in_twenty():
    worlds = facing("oak_leaves", "iron_sword")
    yields = {}
    for _ in range(400):
        put(worlds, X, FEET + 1, Z + 2, "oak_leaves")
        for _ in range(10):
            play(worlds, world.ATTACK)
            if block(worlds, X, FEET + 1, Z + 2) == "air":
                break
        for name, count in lying(worlds).items():
            yields[name] = yields.get(name, 0) + count
        worlds[0]["d_item"] = 0
        give(worlds, 0, "iron_sword")
    assert yields.keys() == {"apple"}
    assert 8 <= yields["apple"] <= 36  # 20 expected, standard deviation 4.4


def test_aim_says_which_block_which_face_and_how_far():
    worlds = facing("stone")
    assert aim_block(worlds[0], 4.5) == (index(X, FEET + 1, Z + 2), 4, pytest.approx(1.5))
    assert aim_block(worlds[0], 1.4)[0] == -1
    worlds[0]["pitch"] = 90
    at, face, distance = aim_block(worlds[0], 4.5)
    assert (at, face) == (index(X, FEET - 1, Z), 3)
    assert distance == pytest.approx(1.62)
    worlds[0]["pitch"] = -90
    assert aim_block(worlds[0], 4.5)[0] == -1
    worlds[0]["pitch"], worlds[0]["y"] = 90, 33.0  # above the world
    put(worlds, X, 30, Z, "stone")
    assert aim_block(worlds[0], 4.5)[:2] == (index(X, 30, Z), 3)


@pytest.mark.parametrize(
    ("yaw", "dx", "dz", "face"), [(0, 0, 2, 4), (90, -2, 0, 1), (180, 0, -2, 5), (270, 2, 0, 0)]
)
def test_aim_knows_the_compass(yaw, dx, dz, face):
    worlds = flat_world()
    put(worlds, X + dx, FEET + 1, Z + dz, "stone")
    worlds[0]["yaw"] = yaw
    assert aim_block(worlds[0], 4.5) == (index(X + dx, FEET + 1, Z + dz), face, pytest.approx(1.5))


def test_aim_passes_water_and_stops_at_plants():
    worlds = flat_world()
    put(worlds, X, FEET + 1, Z + 1, "water")
    put(worlds, X, FEET + 1, Z + 2, "tall_grass")
    assert aim_block(worlds[0], 4.5)[0] == index(X, FEET + 1, Z + 2)


def test_creatures_are_struck_within_three_blocks_and_not_through_walls():
    worlds = flat_world()
    creature(worlds, 3, "cow", 32.5, FEET, 32.5 + 3.5)
    creature(worlds, 5, "cow", 32.5, FEET, 32.5 + 3.0)
    worlds[0]["pitch"] = 10
    assert aim_creature(worlds[0], 3.0)[0] == 5
    worlds[0]["c_z"][5] += 2.0
    assert aim_creature(worlds[0], 2.5)[0] == -1
    assert aim_creature(worlds[0], 3.1)[0] == 3
    put(worlds, X, FEET + 1, Z + 1, "glass")
    assert aim_creature(worlds[0], 3.1)[0] == -1


def test_one_press_is_one_blow():
    worlds = flat_world()
    creature(worlds, 0, "cow", 32.5, FEET, 34.5)
    play(worlds, world.ATTACK, 5, pitch=15.0)
    assert worlds[0]["dealt"] == 1
    assert worlds[0]["swing_ticks"] > 0


def test_a_miss_costs_strength():
    worlds = flat_world()
    play(worlds, world.ATTACK)
    assert worlds[0]["blow_ticks"] == 0


def test_auto_click_strikes_at_every_full_blow():
    worlds = flat_world()
    give(worlds, 0, "diamond_sword")
    struck = []
    for _ in range(40):
        creature(worlds, 0, "zombie", 32.5, FEET, 34.5)
        worlds[0]["hurt_ticks"], worlds[0]["c_hurt"][0] = 20, 0
        before = float(worlds[0]["dealt"])
        play(worlds, world.ATTACK | 1 << 20)
        struck.append(float(worlds[0]["dealt"]) - before)
    blows = [n for n, dealt in enumerate(struck) if dealt]
    assert np.diff(blows).tolist() == [13, 13, 13]  # 12.5 ticks for a full blow of a sword
    assert {struck[n] for n in blows} == {7.0}


def test_placing_takes_an_item_and_not_its_own_place():
    worlds = flat_world()
    give(worlds, 0, "cobblestone", 2)
    play(worlds, world.USE, pitch=90.0)  # its own feet are there
    assert worlds[0]["count"][0] == 2
    play(worlds)
    play(worlds, world.USE, pitch=-50.0)  # 40 degrees down: the ground two blocks ahead
    assert block(worlds, X, FEET, Z + 2) == "cobblestone"
    assert worlds[0]["count"][0] == 1
    assert worlds[0]["placed"][blocks.COBBLESTONE] == 1
    assert worlds[0]["heights"][X * world.SIZE + Z + 2] == FEET + 1


def test_a_held_key_places_every_four_ticks():
    worlds = flat_world()
    give(worlds, 0, "dirt", 64)
    worlds[0]["pitch"] = 40
    play(worlds, world.USE, 4)
    assert worlds[0]["placed"][blocks.DIRT] == 1
    play(worlds, world.USE, 1)
    assert worlds[0]["placed"][blocks.DIRT] == 2


def test_blocks_are_not_placed_into_creatures_but_torches_are():
    for item, placed in (("cobblestone", 0), ("torch", 1)):
        worlds = flat_world()
        give(worlds, 0, item)
        creature(worlds, 0, "pig", 33.4, FEET, 34.5)
        play(worlds, world.USE, pitch=40.0)
        assert worlds[0]["placed"].sum() == placed


def test_torches_need_ground():
    worlds = facing("stone")
    give(worlds, 0, "torch")
    play(worlds, world.USE)
    assert worlds[0]["placed"].sum() == 0
    assert worlds[0]["count"][0] == 1


def test_the_off_hand_places_if_the_main_hand_cannot():
    worlds = flat_world()
    give(worlds, 0, "iron_sword")
    worlds[0]["off_item"], worlds[0]["off_count"] = blocks.TORCH, 3
    play(worlds, world.USE, pitch=40.0)
    assert block(worlds, X, FEET, Z + 2) == "torch"
    assert worlds[0]["off_count"] == 2
    assert worlds[0]["lamps"][0] == index(X, FEET, Z + 2)


def test_a_bed_takes_two_cells_away_from_the_player():
    worlds = flat_world()
    give(worlds, 0, "bed")
    play(worlds, world.USE, pitch=40.0)
    assert [block(worlds, X, FEET, Z + d) for d in (1, 2, 3)] == ["air", "bed", "bed"]
    blocked = flat_world()
    give(blocked, 0, "bed")
    put(blocked, X, FEET, Z + 3, "stone")
    play(blocked, world.USE, pitch=40.0)
    assert blocked[0]["count"][0] == 1


def test_furnaces_are_entered_in_the_list_until_it_is_full():
    worlds = flat_world()
    give(worlds, 0, "furnace", 2)
    worlds[0]["furnaces"][:3] = 1, 2, 3
    worlds[0]["blocks"][[1, 2, 3]] = blocks.FURNACE
    play(worlds, world.USE | world.SNEAK, pitch=40.0)
    assert worlds[0]["furnaces"].tolist() == [1, 2, 3, index(X, FEET, Z + 2)]
    play(worlds, world.SNEAK)
    play(worlds, world.USE | world.SNEAK, yaw=90.0)
    assert worlds[0]["count"][0] == 1


def test_a_broken_furnace_spills_what_is_in_it():
    worlds = facing("furnace", "wooden_pickaxe")
    w = worlds[0]
    w["furnaces"][1] = index(X, FEET + 1, Z + 2)
    w["furnace_in"][1], w["furnace_in_count"][1] = NUMBER["beef"], 3
    w["furnace_fuel"][1], w["furnace_fuel_count"][1] = NUMBER["stick"], 2
    play(worlds, world.ATTACK, 53)
    assert lying(worlds) == {"furnace": 1, "beef": 3, "stick": 1}  # one was lit
    assert w["furnaces"][1] == -1


def test_building_a_pillar_by_jumping():
    worlds = flat_world()
    give(worlds, 0, "dirt", 20)
    worlds[0]["pitch"] = 90
    play(worlds, world.JUMP | world.USE, 120)
    w = worlds[0]
    assert w["pillar"] >= 5
    assert w["pillar"] == w["pillars"][X * world.SIZE + Z] or not w["on_ground"]
    assert w["y"] - FEET >= 5
    stacked = int(w["pillars"][X * world.SIZE + Z])
    assert stacked == 20 - w["count"][0]
    play(worlds, 0, 20)
    play(worlds, world.ATTACK, 15)
    assert w["pillars"][X * world.SIZE + Z] == stacked - 1


def test_eating_takes_32_ticks_and_only_when_hungry():
    worlds = flat_world()
    give(worlds, 0, "bread", 2)
    play(worlds, world.USE, 40)
    assert worlds[0]["count"][0] == 2
    worlds[0]["food"], worlds[0]["saturation"] = 10, 0
    play(worlds)
    play(worlds, world.USE, 31)
    assert worlds[0]["food"] == 10
    play(worlds, world.USE, 1)
    w = worlds[0]
    assert (w["food"], w["saturation"], w["count"][0], w["eaten"]) == (15, 6, 1, 1)
    play(worlds, world.USE, 10)
    play(worlds)
    assert w["eat_ticks"] == 0


def test_the_shield_is_up_after_five_ticks():
    worlds = flat_world()
    give(worlds, 0, "iron_sword")
    worlds[0]["off_item"], worlds[0]["off_count"] = NUMBER["shield"], 1
    play(worlds, world.USE, 5)
    assert not worlds[0]["blocking"]
    play(worlds, world.USE)
    assert worlds[0]["blocking"]
    play(worlds)
    assert not worlds[0]["blocking"]


def test_armour_in_the_hand_is_put_on_and_swapped():
    worlds = flat_world()
    give(worlds, 0, "iron_helmet", 1, 7)
    play(worlds, world.USE)
    assert (worlds[0]["armour"][0], worlds[0]["armour_wear"][0]) == (NUMBER["iron_helmet"], 7)
    assert worlds[0]["item"][0] == 0
    give(worlds, 0, "leather_helmet")
    play(worlds)
    play(worlds, world.USE)
    assert worlds[0]["armour"][0] == NUMBER["leather_helmet"]
    assert (worlds[0]["item"][0], worlds[0]["wear"][0]) == (NUMBER["iron_helmet"], 7)


def test_the_drop_key_throws_one_away():
    worlds = flat_world()
    give(worlds, 0, "dirt", 3)
    play(worlds, world.DROP, 10)
    assert worlds[0]["count"][0] == 2
    assert lying(worlds) == {"dirt": 1}
    play(worlds, 0, 60)
    assert worlds[0]["d_z"][0] > 33.5


def test_hotbar_keys_select_and_the_later_one_wins():
    worlds = flat_world()
    play(worlds, world.HOTBAR_3 | world.HOTBAR_7)
    assert worlds[0]["selected"] == 6


def test_items_join_stacks_hotbar_first():
    worlds = flat_world()
    w = worlds[0]
    give(worlds, 20, "dirt", 60)
    give(worlds, 3, "dirt", 63)
    assert add_item(w, NUMBER["dirt"], 10, 0) == 0
    assert w["count"][[3, 20, 0]].tolist() == [64, 64, 5]
    assert add_item(w, NUMBER["iron_sword"], 1, 5) == 0
    assert (w["item"][1], w["wear"][1]) == (NUMBER["iron_sword"], 5)
    assert add_item(w, NUMBER["stone"], 40 * 64, 0) == 40 * 64 - 32 * 64
    assert count_item(w, NUMBER["stone"]) == 32 * 64
