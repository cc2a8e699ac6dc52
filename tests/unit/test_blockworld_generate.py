"""Worlds are built from orders: as the state says, and by nothing else."""

import functools
from collections import Counter, deque

import numpy as np
import pytest

from bridges.blockworld.rules import blocks, factors, items, species
from bridges.blockworld.rules.factors import KITS, ORDER, SUBJECTS
from bridges.blockworld.rules.generate import USELESS, generate
from bridges.blockworld.rules.world import HEIGHT, MAX_LAMPS, SIZE, WORLD
from rollout.api import Start

pytestmark = pytest.mark.heavy

SPACE = factors.state_space()
SOLID = blocks.SOLID.astype(bool)
GROUPS = {
    "tree": blocks.LOGS,
    "stone": (blocks.STONE, blocks.COAL_ORE, blocks.IRON_ORE),
    "iron_ore": (blocks.IRON_ORE,),
    "bed": (blocks.BED,),
    "bed_in_hut": (blocks.BED,),
    "crafting_table": (blocks.CRAFTING_TABLE,),
    "furnace": (blocks.FURNACE,),
}


def order_of(state, seed=0, slot=0):
    return factors.orders([slot], [Start(state, seed)])


def build(orders):
    worlds = np.zeros(len(orders), WORLD)
    orders["slot"] = np.arange(len(orders))
    generate(worlds, orders, 0, len(orders))
    return worlds


def random_orders(n, seed, **fixed):
    """Random states over all factors, subjects and biomes in turn."""
    rng = np.random.default_rng(seed)
    made = []
    for i in range(n):
        values = {f.name: f.values[int(rng.integers(len(f.values)))] for f in SPACE}
        values["subject"] = SUBJECTS[i % len(SUBJECTS)]
        values["biome"] = factors.BIOMES[i // len(SUBJECTS) % len(factors.BIOMES)]
        values.update(fixed)
        made.append(Start(SPACE.state(SPACE.index(values)), int(rng.integers(2**63))))
    return factors.orders(range(n), made)


@functools.cache
def sample():
    """Orders and their worlds: three terrains for each subject in each biome."""
    orders = random_orders(3 * 8 * len(SUBJECTS), 1)
    return orders, build(orders)


def each(*subjects):
    orders, worlds = sample()
    for order, world in zip(orders, worlds, strict=True):
        if not subjects or SUBJECTS[order["subject"]] in subjects:
            yield order, world


def grid(world):
    return world["blocks"].reshape(SIZE, SIZE, HEIGHT)


def label(order):
    return {name: order[name].item() for name in ORDER.names}


def distance_and_bearing(world, x, z):
    dx, dz = x - world["x"], z - world["z"]
    towards = np.degrees(np.arctan2(-dx, dz))
    return np.hypot(dx, dz), (towards - world["yaw"]) % 360


def found(order, world, places):
    """Whether one of the places, middles of columns, is where the state says."""
    near, far = float(order["nearest"]), float(order["farthest"])
    if SUBJECTS[order["subject"]] == "bed_in_hut":
        near, far = 2.0, 4.0
    for x, z in places:
        distance, bearing = distance_and_bearing(world, x, z)
        off = (bearing - float(order["bearing"]) + 180) % 360 - 180
        if near <= distance < far and abs(off) <= 10:
            return True
    return False


def standing(world):
    """Heights at which a body may stand on each column: solid below, two free blocks."""
    cells = SOLID[grid(world)]
    wet = np.isin(grid(world), (blocks.WATER, blocks.LAVA))
    free = ~cells & ~wet
    stand = np.zeros_like(cells)
    stand[:, :, 1:-1] = cells[:, :, :-2] & free[:, :, 1:-1] & free[:, :, 2:]
    stand[:, :, 1:] &= grid(world)[:, :, :-1] != blocks.CACTUS
    return stand


def reach(world, done):
    """Walks from the player, up one and down three at most; whether ``done`` holds anywhere."""
    stand = standing(world)
    free = ~SOLID[grid(world)]
    start = int(world["x"]), int(world["y"]), int(world["z"])
    seen, queue = {start}, deque([start])
    while queue:
        x, y, z = queue.popleft()
        if done(x, y, z):
            return True
        for i, k in ((x + 1, z), (x - 1, z), (x, z + 1), (x, z - 1)):
            for j in range(min(y + 1, HEIGHT - 2), max(y - 4, 0), -1):
                if (i, j, k) in seen or not stand[i, k, j]:
                    continue
                # Room above the head: here to jump, there to step over before falling.
                if (j > y and not free[x, z, y + 2]) or not free[i, k, j : y + 2].all():
                    continue
                seen.add((i, j, k))
                queue.append((i, j, k))
    return False


def creatures(world):
    return [n for n in range(len(world["c_kind"])) if world["c_kind"][n] > 0]


def subject_places(order, world):
    """Middles of all columns that hold what the subject is made of."""
    name = SUBJECTS[order["subject"]]
    if order["subject"] <= len(species.NAMES):
        return [
            (world["c_x"][n], world["c_z"][n])
            for n in creatures(world)
            if world["c_kind"][n] == order["subject"]
        ]
    cells = np.isin(grid(world), GROUPS[name])
    # Only what shows above the ground where the player is, give or take a hill.
    cells[:, :, :SEEN_FROM] = False
    return [(x + 0.5, z + 0.5) for x, z in zip(*np.nonzero(cells.any(2)), strict=True)]


SEEN_FROM = 9


def test_heights_are_exact():
    for order, world in each():
        filled = grid(world) != blocks.AIR
        top = np.where(filled.any(2), HEIGHT - np.argmax(filled[:, :, ::-1], 2), 0)
        assert (top.ravel() == world["heights"]).all(), label(order)


def test_the_world_ends_at_its_edge_and_below_the_sky():
    for order, world in each():
        cells, heights = grid(world), world["heights"].reshape(SIZE, SIZE)
        border = np.ones((SIZE, SIZE), bool)
        border[1:-1, 1:-1] = False
        assert (cells[border] == blocks.EDGE).all()
        assert (heights[border] == HEIGHT).all()
        assert not (cells[~border] == blocks.EDGE).any()
        assert (heights[~border] < HEIGHT).all(), label(order)
        assert (cells[~border][:, -1] == blocks.AIR).all()
        assert (cells[~border][:, 0] == blocks.BEDROCK).all()
        logs = np.isin(cells, (*blocks.LOGS, *blocks.LEAVES)).any(2)
        assert not logs[:2].any()
        assert not logs[:, -2:].any()


def test_the_player_stands_free_on_dry_ground():
    for order, world in each():
        x, y, z = int(world["x"]), int(world["y"]), int(world["z"])
        cells = grid(world)
        assert standing(world)[x, z, y], label(order)
        assert cells[x, z, y] == blocks.AIR
        assert cells[x, z, y - 1] != blocks.ICE
        assert 6 <= min(x, z) <= max(x, z) <= SIZE - 7
        around = np.ix_(range(x - 1, x + 2), range(z - 1, z + 2))
        if SUBJECTS[order["subject"]] == "bed_in_hut":
            assert not SOLID[cells[around][:, :, y : y + 2]].any()
        else:
            stand = standing(world)[around][:, :, y - 1 : y + 2]
            assert stand.any(2).all(), label(order)
        assert (world["health"], world["food"], world["air"]) == (20, 20, 300)
        assert (world["x"], world["y"], world["z"]) == tuple(
            world[f"home_{axis}"] for axis in "xyz"
        )
        assert world["yaw"] in range(360)
        assert (world["dig_at"], world["screen_at"]) == (-1, -1)


@pytest.mark.parametrize("subject", [s for s in SUBJECTS if s not in ("none", "mountain", "hut")])
def test_the_subject_is_where_the_state_says(subject):
    for order, world in each(subject):
        places = subject_places(order, world)
        if subject in ("iron_ore", "stone"):
            # The boulder's middle: what is seen of it is at most a column away.
            places = [(x + i, z + k) for x, z in places for i in (-1, 0, 1) for k in (-1, 0, 1)]
        assert found(order, world, places), label(order)


def test_herds_have_their_number():
    for order, world in each(*species.NAMES):
        kinds = [world["c_kind"][n] for n in creatures(world)]
        expected = Counter({int(order["subject"]): int(order["number"])})
        expected.update({int(order["others_kind"]): int(order["others_count"])})
        assert Counter(kinds) == +expected, label(order)
        x, z = world["c_x"][0], world["c_z"][0]
        assert found(order, world, [(x, z)]), label(order)
        for n in range(order["number"]):
            assert np.hypot(world["c_x"][n] - x, world["c_z"][n] - z) <= 3.5
            assert world["c_coat"][n] == (
                order["coat"] if SUBJECTS[order["subject"]] == "sheep" else 0
            )


def test_creatures_stand_apart_and_free():
    for order, world in each():
        stand, alive = standing(world), creatures(world)
        assert alive == list(range(len(alive)))
        bodies = [(world["x"], world["z"], 0.6)]
        for n in alive:
            kind, x, y, z = (world[f][n] for f in ("c_kind", "c_x", "c_y", "c_z"))
            assert stand[int(x), int(z), int(y)], label(order)
            half = species.WIDTH[kind] / 2
            for i in {int(x - half), int(x + half)}:
                for k in {int(z - half), int(z + half)}:
                    assert not SOLID[grid(world)[i, k, int(y)]], label(order)
            for i, k, width in bodies:
                assert max(abs(x - i), abs(z - k)) >= (species.WIDTH[kind] + width) / 2
            bodies.append((x, z, species.WIDTH[kind]))
            assert world["c_health"][n] == species.HEALTH[kind]


def test_others_are_four_to_fourteen_blocks_away():
    for order, world in each():
        alive = creatures(world)
        others = alive[len(alive) - order["others_count"] :]
        assert [world["c_kind"][n] for n in others] == [order["others_kind"]] * len(others)
        assert len(others) == order["others_count"], label(order)
        for n in others:
            distance, _ = distance_and_bearing(world, world["c_x"][n], world["c_z"][n])
            assert 4 <= distance <= 14


def test_a_way_leads_to_the_subject():
    for order, world in each(
        *(s for s in SUBJECTS[1:] if s not in ("mountain", "hut", "bed_in_hut"))
    ):
        places = [p for p in subject_places(order, world) if found(order, world, [p])]
        if not places:  # only the middle of a boulder is in the band
            places = subject_places(order, world)
        near = 2.5 if SUBJECTS[order["subject"]] in ("stone", "iron_ore") else 1.5
        spots = np.array(places) - 0.5

        def beside(x, y, z, spots=spots, near=near):
            return (np.abs(spots - (x, z)).max(1) <= near).any()

        assert reach(world, beside), label(order)


def test_iron_shows():
    for order, world in each("iron_ore"):
        cells, y = grid(world), int(world["y"])
        iron = np.argwhere(cells == blocks.IRON_ORE)
        shown = [
            (x, z)
            for x, z, j in iron
            if j > SEEN_FROM
            and any(
                not SOLID[cells[x + i, z + k, j]] for i, k in ((1, 0), (-1, 0), (0, 1), (0, -1))
            )
        ]
        around = [
            (x + i + 0.5, z + k + 0.5) for x, z in shown for i in (-1, 0, 1) for k in (-1, 0, 1)
        ]
        assert found(order, world, around), (label(order), y)


def test_mountains_can_be_climbed():
    for order, world in each("mountain"):
        feet = int(world["y"])
        assert reach(world, lambda x, y, z: y >= feet + 10), label(order)  # noqa: B023
        tops = np.argwhere(world["heights"].reshape(SIZE, SIZE)[1:-1, 1:-1] >= feet + 10) + 1.5
        limit = float(order["farthest"]) + 14
        assert any(distance_and_bearing(world, x, z)[0] < limit for x, z in tops)


def test_huts_are_reached_and_entered():
    for order, world in each("hut"):
        x0, z0, x1, z1 = (int(v) for v in world["hut"])
        doors = [
            (x, z)
            for x in range(x0, x1 + 1)
            for z in range(z0, z1 + 1)
            if (x in (x0, x1) or z in (z0, z1))
            and standing(world)[x, z].any()
            and standing(world)[x, z].argmax() < world["heights"].reshape(SIZE, SIZE)[x, z] - 1
        ]
        assert len(doors) == 1, label(order)
        assert found(order, world, [(doors[0][0] + 0.5, doors[0][1] + 0.5)]), label(order)
        middle = (x0 + x1) // 2, (z0 + z1) // 2
        assert reach(world, lambda x, y, z: (x, z) == middle), label(order)  # noqa: B023
        inside = grid(world)[x0 + 1 : x1, z0 + 1 : z1]
        assert (inside == blocks.CHEST).sum() == 1
        assert not (x0 - 1 <= world["x"] - 0.5 <= x1 + 1 and z0 - 1 <= world["z"] - 0.5 <= z1 + 1)


def test_a_bedroom_has_its_furniture():
    for order, world in each("bed_in_hut"):
        x0, z0, x1, z1 = (int(v) for v in world["hut"])
        assert x0 < world["x"] - 0.5 < x1
        assert z0 < world["z"] - 0.5 < z1
        inside = grid(world)[x0 + 1 : x1, z0 + 1 : z1]
        for block, count in ((blocks.BED, 2), (blocks.CHEST, 1), (blocks.CRAFTING_TABLE, 1)):
            assert (inside == block).sum() == count, label(order)
        out = reach(world, lambda x, y, z: not (x0 <= x <= x1 and z0 <= z <= z1))  # noqa: B023
        assert out, label(order)


def test_other_huts_are_away_from_the_player():
    huts = 0
    rest = [s for s in SUBJECTS if "hut" not in s]
    for order, world in each(*rest):
        x0, z0, x1, z1 = (int(v) for v in world["hut"])
        if x0 >= 0:
            huts += 1
            x, z = int(world["x"]), int(world["z"])
            assert max(x0 - x, x - x1, z0 - z, z - z1) >= 12, label(order)
    assert 0.15 < huts / len(list(each(*rest))) < 0.5


def test_lamps_and_furnaces_are_listed():
    for order, world in each():
        cells = world["blocks"]
        lights = set(np.flatnonzero(blocks.LIGHT[cells] > 0).tolist())
        assert set(world["lamps"][: world["n_lamps"]].tolist()) == lights
        assert world["n_lamps"] <= MAX_LAMPS - 8
        furnaces = set(np.flatnonzero(cells == blocks.FURNACE).tolist())
        assert {int(at) for at in world["furnaces"] if at >= 0} == furnaces, label(order)


def test_lava_keeps_away():
    pools = 0
    for order, world in each():
        lava = np.argwhere((grid(world) == blocks.LAVA)[:, :, 6:].any(2))
        pools += len(lava) > 0
        for x, z in lava:
            distance, _ = distance_and_bearing(world, x + 0.5, z + 0.5)
            assert distance > 6, label(order)
    assert pools


def test_every_world_has_every_ore():
    for order, world in each():
        for ore in (blocks.COAL_ORE, blocks.IRON_ORE, blocks.GOLD_ORE, blocks.DIAMOND_ORE):
            assert (world["blocks"] == ore).sum() >= 3, label(order)


@pytest.mark.parametrize(
    ("biome", "mark"),
    [
        ("plains", blocks.TALL_GRASS),
        ("forest", blocks.BIRCH_LOG),
        ("desert", blocks.CACTUS),
        ("taiga", blocks.SPRUCE_LOG),
        ("snowy", blocks.SNOW_BLOCK),
        ("savanna", blocks.ACACIA_LOG),
        ("swamp", blocks.CLAY),
        ("mountains", blocks.SPRUCE_LOG),
    ],
)
def test_biomes_differ(biome, mark):
    worlds = [w for o, w in each("none", "sheep", "stone") if factors.BIOMES[o["biome"]] == biome]
    assert sum((w["blocks"] == mark).any() for w in worlds) >= 0.8 * len(worlds)
    if biome == "desert":
        assert not any((w["blocks"] == blocks.GRASS_BLOCK).any() for w in worlds)


def test_the_bags_hold_what_the_state_says():
    for order, world in each():
        kit = Counter({items.NUMBER[name]: n for name, n in list(KITS.values())[order["kit"]]})
        useless = {items.NUMBER[name] for name in USELESS}
        held, clutter = Counter(), 0
        for item, count in zip(world["item"].tolist(), world["count"].tolist(), strict=True):
            assert (item > 0) == (count > 0)
            assert count <= items.STACK[item] or item == 0
            if item in useless:
                clutter += 1
            elif item:
                held[item] += count
        if order["main_hand"]:
            kit[int(order["main_hand"])] += 1
        assert held == kit, label(order)
        low, high = ((0, 0), (3, 6), (12, 20))[order["clutter"]]
        assert low <= clutter <= high
        assert (world["item"] == 0).sum() >= 6
        if order["main_hand"] and order["clutter"] == 0:
            assert world["item"][0] == order["main_hand"]
        if order["main_hand"]:
            assert order["main_hand"] in world["item"][:9]
        armour = ["", *items.ARMOUR_TIERS][order["armour"]]
        for slot, piece in enumerate(items.ARMOUR_PIECES):
            expected = items.NUMBER[f"{armour}_{piece}"] if armour else 0
            assert world["armour"][slot] == expected
        assert world["off_item"] == order["off_hand"]
        assert (world["off_count"] > 0) == (order["off_hand"] > 0)


def test_no_clutter_is_of_use():
    kits = {name for stacks in KITS.values() for name, _ in stacks}
    assert not kits & set(USELESS)
    assert not [name for name in USELESS if items.ITEMS[items.NUMBER[name]].tool]


def test_the_sky_is_as_the_state_says():
    for order, world in each():
        assert (world["time"], world["weather"]) == (order["time"], order["weather"])
        assert 6000 <= world["weather_ticks"] < 18000
        assert world["tick"] == 0


def test_a_used_record_is_rebuilt_to_the_byte():
    orders, _ = sample()
    orders = orders[::7].copy()
    orders["slot"] = np.arange(len(orders))[::-1]
    clean = np.zeros(len(orders), WORLD)
    used = np.zeros(len(orders), WORLD)
    used.view(np.uint8)[:] = np.random.default_rng(0).integers(0, 256, used.nbytes, np.uint8)
    generate(clean, orders, 0, len(orders))
    half = len(orders) // 2
    generate(used, orders, half, len(orders))
    generate(used, orders, 0, half)
    assert clean.tobytes() == used.tobytes()


def test_only_the_named_slots_are_written():
    orders = random_orders(4, 3)
    orders["slot"] = [5, 1, 3, 0]
    worlds = np.zeros(7, WORLD)
    worlds.view(np.uint8)[:] = 9
    generate(worlds, orders, 1, 3)
    untouched = (worlds.view(np.uint8).reshape(7, -1) == 9).all(1).tolist()
    assert untouched == [True, False, True, False, True, True, True]


def changed_fields(order, **changes):
    other = order.copy()
    for name, value in changes.items():
        other[name] = value
    one, two = build(order.copy()), build(other)
    return {name for name in WORLD.names if one[name].tobytes() != two[name].tobytes()}


CREATURES = {name for name in WORLD.names if name.startswith("c_")}
BAGS = {"item", "count"}


@pytest.mark.parametrize(
    ("changes", "allowed"),
    [
        ({"random": 12345}, set()),
        ({"coat": 3}, {"c_coat"}),
        ({"others_kind": 2, "others_count": 3}, CREATURES),
        ({"main_hand": items.NUMBER["iron_sword"]}, BAGS),
        ({"kit": 2}, BAGS),
        ({"clutter": 2}, BAGS),
        ({"armour": 3}, {"armour"}),
        ({"off_hand": items.NUMBER["torch"]}, {"off_item", "off_count"}),
        ({"time": 18_000}, {"time", "weather_ticks"}),
        ({"weather": 2}, {"weather", "weather_ticks"}),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else "",
)
def test_a_factor_changes_only_what_it_is_about(changes, allowed):
    orders = random_orders(
        34,
        4,
        coat="white",
        others="1_cow",
        main_hand="none",
        kit="none",
        clutter="none",
        armour="none",
        off_hand="none",
        time="noon",
        weather="clear",
    )
    for row in range(len(orders)):
        differ = changed_fields(orders[row : row + 1], **changes)
        assert differ <= allowed | {"random"}, (label(orders[row]), differ)
        assert "random" in differ


def test_the_scene_leaves_most_of_the_ground_alone():
    """Another subject, distance or bearing moves little beside what is in its way."""
    for biome in factors.BIOMES:
        orders = random_orders(len(SUBJECTS), 5)
        orders["terrain"], orders["biome"] = 77, factors.BIOMES.index(biome)
        worlds = build(orders)
        for order, world in zip(orders, worlds, strict=True):
            if SUBJECTS[order["subject"]] != "mountain":
                same = world["blocks"] == worlds[0]["blocks"]
                assert same.mean() > 0.97, (label(order), same.mean())
