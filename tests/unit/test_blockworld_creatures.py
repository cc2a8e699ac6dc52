"""Creatures of blockworld: how they move and mind, what blows cost, arrows, what lies about."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridges.blockworld.rules import blocks, combat
from bridges.blockworld.rules.collision import TOUCH, body_fits
from bridges.blockworld.rules.combat import shoot, tick_arrows
from bridges.blockworld.rules.creatures import add_creature, tick_creatures
from bridges.blockworld.rules.drops import LIFE_TICKS, THROWN_AGE, spawn_drop, tick_drops
from bridges.blockworld.rules.items import NUMBER as ITEM
from bridges.blockworld.rules.motion import tick_player
from bridges.blockworld.rules.species import (
    CHICKEN,
    COW,
    DROPS,
    HEALTH,
    HOSTILE,
    NAMES,
    NOBODY,
    PIG,
    SHEEP,
    SKELETON,
    SPIDER,
    TALL,
    WALK,
    WIDTH,
    ZOMBIE,
)
from bridges.blockworld.rules.world import (
    CHASE,
    FLEE,
    HEIGHT,
    IDLE,
    MAX_ARROWS,
    MAX_CREATURES,
    MAX_DROPS,
    RAIN,
    SIZE,
    WANDER,
    WORLD,
)
from tests.unit.blockworld_scenes import MIDDLE, compiled, flat_world, give, put

pytestmark = [pytest.mark.heavy]

GROUND = 12
NOON, NIGHT = 6_000, 18_000


@compiled
def run(worlds, ticks):
    """Lets everything but hands and body live for some ticks."""
    w = worlds[0]
    for _ in range(ticks):
        w.tick += 1
        w.blow_ticks += 1
        if w.hurt_ticks > 0:
            w.hurt_ticks -= 1
        tick_player(w, 0)
        tick_creatures(w)
        tick_arrows(w)
        tick_drops(w)


@compiled
def add(worlds, kind, x, z, y):
    return add_creature(worlds[0], kind, x, y, z)


@compiled
def strike(worlds, n):
    combat.strike(worlds[0], n)


@compiled
def hurt(worlds, amount, from_x, from_z, cause):
    return combat.hurt_player(worlds[0], amount, from_x, from_z, cause)


@compiled
def wound(worlds, n, amount, by_player):
    w = worlds[0]
    return combat.hurt_creature(w, n, amount, w.x, w.z, by_player)


@compiled
def drop(worlds, item, count, wear, x, y, z):
    return spawn_drop(worlds[0], item, count, wear, x, y, z)


@compiled
def fly(worlds, x, y, z, vx, vy, vz):
    return shoot(worlds[0], x, y, z, vx, vy, vz)


def animal(worlds, kind, x=MIDDLE, z=MIDDLE + 3, y=GROUND):
    return add(worlds, kind, float(x), float(z), float(y))


def away(worlds, n=0):
    w = worlds[0]
    return math.hypot(w["c_x"][n] - w["x"], w["c_z"][n] - w["z"])


def night(seed=1):
    worlds = flat_world(seed=seed)
    worlds[0]["time"] = NIGHT
    return worlds


def dig(worlds, z0, z1, depth, filling="air"):
    for x in range(1, SIZE - 1):
        for z in range(z0, z1):
            for y in range(GROUND - depth, GROUND):
                put(worlds, x, y, z, filling)


# --- blows at creatures


def test_add_creature_fills_the_places():
    worlds = flat_world()
    numbers = [animal(worlds, 1 + n % 7, 10 + 2 * n, 10) for n in range(MAX_CREATURES + 1)]
    assert numbers == [*range(MAX_CREATURES), -1]
    assert (worlds[0]["c_health"] == HEALTH[worlds[0]["c_kind"]]).all()


@pytest.mark.parametrize(
    ("item", "ticks", "damage"),
    [
        ("air", 100, 1.0),
        ("iron_sword", 100, 6.0),
        ("diamond_axe", 100, 9.0),
        ("iron_sword", 0, 6 * (0.2 + 0.8 * (0.5 / 12.5) ** 2)),
        ("iron_sword", 6, 6 * (0.2 + 0.8 * (6.5 / 12.5) ** 2)),
        ("wooden_pickaxe", 100, 2.0),
    ],
)
def test_a_blow_costs_what_the_weapon_does(item, ticks, damage):
    worlds = flat_world()
    n = animal(worlds, ZOMBIE)
    if item != "air":
        give(worlds, 0, item)
    worlds[0]["blow_ticks"] = ticks
    strike(worlds, n)
    assert worlds[0]["c_health"][n] == pytest.approx(20 - damage, abs=1e-5)
    assert worlds[0]["dealt"] == pytest.approx(damage, abs=1e-5)
    assert worlds[0]["blow_ticks"] == 0
    assert worlds[0]["exhaustion"] == pytest.approx(0.1)


def test_a_falling_blow_costs_half_as_much_again():
    worlds = flat_world()
    n = animal(worlds, ZOMBIE)
    w = worlds[0]
    w["on_ground"], w["fall"] = 0, 0.5
    give(worlds, 0, "stone_sword")
    strike(worlds, n)
    assert w["c_health"][n] == pytest.approx(20 - 7.5)


@pytest.mark.parametrize(("item", "wear"), [("iron_sword", 1), ("iron_axe", 2), ("bread", 0)])
def test_a_blow_wears_the_weapon(item, wear):
    worlds = flat_world()
    n = animal(worlds, ZOMBIE)
    give(worlds, 0, item)
    strike(worlds, n)
    assert worlds[0]["wear"][0] == wear


def test_a_worn_weapon_breaks():
    worlds = flat_world()
    n = animal(worlds, ZOMBIE)
    give(worlds, 0, "wooden_sword", wear=58)
    strike(worlds, n)
    assert worlds[0]["item"][0] == 0
    assert worlds[0]["count"][0] == 0


def test_blows_count_once_in_half_a_second():
    worlds = night()
    n = animal(worlds, COW)
    assert wound(worlds, n, 1.0, True)
    assert not wound(worlds, n, 1.0, True)
    run(worlds, 9)
    assert not wound(worlds, n, 1.0, True)
    run(worlds, 1)
    assert wound(worlds, n, 1.0, True)
    assert worlds[0]["c_health"][n] == 8
    assert worlds[0]["dealt"] == 2


@pytest.mark.parametrize(("ticks", "kills"), [(90, 1), (110, 0)])
def test_whoever_struck_it_last_is_to_blame_for_five_seconds(ticks, kills):
    worlds = night()
    n = animal(worlds, COW)
    assert wound(worlds, n, 1.0, True)
    run(worlds, ticks)
    assert wound(worlds, n, 50.0, False)  # a fall, say
    assert worlds[0]["c_kind"][n] == NOBODY
    assert worlds[0]["kills"].sum() == kills


def test_a_blow_knocks_away_and_sprinting_further():
    ways = []
    for sprints in (0, 1):
        worlds = flat_world()
        n = animal(worlds, COW)
        run(worlds, 2)
        worlds[0]["sprinting"] = sprints
        worlds[0]["vx"], worlds[0]["vz"] = 0.1, 0.2
        before = away(worlds, n)
        strike(worlds, n)
        assert worlds[0]["c_vy"][n] == pytest.approx(0.4, abs=0.05)
        run(worlds, 3)
        ways.append(away(worlds, n) - before)
    assert not worlds[0]["sprinting"]
    assert 0.5 < ways[0] < ways[1] - 0.3


def test_killing_counts_and_leaves_things():
    worlds = flat_world()
    n = animal(worlds, SHEEP, z=MIDDLE + 6)
    assert wound(worlds, n, 50.0, True)
    w = worlds[0]
    assert w["c_kind"][n] == NOBODY
    assert w["kills"][SHEEP] == 1
    assert w["dealt"] == HEALTH[SHEEP]
    left = dict(zip(w["d_item"].tolist(), w["d_count"].tolist(), strict=True))
    assert left[ITEM["wool"]] == 1
    assert left[ITEM["mutton"]] in {1, 2}
    n = animal(worlds, COW)
    wound(worlds, n, 50.0, False)
    assert w["kills"].sum() == 1
    assert w["dealt"] == HEALTH[SHEEP]


@pytest.mark.parametrize("kind", range(1, 8), ids=NAMES)
def test_what_is_left_is_within_its_bounds(kind):
    counts = []
    worlds = flat_world(seed=kind)
    w = worlds[0]
    for _ in range(60):
        n = animal(worlds, kind)
        wound(worlds, n, 99.0, True)
        counts.append([w["d_count"][w["d_item"] == item].sum() for item, _, _ in DROPS[kind]])
        w["d_item"] = 0
    for (item, least, most), seen in zip(DROPS[kind], np.transpose(counts), strict=True):
        assert item == 0 or set(seen) == set(range(least, most + 1))


# --- blows at the player


def test_hurting_the_player():
    worlds = flat_world()
    w = worlds[0]
    w["sleep_ticks"] = 30
    assert hurt(worlds, 3.0, MIDDLE, MIDDLE + 1, combat.BLOW) == combat.COST
    assert w["health"] == 17
    assert w["hurt"] == 3
    assert w["sleep_ticks"] == 0
    assert w["vz"] == pytest.approx(-0.4)
    assert w["vy"] == pytest.approx(0.4)
    assert w["exhaustion"] == pytest.approx(0.1)
    assert hurt(worlds, 3.0, MIDDLE, MIDDLE + 1, combat.BLOW) == combat.NO_EFFECT
    run(worlds, 10)
    assert hurt(worlds, 30.0, MIDDLE, MIDDLE + 1, combat.BLOW) == combat.COST
    assert w["dead"]
    assert w["health"] == 0
    assert w["hurt"] == 20
    assert hurt(worlds, 3.0, MIDDLE, MIDDLE + 1, combat.VOID) == combat.NO_EFFECT


@pytest.mark.parametrize("cause", [combat.FALL, combat.DROWNING, combat.HUNGER, combat.CACTUS])
def test_only_blows_knock_back(cause):
    worlds = flat_world()
    hurt(worlds, 3.0, MIDDLE, MIDDLE + 1, cause)
    assert worlds[0]["vz"] == 0


# Minecraft 1.16: damage * (1 - clamp(points - damage / (2 + toughness / 4), points / 5, 20) / 25)
@pytest.mark.parametrize(
    ("tier", "amount", "cost"),
    [
        ("leather", 5.0, 5 * (1 - 4.5 / 25)),
        ("iron", 5.0, 5 * (1 - 12.5 / 25)),
        ("diamond", 5.0, 5 * (1 - (20 - 5 / 4) / 25)),
        ("golden", 19.0, 19 * (1 - 2.2 / 25)),
    ],
)
def test_armour_helps_and_wears(tier, amount, cost):
    for cause, helps in ((combat.BLOW, True), (combat.FALL, False), (combat.DROWNING, False)):
        worlds = flat_world()
        w = worlds[0]
        w["armour"] = [ITEM[f"{tier}_{p}"] for p in ("helmet", "chestplate", "leggings", "boots")]
        hurt(worlds, amount, MIDDLE, MIDDLE + 1, cause)
        assert 20 - w["health"] == pytest.approx(cost if helps else amount, abs=1e-5)
        assert (w["armour_wear"] == (max(1, int(amount / 4)) if helps else 0)).all()


def test_worn_armour_breaks():
    worlds = flat_world()
    worlds[0]["armour"][0], worlds[0]["armour_wear"][0] = ITEM["leather_helmet"], 54
    hurt(worlds, 2.0, MIDDLE, MIDDLE + 1, combat.BLOW)
    assert worlds[0]["armour"][0] == 0


@pytest.mark.parametrize("yaw", [0, 90, 200])
def test_a_shield_stops_what_comes_from_the_front(yaw):
    for aside, stopped in ((0, True), (80, True), (-80, True), (100, False), (180, False)):
        worlds = flat_world()
        w = worlds[0]
        w["yaw"], w["blocking"], w["off_item"], w["off_count"] = yaw, 1, ITEM["shield"], 1
        angle = math.radians(yaw + aside)
        x, z = MIDDLE - 2 * math.sin(angle), MIDDLE + 2 * math.cos(angle)
        outcome = hurt(worlds, 4.0, x, z, combat.BLOW)
        assert outcome == (combat.PARRIED if stopped else combat.COST)
        assert w["health"] == (20 if stopped else 16)
        assert w["off_wear"] == (5 if stopped else 0)
        if stopped:
            assert hurt(worlds, 4.0, x, z, combat.FALL) == combat.COST


def test_a_shield_breaks():
    worlds = flat_world()
    w = worlds[0]
    w["blocking"] = 1
    give(worlds, 0, "shield", wear=334)
    assert hurt(worlds, 4.0, MIDDLE, MIDDLE + 1, combat.ARROW_HIT) == combat.PARRIED
    assert w["item"][0] == 0
    assert not w["blocking"]


# --- what animals do


def test_animals_wander_and_pause():
    worlds = flat_world()
    for n in range(9):
        animal(worlds, 1 + n % 4, 16 + 4 * n, 20)
    start = worlds[0]["c_x"][:9].copy(), worlds[0]["c_z"][:9].copy()
    modes = set()
    for _ in range(60):
        run(worlds, 10)
        modes |= set(worlds[0]["c_mode"][:9].tolist())
    assert modes == {IDLE, WANDER}
    moved = np.hypot(worlds[0]["c_x"][:9] - start[0], worlds[0]["c_z"][:9] - start[1])
    assert (moved > 0.5).sum() >= 7
    assert moved.max() < 30
    assert (worlds[0]["c_y"][:9] == GROUND).all()


@pytest.mark.parametrize("kind", [SHEEP, COW, PIG, CHICKEN])
def test_animals_walk_at_their_pace(kind):
    worlds = flat_world()
    n = animal(worlds, kind)
    worlds[0]["c_mode"][n], worlds[0]["c_timer"][n] = WANDER, 100
    run(worlds, 20)
    z = float(worlds[0]["c_z"][n])
    run(worlds, 20)
    assert worlds[0]["c_z"][n] - z == pytest.approx(WALK[kind], rel=0.01)


@pytest.mark.parametrize("kind", [SHEEP, COW, PIG, CHICKEN])
def test_hurt_animals_flee_for_a_while(kind):
    worlds = flat_world()
    n = animal(worlds, kind, z=MIDDLE + 2)
    wound(worlds, n, 1.0, True)
    run(worlds, 60)
    assert worlds[0]["c_mode"][n] == FLEE
    assert away(worlds, n) > 5
    run(worlds, 60)
    assert worlds[0]["c_mode"][n] in {IDLE, WANDER}


def test_creatures_jump_onto_a_block_but_not_two():
    for high, climbs in ((1, True), (2, False)):
        worlds = flat_world()
        n = animal(worlds, COW)
        for x in range(1, SIZE - 1):
            for y in range(high):
                put(worlds, x, GROUND + y, 38, "stone")
        worlds[0]["c_mode"][n], worlds[0]["c_timer"][n] = WANDER, 100
        highest = 0.0
        for _ in range(100):
            run(worlds, 1)
            highest = max(highest, float(worlds[0]["c_z"][n]))
        assert (highest > 39) == climbs


@pytest.mark.parametrize(
    ("depth", "filling", "dares"),
    [
        (3, "air", True),
        (4, "air", False),
        (1, "water", True),
        (3, "water", False),
        (1, "lava", False),
    ],
)
def test_creatures_mind_where_they_step(depth, filling, dares):
    crossed = 0
    for seed in range(5):
        worlds = flat_world(seed=seed)
        dig(worlds, 38, 45, depth, filling)
        n = animal(worlds, COW)
        worlds[0]["c_mode"][n], worlds[0]["c_timer"][n] = WANDER, 100
        run(worlds, 100)
        crossed += worlds[0]["c_z"][n] > 38
    assert crossed == (5 if dares else 0)


def test_creatures_do_not_walk_into_cacti_and_swim_in_water():
    worlds = flat_world()
    dig(worlds, 20, 50, 5, "water")
    for n in range(4):
        animal(worlds, 1 + n, 20 + 5 * n, 35, GROUND - 4)
    run(worlds, 200)
    kinds = worlds[0]["c_kind"][:4]
    assert (kinds == [1, 2, 3, 4]).all()
    assert (worlds[0]["c_y"][:4] > GROUND - 1.3).all()


def test_creatures_fall_and_chickens_flutter():
    worlds = flat_world()
    cow, chicken = animal(worlds, COW, y=GROUND + 8), animal(worlds, CHICKEN, 20, y=GROUND + 8)
    run(worlds, 100)
    assert worlds[0]["c_health"][cow] == 10 - 5
    assert worlds[0]["c_health"][chicken] == 4
    assert (worlds[0]["c_y"][:2] == GROUND).all()
    deep = animal(worlds, COW, 40, y=GROUND + 15)
    run(worlds, 100)
    assert worlds[0]["c_kind"][deep] == NOBODY
    assert worlds[0]["kills"].sum() == 0


def test_creatures_burn_in_lava():
    worlds = flat_world()
    dig(worlds, 34, 40, 2, "lava")
    n = animal(worlds, COW, z=36, y=GROUND - 1)
    run(worlds, 60)
    assert worlds[0]["c_kind"][n] == NOBODY


def test_creatures_are_pushed_apart():
    worlds = flat_world()
    for _ in range(5):
        animal(worlds, PIG)
    run(worlds, 60)
    places = np.stack([worlds[0]["c_x"][:5], worlds[0]["c_z"][:5]], 1)
    gaps = np.abs(places[:, None] - places[None]).max(-1) + 9 * np.eye(5)
    assert gaps.min() > 0.7


# --- what hostile creatures do


def test_a_zombie_comes_and_strikes():
    worlds = night()
    n = animal(worlds, ZOMBIE, z=MIDDLE + 12)
    run(worlds, 8)
    assert worlds[0]["c_mode"][n] == CHASE
    run(worlds, 120)
    assert worlds[0]["health"] < 20
    before, worlds[0]["health"] = float(worlds[0]["hurt"]), 20
    run(worlds, 100)
    assert worlds[0]["hurt"] - before in {9, 12, 15}  # 3 in 20 ticks or more


def test_a_zombie_needs_to_see_the_player():
    worlds = night()
    for y in range(GROUND, HEIGHT):
        for x in range(1, SIZE - 1):
            put(worlds, x, y, 36, "stone")
    n = animal(worlds, ZOMBIE, z=38)
    far = animal(worlds, ZOMBIE, z=MIDDLE - 20)
    run(worlds, 60)
    assert worlds[0]["c_mode"][n] != CHASE
    assert worlds[0]["c_mode"][far] != CHASE


def test_zombies_do_not_strike_through_walls():
    worlds = night()
    for y in range(GROUND, GROUND + 3):
        for x in range(26, 39):
            put(worlds, x, y, 33, "glass")
    n = animal(worlds, ZOMBIE, z=34.4)
    worlds[0]["z"] = 32.6
    worlds[0]["c_mode"][n], worlds[0]["c_timer"][n] = CHASE, 60
    run(worlds, 40)
    assert worlds[0]["health"] == 20


def test_a_shield_stops_a_zombie():
    worlds = night()
    n = animal(worlds, ZOMBIE, z=MIDDLE + 2)
    worlds[0]["off_item"], worlds[0]["off_count"] = ITEM["shield"], 1
    for _ in range(100):
        worlds[0]["blocking"] = 1
        run(worlds, 1)
    assert worlds[0]["health"] == 20
    assert worlds[0]["off_wear"] >= 8
    assert away(worlds, n) < 4


def test_a_skeleton_keeps_its_distance_and_shoots():
    worlds = night()
    n = animal(worlds, SKELETON, z=MIDDLE + 3)
    worlds[0]["armour"] = [ITEM[f"diamond_{p}"] for p in combat.ARMOUR_PIECES]
    distances, arrows = [], 0
    for _ in range(150):
        flying = (worlds[0]["a_age"] > 0).sum()
        run(worlds, 2)
        arrows += (worlds[0]["a_age"] > 0).sum() > flying
        distances.append(away(worlds, n))
    assert 3.9 < np.median(distances) < 10.1
    assert 6 <= arrows <= 10
    assert worlds[0]["hurt"] > 0


def test_a_skeleton_approaches():
    worlds = night()
    n = animal(worlds, SKELETON, z=MIDDLE + 15)
    run(worlds, 60)
    assert 8 < away(worlds, n) < 10.5


def test_a_spider_is_peaceful_by_day_until_it_is_hurt():
    worlds = flat_world()
    n = animal(worlds, SPIDER)
    run(worlds, 100)
    assert worlds[0]["hurt"] == 0
    wound(worlds, n, 1.0, True)
    run(worlds, 60)
    assert worlds[0]["hurt"] > 0
    worlds = night()
    n = animal(worlds, SPIDER, z=MIDDLE + 8)
    run(worlds, 100)
    assert worlds[0]["hurt"] > 0
    assert worlds[0]["c_kind"][n] == SPIDER


@pytest.mark.parametrize("kind", [ZOMBIE, SKELETON, SPIDER])
def test_who_burns_in_daylight(kind):
    for time, weather, roof, burns in (
        (NOON, 0, False, kind != SPIDER),
        (NIGHT, 0, False, False),
        (NOON, RAIN, False, False),
        (NOON, 0, True, False),
    ):
        worlds = flat_world()
        worlds[0]["time"], worlds[0]["weather"], worlds[0]["z"] = time, weather, 5
        if roof:
            for x in range(1, SIZE - 1):
                for z in range(1, SIZE - 1):
                    put(worlds, x, GROUND + 6, z, "stone")
        n = animal(worlds, kind, z=45)
        run(worlds, 100)
        assert (worlds[0]["c_health"][n] < HEALTH[kind]) == burns
        run(worlds, 500)
        assert (worlds[0]["c_kind"][n] == NOBODY) == burns
        assert worlds[0]["kills"].sum() == 0
        assert worlds[0]["dealt"] == 0


# --- arrows


def test_an_arrow_flies_as_in_minecraft_and_sticks():
    worlds = flat_world()
    n = fly(worlds, 20.5, 20.0, 10.5, 0.0, 0.0, 1.6)
    x, y, z, vy, vz = 20.5, 20.0, 10.5, 0.0, 1.6
    for _ in range(10):
        run(worlds, 1)
        y, z, vy, vz = y + vy, z + vz, vy * 0.99 - 0.05, vz * 0.99
        assert worlds[0]["a_x"][n] == pytest.approx(x)
        assert worlds[0]["a_y"][n] == pytest.approx(y, abs=1e-4)
        assert worlds[0]["a_z"][n] == pytest.approx(z, abs=1e-4)
    run(worlds, 40)
    assert worlds[0]["a_y"][n] == pytest.approx(GROUND)
    run(worlds, 110)
    assert worlds[0]["a_age"][n] == 0


@pytest.mark.parametrize(("yaw", "cost"), [(0, 0), (180, 3)])
def test_an_arrow_hits_the_player_or_its_shield(yaw, cost):
    worlds = flat_world()
    w = worlds[0]
    w["yaw"], w["blocking"], w["off_item"], w["off_count"] = yaw, 1, ITEM["shield"], 1
    n = fly(worlds, MIDDLE, GROUND + 1.5, MIDDLE + 6, 0.0, 0.0, -1.6)
    run(worlds, 6)
    assert w["a_age"][n] == 0
    assert 20 - w["health"] == cost


def test_an_arrow_stops_at_a_block():
    worlds = flat_world()
    for y in range(GROUND, GROUND + 4):
        put(worlds, 32, y, 35, "glass")
    fly(worlds, MIDDLE, GROUND + 1.5, MIDDLE + 6, 0.0, 0.0, -3.5)
    run(worlds, 10)
    assert worlds[0]["health"] == 20
    assert worlds[0]["a_z"][0] == pytest.approx(36, abs=1e-4)


def test_there_is_always_room_for_an_arrow():
    worlds = flat_world()
    for n in range(MAX_ARROWS):
        assert fly(worlds, 10.5, 25.0, 10.5 + n, 0.0, 0.0, 0.1) == n
        run(worlds, 1)
    assert fly(worlds, 10.5, 25.0, 10.5, 0.0, 0.0, 0.1) == 0


# --- what lies about


def test_the_player_picks_up_what_is_near():
    worlds = flat_world()
    w = worlds[0]
    n = drop(worlds, ITEM["oak_log"], 5, 0, MIDDLE, GROUND + 0.5, MIDDLE + 0.3)
    far = drop(worlds, ITEM["dirt"], 5, 0, MIDDLE, GROUND + 0.5, MIDDLE + 4)
    run(worlds, 9)
    assert w["d_item"][n] == ITEM["oak_log"]
    run(worlds, 1)
    assert w["d_item"][n] == 0
    assert w["picked"][ITEM["oak_log"]] == 5
    assert (w["item"][0], w["count"][0]) == (ITEM["oak_log"], 5)
    run(worlds, 100)
    assert w["d_item"][far] == ITEM["dirt"]
    assert w["d_y"][far] == GROUND
    assert w["d_vx"][far] == w["d_vz"][far] == 0


def test_what_is_thrown_is_not_picked_up_at_once():
    worlds = flat_world()
    n = drop(worlds, ITEM["dirt"], 1, 0, MIDDLE, GROUND + 1.0, MIDDLE)
    worlds[0]["d_age"][n] = THROWN_AGE
    run(worlds, 39)
    assert worlds[0]["d_item"][n] == ITEM["dirt"]
    run(worlds, 1)
    assert worlds[0]["d_item"][n] == 0


def test_full_bags_take_what_fits():
    worlds = flat_world()
    w = worlds[0]
    for slot in range(36):
        give(worlds, slot, "dirt", 64)
    w["count"][7] = 62
    n = drop(worlds, ITEM["dirt"], 5, 0, MIDDLE, float(GROUND), MIDDLE)
    run(worlds, 20)
    assert w["picked"][ITEM["dirt"]] == 2
    assert w["d_count"][n] == 3


def test_worn_tools_keep_their_wear():
    worlds = flat_world()
    drop(worlds, ITEM["iron_axe"], 1, 77, MIDDLE, float(GROUND), MIDDLE)
    run(worlds, 20)
    assert (worlds[0]["item"][0], worlds[0]["wear"][0]) == (ITEM["iron_axe"], 77)


def test_things_float_burn_and_vanish():
    worlds = flat_world()
    dig(worlds, 40, 44, 3, "water")
    dig(worlds, 50, 54, 3, "lava")
    wet = drop(worlds, ITEM["dirt"], 1, 0, 30.5, GROUND - 2.5, 42.0)
    hot = drop(worlds, ITEM["dirt"], 1, 0, 30.5, GROUND + 1.0, 52.0)
    run(worlds, 200)
    assert GROUND - 0.6 < worlds[0]["d_y"][wet] < GROUND + 0.1
    assert worlds[0]["d_item"][hot] == 0
    run(worlds, LIFE_TICKS - 201)
    assert worlds[0]["d_item"][wet] == ITEM["dirt"]
    run(worlds, 1)
    assert worlds[0]["d_item"][wet] == 0


def test_things_fall_when_the_ground_goes():
    worlds = flat_world()
    n = drop(worlds, ITEM["dirt"], 1, 0, 20.5, float(GROUND), 20.5)
    run(worlds, 60)
    for x in (19, 20, 21):
        for z in (19, 20, 21):
            put(worlds, x, GROUND - 1, z, "air")
    run(worlds, 20)
    assert worlds[0]["d_y"][n] == GROUND - 1


def test_things_join_or_replace_the_oldest_when_places_run_out():
    worlds = flat_world()
    w = worlds[0]
    for n in range(MAX_DROPS):
        assert drop(worlds, ITEM["dirt"], 10, 0, 10.5 + n, 12.0, 10.5) == n
    w["d_age"][5] = 100
    assert drop(worlds, ITEM["dirt"], 10, 0, 20.5, 12.0, 10.5) == -1
    assert w["d_count"].sum() == 10 * (MAX_DROPS + 1)
    assert drop(worlds, ITEM["sand"], 10, 0, 20.5, 12.0, 10.5) == 5
    assert w["d_item"][5] == ITEM["sand"]
    w["d_count"] = 60
    w["d_age"][9] = 200
    assert drop(worlds, ITEM["dirt"], 10, 0, 20.5, 12.0, 10.5) == 9


# --- all of it


def rough_world(seed):
    random = np.random.default_rng(seed)
    worlds = night(seed)
    layers = worlds[0]["blocks"].reshape(SIZE, SIZE, HEIGHT)
    for x in range(20, 45):
        for z in range(20, 45):
            top = GROUND + int(random.integers(-2, 4) * (random.random() < 0.3))
            layers[x, z, min(top, GROUND) : GROUND] = blocks.AIR
            layers[x, z, GROUND:top] = random.choice([blocks.STONE, blocks.ICE, blocks.GLASS])
            if random.random() < 0.05:
                layers[x, z, GROUND - 3 : GROUND] = random.choice([blocks.WATER, blocks.LAVA])
            heights = np.flatnonzero(layers[x, z])
            worlds[0]["heights"].reshape(SIZE, SIZE)[x, z] = heights[-1] + 1
    worlds[0]["y"] = 20
    for n in range(12):
        x, z = random.uniform(22, 43, 2)
        animal(worlds, 1 + n % 7, x, z, 18)
    return worlds


@settings(max_examples=20)
@given(seed=st.integers(0, 9_999))
def test_creatures_never_end_in_a_block(seed):
    worlds = rough_world(seed)
    w = worlds[0]
    for _ in range(60):
        run(worlds, 10)
        w["health"], w["dead"] = 20, 0
        for n in np.flatnonzero(w["c_kind"]):
            kind = w["c_kind"][n]
            place = [float(w[name][n]) for name in ("c_x", "c_y", "c_z")]
            assert np.isfinite(place).all()
            size = float(WIDTH[kind]) - TOUCH, float(TALL[kind]) - TOUCH
            assert body_fits(w, *place, *size)
        for name in ("c_vx", "c_vy", "c_vz", "c_yaw", "a_x", "a_y", "a_z", "d_x", "d_y", "d_z"):
            assert np.isfinite(w[name]).all()
        assert not HOSTILE[w["c_kind"]].all()


def test_the_future_follows_from_the_record_alone():
    worlds = rough_world(3)
    run(worlds, 100)
    again = np.zeros(1, WORLD)
    again[:] = worlds
    run(worlds, 300)
    run(again, 300)
    assert worlds.tobytes() == again.tobytes()
