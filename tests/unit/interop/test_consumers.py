"""A toy game of 40 lines in eight libraries: each returns what our own player records."""

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

from rollout.interop.games import Games
from rollout.pettingzoo_env import ParallelWorld
from rollout.vector_env import RemoteVectorEnv

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]  # those of the libraries

EPISODES = 3


def test_the_toy_game_has_at_most_40_lines():
    assert len(Path(__file__).with_name("toy_game.py").read_text().splitlines()) <= 40


def gymnasium(toy):
    env = RemoteVectorEnv(toy.bridge, toy.task, num_envs=EPISODES, seed=1)
    _, infos = env.reset()
    keys, total = list(zip(infos["state"], infos["seed"], strict=True)), np.zeros(EPISODES)
    for step in range(6):
        _, rewards, over, *_ = env.step(np.full(EPISODES, toy.move(step)))
        total += rewards
    assert over.all()
    env.close()
    return dict(zip(keys, total, strict=True))


def pettingzoo(toy, wrap=lambda world: world):
    env, found = wrap(ParallelWorld(toy.bridge, toy.task, seed=2)), {}
    for _ in range(EPISODES):
        _, infos = env.reset()
        [(agent, info)] = infos.items()
        total = 0.0
        for step in range(6):
            _, rewards, over, *_ = env.step({agent: toy.move(step)})
            total += rewards[agent]
        assert over[agent]
        found[info["state"], info["seed"]] = total
    env.close()
    return found


def rllib(toy):
    from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv

    return pettingzoo(toy, ParallelPettingZooEnv)


def stable_baselines3(toy):
    from rollout.sb3 import StableBaselinesVecEnv

    inner = RemoteVectorEnv(toy.bridge, toy.task, num_envs=EPISODES, seed=3, autoreset="same_step")
    env = StableBaselinesVecEnv(inner)
    env.reset()
    keys = [(info["state"], info["seed"]) for info in env.reset_infos]
    total = np.zeros(EPISODES)
    for step in range(6):
        _, rewards, done, _ = env.step(np.full(EPISODES, toy.move(step)))
        total += rewards
    assert done.all()
    env.close()
    return dict(zip(keys, total.tolist(), strict=True))


def openenv(toy):
    from starlette.testclient import TestClient

    from rollout.interop.openenv_server import OpenEnvServer

    found = {}

    def ask(socket, kind, **data):
        socket.send_text(json.dumps({"type": kind, "data": data}))
        answer = socket.receive_json()
        assert answer["type"] == "observation", answer
        return answer["data"]

    with Games(toy.bridge, toy.task, games=1) as games:
        server = OpenEnvServer(games, "toy", None, 60.0, 1000)
        client = TestClient(server.app, base_url="http://localhost")
        with client, client.websocket_connect("ws://localhost/ws") as socket:
            for index in range(EPISODES):
                where = {"seed": 40 + index, "split": "train", "index": index}
                start = games.start(**where)
                ask(socket, "reset", **where)
                steps = [ask(socket, "step", move=toy.name(step)) for step in range(6)]
                assert steps[-1]["done"]
                found[start.state.index, start.seed] = sum(each["reward"] for each in steps)
        server.close()
    return found


def trl(toy):
    from rollout.interop.trl import environment

    made, found = environment("toy", games=1), {}
    env = made()
    for row in made.rows(EPISODES):
        env.reset(**row)
        for step in range(6):
            env.act(action=toy.name(step))
        found[row["state"], row["seed"]] = env.get_reward()
    made.close()
    return found


def inspect(toy, tools=True, folder="logs"):
    import inspect_ai
    from inspect_ai.log import read_eval_log
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    from rollout.interop import inspect_ai as ours

    def answer(messages, *_):
        step = sum(message.role == "assistant" for message in messages)
        if tools:
            call = {"action": toy.name(step)}
            output = ModelOutput.for_tool_call("mockllm/model", "act", call)
        else:
            output = ModelOutput.from_content("mockllm/model", toy.name(step))
        output.usage = ModelUsage()  # none is counted, which would need the network
        return output

    ours._register()  # the toy game was installed after it was imported
    model = get_model("mockllm/model", custom_outputs=answer)
    task_args = {"tools": tools, "state_set": {"size": EPISODES, "split": "train"}}
    options = {"model": model, "log_dir": str(toy.folder / folder), "display": "none"}
    [log] = inspect_ai.eval("gamut/toy", task_args=task_args, **options)
    log = read_eval_log(log.location)
    assert log.status == "success"
    scored = {score.name: score.metrics["mean"].value for score in log.results.scores}
    found = {
        (sample.metadata["state"], sample.metadata["seed"]): sample.scores["evaluator"].value
        for sample in log.samples
    }
    returns = {key: value["return"] for key, value in found.items()}
    assert scored["return"] == pytest.approx(np.mean(list(returns.values())))
    return returns


def mcp(toy):
    from mcp import Client

    from rollout.interop.mcp import McpGames

    async def play(games):
        found = {}
        async with Client(McpGames(games, "toy").server()) as client:
            for index in range(EPISODES):
                start = games.start(seed=80 + index, split="train", index=index)
                where = {"seed": start.seed, "split": "train", "index": index}
                await client.call_tool("reset", where)
                for step in range(6):
                    done = await client.call_tool("act", {"action": toy.name(step)})
                assert done.structured_content["terminated"]
                total = done.structured_content["total_reward"]
                found[start.state.index, start.seed] = total
        return found

    with Games(toy.bridge, toy.task, games=1) as games:
        return asyncio.run(play(games))


CONSUMERS = (gymnasium, pettingzoo, rllib, stable_baselines3, openenv, trl, inspect, mcp)


@pytest.mark.parametrize("consumer", CONSUMERS, ids=lambda each: each.__name__)
def test_a_consumer_gets_the_returns_of_the_record(toy, consumer):
    found = {(int(state), int(seed)): total for (state, seed), total in consumer(toy).items()}
    expected, _ = toy.record(found)
    assert len(found) == EPISODES
    assert found == expected
