"""BabyAI and Crafter told in words, as BALROG tells them, and their tasks."""

from pathlib import Path

import numpy as np
import pytest
from minigrid.core.constants import COLOR_TO_IDX, OBJECT_TO_IDX, STATE_TO_IDX

from bridges.gymnasium import CrafterBridge, GymnasiumBridge, babyai, crafter
from rollout.api import Start
from rollout.config import BridgeConfig
from rollout.errors import ConfigError, GameCrashed
from rollout.tasks import bridge_and_task
from rollout.testing import check_bridge

pytestmark = pytest.mark.heavy

BABYAI = {"id": f"bridges.gymnasium.babyai:{babyai.ID}"}
KINDS = {"kind": babyai.KINDS}


def view(things):
    """MiniGrid's view of an empty floor with some things: {(x, y): (kind, color, state)}."""
    cells = np.zeros((7, 7, 3), np.uint8)
    cells[:, :, 0] = OBJECT_TO_IDX["empty"]
    for place, (kind, *look) in things.items():
        color = look[0] if look else "grey"
        state = look[1] if len(look) > 1 else "open"
        cells[place] = OBJECT_TO_IDX[kind], COLOR_TO_IDX[color], STATE_TO_IDX[state]
    return cells


@pytest.mark.parametrize(
    ("things", "carried", "lines"),
    [
        ({}, "", []),
        ({(3, 6): ("ball", "red")}, "red ball", ["You carry a red ball"]),  # drawn where it stands
        (
            {(3, 4): ("wall",), (3, 2): ("wall",), (0, 6): ("wall",), (4, 6): ("wall",)},
            "",
            ["a wall 2 steps forward", "a wall 3 steps left", "a wall 1 step right"],
        ),
        # A wall that is not straight ahead or beside is not told, nor one behind a thing.
        ({(2, 5): ("wall",), (5, 5): ("wall",)}, "", []),
        (
            {(3, 5): ("key", "blue"), (3, 3): ("wall",)},
            "",
            ["a blue key 1 step forward"],
        ),
        (
            {
                (5, 4): ("box", "yellow"),
                (1, 6): ("key", "grey"),
                (1, 2): ("ball", "purple"),
                (3, 0): ("door", "green", "locked"),
                (6, 6): ("door", "red", "open"),
            },
            "",
            [
                "a purple ball 2 steps left and 4 steps forward",
                "a grey key 2 steps left",
                "a locked green door 6 steps forward",
                "a yellow box 2 steps right and 2 steps forward",
                "a open red door 3 steps right",
            ],
        ),
    ],
)
def test_a_view_of_babyai_in_words(things, carried, lines):
    assert babyai.describe(view(things), carried).splitlines() == lines


def test_what_is_hidden_hides_no_wall():
    cells = view({(3, 3): ("wall",)})
    cells[3, 4] = 0  # unseen
    assert babyai.describe(cells) == "a wall 3 steps forward"


def begin(bridge, number):
    instance = bridge.launch(Path(), [], width=1, timeout_s=60)
    frame = instance.reset([0], [Start(bridge.spec.state_space.state(number), 0)], timeout_s=60)
    return instance, frame


def test_the_kind_and_the_seed_are_the_state():
    bridge = GymnasiumBridge(**BABYAI, factors=KINDS, seeds=100)
    space = bridge.spec.state_space
    assert space.size == 500
    asked = {}
    for number in range(0, 500, 10):
        instance, frame = begin(bridge, number)
        told, again = frame.details[0], begin(bridge, number)[1].details[0]
        assert told == again
        kind = space.state(number).values["kind"]
        asked.setdefault(kind, []).append(told["mission"])
        most = instance._games[0].unwrapped.max_steps
        assert most == (64 if kind in {"goto", "pickup"} else 128)
        assert not any(words in told["mission"] for words in babyai.NEVER_ASKED)
    words = {
        "goto": ("go to ",),
        "pickup": ("pick up ",),
        "open": ("open ",),
        "putnext": ("put ", " next to "),
        "pick_up_seq_go_to": ("pick up ", "go to "),
    }
    assert asked.keys() == words.keys()
    for kind, needed in words.items():
        assert all(word in mission for mission in asked[kind] for word in needed)
        assert len(set(asked[kind])) > 2
    assert bridge.spec.action_labels == {"action": babyai.ACTIONS}
    assert "minigrid " in bridge.spec.version


def test_distractors_are_more_to_see():
    few, many = (
        GymnasiumBridge(**BABYAI, kwargs={"distractors": number, "kind": "putnext"})
        for number in (0, 8)
    )
    lines = [
        sum(len(begin(bridge, seed)[1].details[0]["text"].splitlines()) for seed in range(9))
        for bridge in (few, many)
    ]
    assert lines[1] > 1.5 * lines[0]


def test_a_mission_that_is_done_is_progress_1():
    _, bridge, task = bridge_and_task(BridgeConfig(name="gymnasium"), "balrog_babyai")
    start = Start(task.state_space.state(5), 0)
    instance = bridge.launch(Path(), [], width=1, timeout_s=60)
    judge = task.evaluator.build(1)
    frame = instance.reset([0], [start], timeout_s=60)
    judge.reset([0], [start], frame)
    assert frame.details[0] == {
        "mission": "go to the red ball",
        "text": "a wall 2 steps forward\na wall 1 step right",
    }
    seen = []
    for action in (0, 2, 0):
        actions = {"action": np.array([action])}
        frame = instance.step(actions, timeout_s=60)
        verdict = judge.judge(actions, frame)
        seen.append((frame.details[0]["text"].splitlines()[-1], verdict.progress[0]))
    assert seen == [
        ("a red ball 1 step left and 1 step forward", 0),
        ("a red ball 1 step left", 0),
        ("a red ball 1 step forward", 1),
    ]
    assert frame.game_over[0]


def test_wrong_factors_are_refused():
    for factors in ({"seed": [1]}, {"kind": "goto"}, {"kind": 3}, ["kind"]):
        with pytest.raises(ConfigError, match="factors must be lists of values"):
            GymnasiumBridge(factors=factors)
    bridge = GymnasiumBridge(**BABYAI, factors={"kind": ["dance"]})
    with pytest.raises(GameCrashed, match=r"kind must be one of goto, .*got 'dance'"):
        begin(bridge, 0)
    with pytest.raises(ConfigError, match="distractors must be an integer from 0"):
        _ = GymnasiumBridge(**BABYAI, kwargs={"distractors": -1}).spec


@pytest.mark.heavy
def test_babyai_passes_the_suite():
    bridge = GymnasiumBridge(**BABYAI, factors=KINDS, render=True)
    check_bridge(bridge, steps=16).raise_if_failed()
    assert bridge.spec.observation_space["render"].shape == (112, 112, 3)


PLAIN = [["grass"] * 7 for _ in range(9)]
VITALS = {"health": 9, "food": 4, "drink": 0, "energy": 9}


def world(things):
    cells = [list(column) for column in PLAIN]
    for (x, y), name in {(4, 3): "player", **things}.items():
        cells[x][y] = name
    return cells


def test_a_view_of_crafter_in_words():
    seen = world({(4, 2): "table", (0, 0): "zombie", (8, 3): "sand", (3, 3): "", (6, 5): "tree"})
    assert crafter.describe(seen, (0, -1), VITALS, {"wood": 2, "stone": 0}) == (
        "You see:\n"
        "- zombie 3 steps north and 4 steps west\n"
        "- table 1 step north\n"
        "- tree 2 steps south and 2 steps east\n"
        "\n"
        "You face table at your front.\n"
        "\n"
        "Your status:\n- health: 9/9\n- food: 4/9\n- drink: 0/9\n- energy: 9/9\n"
        "\n"
        "Your inventory:\n- wood: 2"
    )
    nothing = crafter.describe(world({}), (1, 0), VITALS, {"wood": 0}, sleeping=True)
    assert nothing.split("\n\n")[:3] == [
        "You are sleeping, and will not be able take actions until energy is full.",
        "You see nothing away from you.",
        "You face nothing at your front.",
    ]
    assert nothing.endswith("You have nothing in your inventory.")
    dead = crafter.describe(world({}), (1, 0), {**VITALS, "health": 0}, {})
    assert dead.startswith("You died.\n\nYou see nothing")


def test_one_of_each_kind_is_told_and_of_water_the_edge():
    # By the first number alone: 1 step south is less than 2 steps east, however far west.
    cows = world({(0, 4): "cow", (6, 3): "cow"})
    assert "- cow 1 step south and 4 steps west\n" in crafter.describe(cows, (0, 1), VITALS, {})
    lake = {(x, y): "water" for x in range(5, 9) for y in range(7)}
    told = crafter.describe(world(lake), (1, 0), VITALS, {})
    assert "- water 1 step north and 1 step east\n" in told  # as near as 1 step east, and earlier
    assert "You face water at your front." in told
    # A cell surrounded by water is not told, and the end of the view is no shore.
    everywhere = [["water"] * 7 for _ in range(9)]
    everywhere[4][3] = "player"
    assert crafter._nearest(everywhere, 4, 3) == {"water": (1, "1 step west")}
    everywhere[4][3] = "water"
    assert crafter._nearest(everywhere, 4, 3) == {}


def test_crafter_tells_what_it_shows():
    bridge = CrafterBridge(area=24, describe=True)
    _, frame = begin(bridge, 3)
    plain = begin(CrafterBridge(area=24), 3)[1]
    assert np.array_equal(frame.observations["observation"], plain.observations["observation"])
    assert plain.details is None
    text = frame.details[0]["text"]
    assert "- tree 2 steps north and 3 steps west\n" in text
    assert text == begin(bridge, 3)[1].details[0]["text"]
    assert bridge.spec.action_labels["action"][:6] == (
        *("Noop", "Move West", "Move East", "Move North", "Move South", "Do"),
    )


def test_progress_in_crafter_is_the_share_of_its_achievements():
    _, bridge, task = bridge_and_task(BridgeConfig(name="crafter"), "balrog_crafter")
    assert (bridge.size, bridge.describe, task.limits.steps) == (256, True, 2000)
    start = Start(task.state_space.state(3), 0)
    instance, judge = bridge.launch(Path(), [], width=1, timeout_s=60), task.evaluator.build(1)
    frame = instance.reset([0], [start], timeout_s=60)
    judge.reset([0], [start], frame)
    achievements = instance._games[0]._env._player.achievements
    assert len(achievements) == 22
    for unlocked, name in ((1, "collect_wood"), (1, "collect_wood"), (2, "wake_up")):
        achievements[name] += 1
        frame = instance.step({"action": np.array([0])}, timeout_s=60)
        verdict = judge.judge({}, frame)
        assert verdict.progress[0] == pytest.approx(unlocked / 22)


@pytest.mark.long
def test_crafter_with_text_passes_the_suite():
    check_bridge(CrafterBridge(area=24, describe=True), steps=12).raise_if_failed()
