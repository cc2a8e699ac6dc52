"""The bridge ``mcp`` on a server of tools that another library serves, by standard input."""

import sys

import numpy as np
import pytest

from bridges.openenv import McpBridge
from rollout.api import Start
from rollout.errors import ConfigError, GameCrashed

SERVER = """
import os
from mcp.server import MCPServer

server, total = MCPServer("counter", instructions="Count to three."), 0

@server.tool()
def add(n: int) -> dict:
    global total
    total += n
    return {"total": total, "info": {"score": float(n)}, "over": total >= 3}

@server.tool()
def give_up() -> str:
    return "gone"

@server.tool()
def lie() -> dict:
    return {"info": {"score": ""}}

@server.tool()
def die() -> str:
    os.write(2, b"the last words")
    os._exit(3)

server.run("stdio")
"""


def test_tools_are_actions_and_a_server_that_dies_is_a_crash(tmp_path):
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    given = {"reward": "info/score", "done": "over", "ends": ("give_up",)}
    bridge = McpBridge(command=(sys.executable, str(script)), **given)
    spec = bridge.spec  # asks the server
    tools = spec.action_labels["tool"]
    assert tools == ("add", "give_up", "lie", "die")
    instance = bridge.launch(tmp_path, [], width=1, timeout_s=30)
    start = Start(spec.state_space.state(0), 0)

    def step(tool, arguments=""):
        row = {"tool": np.array([tools.index(tool)]), "arguments": np.array([arguments], object)}
        frame = instance.step(row, timeout_s=30)
        return frame, float(frame.signals["reward"][0]), bool(frame.game_over[0])

    try:
        mission = instance.reset([0], [start], timeout_s=30).details[0]["mission"]
        assert mission.startswith("Count to three.")
        assert '"n"' in mission
        frame, reward, over = step("add", '{"n": 2}')
        assert (reward, over) == (2.0, False)
        assert '"total": 2' in frame.observations["text"][0]
        frame, reward, over = step("add", '{"m": 2}')
        assert (reward, over) == (0.0, False)
        assert "Field required" in frame.observations["text"][0]
        frame, reward, over = step("add", "[2]")
        assert "expected a JSON object" in frame.details[0]["error"]
        assert step("add", '{"n": 1}')[1:] == (1.0, True)
        instance.reset([0], [start], timeout_s=30)  # a new session, which counts from 0
        assert step("add", '{"n": 1}')[1:] == (1.0, False)
        with pytest.raises(GameCrashed, match="lie: expected a finite number as the reward"):
            step("lie")
        with pytest.raises(GameCrashed, match=r"(?s)Connection closed.*the last words"):
            step("die")
    finally:
        instance.close()
        instance.close()


def test_tools_that_there_are_not_are_named(tmp_path):
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    with pytest.raises(ConfigError, match="no tool 'jump'; it has add, give_up, lie, die"):
        _ = McpBridge(command=(sys.executable, str(script)), tools=("jump",)).spec
