"""Calls of models as datasets and replies have them; recorded_calls.json is of an earlier Gamut."""

import json
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from policies.vlm import VlmPolicy
from policies.vlm.conversing import Conversations
from policies.vlm.options import Reflect
from rollout.api import Call, Start, Task, Trial, Usage, allocate, read_calls
from rollout.evaluators import GameReward
from rollout.models.client import ReplyStore
from rollout.models.local import LocalModel
from rollout.models.sections import Endpoint, Local
from rollout.testing.chat_server import ChatServer, Scripted
from rollout.testing.fakes import FakeBridge

SPEC = FakeBridge().spec
TASK = Task("walk", "Walk.", SPEC.state_space, GameReward())
GOOD = "<thought>hm</thought><action>1</action>"
RECORDED = json.loads(Path(__file__).with_name("recorded_calls.json").read_text())
VARYING = {"started": 1.5, "seconds": 0.25, "waited_s": 0.0, "request": "digest"}
VARYING |= {"prompt": "digest", "messages": []}


def built(url, folder, **options):
    recipe = VlmPolicy(endpoint=Endpoint(url=url), model="tiny", fallback="random", **options)
    return recipe.in_run(folder).build(SPEC, TASK, seed=3)


def recorded(policy, earlier=()):
    """The calls of a first step."""
    memory = policy.initial_memory([Start(SPEC.state_space.state(0), 7, 5, earlier=earlier)])
    observations = allocate(SPEC.observation_space, 1)
    decision = policy.act(observations, memory, details=None, explore=True)
    return [text(call) for call in decision.extras["calls"][0]]


def text(call):
    """JSON of a call without what differs between runs, and without its prompt."""
    steady = {**call, **{key: value for key, value in VARYING.items() if key in call}}
    if "at_most" in call:
        steady["at_most"] = {"tokens": 1000, "usd": 0.0}
    return json.dumps(steady, separators=(",", ":"), ensure_ascii=False)


def replies_in(folder):
    lines = [line for path in folder.rglob("*.jsonl") for line in path.read_text().splitlines()]
    return [text(json.loads(line)["reply"]) for line in lines]


def test_calls_of_a_server_are_recorded_and_kept_as_before(tmp_path):
    script = iter(["what?", Scripted(GOOD, model="tiny-0821")])
    with ChatServer(lambda _: next(script)) as server:
        assert recorded(built(server.url, tmp_path)) == RECORDED["server"]
    assert replies_in(tmp_path) == RECORDED["replies"]


def test_a_critique_is_recorded_as_before(tmp_path):
    script = iter(["Walk left!", "<action>1</action>"])
    with ChatServer(lambda _: next(script)) as server:
        policy = built(server.url, tmp_path, prompt="act", reflect=Reflect(episodes=2))
        assert recorded(policy, (Trial(3, True, 1.0, 1.0, 2),)) == RECORDED["critique"]


def test_calls_of_a_local_model_are_recorded_as_before(tmp_path):
    reply = SimpleNamespace(
        text=GOOD, finish="stop", prompt_ids=[1, 2], output_ids=[3], logprobs=[-0.5]
    )
    model = LocalModel.__new__(LocalModel)  # without torch
    model.options, model.version, model._lock = Local(model="tiny/x"), 7, threading.Lock()
    model.transformer = SimpleNamespace(generate=lambda prompts, **_: [reply] * len(prompts))
    policy = built("http://127.0.0.1:9/v1", tmp_path)
    policy._conversations = Conversations(model)
    assert recorded(policy) == RECORDED["local"]


@pytest.mark.parametrize("line", [line for lines in RECORDED.values() for line in lines])
def test_what_is_read_is_what_was_recorded(line):
    [call] = read_calls([json.loads(line)])
    assert json.dumps(call.as_json(), separators=(",", ":"), ensure_ascii=False) == line


def test_recordings_with_fewer_keys_or_those_of_a_policy_of_its_own_are_read(tmp_path):
    own = {"usable": False, "usd": 0.5, "mood": "good"}
    [call] = read_calls([own])
    assert (call, call.seconds, call.messages) == (Call(usable=False, usd=0.5), None, None)
    assert Usage.of([call]) == Usage(1, 1, usd=0.5)
    assert read_calls(None) == []
    reply = {"answer": "x", "input_tokens": 3, "output_tokens": 1, "usd": 0.25}
    (tmp_path / "1-1.jsonl").write_text(json.dumps({"request": "a", "reply": reply}) + "\n")
    replies = ReplyStore(tmp_path)
    assert (replies.get("a").answer, replies.usage) == ("x", Usage(1, 0, 3, 1, 0.25))
