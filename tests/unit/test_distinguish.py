"""Factors that change nothing are found by play; what acts late or only in the reward counts."""

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from gymnasium import spaces

from rollout.api import BridgeSpec, ColumnSpec, Decision, Factor, Frame, Limits, StateSpace, Task
from rollout.commands import states
from rollout.config import HostConfig, build_plugin
from rollout.distinguish import distinguishable
from rollout.errors import ContractError, InputError
from rollout.evaluators import GameReward
from rollout.tasks import load_task
from rollout.testing.fakes import FakeBridge

SPACE = StateSpace(
    (
        Factor("seen", ("a", "b", "c")),
        Factor("paid", (0, 1), doc="pays one more for action 2"),
        Factor("late", (6, 9), doc="step that ends the game"),
        Factor("secret", range(4), doc="shown to experts only"),
        Factor("nothing", range(10**9)),
        Factor("one", ("x",)),
    )
)


@dataclass(frozen=True)
class Box:
    """A game with noise, in which three factors act."""

    by_state: bool = False
    reproducible: bool = True
    width_step: int = 1
    broken: ClassVar[bool] = False

    @property
    def spec(self):
        place = spaces.Box(-1.0, 9.0, (2,), np.float32)
        return BridgeSpec(
            "box",
            "1",
            spaces.Dict({"place": place, "privileged_secret": spaces.Discrete(4)}),
            spaces.Dict({"move": spaces.Discrete(3)}),
            SPACE,
            signals={"reward": ColumnSpec()},
            max_width=16,
            default_width=8,
            width_step=self.width_step,
            reproducible=self.reproducible,
            process="in_process",
        )

    def launch(self, workdir, ports, *, width, timeout_s):
        return Playing(self, width)


class Noisy(Box):
    """The same with random events that depend on the state, too."""

    def with_common_noise(self):
        return Box()


class Playing:
    def __init__(self, bridge, width):
        self.bridge, self.width = bridge, width
        self.starts, self.noise, self.resets = [None] * width, [None] * width, 0
        self.tick, self.reward = np.zeros(width, np.int64), np.zeros(width, np.float32)

    def reset(self, slots, starts, *, timeout_s):
        self.resets += 1
        for slot, start in zip(slots, starts, strict=True):
            key = [start.state.index] if self.bridge.by_state else []
            key += [self.resets] if self.bridge.broken else []
            self.starts[slot], self.noise[slot] = start, np.random.default_rng([start.seed, *key])
            self.tick[slot] = self.reward[slot] = 0
        return self.frame().take(list(slots))

    def step(self, actions, *, timeout_s):
        for slot, start in enumerate(self.starts):
            if start is not None and self.tick[slot] < start.state["late"]:
                self.tick[slot] += 1
                self.reward[slot] = start.state["paid"] * (actions["move"][slot] == 2)
        return self.frame()

    def frame(self):
        place, secret = np.zeros((self.width, 2), np.float32), np.zeros(self.width, np.int64)
        over = np.zeros(self.width, np.bool_)
        for slot, start in enumerate(self.starts):
            if start is not None:
                place[slot] = "abc".index(start.state["seen"]), self.noise[slot].random()
                place[slot, 1] *= self.tick[slot] > 0
                secret[slot] = start.state["secret"]
                over[slot] = self.tick[slot] >= start.state["late"]
        seen = {"place": place, "privileged_secret": secret}
        none = np.zeros(self.width, np.bool_)
        return Frame(seen, {"reward": self.reward.copy()}, over, none, self.tick.copy())

    def close(self):
        pass


def task(steps=None):
    return Task("t", "", SPACE, GameReward(), Limits(steps))


def test_factors_that_change_nothing_are_found_and_do_not_count():
    found = distinguishable(Box(), task(20), tried=10)
    assert found.inert == ("secret", "nothing")
    assert (found.all_states, found.states) == (SPACE.size, 12)
    assert (found.tried, found.steps, found.acts_at_most) == (10, 20, 0.3)
    assert found.describe()["states"] == "12"
    assert distinguishable(Box(), task(20), tried=10) == found


def test_what_acts_after_the_last_step_does_not_act():
    assert distinguishable(Box(), task(5), tried=5).inert == ("late", "secret", "nothing")
    assert "late" not in distinguishable(Box(), task(), tried=5, steps=6).inert
    assert distinguishable(Box(), task(5), tried=1).acts_at_most == 1.0


def test_only_restricts_the_factors():
    found = distinguishable(Box(), task(20), tried=5, only={"seen": ["b"], "secret": [2, 3]})
    assert found.inert == ("secret", "nothing")
    assert (found.all_states, found.states) == (8 * 10**9, 4)


def test_random_events_by_the_state_are_not_taken_for_its_factors():
    assert distinguishable(Box(by_state=True), task(20), tried=5).inert == ()
    assert distinguishable(Noisy(by_state=True), task(20), tried=5).inert == ("secret", "nothing")


@dataclass(frozen=True)
class Still:
    """Never chooses action 2, which shows what a reward depends on."""

    def build(self, spec, task, *, seed):
        return self

    def initial_memory(self, starts):
        return {"count": np.zeros(len(starts))}

    def act(self, observations, memory, *, details, explore):
        assert len(observations["place"]) == len(memory["count"])
        moves = np.zeros(len(memory["count"]), np.int64)
        return Decision({"move": moves}, {"count": memory["count"] + 1})


def test_the_actions_are_those_of_the_policy():
    assert distinguishable(Box(), task(20), Still(), tried=10).inert == (
        *("paid", "secret", "nothing"),
    )


def test_a_game_that_does_not_repeat_itself_is_refused():
    class Broken(Box):
        broken = True

    with pytest.raises(ContractError, match="check-bridge"):
        distinguishable(Broken(), task(20), tried=5)
    with pytest.raises(InputError, match="box is not reproducible"):
        distinguishable(Box(reproducible=False), task())
    with pytest.raises(InputError, match="several slots in a world"):
        distinguishable(Box(width_step=2), task())
    with pytest.raises(InputError, match="at least 1 state and 1 step, got 0"):
        distinguishable(Box(), task(), tried=0)


@pytest.mark.process
def test_games_in_their_own_process_are_played_there():
    bridge = FakeBridge(process="subprocess", slip=0.0)
    whole = Task("t", "", bridge.spec.state_space, GameReward(), Limits(8))
    apart = distinguishable(bridge, whole, tried=2)
    here = distinguishable(bridge, whole, tried=2, host=HostConfig(isolation="in_process"))
    assert apart == here
    assert apart.inert == ()


@pytest.mark.heavy
def test_random_events_of_blockworld_can_depend_on_the_seed_alone():
    bridge = build_plugin("bridges", "blockworld", {"observe": ["semantic_rays"]})
    easy = load_task(bridge.spec, "blockworld", "hunt_sheep_near")
    found = distinguishable(bridge, easy, tried=3, steps=30, only={"terrain": [0, 1]})
    assert {"time", "weather", "armour"} <= set(found.inert)
    assert not {"terrain", "biome", "distance", "bearing"} & set(found.inert)
    common = bridge.with_common_noise()
    assert (common.spec.observation_space, common.observe) == (
        bridge.spec.observation_space,
        bridge.observe,
    )


def test_the_command_names_the_factors_and_how_to_fix_them(tmp_path, capsys):
    file = tmp_path / "sweep.yaml"
    train = "{bridge: {name: fake, slip: 0.0}, policy: nobody, state_set: {only: {map: [3]}}}"
    file.write_text(f"output: runs/x\ntrain: {train}\n")
    assert states.main(["--config", str(file), "--states", "2", "--steps", "3"]) == 0
    out = capsys.readouterr().out
    assert "map" not in out
    assert "states: 32,768\nstates without the inert factors: 32,768" in out
    assert states.main(["--set", "bridge=fake", "--states", "2", "--steps", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["inert"] == []
    assert states.main(["--set", "bridge=fkae"]) == 2
    assert "Nearest: fake" in capsys.readouterr().err
    assert states.main(["--set", "bridge=fake", "bridge.crash_on_step=2"]) == 3
    assert "crashes on request" in capsys.readouterr().err


def test_the_command_shows_what_is_inert(monkeypatch, capsys):
    monkeypatch.setattr(states, "bridge_and_task", lambda *_: (None, Box(), task(20)))
    assert states.main(["--set", "bridge=fake", "--states", "10"]) == 0
    out = capsys.readouterr().out
    assert "secret              4  inert: nothing changed in 10 of 10 states" in out
    assert "states without the inert factors: 12" in out
    assert "in less than 30.0% of the states" in out
    assert "--set state_set.only.secret=[0] state_set.only.nothing=[0]" in out
