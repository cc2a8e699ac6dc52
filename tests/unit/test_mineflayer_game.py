"""The bridge over the real game: what the stand-in cannot show."""

import json

import numpy as np
import pytest

from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.node import packages_problem
from bridges.mineflayer.spaces import neutral
from rollout.api import Start
from rollout.errors import GameStartError

PATIENT_S = 120.0
pytestmark = [
    pytest.mark.process,
    pytest.mark.heavy,
    pytest.mark.slow,
    pytest.mark.skipif(bool(packages_problem()), reason="run `make mineflayer`"),
]
SPACE = MineflayerBridge().spec.state_space
CALM = {"difficulty": "peaceful", "site": "flat", "time": "noon", "weather": "clear"}


def start(number=0, **values):
    first = {factor.name: factor.values[0] for factor in SPACE}
    return Start(SPACE.state(SPACE.index(first | CALM | values)), 40 + number)


@pytest.fixture
def launch(tmp_path):
    begun = []

    def begin(width=1, **options):
        game = MineflayerBridge(**options)
        begun.append(game.launch(tmp_path, (), width=width, timeout_s=PATIENT_S))
        return begun[-1]

    yield begin
    for each in begun:
        each.close()


def test_a_state_is_what_the_agent_finds(launch):
    game = launch()
    begun = start(loadout="1_iron_sword_and_1_shield_and_equipments", mob="sheep", mobs=4)
    frame = game.reset([0], [begun], timeout_s=PATIENT_S)
    said = frame.details[0]
    assert said["equip"]["main hand"][0] == "iron_sword"
    assert [said["equip"][place][0] for place in ("head", "off hand")] == ["iron_helmet", "shield"]
    assert frame.observations["life"][0, 4] == 15  # points of iron armour
    assert frame.signals["targets_left"].tolist() == [4]
    assert {each["kind"] for each in said["target_entities"]} == {"sheep"}
    assert said["difficulty"] == "peaceful"
    assert json.loads(json.dumps(said)) == said


def test_what_cannot_be_worn_goes_into_the_inventory(launch):
    game = launch(give={"shield": 3, "diamond_helmet": 1, "iron_helmet": 1})
    begun = start(loadout="1_iron_sword_and_1_shield_and_equipments")
    said = game.reset([0], [begun], timeout_s=PATIENT_S).details[0]
    assert [said["equip"][place][:2] for place in ("head", "off hand")] == [
        ["iron_helmet", 1],
        ["shield", 1],
    ]
    carried = [(item["name"], item["count"]) for item in said["inventory_all"].values()]
    for item, count in (("shield", 4), ("diamond_helmet", 1), ("iron_helmet", 2)):
        assert carried.count((item, 1)) == count


def test_nothing_moves_one_who_does_nothing(launch):
    game = launch(ticks_per_step=3)
    before = game.reset([0], [start()], timeout_s=PATIENT_S)
    place, look = (before.observations[key].copy() for key in ("position", "look"))
    for _ in range(5):
        frame = game.step(neutral("low_level", 1), timeout_s=PATIENT_S)
    np.testing.assert_array_equal(frame.observations["look"], look)
    np.testing.assert_allclose(frame.observations["position"], place, atol=0.01)
    assert frame.tick.tolist() == [15]


def test_one_who_walks_gets_somewhere(launch):
    game = launch(ticks_per_step=20)
    frame = game.reset([0], [start()], timeout_s=PATIENT_S)
    place = frame.observations["position"].copy()
    forward = neutral("low_level", 1)
    forward["action"][0, 0] = 1
    for _ in range(3):
        frame = game.step(forward, timeout_s=PATIENT_S)
    way = np.linalg.norm(frame.observations["position"][0] - place[0])
    assert 8.0 < way < 14.0  # 4.3 blocks in a second, less the start
    assert frame.signals["distance"][0] == pytest.approx(way, abs=1.0)


def test_agents_of_a_world_see_one_another_and_worlds_do_not(launch):
    game = launch(4, agents=2, names=("Ann", "Ben"))
    frame = game.reset(range(4), [start(number) for number in range(4)], timeout_s=PATIENT_S)
    frame = game.step(neutral("low_level", 4), timeout_s=PATIENT_S)
    seen = [{e["name"] for e in said["entities"]} & {"Ann", "Ben"} for said in frame.details]
    assert seen == [{"Ben"}, {"Ann"}, {"Ben"}, {"Ann"}]
    assert [said["name"] for said in frame.details] == ["Ann", "Ben", "Ann", "Ben"]


def test_slots_may_be_reset_in_any_order(launch):
    game = launch(2, agents=2, observe=("weather", "position", "biome"))
    starts = [start(0, weather="rain"), start(1, weather="clear")]
    forth = game.reset([0, 1], starts, timeout_s=PATIENT_S).take([0, 1])
    back = game.reset([1, 0], starts[::-1], timeout_s=PATIENT_S).take([1, 0])
    for key, column in forth.observations.items():
        np.testing.assert_array_equal(column, back.observations[key], err_msg=key)


def test_pictures_are_drawn(launch):
    game = launch(observe=("rgb",), rgb_height=48, rgb_width=64)
    frame = game.reset([0], [start()], timeout_s=PATIENT_S)
    assert frame.observations["rgb"].shape == (1, 48, 64, 3)
    sky, ground = frame.observations["rgb"][0, :12], frame.observations["rgb"][0, 36:]
    assert sky[..., 2].mean() > sky[..., 0].mean()  # blue above
    assert ground[..., 1].mean() > ground[..., 2].mean()  # green below
    assert "scene" not in frame.details[0]


def test_a_server_that_is_not_there_is_reported(tmp_path):
    game = MineflayerBridge(mode="remote", host="127.0.0.1", port=1, agents=1)
    with pytest.raises(GameStartError, match=r"ECONNREFUSED"):
        game.launch(tmp_path, (), width=1, timeout_s=PATIENT_S)
