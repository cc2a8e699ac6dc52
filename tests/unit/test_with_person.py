"""A policy plays the agent, and a person another player: each gets its own part. No window here."""

import time
from dataclasses import replace

import numpy as np
import pytest
from gymnasium import spaces

from bridges.mineflayer.bridge import MineflayerBridge
from policies.human_keys import Inputs, make_controls
from rollout.api import Decision, Task
from rollout.errors import ConfigError, InputError, UnknownNameError
from rollout.tasks import load_task
from rollout.with_person import WithPerson, WithPersonPolicy

BRIDGE = MineflayerBridge(minenpc=True, person="Player1", actions="code", observe=("life",))
AGENT = {"name": "random"}


class Person:
    """A person who stands still and says what it is told."""

    waited = False

    def build(self, spec, task, *, seed):
        self.spec, self.controls = spec, make_controls(spec, {}, sensitivity=1.0)
        return self

    def initial_memory(self, starts):
        return {}

    def wait(self, done):
        while not done():
            self.waited = True

    def act(self, observations, memory, *, details, explore):
        assert list(observations) == ["person/rgb"]
        said = details[0]["person/told"][0]
        return Decision(self.controls.action(Inputs(("w",), said=said)))


class Agent:
    version, extras = 3, {}

    def initial_memory(self, starts):
        return {"x": np.zeros(len(starts))}

    def act(self, observations, memory, *, details, explore):
        assert list(observations) == ["life"]
        assert details == [{"request": "Dig."}]
        time.sleep(0.1)  # a model thinks
        acts = {"kind": np.array([1]), "code": np.array(["x"], object)}
        return Decision(acts, {"x": memory["x"] + 1})


def test_each_gets_its_part_of_the_game():
    task, person = load_task(BRIDGE.spec, "mineflayer", "minenpc/R01"), Person()
    recipe = WithPersonPolicy(agent=AGENT)
    recipe.__dict__["recipes"] = (recipe.recipes[0], person)
    built = recipe.build(BRIDGE.spec, task, seed=0)
    assert sorted(person.spec.action_space) == ["person/camera", "person/keys", "person/say"]
    assert "person/say" not in built._agent.act.__self__._space.spaces
    policy = WithPerson(Agent(), person)
    seen = {"life": np.zeros((1, 8)), "person/rgb": np.zeros((1, 4, 4, 3), np.uint8)}
    details = [{"request": "Dig.", "person/told": ["Please."]}]
    decided = policy.act(seen, {"x": np.zeros(1)}, details=details, explore=True)
    assert person.waited
    assert decided.memory["x"] == [1]
    assert decided.actions["code"] == ["x"]
    assert decided.actions["person/say"] == ["Please."]
    assert decided.actions["person/keys"].sum() == 1
    assert decided.actions.keys() == BRIDGE.spec.action_space.spaces.keys()


def test_bad_input_is_refused_before_launch():
    with pytest.raises(UnknownNameError, match="Player1"):
        replace(BRIDGE, person="Player2")
    with pytest.raises(ConfigError, match="one agent"):
        MineflayerBridge(person="Ada", agents=2)
    plain = MineflayerBridge(person="Ada").spec  # of a task without players
    with pytest.raises(ConfigError, match="no player for a person"):
        WithPersonPolicy(agent=AGENT).build(plain, Task("t", "", None, None), seed=0)
    with pytest.raises(ConfigError, match="expected the policy of the agent"):
        WithPersonPolicy()
    with pytest.raises(InputError, match="Nearest: random"):
        WithPersonPolicy(agent={"name": "randon"})


def test_a_line_is_said_beside_keys():
    labels = {"keys": ("forward", "use")}
    leaves = {"keys": spaces.MultiBinary(2), "line": spaces.Text(9, min_length=0)}
    spec = replace(BRIDGE.spec, action_space=spaces.Dict(leaves), action_labels=labels)
    spec = replace(spec, action_defaults={})
    controls = make_controls(spec, {}, sensitivity=1.0)
    assert controls.action(Inputs(said="Hi."))["line"].tolist() == ["Hi."]
    assert controls.requests_action(Inputs(said="Hi."))
    assert controls.chords["say"] == ("t",)
    with pytest.raises(ConfigError, match="'t' is for the window"):
        make_controls(spec, {"use": ("t",)}, sensitivity=1.0)
