"""The bridge: tasks by name, judging, limits, what cannot be judged, both modes, wrong options."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from bridges.stardojo import skills
from bridges.stardojo.bridge import StardojoBridge
from bridges.stardojo.client import Client, ClosedEarlyError, NoAnswerError, NoValueError
from bridges.stardojo.mod import GameProcess, ModGame, ModOptions, screenshot
from bridges.stardojo.task_table import lite
from rollout.api import NOTICE, Start
from rollout.api.state import State
from rollout.errors import ConfigError, GameCrashed, GameStartError, UnknownNameError
from rollout.tasks import load_task

QUICK = "{speed: 30, viewport: [64, 36], load_s: 1, "


def free_port():
    with socket.socket() as link:
        link.bind(("127.0.0.1", 0))
        return link.getsockname()[1]


def start(task, seed=0):
    return Start(State(0, {"task": task}), seed)


@contextlib.contextmanager
def playing(tmp_path, task, **options) -> Iterator:
    """An instance of one slot in which a task began, and its first frame."""
    bridge = StardojoBridge(**options)
    ports = [free_port()] if bridge.spec.ports else []
    instance = bridge.launch(tmp_path, ports, width=1, timeout_s=60)
    try:
        yield instance, instance.reset([0], [start(task)], timeout_s=120)
    finally:
        instance.close()


def act(instance, *texts):
    for text in texts:
        number = skills.labels().index(text)
        frame = instance.step({"action": np.array([number])}, timeout_s=60)
    return frame


def faults(tmp_path, text):
    path = tmp_path / "faults.yaml"
    path.write_text(QUICK + text + "}")
    return str(path)


@pytest.mark.heavy
def test_a_task_is_played_judged_and_cut(tmp_path):
    with playing(tmp_path, "go_to_bus_stop") as (instance, frame):
        assert "bus stop" in frame.details[0]["mission"]
        assert frame.signals["task/share"][0] == 0
        there = act(instance, "navigate('BusStop')").take([0])
        assert (there.signals["task/share"][0], there.signals["reward"][0]) == (1, 1)
        assert not act(instance, *["wait()"] * 58).game_truncated[0]
        assert act(instance, "wait()").game_truncated[0], "60 actions are the paper's 30 steps"
        assert act(instance, "wait()").tick[0] == 60


def test_a_step_may_have_two_actions(tmp_path):
    with playing(tmp_path, "go_to_bus_stop", skills=2, layout="calls") as (instance, _):
        spec = StardojoBridge(skills=2, layout="calls").spec
        row = {key: np.array([0]) for key in spec.action_space.spaces}
        first = skills.to_row(skills.parse("use('left')"))
        then = skills.to_row(skills.parse("navigate('BusStop')"))
        for key in first:
            row[key][0], row["then/" + key][0] = first[key], then[key]
        row["then/name"][0] += 1
        frame = instance.step(row, timeout_s=60)
        assert (frame.signals["task/completed"][0], frame.tick[0]) == (1, 1)


@pytest.mark.parametrize("skill", skills.flat(), ids=str)
def test_actions_survive_the_layout_of_calls(skill):
    if skill.name == "craft" and skill.args[0] in skills.RECIPES:
        skill = skills.Skill("craft", (skills.RECIPES[skill.args[0]],))
    row = {key: np.array([value]) for key, value in skills.to_row(skill).items()}
    assert skills.from_row(row, 0) == [skill]


def test_the_expert_is_observed_and_solves_and_its_actions_can_be_replayed(tmp_path):
    options, task = {"layout": "calls", "oracle": True}, "till_5_tile_with_hoe"
    actions, seen = [], []
    with playing(tmp_path / "expert", task, **options) as (instance, frame):
        while not frame.signals["task/completed"][0] and len(actions) < 60:
            found = frame.observations.items()
            row = {k.rpartition("/")[2]: v.copy() for k, v in found if "privileged_oracle" in k}
            frame = instance.step(row, timeout_s=60)  # noqa: PLW2901
            actions.append(row)
            seen.append((frame.observations["tiles"].copy(), frame.signals["task/share"][0]))
        assert frame.signals["task/share"][0] == 1
    with playing(tmp_path / "again", task, layout="calls") as (instance, _):
        for row, (tiles, share) in zip(actions, seen, strict=True):
            frame = instance.step(row, timeout_s=60)
            assert (frame.observations["tiles"] == tiles).all()
            assert frame.signals["task/share"][0] == share


def test_tasks_are_made_by_name():
    spec = StardojoBridge().spec
    suite = load_task(spec, "stardojo", "lite")
    assert suite.state_space.size == 100
    assert suite.limits.steps == 300
    assert len(suite.metadata["table"]["rows"]) == 100
    combat = load_task(spec, "stardojo", "lite_combat")
    assert combat.state_space.size == 12
    one = load_task(StardojoBridge(limits="released", skills=2).spec, "stardojo", "talk_to_alex")
    assert (one.limits.steps, one.difficulty) == (31, "easy")
    wide = load_task(spec, "stardojo", "talk_to_alex_wide")
    assert wide.goal == one.goal
    size = {factor.name: len(factor.values) for factor in wide.state_space}
    assert (size["task"], size["hour"], size["season"], size["layout"]) == (1, 1, 5, 1001)
    with pytest.raises(UnknownNameError, match="talk_to_alex"):
        load_task(spec, "stardojo", "talk_to_alexx")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"mode": "mods"}, "mod"),
        ({"judging": "loose"}, "strict"),
        ({"width": 64}, "belong together"),
        ({"game": "/no/such/game"}, "mode=mod"),
        ({"mode": "mod", "game": "/no/such/game"}, "does not exist"),
        ({"mode": "mod", "faults": "/no/such/file"}, "cannot be read"),
        ({"oracle": True}, "layout=calls"),
        ({"task_files": "/no/such/folder"}, "folder"),
        ({"skills": 3}, "1 or 2"),
    ],
)
def test_wrong_options_are_refused_before_anything_starts(options, match):
    with pytest.raises((ConfigError, UnknownNameError), match=match):
        StardojoBridge(**options)


@pytest.mark.process
def test_a_mod_without_progression_cannot_judge_and_says_so(tmp_path):
    told = {}
    for offered in ("false", "true"):
        path = faults(tmp_path, f"progression: {offered}")
        with playing(tmp_path / offered, "quit_1_quest", mode="mod", faults=path) as (_, frame):
            told[offered] = frame.details[0].get(NOTICE, "")
            assert frame.game_truncated[0] == (offered == "false")
            assert np.isnan(frame.signals["task/share"][0]) == (offered == "false")
    assert "quit_1_quest cannot be judged" in told["false"]
    assert "Progression" in told["false"]
    assert not told["true"]


@pytest.mark.process
def test_the_mod_plays_what_the_valley_plays(tmp_path):
    """Walks, exits and observations of both modes agree."""
    path = faults(tmp_path, "screenshot: false")
    frames = []
    for folder, options in (("a", {}), ("b", {"mode": "mod", "faults": path})):
        with playing(tmp_path / f"{folder}2", "go_to_bus_stop", **options) as (instance, frame):
            frames.append(frame)
            frames.append(act(instance, "move(0, 2)", "choose_item(2)", "navigate('BusStop')"))
    embedded, mod = frames[:2], frames[2:]
    assert embedded[0].observations.keys() == mod[0].observations.keys()
    for one, other in zip(embedded, mod, strict=True):
        assert (one.observations["bag"] == other.observations["bag"]).all()
        assert (one.observations["tiles"][:, :2] == other.observations["tiles"][:, :2]).all()
    assert embedded[1].signals["task/completed"][0] == mod[1].signals["task/completed"][0] == 1


@pytest.mark.long
def test_episodes_survive_a_game_full_of_faults(tmp_path):
    path = faults(
        tmp_path, "seed: 5, dropped: 0.1, silent: 0.05, lost: 0.1, delayed: 0.05, stale: 0.3"
    )
    with playing(tmp_path, "sow_5_dirt_with_cauliflower_seeds", mode="mod", faults=path) as (
        instance, frame,
    ):  # fmt: skip
        bag = frame.observations["bag"][0]
        assert 5 in bag[:, 1], "the setup was played once, although answers were lost"
        assert act(instance, *["move(0, 1)", "move(0, -1)"] * 4).tick[0] == 8


@pytest.mark.process
def test_a_game_that_does_not_listen_or_ends_is_told(tmp_path):
    for fault, match, limit in (
        ("port_in_use: true", "does not listen", 3),
        ("crash_on: 1", "exit code 134", 30),
    ):
        options = ModOptions(faults=faults(tmp_path, fault))
        with pytest.raises(GameStartError, match=match):
            ModGame(options, tmp_path, free_port(), timeout_s=limit)


@pytest.mark.process
def test_a_game_that_is_killed_is_told_with_the_signal(tmp_path):
    game = GameProcess(["sh", "-c", "echo last words; kill -9 $$"], tmp_path, 0, {})
    assert game._child.ended(time.monotonic() + 60)
    with pytest.raises(GameCrashed, match="killed by SIGKILL; its log: last words"):
        game.alive()


@pytest.mark.process
def test_the_client_tells_errors_by_type(tmp_path):
    nobody = Client(free_port())
    with pytest.raises(ClosedEarlyError):
        nobody.ask("pause", timeout_s=1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(silent.getsockname()[1])
        with pytest.raises(NoAnswerError):
            client.ask("pause", timeout_s=0.1)
    game = ModGame(ModOptions(faults=faults(tmp_path, "")), tmp_path, free_port(), timeout_s=30)
    try:
        with pytest.raises(NoValueError):
            game.client.observe(3, timeout_s=5)
        game.load("save_new", (), timeout_s=30)
        assert game.client.paused
        assert game.act("turn", (0,)) is None, "a gated command resumes the game first"
    finally:
        game.close()


def test_a_resume_that_is_not_heard_is_sent_again():
    """Otherwise the game stays paused, and whatever is asked later waits in vain."""
    heard: list[str] = []

    def serve(listener):
        with contextlib.suppress(OSError):
            while True:
                link, _ = listener.accept()
                with link:
                    heard.append(link.recv(256).decode())
                    if heard != ["pause", "resume"]:
                        link.sendall(b"Message received<EOF>")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        client = Client(listener.getsockname()[1])
        client.pause(timeout_s=5)
        with pytest.raises(ClosedEarlyError):
            client.ask("use", timeout_s=5)
        client.ask("use", timeout_s=5)
        listener.shutdown(socket.SHUT_RDWR)
    assert heard == ["pause", "resume", "resume", "use"]


ONE = {"MetaData": {"ViewportSize": [1, 1]}}


@pytest.mark.parametrize("picture", [None, "AAAA", "?", "AAAAAA=="])
def test_a_picture_that_is_none_is_known(picture):
    assert screenshot({}) is None
    assert screenshot({**ONE, "ScreenShot": picture}) is None


def test_lite_has_no_name_twice():
    assert len({row.goal for row in lite().values()}) == 100
