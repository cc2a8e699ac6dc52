"""What the tests of the learning core share: games, samplers and batches of a few rows."""

import contextlib
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from gymnasium import spaces

from policies.actor_critic import ActorCriticPolicy
from rollout.api import Frame, Limits, Outcome, Splits, Task, Verdict
from rollout.config import HostConfig
from rollout.host import PlayOptions
from rollout.host.hosting import HostPlan
from rollout.host.schedule import Schedule
from rollout.testing import FakeBridge, FakeEvaluator
from rollout.train.gae import CUT, RUNNING, TERMINATED
from rollout.train.ppo import Ppo
from rollout.train.sampler import Sampler

PPO = Ppo()
HUMAN = spaces.Dict({"keys": spaces.MultiBinary(20), "camera": spaces.MultiDiscrete([11, 11])})


@dataclass(frozen=True)
class RichBridge:
    """The fake game with symbols that do not begin at 0, and the actions of a keyboard beside."""

    inner: FakeBridge = field(default_factory=lambda: FakeBridge(side=4))

    @cached_property
    def spec(self):
        own = self.inner.spec
        seen = {**own.observation_space.spaces, "cell": spaces.MultiDiscrete([4, 4], start=[3, 7])}
        acted = {**HUMAN.spaces, "move": spaces.Discrete(5, start=1)}
        return dataclasses.replace(
            own, observation_space=spaces.Dict(seen), action_space=spaces.Dict(acted)
        )

    def launch(self, workdir, ports, *, width, timeout_s):
        return RichInstance(self.inner.launch(workdir, ports, width=width, timeout_s=timeout_s))


class RichInstance:
    def __init__(self, game):
        self._game = game

    def _more(self, frame: Frame) -> Frame:
        cell = np.round(frame.observations["position"] * 3).astype(np.int64) + np.array([3, 7])
        return dataclasses.replace(frame, observations={**frame.observations, "cell": cell})

    def reset(self, slots, starts, *, timeout_s):
        return self._more(self._game.reset(slots, starts, timeout_s=timeout_s))

    def step(self, actions, *, timeout_s):
        return self._more(self._game.step({"move": actions["move"] - 1}, timeout_s=timeout_s))

    def close(self):
        self._game.close()


@dataclass(frozen=True)
class Likes:
    """A reward of 1 for one move and 0 for the others: a bandit."""

    move: int = 4
    requires: frozenset[str] = frozenset()

    def build(self, width):
        return LikesJudge(self.move, width)


class LikesJudge:
    def __init__(self, move, width):
        self._move, self._width = move, width

    def reset(self, slots, starts, frame):
        pass

    def judge(self, actions, frame):
        reward = (actions["move"] == self._move).astype(np.float32)
        blank = np.full(self._width, np.nan, np.float32)
        return Verdict(reward, blank, np.full(self._width, int(Outcome.RUNNING), np.int8))


def make_plan(
    bridge, policy, *, instances=1, width=4, steps=16, limit=12, evaluator=None, seed=0, retries=3,
    restarts=1000,
):  # fmt: skip
    task = Task("t", "", bridge.spec.state_space, evaluator or FakeEvaluator(), Limits(limit))
    return HostPlan(
        bridge, task, policy, seed=seed, instances=instances, width=width,
        host=HostConfig(isolation="in_process", restarts=restarts, backoff_s=0),
        play=PlayOptions(steps, None, True, retries),
    )  # fmt: skip


def make_schedule(bridge, *, states=20, seed=0):
    return Schedule(Splits(bridge.spec.state_space).take("train", states), seed=seed, episodes=None)


@contextlib.contextmanager
def sampling(
    bridge, policy, *, states=20, schedule=None, algorithm=PPO, signals=(), **options
) -> Iterator[Sampler]:
    """A sampler that is closed at the end; options are those of ``make_plan``."""
    plan = make_plan(bridge, policy, **options)
    schedule = schedule or make_schedule(bridge, states=states, seed=plan.seed)
    reads = policy.reads(bridge.spec.observation_space)
    sampler = Sampler(plan, schedule, algorithm, reads, signals=signals)
    try:
        yield sampler
    finally:
        sampler.close()


def small(**options) -> ActorCriticPolicy:
    """A policy whose network is small and reads the position alone, unless told otherwise."""
    return ActorCriticPolicy(
        **{"hidden": (16, 16), "columns": ("position",), "memory_size": 12, **options}
    )


def network_of(bridge, policy, seed=0):
    return policy.network(bridge.spec.observation_space, bridge.spec.action_space, seed=seed)


def made_up_batch(rng, slots, steps, *, valid=None, memory_keys=(), memory_size=12):
    """A batch of the fake game's spaces that nobody played: positions, moves, random numbers."""
    shape = (slots, steps)
    end = rng.choice([RUNNING, RUNNING, RUNNING, TERMINATED, CUT], shape).astype(np.int8)
    end[:, -1] = np.where(end[:, -1] == RUNNING, CUT, end[:, -1])
    first = np.zeros(shape, bool)
    first[:, 1:] = end[:, :-1] != RUNNING
    valid = np.ones(shape, bool) if valid is None else valid
    end[~valid] = TERMINATED

    def number():
        return rng.normal(size=shape).astype(np.float32) * valid

    return {
        "observation/position": rng.random((*shape, 2), np.float32),
        "action/move": rng.integers(0, 5, shape),
        "logp": np.full(shape, -np.log(5), np.float32),
        "value": number(),
        "reward": number(),
        "next_value": number(),
        "end": end,
        "first": first & valid,
        "valid": valid,
        "version": np.zeros(slots, np.int64),
        **{
            f"memory/{key}": rng.normal(size=(slots, memory_size)).astype(np.float32)
            for key in memory_keys
        },
    }
