"""The oracle: it solves every task through every layout, and looks at nothing but the record."""

import re
from pathlib import Path

import numpy as np
import pytest

from bridges.blockworld import BlockworldBridge
from bridges.blockworld.oracle import SKILLS, skill
from bridges.blockworld.oracle.moves import any_of, around, before_block, higher, walk, way
from bridges.blockworld.oracle.view import (
    HOPELESS,
    Desk,
    View,
    best_tool,
    best_weapon,
    dig_ticks,
    middle,
)
from bridges.blockworld.rules.blocks import BEDROCK, LAVA, OAK_LEAVES, STONE
from bridges.blockworld.rules.items import NUMBER as ITEM
from bridges.blockworld.rules.world import ATTACK, COLUMNS, FORWARD, HEIGHT, SIZE, WORLD
from policies.oracle import OraclePolicy
from rollout.api import Outcome, Splits, Start
from rollout.errors import ConfigError, UnknownNameError
from rollout.host.referee import Referee
from rollout.tasks import load_task

pytestmark = pytest.mark.heavy

COMPOSED = (
    "mine_log_then_craft_crafting_table",
    "hunt_sheep_and_find_hut",
    "hunt_sheep_or_mine_log",
)


def bridge_for(task, actions="human"):
    joined = re.sub(r"_(and|or|then)_", r" \1 ", task)
    return BlockworldBridge(observe=(), actions=actions, oracle=joined)


def played(task_name, actions="human", states=2, steps=None):
    """Plays a task to its end; returns how the episodes ended, and the last snapshots."""
    bridge = bridge_for(task_name, actions)
    task = load_task(bridge.spec, "blockworld", task_name)
    chosen = Splits(task.state_space).take("test", states)
    policy = OraclePolicy().build(bridge.spec, task, seed=0)
    instance = bridge.launch(Path(), (), width=states, timeout_s=600.0)
    starts = [Start(chosen[k], seed=k, episode=k) for k in range(states)]
    referee = Referee(task, states)
    frame = instance.reset(range(states), starts, timeout_s=60.0)
    referee.reset(range(states), starts, frame)
    outcomes = {}
    for _ in range(steps or task.limits.steps):
        actions = policy.act(frame.observations, {}, details=None, explore=False).actions
        frame = instance.step(actions, timeout_s=60.0)
        ruling = referee.judge(actions, frame)
        for slot in ruling.ended:
            outcomes[slot] = Outcome(int(ruling.verdict.outcome[slot]))
            referee.finish(slot, "terminated", int(ruling.verdict.outcome[slot]))
        if not referee.active.any():
            break
    return outcomes, [instance.snapshot(k) for k in range(states)]


@pytest.mark.parametrize("task", [*SKILLS, *COMPOSED])
def test_it_solves_every_task(task):
    outcomes, _ = played(task)
    assert outcomes == {0: Outcome.SUCCESS, 1: Outcome.SUCCESS}


@pytest.mark.parametrize("task", ["mine_log", "find_hut", "craft_crafting_table"])
def test_it_plays_through_compact(task):
    outcomes, _ = played(task, "compact")
    assert outcomes == {0: Outcome.SUCCESS, 1: Outcome.SUCCESS}


@pytest.mark.parametrize("task", ["mine_stone", "smelt_beef"])
def test_human_flat_is_the_same_play_as_human(task):
    """MineStudio's two numbers can say all that the expert does with keys and mouse."""
    _, one = played(task, "human", steps=120)
    _, other = played(task, "human_flat", steps=120)
    assert one == other


def test_its_labels_depend_on_nothing_but_the_record():
    """The same after a restored snapshot, in another slot, and in another instance."""
    bridge = bridge_for("hunt_sheep")
    task = load_task(bridge.spec, "blockworld", "hunt_sheep")
    states = Splits(task.state_space).take("test", 3)
    instance = bridge.launch(Path(), (), width=3, timeout_s=600.0)
    starts = [Start(states[k], seed=k) for k in range(3)]
    frame = instance.reset(range(3), starts, timeout_s=60.0)
    kept = []
    for step in range(60):
        if step % 10 == 0:
            label = {key: column[1].copy() for key, column in frame.observations.items()}
            kept.append((instance.snapshot(1), label))
        actions = {
            key.removeprefix("privileged_oracle/"): column.copy()
            for key, column in frame.observations.items()
        }
        frame = instance.step(actions, timeout_s=60.0)
    other = bridge.launch(Path(), (), width=1, timeout_s=600.0)
    for where, slot in ((instance, 2), (other, 0)):
        for snapshot, label in reversed(kept):
            again = where.restore(slot, snapshot).observations
            for key, column in label.items():
                np.testing.assert_array_equal(again[key][0], column)


def test_a_skill_that_does_not_exist_is_refused_with_those_there_are():
    with pytest.raises(UnknownNameError, match="hunt_sheep"):
        skill("hunt_shep")
    with pytest.raises(UnknownNameError, match="find_hut"):
        skill("hunt_sheep and find_hat")
    with pytest.raises(UnknownNameError):
        BlockworldBridge(oracle="fly")


def test_the_policy_asks_for_the_experts_columns():
    bridge = BlockworldBridge(observe=("vitals",))
    task = load_task(bridge.spec, "blockworld", "mine_log")
    with pytest.raises(ConfigError, match=r"bridge\.oracle"):
        OraclePolicy().build(bridge.spec, task, seed=0)


# hand-made ground -------------------------------------------------------------------------------

FLOOR = 5
"""Height of the feet on the ground of ``field``."""


def field():
    """A flat world with the player in the middle of column (10, 10), looking along +z."""
    worlds = np.zeros(1, WORLD)
    blocks = worlds["blocks"][0].reshape(SIZE, SIZE, HEIGHT)
    blocks[:, :, :FLOOR] = STONE
    blocks[:, :, 0] = BEDROCK
    blocks[[0, -1]] = 1
    blocks[:, [0, -1]] = 1
    worlds["x"] = worlds["z"] = 10.5
    worlds["y"], worlds["on_ground"] = FLOOR, 1
    worlds["dig_at"] = worlds["screen_at"] = -1
    worlds["furnaces"] = worlds["hut"] = -1
    return worlds, blocks


def view(worlds):
    blocks = worlds["blocks"][0].reshape(COLUMNS, HEIGHT)
    worlds["heights"][0] = HEIGHT - np.argmax(blocks[:, ::-1] != 0, axis=1)
    return View(worlds, 0, Desk())


def cells(v, goal):
    found = way(v, any_of(goal))
    return [tuple(int(c) for c in middle(at)) for at in found[0]], found[1]


def test_the_way_on_open_ground_is_straight():
    worlds, _ = field()
    path, found = cells(view(worlds), around(10.5, FLOOR, 20.5, 0.1))
    assert found
    assert path == [(10, FLOOR, z) for z in range(10, 21)]


def test_the_way_leads_through_the_gap_of_a_wall():
    worlds, blocks = field()
    blocks[1:-1, 15, FLOOR : FLOOR + 4] = BEDROCK
    blocks[16, 15, FLOOR : FLOOR + 2] = 0
    path, found = cells(view(worlds), around(10.5, FLOOR, 20.5, 0.1))
    assert found
    assert (16, FLOOR, 15) in path


def test_one_block_is_climbed_and_two_are_not():
    worlds, blocks = field()
    blocks[1:-1, 15:, FLOOR] = BEDROCK
    path, found = cells(view(worlds), around(10.5, FLOOR + 1, 20.5, 0.1))
    assert found
    assert path[-1] == (10, FLOOR + 1, 20)
    blocks[1:-1, 15:, FLOOR + 1] = BEDROCK
    _, found = cells(view(worlds), around(10.5, FLOOR + 2, 20.5, 0.1))
    assert not found


def test_nobody_jumps_where_there_is_no_room_above_the_head():
    worlds, blocks = field()
    blocks[1:-1, 15:, FLOOR] = BEDROCK
    blocks[1:-1, 12:15, FLOOR + 2] = BEDROCK
    _, found = cells(view(worlds), around(10.5, FLOOR + 1, 20.5, 0.1))
    assert not found


def test_lava_is_walked_around():
    worlds, blocks = field()
    blocks[5:16, 15, FLOOR - 1] = LAVA
    path, found = cells(view(worlds), around(10.5, FLOOR, 20.5, 0.1))
    assert found
    assert not any(z == 15 and 4 <= x <= 16 for x, _, z in path)


def test_a_deep_fall_is_no_way():
    worlds, blocks = field()
    blocks[1:-1, 12:-1] = 0
    blocks[1:-1, 12:-1, :1] = BEDROCK
    _, found = cells(view(worlds), around(10.5, 1, 20.5, 0.1))
    assert not found


def test_leaves_in_the_way_are_dug_away():
    worlds, blocks = field()
    blocks[1:-1, 12, FLOOR : FLOOR + 4] = OAK_LEAVES
    worlds["z"] = 11.5
    v = view(worlds)
    v.pitch, v.yaw = 0.0, 0.0
    assert walk(v, any_of(around(10.5, FLOOR, 20.5, 0.1))).keys & ATTACK


def test_whoever_is_walled_in_digs_a_way_out():
    worlds, blocks = field()
    blocks[8:13, 8:13, FLOOR : FLOOR + 4] = STONE
    blocks[10, 10, FLOOR : FLOOR + 2] = 0
    worlds["item"][0, 3], worlds["count"][0, 3] = ITEM["iron_pickaxe"], 1
    v = view(worlds)
    path, found = cells(v, around(10.5, FLOOR, 20.5, 0.1))
    assert found
    assert path[:2] == [(10, FLOOR, 10), (10, FLOOR, 11)]
    move = walk(v, any_of(around(10.5, FLOOR, 20.5, 0.1)))
    assert not move.keys & FORWARD
    assert move.keys & v.slot_key(3)


def test_a_block_is_approached_until_it_is_in_sight_and_in_reach():
    worlds, blocks = field()
    blocks[10, 30, FLOOR + 1] = STONE
    path, found = cells(view(worlds), before_block(((10 * SIZE + 30) * HEIGHT) + FLOOR + 1))
    assert found
    assert path[-1][2] <= 33


def test_height_is_a_goal_of_its_own():
    worlds, blocks = field()
    for step in range(1, 5):
        blocks[20 + step :, 1:-1, : FLOOR + step] = STONE
    path, found = cells(view(worlds), higher(FLOOR + 4))
    assert found
    assert len(path) == 15


def test_the_best_of_what_is_at_hand_is_used():
    items = [0] * 36
    items[2], items[5] = ITEM["wooden_pickaxe"], ITEM["diamond_sword"]
    assert best_tool(items, 0, STONE) == 2
    assert best_tool(items, 0, OAK_LEAVES) == 5
    assert best_weapon(items, 0, 8.0) == 5
    assert dig_ticks(STONE, ITEM["wooden_pickaxe"]) == 23  # Minecraft: 1.15 s
    assert dig_ticks(BEDROCK, 0) == float("inf")


def test_without_a_subject_there_is_nothing_to_do():
    worlds, _ = field()
    v = view(worlds)
    for name in ("hunt_sheep", "mine_log", "find_hut", "sleep_in_bed", "smelt_beef"):
        assert SKILLS[name].play(v) is HOPELESS
    both = skill("hunt_sheep or build_pillar")
    worlds["item"][0, 0], worlds["count"][0, 0] = ITEM["cobblestone"], 32
    assert both.play(view(worlds)).pitch == 90.0
