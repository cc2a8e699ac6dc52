"""Legal actions in the prompt of a model, and answers that are not legal."""

from dataclasses import replace

import pytest
from gymnasium import spaces

from policies.vlm import VlmPolicy
from policies.vlm.options import Limits
from rollout.api import MASK, Start, Task, allocate
from rollout.evaluators import GameReward
from rollout.models.sections import Endpoint
from rollout.testing.chat_server import ChatServer
from rollout.testing.fakes import FakeBridge

SPEC = FakeBridge().spec
[KEY] = SPEC.action_space.spaces
LABELS = ("stay", "north", "east", "south", "west")
MASKED = spaces.Dict(
    {**SPEC.observation_space.spaces, MASK + KEY: spaces.MultiBinary(int(SPEC.action_space[KEY].n))}
)
TASK = Task("walk", "Walk.", SPEC.state_space, GameReward())


def played(script, *, prompt="act", **options):
    """Plays a step in which only 1 and 3 are legal; returns the action, calls and requests."""
    spec = replace(SPEC, observation_space=MASKED, action_labels={KEY: LABELS})
    with ChatServer(script) as server:
        endpoint = Endpoint(url=server.url, deadline_s=5.0)
        recipe = VlmPolicy(endpoint=endpoint, model="tiny", prompt=prompt, **options)
        policy = recipe.build(spec, TASK, seed=0)
        memory = policy.initial_memory([Start(SPEC.state_space.state(0), 7)])
        seen = allocate(MASKED, 1)
        seen[MASK + KEY][0, [1, 3]] = 1
        decision = policy.act(seen, memory, details=None, explore=True)
        return int(decision.actions[KEY][0]), decision.extras["calls"][0], server.requests


@pytest.mark.parametrize("prompt", ["act", "plan"])
def test_a_model_is_told_what_is_legal(prompt):
    action, [call], [request] = played(lambda _: "<action>south</action>", prompt=prompt)
    assert action == 3
    assert call["code"] == "ok"
    assert 'Legal now: "north", "south"' in request["messages"][-1]["content"]


def test_an_illegal_answer_is_refused_with_the_legal_ones():
    answers = iter(["<action>east</action>", "<action>north</action>"])
    action, calls, requests = played(lambda _: next(answers), limits=Limits(reparse=1))
    assert action == 1
    assert [call["code"] for call in calls] == ["illegal", "ok"]
    said = requests[-1]["messages"][-1]["content"]
    assert '"east" is not legal now; legal: "north", "south"' in said


@pytest.mark.parametrize("fallback", ["nothing", "random", "east"])
def test_the_action_after_unusable_answers_is_legal(fallback):
    chosen = {
        played(lambda _: "<action>west</action>", fallback=fallback, limits=Limits(reparse=0))[0]
        for _ in range(3)
    }
    assert chosen <= {1, 3}
    assert len(chosen) == 1  # the same in every attempt


def test_a_game_without_masks_has_no_legal_actions_in_its_prompt():
    with ChatServer(lambda _: "<action>0</action>") as server:
        endpoint = Endpoint(url=server.url, deadline_s=5.0)
        policy = VlmPolicy(endpoint=endpoint, model="tiny", prompt="act", fallback="random").build(
            replace(SPEC, action_labels={}), TASK, seed=0
        )
        memory = policy.initial_memory([Start(SPEC.state_space.state(0), 7)])
        seen = allocate(SPEC.observation_space, 1)
        policy.act(seen, memory, details=None, explore=True)
        assert "Legal" not in server.requests[0]["messages"][-1]["content"]
