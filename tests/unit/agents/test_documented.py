"""The agents of docs/agents.md play, and a language model learns from what one of them asked."""

import importlib
import json
import re
import sys
from pathlib import Path

import pytest
import yaml

from policies.callable import CallablePolicy
from rollout.api import Start, Task, allocate, read_calls
from rollout.data import Dataset
from rollout.data.calls import COLUMN
from rollout.evaluators import GameReward
from rollout.models.sections import Endpoint
from rollout.testing.chat_server import ChatServer, digest_of
from rollout.testing.fakes import FakeBridge
from tests.commands import called

ROOT = Path(__file__).resolve().parents[3]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
PAGE = BLOCK.findall((ROOT / "docs" / "agents.md").read_text())
PROGRAM = """
import json, os, sys, urllib.request
address = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
content = {"messages": [{"role": "user", "content": sys.argv[1]}]}
request = urllib.request.Request(address, json.dumps(content).encode())
with urllib.request.urlopen(request, timeout=20) as response:
    print(json.load(response)["choices"][0]["message"]["content"])
"""
CODE = "I go.\n<code>\nfinal_answer('2')\n</code>"
SPEC = FakeBridge().spec
TASK = Task("walk", "Walk to the goal.", SPEC.state_space, GameReward())


def block(word):
    [found] = [each for each in PAGE if word in each]
    return found


def saved(folder, monkeypatch, text, name):
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.invalidate_caches()
    return f"{name}:play"


@pytest.mark.filterwarnings("ignore:The 'initial' parameter:DeprecationWarning")  # Inspect AI
@pytest.mark.parametrize(
    ("word", "package", "answer"),
    [
        ("context.client", "openai", "2"),
        pytest.param("CodeAgent(", "smolagents", CODE, marks=pytest.mark.long),
        pytest.param("SOLVER =", "inspect_ai", "2", marks=pytest.mark.long),
        pytest.param("subprocess.run", "subprocess", "2", marks=pytest.mark.process),
    ],
)
def test_an_agent_of_the_page_plays(tmp_path, monkeypatch, word, package, answer):
    (tmp_path / "my_program.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    text = block(word).replace('"python"', repr(sys.executable))
    function = saved(tmp_path, monkeypatch, text, f"documented_{package}")
    with ChatServer(lambda _: answer) as server:
        endpoint = Endpoint(url=server.url)
        recipe = CallablePolicy(function=function, endpoint=endpoint, model="m", fallback="random")
        policy = recipe.build(SPEC, TASK, seed=0)
        memory = policy.initial_memory([Start(SPEC.state_space.state(0), n, n) for n in (1, 2)])
        seen = allocate(SPEC.observation_space, 2)
        for _ in range(2):
            decision = policy.act(seen, memory, details=None, explore=True)
            memory = decision.memory
            assert decision.actions["move"].tolist() == [2, 2]
            calls = [call for row in decision.extras["calls"] for call in read_calls(row)]
            assert [(call.code, call.action) for call in calls] == [("ok", "2")] * 2
        policy.close()
        assert len(server.requests) == 4
        assert "Walk to the goal." in json.dumps(server.requests[0]["messages"])


SHOWS = """
def play(observation, context):
    [picture] = observation.pictures.values()
    shown = {"type": "image_url", "image_url": {"url": URL}}
    content = [shown, {"type": "text", "text": context.goal}]
    messages = [{"role": "user", "content": content}]
    reply = context.client.chat.completions.create(model="m", messages=messages)
    return reply.choices[0].message.content
"""
MODEL = {"hidden": 32, "layers": 1, "heads": 2, "patch": 56, "vocabulary": 320}


def command(name, folder, config):
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump({"wandb": {"mode": "disabled"}, **config}))
    status, said = called(name, "--config", str(path))
    assert status == 0, said
    return json.loads((Path(config["output"]) / "summary.json").read_text())


@pytest.mark.long
@pytest.mark.heavy
def test_a_model_learns_from_the_calls_of_an_agent_then_by_playing_it(tmp_path, monkeypatch):
    for package in ("openai", "transformers", "minigrid"):
        pytest.importorskip(package)
    text = SHOWS.replace("URL", "picture.url")
    function = saved(tmp_path, monkeypatch, text, "learning_agent")
    moves = ["turn left", "turn right", "go forward"]
    policy = {"name": "callable", "function": function, "fallback": "random"}
    policy["limits"] = {"unusable": None}
    game = {"bridge": {"name": "gymnasium"}, "task": "babyai_goto", "actors": 0}
    states = {"state_set": {"validation": 20, "test": 20}}
    with ChatServer(lambda r: moves[int(digest_of(r)[:8], 16) % 3]) as server:
        asked = {**policy, "endpoint": {"url": server.url}, "model": "m"}
        run = {"output": str(tmp_path / "run"), "episodes": 4, "instances": 4}
        command("collect", tmp_path, {**run, **game, "policy": asked})
    with Dataset(run["output"]) as dataset:
        calls = dataset.read(dataset.episodes()[0], [COLUMN]).columns[COLUMN]
        assert all(call.usable for step in calls for call in read_calls(step))
    local = {**policy, "local": {"model": "new"}, "sampling": {"max_tokens": 4}}
    sft = {"algorithm": {"name": "sft", "epochs": 2, "lr": 0.01}, "new_model": MODEL, "only": "all"}
    tuned = {"output": str(tmp_path / "sft"), "dataset": run["output"], "policy": local}
    command("train", tmp_path, {**tuned, **sft, **states})
    lines = (Path(tuned["output"]) / "metrics.jsonl").read_text().splitlines()
    losses = [x["train/loss"] for x in map(json.loads, lines) if "train/loss" in x]
    assert losses[-1] < losses[0]
    local["local"] = {"model": tuned["output"]}
    grpo = {"algorithm": {"name": "grpo", "groups": 2, "size": 4}, "updates": 1, "width": 8}
    played = {"output": str(tmp_path / "grpo"), "instances": 1, **game, "policy": local}
    command("train", tmp_path, {**played, **grpo, **states})
    with Dataset(played["output"]) as dataset:
        calls = dataset.read(dataset.episodes()[0], [COLUMN]).columns[COLUMN]
        [call] = read_calls(calls[0])
        assert call.output_ids
        assert len(call.output_logprobs) == len(call.output_ids)
        assert call.version == 0
