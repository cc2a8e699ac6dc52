"""MineLand's interface: scripts as its users write them, with scripted models, on the real game."""

import base64
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from bridges.mineflayer import mineland
from bridges.mineflayer.mineland.utils import base64_to_image, likeness
from bridges.mineflayer.node import packages_problem
from rollout.errors import ConfigError, InputError, UnknownNameError

pytestmark = [
    pytest.mark.process,
    pytest.mark.heavy,
    pytest.mark.skipif(bool(packages_problem()), reason="run `make mineflayer`"),
]
FIELDS = (
    *("name", "rgb", "rgb_height", "rgb_width", "rgb_base64", "equipment", "equip", "inventory"),
    *("inventory_all", "inventory_full_slot_count", "inventory_empty_slot_count"),
    *("inventory_slot_count", "voxels", "face_vector", "life_stats", "location_stats", "tick"),
    *("time", "day", "age", "difficulty", "control_state", "event", "target_entities", "sound"),
)
"""The fields of MineLand's observations."""


@pytest.fixture
def make():
    made = []

    def begin(*args, **options):
        made.append(
            mineland.make(*args, **{"headless": True, "options": {"view_distance": 2}, **options})
        )
        return made[-1]

    yield begin
    for each in made:
        each.close()


class Scripted:
    """A model that is asked by each agent in its turn, and has its programs ready."""

    def __init__(self, *programs):
        self.programs = list(programs)

    def run(self, obs, code_info, done, task_info):
        """Returns the next program once the last one has ended."""
        assert obs["name"] == code_info["name"]
        if code_info["code_error"]:
            raise AssertionError(code_info.code_error)
        if code_info.is_running or not self.programs:
            return mineland.Action(type=mineland.Action.RESUME, code="")
        return mineland.Action(type=mineland.Action.NEW, code=self.programs.pop(0))


def test_the_loop_of_an_agent_that_asks_a_model(make):
    mland = make(
        task_id="techtree_1_wooden_pickaxe_with_64_oak_planks", agents_count=1, ticks_per_step=20
    )
    agents = [Scripted(
        "await craftItem(bot, 'stick', 1); await craftItem(bot, 'crafting_table', 1);",
        "await placeItem(bot, 'crafting_table', bot.entity.position.offset(1, 0, 1));"
        " await craftItem(bot, 'wooden_pickaxe', 1);",
    )]  # fmt: skip
    obs = mland.reset()
    assert isinstance(obs, list)
    code_info, done, task_info = None, False, None
    for i in range(60):
        if i == 0:
            actions = mineland.Action.no_op(len(obs))
        else:
            actions = [
                agent.run(obs[k], code_info[k], done, task_info) for k, agent in enumerate(agents)
            ]
        obs, code_info, event, done, task_info = mland.step(action=actions)
        if done:
            break
    assert (done, task_info.is_success, task_info.is_failed) == (True, True, False)
    assert task_info.goal == "techtree 1 wooden pickaxe with 64 oak planks"
    assert task_info["task_id"] == "techtree_1_wooden_pickaxe_with_64_oak_planks"
    assert isinstance(event[0], list)


def test_observations_have_mineland_s_fields(make):
    mland = make(task_id="playground", agents_count=1, agents_config=[{"name": "Bob"}])
    (obs,) = mland.reset()
    for name in FIELDS:
        assert name in obs, name
    assert (obs.name, obs["name"], obs["nothing_of_the_kind"]) == ("Bob", "Bob", None)
    assert len(obs.inventory["name"]) == obs.inventory_slot_count == 36
    assert set(obs.equip) >= {"main hand", "foot", "leg", "body", "head", "off hand"}
    assert np.array(obs.voxels["block_name"]).shape == (3, 3, 3)
    assert isinstance(obs.control_state, str)
    assert obs.life_stats["life"] == 20
    assert (obs.rgb.shape, obs.rgb_base64) == ((3, 0, 0), "")


def test_the_script_that_validates_an_installation(make):
    mland = make(task_id="survival_0.01_days", agents_count=2)
    num_of_agents = len(mland.reset())
    heard = []
    for i in range(60):
        chats = mineland.Action.chat_op(num_of_agents)
        act = chats if i % 10 == 0 else mineland.Action.no_op(num_of_agents)
        _, _, event, done, task_info = mland.step(action=act)
        heard += [each["only_message"] for each in event[1] if each["type"] == "chat"]
        if done:
            break
    assert done
    assert task_info.is_success
    assert i == 240 // 5 - 1
    assert len(heard) >= 2 * 4  # each hears both


def test_a_fight_with_a_reward_for_the_blood_of_its_target(make):
    mland = make(task_id="combat_1_zombie_with_1_diamond_sword_and_1_shield", agents_count=1)
    mland.reset()
    act = [mineland.Action(1, "await killMob(bot, 'zombie');")]
    left, reward = 20.0, 0.0
    for _ in range(400):
        obs, _, _, done, task_info = mland.step(action=act)
        now = sum(each["health"] for each in obs[0].target_entities)
        assert task_info.target == obs[0].target_entities
        reward, left = reward + left - now, now
        act = mineland.Action.no_op(1)
        if done:
            break
    assert (done, task_info.is_success) == (True, True)
    assert reward == 20


def test_agents_come_and_go(make):
    mland = make(task_id="playground", agents_count=2, ticks_per_step=2)
    mland.reset()
    mland.add_an_agent()
    mland.add_an_agent({"name": "Guest"})
    obs, _, _, _, _ = mland.step(action=mineland.Action.no_op(4))
    assert [each.name for each in obs] == [
        "MineflayerBot0", "MineflayerBot1", "MineflayerBot2", "Guest",
    ]  # fmt: skip
    told = "console.log(Object.keys(bot.players).sort().join())"
    acts = [mineland.Action(), *mineland.Action.no_op(2), mineland.Action(1, told)]
    mland.disconnect_an_agent("MineflayerBot0")
    obs, code_info, event, _, _ = mland.step(action=acts)
    assert (obs[0], code_info[0], event[0]) == (None, None, [])
    assert code_info[3]["logs"] == ["Guest,MineflayerBot1,MineflayerBot2"]
    with pytest.raises(ConfigError, match="expected 4 actions"):
        mland.step(action=mineland.Action.no_op(3))
    with pytest.raises(UnknownNameError, match="MineflayerBot0"):
        mland.disconnect_an_agent("MineflayerBot0")
    assert len(mland.reset()) == 2
    mland.add_an_agent()
    mland.add_an_agent()
    obs, _, _, _, _ = mland.step(action=mineland.Action.no_op(4))
    assert [each.name for each in obs] == [f"MineflayerBot{number}" for number in range(4)]


def test_low_level_actions(make):
    mland = make(task_id="playground", agents_count=1, enable_low_level_action=True)
    (first,) = mland.reset()
    for _ in range(4):
        act = mineland.LowLevelAction.no_op(1)
        act[0][0] = 1
        (obs,), _, _, _, _ = mland.step(action=act)
    moved = np.array(obs.location_stats["pos"]) - first.location_stats["pos"]
    assert np.hypot(moved[0], moved[2]) > 2
    assert obs.location_stats["yaw"] == first.location_stats["yaw"]
    mland.step(action=mineland.LowLevelAction.random_op(1))


def test_pictures_and_cameras(make):
    mland = make(task_id="playground", agents_count=1, headless=False, image_size=(36, 64))
    (obs,) = mland.reset()
    assert (obs.rgb.shape, obs.rgb.dtype) == ((3, 36, 64), np.uint8)
    assert read(obs.rgb_base64).shape == (36, 64, 3)
    cameras = mland.env.bridge
    cameras.addCamera("test", 32, 18)
    first = read(cameras.getCameraView("test"))
    assert first.shape == (18, 32, 3)
    cameras.addCameraLocation("test", [0, 8, 0], 0, -1.5)
    down = read(cameras.getCameraView("test"))
    assert np.abs(down.astype(int) - first).mean() > 10
    x, y, z = obs.location_stats["pos"]
    cameras.updateCameraLocation("test", [x, y + 1.6, z], 0, 0)
    assert (read(cameras.getCameraView("test")) == first).all()
    with pytest.raises(UnknownNameError, match="Nearest: test"):
        cameras.getCameraView("tset")


def read(text):
    return cv2.imdecode(np.frombuffer(base64.b64decode(text), np.uint8), cv2.IMREAD_COLOR)


STAGE = """
stage_performance_2_agent_market:
  agent_names: [Carl, Dora]
  critical_point: [[Carl, chat, apples for sale], [Dora, get, apple]]
  initial_inventory: {Carl: {apple: 3}}
  personalities: {Carl: Openness, Dora: Neuroticism}
  script: Carl sells an apple to Dora.
  system_instructions: [/execute as Carl run summon pig]
"""


def test_a_play_of_a_copy_is_shown_and_scored(make, tmp_path):
    (tmp_path / "stage_performance_tasks.yaml").write_text(STAGE)
    name = "stage_performance_2_agent_market"
    mland = make(task_id=name, agents_count=2, task_files=str(tmp_path), ticks_per_step=20)
    obs = mland.reset()
    assert [each.name for each in obs] == ["Carl", "Dora"]
    assert mland.get_script() == "Carl sells an apple to Dora."
    assert mland.get_personalities() == {"Carl": "Openness", "Dora": "Neuroticism"}
    see = "console.log(bot.nearestEntity(({ name }) => name === 'pig') !== null);"
    act = [mineland.Action(1, f"{see} bot.chat('Apples for sale!');"), mineland.Action()]
    _, code_info, _, _, task_info = mland.step(action=act)
    assert code_info[0]["logs"] == ["true"]
    assert (task_info.local_score, task_info.global_score) == (0.5, 1.0)
    give = "await bot.lookAt(bot.players.Dora.entity.position); await bot.toss('apple', null, 1);"
    walk = "await moveTo(bot, bot.players.Carl.entity.position, 1);"
    act = [mineland.Action(1, give), mineland.Action(1, f"await bot.waitForTicks(20); {walk}")]
    for _ in range(10):
        _, _, _, done, task_info = mland.step(action=act)
        if done:
            break
        act = mineland.Action.no_op(2)
    assert (task_info.is_success, task_info.local_score) == (True, 1.0)


def test_a_building_after_a_picture_is_shown_and_compared(make, tmp_path):
    (tmp_path / "construction_tasks.yaml").write_text("construction_task_1:\n")
    folder = tmp_path / "construction_tasks_pictures"
    folder.mkdir()
    rng = np.random.default_rng(0)
    noise = np.kron(rng.integers(0, 255, (23, 40, 3)), np.ones((8, 8, 1))).astype(np.uint8)[:180]
    for kind in ("blueprint", "baseline"):
        cv2.imwrite(str(folder / f"construction_task_1_{kind}.png"), noise)
    mland = make(
        task_id="construction_task_1",
        agents_count=1,
        task_files=str(tmp_path),
        headless=False,
        image_size=(18, 32),
    )
    mland.reset()
    assert mland.get_blueprint_np().shape == (3, 180, 320)
    view = base64_to_image(mland.get_camera_view(), 320, 180)
    assert view.shape == (3, 180, 320)
    mland.move_camera([0, 1, 0], 1.0, 0)
    assert (base64_to_image(mland.get_camera_view(), 320, 180) != view).any()
    _, _, _, done, task_info = mland.step(action=mineland.Action.no_op(1))
    assert not done
    assert 0 <= task_info.score < 0.8  # 1 for the baseline, which is the blueprint here
    assert task_info.blueprint.shape == (180, 320, 3)
    assert likeness(noise, noise) == 1
    assert likeness(noise, np.zeros_like(noise)) == 0
    assert base64_to_image("", 4, 3).shape == (3, 3, 4)
    with pytest.raises(InputError, match="expected a picture"):
        base64_to_image(base64.b64encode(b"no such picture").decode(), 4, 3)


def test_episodes_are_the_same_again_with_the_same_seed(make):
    seen = []
    for _ in range(2):
        mland = make(task_id="harvest_1_oak_log", agents_count=1, seed=5)
        obs = [mland.reset()[0]]
        obs.append(mland.reset()[0])
        seen.append([each.location_stats for each in obs])
    assert seen[0] == seen[1]


def test_the_example_plays():
    file = Path(__file__).parents[2] / "examples" / "mineland_agents.py"
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.endswith(": success\n")
    assert "MineflayerBot1 hears: <MineflayerBot0> It is done." in done.stdout


def test_what_is_wrong_is_said_before_anything_is_started():
    for error, options, message in (
        (UnknownNameError, {"task_id": "havest_1_stick"}, "Nearest: harvest_1_stick"),
        (ConfigError, {"task_id": "construction_task_1"}, "task_files"),
        (ConfigError, {"task_id": "play_cook", "agents_count": 2}, "agents_count=1"),
        (ConfigError, {"server_host": "x"}, r"MineLand\(...\)"),
        (ConfigError, {"agents_count": 0}, "agents_count"),
        (ConfigError, {"agents_config": [{"name": "a b"}]}, "letters"),
    ):
        with pytest.raises(error, match=message):
            mineland.make(**{"task_id": "playground", "agents_count": 1, **options})


def test_the_dragon_is_a_task_too():
    world = mineland.make(task_id="playthrough", agents_count=1)
    try:
        world.reset()
        _, _, _, done, info = world.step(mineland.Action.no_op(1))
        assert (done, info.is_success) == (False, False)
    finally:
        world.close()
