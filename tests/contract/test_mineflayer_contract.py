"""The embedded Minecraft keeps the contract of bridges in every layout of actions."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.bridge import game_command
from bridges.mineflayer.spaces import CODE, KIND, NEUTRAL, NEW, RESUME
from bridges.mineflayer.task_documents import MinelandTasks
from policies.callable import CallablePolicy
from rollout.api import Limits, Outcome, Start
from rollout.errors import ConfigError
from rollout.host.referee import Referee
from rollout.pettingzoo_env import ParallelWorld
from rollout.tasks import load_task
from rollout.testing import check_bridge

with warnings.catch_warnings():
    # PettingZoo's tests load one of its games in a way that it deprecates itself.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import parallel_api_test

pytestmark = [pytest.mark.process, pytest.mark.slow]

STEPS = 5
PATIENT_S = 300.0


@pytest.fixture(scope="module", autouse=True)
def node():
    try:
        game_command()
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    "options",
    [
        {"actions": "low_level"},
        pytest.param({"actions": "human", "ticks_per_step": 1}, marks=pytest.mark.long),
        pytest.param({"actions": "code"}, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_it_passes(options):
    bridge = MineflayerBridge(view_distance=2, **options)
    report = check_bridge(bridge, steps=STEPS, width=2, timeout_s=PATIENT_S)
    report.raise_if_failed()
    # No episode ends in so few steps.
    assert set(report.names("skipped")) <= {"over slots are left alone"}


@pytest.mark.long
def test_worlds_of_two_agents_pass():
    bridge = MineflayerBridge(view_distance=2, agents=2)
    report = check_bridge(bridge, steps=STEPS, timeout_s=PATIENT_S)
    report.raise_if_failed()
    assert set(report.names("skipped")) <= {"over slots are left alone", "snapshots are exact"}


def launched(folder, **options):
    bridge = MineflayerBridge(view_distance=2, spawning=False, **options)
    return bridge, bridge.launch(folder, (), width=bridge.agents, timeout_s=PATIENT_S)


def begin(bridge, instance, task="harvest_1_dirt", seed=1):
    task = load_task(bridge.spec, "mineflayer", task)
    state = task.state_space.state(task.state_space.size // 2)  # plains: no snow hides the ground
    starts = [Start(state, seed, slot) for slot in range(bridge.agents)]
    referee = Referee(task, bridge.agents)
    frame = instance.reset(range(bridge.agents), starts, timeout_s=PATIENT_S)
    referee.reset(range(bridge.agents), starts, frame)
    return referee, frame


def programs(*texts):
    """Starts a program for each agent; None lets what runs go on."""
    kind = [RESUME if text is None else NEW for text in texts]
    code = np.array([text or "" for text in texts], object)
    return {KIND: np.array(kind, np.int64), CODE: code}


def step(instance, actions):
    return instance.step(actions, timeout_s=PATIENT_S)


def test_agents_of_a_world_see_and_hear_one_another(tmp_path):
    bridge, instance = launched(
        tmp_path, agents=3, actions="code", names=("Ann", "Ben", "Cleo"), chat_distance=8.0
    )
    try:
        _, frame = begin(bridge, instance)
        for slot, name in enumerate(bridge.agent_names()):
            others = {each["name"] for each in frame.details[slot]["entities"]}
            assert others >= set(bridge.agent_names()) - {name}
        away = "const p = bot.entity.position; await moveTo(p.x + 30, p.y, p.z, 3).catch(() => {});"
        step(instance, programs(None, None, away))
        for _ in range(200):
            frame = step(instance, programs(None, None, None))
            if not frame.details[2]["code_info"]["is_running"]:
                break
        far = frame.observations["position"][2] - frame.observations["position"][0]
        assert np.hypot(far[0], far[2]) > 12
        frame = step(instance, programs('bot.chat("who is there");', None, None))
        heard = [any("who is there" in line for line in each["chat"]) for each in frame.details]
        assert heard == [True, True, False]
        assert frame.tick.tolist() == [frame.tick[0]] * 3
    finally:
        instance.close()


@pytest.mark.parametrize(
    ("competitive", "expected"),
    [(False, [Outcome.SUCCESS, Outcome.SUCCESS]), (True, [Outcome.SUCCESS, Outcome.FAILURE])],
)
def test_tasks_judge_the_world_as_one(tmp_path, competitive, expected):
    bridge, instance = launched(tmp_path, agents=2, actions="code", competitive=competitive)
    try:
        referee, _ = begin(bridge, instance)
        actions = programs('await mineBlock("grass_block", 1);', None)
        for _ in range(100):
            frame = step(instance, actions)
            ruling = referee.judge(actions, frame)
            if ruling.ended:
                break
            actions = programs(None, None)
        assert ruling.ended == [0, 1]
        assert ruling.verdict.outcome.tolist() == expected
    finally:
        instance.close()


COOK = """
await killMob('cow', 60);
for (const key of ['forward', 'sprint', 'jump']) bot.setControlState(key, true);
while (bot.food >= 20) {
  await bot.waitForTicks(100);
  await bot.look(bot.entity.yaw + Math.PI, 0);
}
bot.clearControlStates();
await bot.waitForTicks(40);
await placeItem('furnace', bot.entity.position.floored().offset(2, 0, 0));
await smeltItem('beef', 'coal', 1);
await bot.equip('cooked_beef', 'hand');
await bot.consume();
"""


def test_a_meal_on_stage_is_killed_cooked_and_eaten(tmp_path):
    name = "play_cook"
    given = MinelandTasks().document(name)["options"] | {"ticks_per_step": 20}
    bridge = MineflayerBridge(view_distance=2, actions="code", **given)
    instance = bridge.launch(tmp_path, (), width=1, timeout_s=PATIENT_S)
    try:
        referee, _ = begin(bridge, instance, name)
        actions = programs(COOK)
        for _ in range(300):
            ruling = referee.judge(actions, step(instance, actions))
            if ruling.ended:
                break
            actions = programs(None)
        assert ruling.verdict.outcome.tolist() == [Outcome.SUCCESS]
    finally:
        instance.close()


def test_an_oracle_solves_a_task(tmp_path):
    bridge, instance = launched(tmp_path, actions="code", ticks_per_step=20)
    try:
        task = load_task(bridge.spec, "mineflayer", "techtree_1_wooden_hoe_with_64_oak_planks")
        policy = CallablePolicy(function=f"bridges.mineflayer.oracle:{task.name}").build(
            bridge.spec, task, seed=0
        )
        referee, frame = begin(bridge, instance, task.name)
        for _ in range(60):
            decision = policy.act(frame.observations, {}, details=frame.details, explore=False)
            frame = step(instance, decision.actions)
            ruling = referee.judge(decision.actions, frame)
            if ruling.ended:
                break
        assert ruling.verdict.outcome.tolist() == [Outcome.SUCCESS]
    finally:
        instance.close()


def test_it_is_a_parallel_world_of_pettingzoo():
    bridge = MineflayerBridge(view_distance=2, agents=2, names=("Ann", "Ben"), spawning=False)
    task = load_task(bridge.spec, "mineflayer", "harvest_1_dirt")
    idle = {"action": np.array(NEUTRAL)}
    world = ParallelWorld(bridge, replace(task, limits=Limits(steps=6)), idle=idle)
    try:
        assert world.possible_agents == ["Ann", "Ben"]
        parallel_api_test(world, num_cycles=10)
    finally:
        world.close()
