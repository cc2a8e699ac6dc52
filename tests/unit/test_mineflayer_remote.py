"""Remote mode from Python: a server in another process, a run of the command line over it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from bridges.mineflayer import MineflayerBridge, mineland
from bridges.mineflayer.bridge import game_command
from bridges.mineflayer.node import GAME, packages_problem
from bridges.mineflayer.spaces import neutral
from rollout.api import Start
from rollout.data import Dataset
from rollout.errors import ConfigError, GameCrashed

ROOT = Path(__file__).parents[2]
PATIENT_S = 120.0
pytestmark = [
    pytest.mark.process,
    pytest.mark.heavy,
    pytest.mark.slow,
    pytest.mark.skipif(bool(packages_problem()), reason="run `make mineflayer`"),
]


class Server:
    """A flying-squid in a process of its own (game/test/remote_server.js)."""

    def __init__(self, options):
        (node, *_), _ = game_command()
        self.process = subprocess.Popen(
            [node, str(GAME / "test/remote_server.js"), json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.port = self._heard()["port"]

    def _heard(self):
        return json.loads(self.process.stdout.readline())

    def tell(self, what, **fields):
        self.process.stdin.write(json.dumps({"do": what, **fields}) + "\n")
        self.process.stdin.flush()
        return self._heard()["ok"]

    def stop(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def serve():
    begun = []

    def begin(**options):
        begun.append(Server(options))
        return begun[-1]

    yield begin
    for each in begun:
        each.stop()


@pytest.fixture
def launch(tmp_path):
    begun = []

    def begin(server, width=1, **options):
        game = MineflayerBridge(mode="remote", port=server.port, agents=width, **options)
        begun.append(game.launch(tmp_path, (), width=width, timeout_s=PATIENT_S))
        return begun[-1]

    yield begin
    for each in begun:
        each.close()


def start():
    space = MineflayerBridge().spec.state_space
    return Start(space.state(0), 1)


def collect(folder, port, *settings, steps=6):
    (folder / "task.yaml").write_text(
        yaml.safe_dump(
            {
                "goal": "Look around.",
                "evaluator": {"name": "mineland_creative", "goal": "Look around."},
                "limits": {"steps": steps},
            }
        )
    )
    told = (
        *("bridge.name=mineflayer", "bridge.mode=remote", f"bridge.port={port}", "actors=0"),
        *(
            "policy=random",
            "episodes=3",
            f"task={folder / 'task.yaml'}",
            f"output={folder / 'run'}",
        ),
    )
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts/collect.py"), "--set", *told, *settings],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_run_on_a_server_is_recorded(serve, tmp_path):
    server = serve()
    done = collect(tmp_path, server.port, "bridge.agents=2", "width=2", "bridge.names=[Ann,Ben]")
    assert done.returncode == 0, done.stderr
    with Dataset(tmp_path / "run" / "dataset") as dataset:
        episodes = list(dataset.episodes())
    assert len(episodes) >= 3
    assert {each.length for each in episodes if each.end is not None} == {6}
    assert server.tell("players") == []  # they have left


def test_agents_see_each_other_and_pictures_are_drawn(serve, launch):
    game = launch(serve(), 2, names=("Ann", "Ben"), observe=("rgb", "life"), rgb_height=36)
    frame = game.reset([0, 1], [start(), start()], timeout_s=PATIENT_S)
    frame = game.step(neutral("low_level", 2), timeout_s=PATIENT_S)
    assert [[e["name"] for e in said["entities"]] for said in frame.details] == [["Ben"], ["Ann"]]
    sky, ground = frame.observations["rgb"][0, :9], frame.observations["rgb"][0, 27:]
    assert sky[..., 2].mean() > ground[..., 2].mean()


def test_a_kick_is_an_event_and_then_the_reason_of_a_loss(serve, launch):
    server = serve()
    game = launch(server, ticks_per_step=2)
    game.reset([0], [start()], timeout_s=PATIENT_S)
    server.tell("kick", name="a0", reason="Enough for today")
    for _ in range(100):
        frame = game.step(neutral("low_level", 1), timeout_s=PATIENT_S)
        if frame.game_over[0]:
            break
    (kicked,) = [each for each in frame.details[0]["event"] if each["type"] == "kicked"]
    assert kicked["reason"] == "Enough for today"
    with pytest.raises(GameCrashed, match=r"127\.0\.0\.1:\d+ for a0: Enough for today"):
        game.reset([0], [start()], timeout_s=PATIENT_S)


def test_the_words_of_a_kick_reach_the_terminal_though_no_episode_follows(serve, tmp_path):
    server = serve(kick={"after_ms": 5000, "reason": "Enough for today"})
    done = collect(tmp_path, server.port, "episodes=1", steps=2000)
    assert done.returncode == 0, done.stderr
    assert "a0 was removed: Enough for today" in done.stderr
    assert (tmp_path / "run" / "run.log").read_text().count("Enough for today") == 1
    with Dataset(tmp_path / "run" / "dataset") as dataset:
        (episode,) = dataset.episodes()
        assert episode.end == "terminated"


def test_what_a_server_says_reaches_the_terminal(serve, tmp_path):
    server = serve(say={"*": {"translate": "multiplayer.disconnect.not_whitelisted"}})
    done = collect(tmp_path, server.port, "host.restarts=1")
    assert done.returncode == 3
    assert "the server refused: 127.0.0.1:" in done.stderr
    assert "You are not white-listed on this server!" in done.stderr
    assert "/whitelist add" in done.stderr


def test_nothing_can_be_saved_of_a_server(serve, launch):
    assert not hasattr(launch(serve()), "snapshot")


@pytest.mark.parametrize("version", ["1.8", "1.8.9", "1.12.2", "1.20", "1.20.6", "1.21.11"])
def test_releases_are_versions(version):
    assert MineflayerBridge(mode="remote", version=version).spec.reproducible is False


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("1.7.10", "one of 1.8 to 1.21"),
        ("1.22", "one of 1.8 to 1.21"),
        ("1.20.7", "expected 1.20 to 1.20.6"),
        ("latest", "one of 1.8 to 1.21"),
    ],
)
def test_what_was_never_released_is_refused(version, message):
    with pytest.raises(ConfigError, match=message):
        MineflayerBridge(mode="remote", version=version)


def test_mineland_s_agents_come_to_a_server_and_go(serve):
    server = serve()
    mland = mineland.MineLand(
        server_host="127.0.0.1", server_port=server.port, agents_count=2, headless=True
    )
    try:
        assert [each.name for each in mland.reset()] == ["MineflayerBot0", "MineflayerBot1"]
        mland.add_an_agent({"name": "Cleo"})
        obs, _, _, done, task_info = mland.step(action=mineland.Action.chat_op(3))
        assert (obs[2].name, done, task_info) == ("Cleo", False, None)
        mland.disconnect_an_agent("MineflayerBot0")
        obs, _, _, _, _ = mland.step(action=mineland.Action.no_op(3))
        assert obs[0] is None
        there = {each["username"] for each in server.tell("players")}
        assert there == {"MineflayerBot1", "Cleo"}
        assert len(mland.reset()) == 2
    finally:
        mland.close()
