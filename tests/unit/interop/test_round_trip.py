"""Our servers hosted by our own bridges: the same episodes, pixels and errors as without them."""

import threading
from contextlib import contextmanager

import anyio
import numpy as np
import pytest
import uvicorn
from mcp import Client, MCPError

from bridges.openenv import McpBridge, OpenenvBridge
from rollout.api import Limits, Start, Task
from rollout.config import HostConfig
from rollout.errors import GameCrashed, GameStartError
from rollout.interop.games import Games
from rollout.interop.mcp import McpGames
from rollout.interop.openenv_server import OpenEnvServer
from rollout.testing.fakes import FakeBridge
from rollout.testing.players import FakeEvaluator

HERE = HostConfig(isolation="in_process", backoff_s=0, retries=0)
STEPS = 6


def games_of(bridge=None, games=2):
    bridge = bridge or FakeBridge()
    task = Task("t", "Reach it.", bridge.spec.state_space, FakeEvaluator(), Limits(steps=STEPS))
    return Games(bridge, task, games=games, host=HERE)


@contextmanager
def listening(app):
    config = uvicorn.Config(app, port=0, log_config=None, ws="websockets-sansio")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        for _ in range(2000):
            if server.started:
                break
            threading.Event().wait(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)


@contextmanager
def openenv(games):
    server = OpenEnvServer(games, "fake", None, 60.0, 4096)
    with listening(server.app) as url:
        yield OpenenvBridge(url=url, splits=("test",)), "pictures/image", "move"
    server.close()


@contextmanager
def mcp(games):
    with listening(McpGames(games, "fake").http_app()) as url:
        yield McpBridge(url=f"{url}/mcp", tools=("act",)), "picture", "action"


@contextmanager
def launched(bridge, folder, timeout_s=20):
    instance = bridge.launch(folder, [], width=1, timeout_s=timeout_s)
    try:
        yield instance
    finally:
        instance.close()


@pytest.mark.parametrize("serve", [openenv, mcp])
def test_a_served_game_is_that_of_its_games(serve, tmp_path):
    """Same start and actions: same rewards, end and pixels, step by step."""
    with games_of() as games, serve(games) as (bridge, picture, action):
        spec = bridge.spec
        assert spec.action_space[action].n == 5
        with launched(bridge, tmp_path) as instance, games.open() as game:
            for seed in (3, 4):
                tasks = "index" in (factor.name for factor in spec.state_space)
                start = Start(spec.state_space.state(seed), seed)
                frame = instance.reset([0], [start], timeout_s=20)
                where = {"split": "test", "index": seed} if tasks else {}
                moment = game.reset(seed=seed, **where)
                while not moment.done:
                    seen = moment.observations["image"]
                    assert np.array_equal(frame.observations[picture][0], seen)
                    assert not frame.game_over[0]
                    assert not frame.game_truncated[0]
                    move = (seed + moment.step) % 5
                    frame = instance.step({action: np.array([move])}, timeout_s=20)
                    moment = game.step(move)
                    assert frame.signals["reward"][0] == np.float32(moment.reward)
                assert frame.game_truncated[0] == moment.truncated
                assert frame.game_over[0] == (not moment.truncated)
                assert frame.tick[0] == moment.step > 0


@pytest.mark.parametrize("serve", [openenv, mcp])
def test_a_game_that_is_lost_is_a_crash_and_no_reward(serve, tmp_path):
    with (
        games_of(FakeBridge(crash_on_step=2)) as games,
        serve(games) as (bridge, _, action),
        launched(bridge, tmp_path) as instance,
    ):
        instance.reset([0], [Start(bridge.spec.state_space.state(0), 0)], timeout_s=20)
        instance.step({action: np.array([1])}, timeout_s=20)
        with pytest.raises(GameCrashed, match="lost"):
            instance.step({action: np.array([1])}, timeout_s=20)


@pytest.mark.parametrize("serve", [openenv, mcp])
def test_a_server_without_a_free_game_says_so(serve, tmp_path):
    """The session that read the spaces has given its game back; a second one is refused."""
    with games_of(games=1) as games, serve(games) as (bridge, _, _):
        start = Start(bridge.spec.state_space.state(0), 0)
        with launched(bridge, tmp_path) as instance:
            instance.reset([0], [start], timeout_s=20)
            with (
                pytest.raises((GameStartError, GameCrashed), match="in use"),
                launched(bridge, tmp_path, timeout_s=2) as other,
            ):
                other.reset([0], [start], timeout_s=20)


def test_tools_of_one_client():
    """What a client of MCP's own library gets, and that wrong calls change nothing."""

    async def play(games):
        async with Client(McpGames(games, "fake").server()) as client:
            assert "Reach it." in client.instructions
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == {"reset", "act", "observe", "legal_actions"}
            early = await client.call_tool("act", {"action": 1})
            assert early.is_error
            assert early.structured_content == {"error": "out_of_turn"}
            first = await client.call_tool("reset", {"seed": 1, "split": "test"})
            assert [part.type for part in first.content] == ["text", "image"]
            for wrong, code in ((9, "action_out_of_range"), ("x", "action_malformed")):
                refused = await client.call_tool("act", {"action": wrong})
                assert (refused.is_error, refused.structured_content["error"]) == (True, code)
            refused = await client.call_tool("reset", {"seed": -1})
            assert refused.structured_content == {"error": "invalid"}
            for name, given in (("jump", {}), ("act", {}), ("observe", {"a": 1})):
                with pytest.raises(MCPError):
                    await client.call_tool(name, given)
            again = await client.call_tool("observe", {})
            assert again.content == first.content
            legal = await client.call_tool("legal_actions", {})
            assert legal.structured_content["schema"]["maximum"] == 4
            for _ in range(STEPS):
                last = await client.call_tool("act", {"action": 2})
            data = last.structured_content
            assert (data["done"], data["truncated"], data["step"]) == (True, True, STEPS)
            over = await client.call_tool("act", {"action": 2})
            assert over.structured_content == {"error": "out_of_turn"}

    with games_of() as games:
        anyio.run(play, games)


def test_a_game_that_was_left_is_taken_by_another_session():
    with games_of(games=1) as games:
        served = McpGames(games, "fake", idle_s=0.05)
        game = served._game("a")
        threading.Event().wait(0.1)
        assert served._game("b") is not game
        assert list(served._held) == ["b"]
