"""The bridge without Node: options, spaces, starts, and instances over a stand-in for the game."""

import pickle
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

from bridges.mineflayer import MineflayerBridge, bridge, instance
from bridges.mineflayer.columns import Rows, load_layout, parse_layout
from bridges.mineflayer.factors import start_message
from bridges.mineflayer.instance import SavingInstance
from bridges.mineflayer.loadouts import LOADOUTS, Item, given, parse_loadout
from bridges.mineflayer.names import names
from bridges.mineflayer.pictures.observation import Pictures
from bridges.mineflayer.spaces import KEYS, LOW_LEVEL, NEUTRAL, action_space, encode, neutral
from rollout.api import Snapshots, Start, sample
from rollout.config import build_plugin
from rollout.errors import (
    ConfigError,
    ContractError,
    GameCrashed,
    GameStartError,
    GameTimeout,
    InputError,
    OutOfTurnError,
    SpaceError,
    StateError,
    UnknownNameError,
)
from rollout.testing import check_bridge

FAKE = Path(__file__).with_name("mineflayer_fake.py")
PATIENT_S = 60.0
SPEC = MineflayerBridge().spec


def state(**values):
    space = SPEC.state_space
    first = {factor.name: factor.values[0] for factor in space}
    return space.state(space.index(first | values))


# Options and spaces ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"mode": "embeded"}, UnknownNameError, "mode 'embeded'. Nearest: embedded"),
        ({"actions": "lowlevel"}, UnknownNameError, "Nearest: low_level"),
        (
            {"actions": "compact", "compact_actions": ("foward",)},
            UnknownNameError,
            "compact action 'foward'. Nearest: forward",
        ),
        ({"compact_actions": ("forward",)}, ConfigError, "set actions=compact"),
        ({"observe": ("lief",)}, UnknownNameError, "observation 'lief'. Nearest: life"),
        ({"observe": ("life", "life")}, ConfigError, "different names"),
        ({"agents": 0}, ConfigError, "agents: expected 1 to 128, got 0"),
        ({"ticks_per_step": 0}, ConfigError, "ticks_per_step: expected 1"),
        ({"agents": 2, "names": ("a",)}, ConfigError, "one for each of 2 agents, got 1"),
        ({"names": ("a b",)}, ConfigError, "letters, digits or underscores, got 'a b'"),
        ({"version": "1.19"}, ConfigError, "embedded worlds are of 1.16.5.*mode=remote"),
        ({"mode": "remote", "version": "1.22"}, ConfigError, "1.8 to 1.21"),
        (
            {"give": {"stik": 1}},
            UnknownNameError,
            "item of Minecraft 1.16.5 'stik'. Nearest: stick",
        ),
        ({"give": {"stick": 0}}, ConfigError, "stick: expected 1 to 2304"),
        ({"give": {"bob.stick": 1}}, UnknownNameError, "agent to give items to 'bob'"),
    ],
)
def test_a_wrong_option_is_reported(options, error, message):
    with pytest.raises(error, match=message):
        MineflayerBridge(**options)


def test_versions_of_remote_servers_are_taken():
    assert MineflayerBridge(mode="remote", version="1.19").spec.reproducible is False
    assert MineflayerBridge(mode="remote", version="1.8.8", agents=3).max_width == 3


def test_the_spec_needs_no_node(monkeypatch):
    def refuse(*args):
        raise AssertionError("Node was looked for")

    monkeypatch.setattr(bridge, "find_node", refuse)
    spec = MineflayerBridge(observe=("rgb", "life"), rgb_height=48, rgb_width=80).spec
    assert spec.observation_space["rgb"] == spaces.Box(0, 255, (48, 80, 3), np.uint8)
    assert set(spec.observation_space.spaces) == {"rgb", "life"}
    assert spec.observation_space["life"].shape == (8,)
    assert (spec.reproducible, spec.process, spec.ticks_per_second) == (True, "subprocess", 20.0)
    assert spec.signals["target_damage"].unit == "half hearts"
    assert pickle.loads(pickle.dumps(spec.task_maker)) == spec.task_maker


def test_a_step_waits_for_as_long_as_programs_may_hold_it():
    def step_s(**options):
        return MineflayerBridge(**options).spec.deadlines.step_s

    assert step_s(actions="code") >= 20 + step_s()
    assert step_s(actions="code", code_time_ms=60_000) > 40 * 60 + 5 * 60
    assert step_s(actions="human", code_time_ms=60_000) == step_s()


def test_spaces_are_those_of_the_papers():
    low = MineflayerBridge().spec.action_space
    assert low == spaces.Dict({"action": spaces.MultiDiscrete([3, 3, 4, 25, 25, 10, 244, 46])})
    human = MineflayerBridge(actions="human").spec.action_space
    assert human["keys"] == spaces.MultiBinary(20)
    assert human["camera"] == spaces.MultiDiscrete([11, 11])
    code = MineflayerBridge(actions="code").spec.action_space
    assert code["kind"] == spaces.Discrete(2)
    assert code["code"].max_length == 20_000
    assert "" in code["code"]
    assert "bot.chat('hi');\n" in code["code"]


def test_keys_are_those_of_blockworld():
    from bridges.blockworld import BlockworldBridge

    theirs = BlockworldBridge(actions="human").spec
    ours = MineflayerBridge(actions="human").spec
    assert ours.action_space == theirs.action_space
    assert tuple(theirs.action_labels["keys"]) == KEYS


@pytest.mark.parametrize("layout", ["low_level", "human", "mouse", "code", "compact"])
def test_the_neutral_action_is_an_action(layout):
    space = MineflayerBridge(actions=layout).spec.action_space
    for column, value in neutral(layout, 3).items():
        assert value.shape[0] == 3
        row = value[0]
        assert space[column].contains(row if isinstance(row, np.ndarray | str) else np.int64(row))


def test_the_neutral_array_does_not_turn():
    # MineLand's own no-op has zeros there, which are half a circle each.
    assert NEUTRAL[3:5] == (12, 12)
    labels = SPEC.action_labels
    assert [labels["action/pitch"][12], labels["action/yaw"][12]] == ["0", "0"]
    assert labels["action/yaw"][0] == "-180"


# The layout --------------------------------------------------------------------------------------


def test_columns_lie_one_after_the_other_and_are_aligned():
    layout = load_layout()
    rows = Rows(layout, 3)
    assert all(array.flags.aligned for array in rows.arrays())
    rows.data[:] = bytes(range(256)) * (len(rows.data) // 256) + bytes(len(rows.data) % 256)
    flat = b"".join(array.tobytes() for array in _in_order(layout, rows))
    assert flat == bytes(rows.data)


def _in_order(layout, rows):
    roles = {"observation": rows.observations, "signal": rows.signals, "frame": rows.frame}
    return [roles[column.role][column.key] for column in layout]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda entries: [*entries, entries[-1]], "names a column twice"),
        (lambda entries: entries[::-1], "wide types before narrow"),
        (lambda entries: [e for e in entries if e["key"] != "game_over"], "'game_over'"),
        (lambda entries: [entries[0] | {"dtype": "float16"}, *entries[1:]], "dtype 'float16'"),
    ],
)
def test_a_wrong_layout_is_reported(change, message):
    import json

    from bridges.mineflayer.columns import LAYOUT

    with pytest.raises(ContractError, match=message):
        parse_layout(change(json.loads(LAYOUT.read_text())))


# Starts ------------------------------------------------------------------------------------------


def test_a_start_tells_state_items_and_targets():
    begun = state(loadout="1_iron_sword_and_1_shield", mob="zombie", mobs=4, distance=5, world=7)
    told = start_message(SPEC.state_space, Start(begun, 2**63 - 1, episode=3), [Item("bread", 2)])
    assert told["state"]["world"] == 7
    assert told["items"] == [
        {"name": "iron_sword", "count": 1, "slot": None},
        {"name": "shield", "count": 1, "slot": "off-hand"},
        {"name": "bread", "count": 2, "slot": None},
    ]
    assert told["targets"] == [{"kind": "zombie", "count": 4, "distance": 5, "name": "zombie"}]
    assert 0 <= told["seed"] < 2**53
    assert told["episode"] == 3


def test_seeds_stay_what_javascript_can_count_with():
    rng = np.random.default_rng(0)
    seeds = [0, 2**62, 2**63 - 1, *rng.integers(2**63, size=500).tolist()]
    seeds += [seed ^ (1 << 60) for seed in seeds]  # differ in what 53 bits do not hold
    told = [start_message(SPEC.state_space, Start(state(), seed))["seed"] for seed in seeds]
    assert len(set(told)) == len(seeds)
    assert all(0 <= seed < 2**53 for seed in told)


def test_what_is_to_be_built_comes_with_its_blocks():
    told = start_message(SPEC.state_space, Start(state(blueprint=1), 0))
    assert told["items"] == [{"name": "cobblestone", "count": 5, "slot": None}]
    assert start_message(SPEC.state_space, Start(state(mob="zombie"), 0))["targets"] == []


def test_load_outs_of_mineland_are_understood():
    assert parse_loadout("none") == ()
    armour = [
        Item(f"iron_{piece}", 1, slot)
        for piece, slot in (
            ("helmet", "head"),
            ("chestplate", "torso"),
            ("leggings", "legs"),
            ("boots", "feet"),
        )
    ]
    sword = [Item("diamond_sword", 1), Item("shield", 1, "off-hand")]
    irregular = (
        "1_diamond_sword_and_shield_andiron_and_helmet_and_leggings_and_chestplate_and_boots"
    )
    assert parse_loadout(irregular) == (*sword, *armour)
    assert parse_loadout("1_diamond_sword_and_1_shield_and_equipments") == (*sword, *armour)
    assert parse_loadout("8_stick_and_2_stick") == (Item("stick", 10),)
    for text in LOADOUTS:
        assert all(item.name in names().items for item in parse_loadout(text)), text
    with pytest.raises(ConfigError, match="'stick' is no number and item"):
        parse_loadout("1_apple_and_stick")


def test_items_go_to_everyone_or_to_one():
    assert given({"stick": 2, "b.bread": 1}, ("a", "b")) == (
        (Item("stick", 2),),
        (Item("stick", 2), Item("bread", 1)),
    )


# Instances over the stand-in ---------------------------------------------------------------------


@pytest.fixture
def fake(monkeypatch):
    """Puts the stand-in in the game's place, with a fault if one is named."""

    def put(fault=""):
        monkeypatch.setattr(
            bridge, "game_command", lambda: ([sys.executable, str(FAKE), fault], {})
        )

    put()
    return put


@pytest.fixture
def launch(fake, tmp_path):
    begun = []

    def start(width=2, fault="", **options):
        fake(fault)
        game = MineflayerBridge(**options)
        begun.append(game.launch(tmp_path, (), width=width, timeout_s=PATIENT_S))
        return game.spec, begun[-1]

    yield start
    for each in begun:
        each.close()


def starts(count, **values):
    return [Start(state(world=number, **values), number + 5) for number in range(count)]


def played(spec, width, steps=1):
    rng = np.random.default_rng(0)
    return [sample(spec.action_space, width, rng) for _ in range(steps)]


process = pytest.mark.process


@process
@pytest.mark.long
def test_the_conformance_suite_passes(fake):
    report = check_bridge(MineflayerBridge(), steps=20, width=3, timeout_s=300.0)
    report.raise_if_failed()
    assert not report.names("skipped"), report.table()


@process
def test_actions_arrive_as_they_were_chosen(launch):
    spec, game = launch(actions="code")
    assert set(spec.action_space.spaces) == {"kind", "code"}
    game.reset([0, 1], starts(2), timeout_s=PATIENT_S)
    program = "await bot.chat('größe')"
    actions = {"kind": np.array([1, 0]), "code": np.array([program, ""], object)}
    frame = game.step(actions, timeout_s=PATIENT_S)
    assert frame.observations["position"][:, 2].tolist() == [1 + len(program), 0]


@process
def test_a_frame_is_a_view_and_a_reset_gives_its_rows_only(launch):
    spec, game = launch(3, observe=("position",))
    first = game.reset([2, 0], starts(2), timeout_s=PATIENT_S)
    assert first.observations["position"].shape == (2, 3)
    assert [said["start"]["seed"] for said in first.details] == [5, 6]
    (actions,) = played(spec, 3)
    frame = game.step(actions, timeout_s=PATIENT_S)
    assert frame.observations["position"][1].tolist() == [0, 0, 0]
    assert frame.details[1] == {}
    assert frame.tick.tolist() == [5, 0, 5]
    again = game.step(actions, timeout_s=PATIENT_S)
    assert again.observations["position"] is frame.observations["position"]


@process
def test_turns_are_kept(launch):
    spec, game = launch()
    (actions,) = played(spec, 2)
    with pytest.raises(OutOfTurnError, match="no slot was ever reset"):
        game.step(actions, timeout_s=PATIENT_S)
    with pytest.raises(OutOfTurnError, match="slot 0 was never reset"):
        game.snapshot(0)
    for slots in ([0, 0], [2], [-1]):
        with pytest.raises(InputError, match="distinct slots from 0 to 1"):
            game.reset(slots, starts(len(slots)), timeout_s=PATIENT_S)
    foreign = replace(starts(1)[0], state=replace(state(), values={"world": 1}))
    with pytest.raises(StateError, match="missing"):
        game.reset([0], [foreign], timeout_s=PATIENT_S)
    with pytest.raises(InputError, match="other bytes"):
        game.restore(0, b"nonsense")
    game.close()
    with pytest.raises(OutOfTurnError, match="is closed"):
        game.reset([0], starts(1), timeout_s=PATIENT_S)


@process
def test_a_wrong_action_is_reported_and_breaks_nothing(launch):
    spec, game = launch()
    game.reset([0, 1], starts(2), timeout_s=PATIENT_S)
    (actions,) = played(spec, 2)
    beyond = actions["action"].copy()
    beyond[1, 3] = 25
    whole = np.zeros((2, len(LOW_LEVEL)), np.float32)
    for wrong, message in (
        ({}, r"expected the action columns \['action'\]"),
        ({"action": beyond}, r"got 25 in row \[1\]"),
        ({"action": actions["action"][:1]}, r"expected \[2, 8\], got \[1, 8\]"),
        ({"action": whole}, "whole numbers"),
    ):
        with pytest.raises(SpaceError, match=message):
            game.step(wrong, timeout_s=PATIENT_S)
    game.step(actions, timeout_s=PATIENT_S)


def test_any_text_is_a_program_and_a_long_one_is_the_games_to_refuse():
    space = spaces.Dict({"code": action_space("code")["code"]})
    for text, sent in (
        ("x" * 30_000, "x" * 20_001),
        ("// go \u2014 now \U0001f600", "// go \u2014 now \U0001f600"),
        ("bot.chat('\ud83d')", "bot.chat('\ufffd')"),
    ):
        assert encode(space, {"code": np.array([text], object)}, 1) == {"code": [sent]}
    with pytest.raises(SpaceError, match="text, got int"):
        encode(space, {"code": np.array([3], object)}, 1)


@process
@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        ("step=exit:9", GameCrashed, "ended in step: exit code 9"),
        ("step=hang", GameTimeout, "within 0.5 s"),
        ("step=short", GameCrashed, "columns are 3 bytes instead of"),
        ("step=kicked:flying", GameCrashed, "kicked an agent: flying"),
    ],
)
def test_a_game_that_failed_is_ended_at_once(launch, fault, error, message):
    spec, game = launch(fault=fault)
    game.reset([0, 1], starts(2), timeout_s=PATIENT_S)
    (actions,) = played(spec, 2)
    timeout_s = 0.5 if "hang" in fault else PATIENT_S
    with pytest.raises(error, match=message):
        game.step(actions, timeout_s=timeout_s)
    with pytest.raises(OutOfTurnError, match="has failed; launch another"):
        game.step(actions, timeout_s=PATIENT_S)
    game.close()


@process
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("hello=refused:You are not whitelisted", "refused: You are not whitelisted"),
        ("hello=exit:1", "exit code 1; last lines of node.log:\nlast words"),
        ("hello=layout", "no valid layout: the layout must list wide types"),
        ("hello=bug:ECONNREFUSED 127.0.0.1:25565", "ECONNREFUSED"),
    ],
)
def test_a_start_that_fails_says_why(launch, fault, message):
    with pytest.raises(GameStartError, match=message):
        launch(fault=fault)


@process
def test_a_start_has_a_deadline(fake, tmp_path):
    fake("hello=hang")
    with pytest.raises(GameStartError, match="no answer to hello within"):
        MineflayerBridge().launch(tmp_path, (), width=1, timeout_s=1.0)


def test_widths_are_whole_worlds(fake, tmp_path):
    game = MineflayerBridge(agents=3)
    assert game.max_width == 126
    for width in (0, 1, 4, 127, 129):
        with pytest.raises(ConfigError, match="multiple of agents=3 up to 126"):
            game.launch(tmp_path, (), width=width, timeout_s=PATIENT_S)


def test_observations_can_be_drawn_as_rllib_does():
    every = tuple(MineflayerBridge(observe=("rgb",))._observations())
    space = MineflayerBridge(observe=every).spec.observation_space
    assert set(space.spaces) == set(every)
    drawn = space.sample()
    assert 0 <= drawn["age"] < 2**53


@pytest.mark.parametrize("width", [0, 1, 4, 127, 129])
def test_widths_of_no_whole_worlds_are_refused_before_anything_starts(width):
    spec = MineflayerBridge(agents=3).spec
    spec.require_width(126)
    with pytest.raises(ConfigError, match=f"width={width}: .* 3 to 126 slots, 3 at a time"):
        spec.require_width(width)


@process
def test_worlds_of_several_agents_offer_no_snapshots(launch):
    _, alone = launch(1)
    assert isinstance(alone, SavingInstance)
    _, together = launch(2, agents=2)
    assert not isinstance(together, Snapshots)


@process
def test_each_agent_gets_its_items(launch):
    _, game = launch(4, agents=2, names=("Ann", "Ben"), give={"Ben.apple": 1})
    frame = game.reset(range(4), starts(4), timeout_s=PATIENT_S)
    items = [[item["name"] for item in said["start"]["items"]] for said in frame.details]
    assert items == [[], ["apple"], [], ["apple"]]


def test_missing_packages_are_reported_at_the_launch(monkeypatch, tmp_path):
    monkeypatch.setattr(bridge, "GAME", tmp_path)

    def missing():
        raise ConfigError("run `make mineflayer`")

    monkeypatch.setattr(bridge, "require_packages", missing)
    with pytest.raises(ConfigError, match="make mineflayer"):
        MineflayerBridge().launch(tmp_path, (), width=1, timeout_s=PATIENT_S)


def test_the_removed_renderer_is_refused_and_the_default_opens():
    assert build_plugin("bridges", "mineflayer", {"renderer": "rays"}) == MineflayerBridge()
    with pytest.raises(ConfigError, match=r"bridge.renderer: was removed, and is always 'rays'"):
        build_plugin("bridges", "mineflayer", {"renderer": "prismarine"})


# Pictures ----------------------------------------------------------------------------------------


class FakeRenderer:
    """Renders a scene as one shade; counts what it was told."""

    def scene(self):
        return ShadeScene()

    def render(self, scene, out):
        out[:] = scene.shade


class ShadeScene:
    shade = 0

    def apply(self, update):
        self.shade += update["shade"]


def test_pictures_follow_their_slots():
    pictures = Pictures(FakeRenderer(), 3, 2, 4)
    begun = pictures.begin([2, 0], [{"scene": {"shade": 7}}, {"scene": {"shade": 1}}])
    assert begun[:, 0, 0, 0].tolist() == [7, 1]
    pictures.follow([2], [{}, {}, {"scene": {"shade": 3}}])
    assert pictures.out[:, 1, 3, 2].tolist() == [1, 0, 10]
    pictures.begin([2], [{"scene": {"shade": 4}}])
    assert pictures.out[2].max() == 4  # a new episode begins with an empty scene


@process
def test_rgb_is_rendered_and_the_scene_is_not_shown(fake, launch, monkeypatch):
    monkeypatch.setattr(bridge, "RayCaster", lambda hello: FakeRenderer())
    spec, game = launch(2, observe=("rgb", "position"), rgb_height=2, rgb_width=3)
    frame = game.reset([1], starts(1), timeout_s=PATIENT_S)
    assert frame.observations["rgb"].shape == (1, 2, 3, 3)
    assert instance.SCENE not in frame.details[0]
    (actions,) = played(spec, 2)
    game.step(actions, timeout_s=PATIENT_S)
    frame = game.step(actions, timeout_s=PATIENT_S)
    assert frame.observations["rgb"][:, 0, 0, 0].tolist() == [0, 15]  # 0 + 5 + 10 ticks
    assert all(instance.SCENE not in said for said in frame.details)
