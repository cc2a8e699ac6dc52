"""PPO in one file: it computes what the product computes, and it learns."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

from examples import ppo_single_file as single
from rollout.api import Limits, Task
from rollout.config import HostConfig
from rollout.testing import FakeBridge, FakeEvaluator
from rollout.train import gae
from rollout.train.ppo import Ppo, Rates
from rollout.train.ppo.learner import PpoLearner
from rollout.vector_env import RemoteVectorEnv
from tests.unit.train.learning_tools import small

ROOT = Path(__file__).parents[3]
FEATURES, ACTIONS, HIDDEN = 4, 3, 16
SETTINGS = single.Settings(epochs=3, minibatches=4, lr=3e-3)


def made_up_steps(seed, slots=6, steps=24):
    """Steps that nobody played, with ends of all three kinds."""
    rng = np.random.default_rng(seed)
    shape = (slots, steps)
    end = rng.choice(["none", "terminated", "truncated", "lost"], shape, p=[0.7, 0.1, 0.1, 0.1])

    def numbers(*more):
        return torch.from_numpy(rng.normal(size=(*shape, *more)).astype(np.float32))

    value, following = numbers(), numbers()
    running = torch.from_numpy(end == "none")[:, :-1]
    following[:, :-1] = torch.where(running, value[:, 1:], following[:, :-1])
    return single.Steps(
        features=numbers(FEATURES),
        action=torch.from_numpy(rng.integers(0, ACTIONS, shape)),
        logp=numbers() * 0.2 - np.log(ACTIONS),
        value=value,
        next_value=following,
        reward=numbers() * torch.from_numpy(end != "lost"),
        terminated=torch.from_numpy(end == "terminated"),
        truncated=torch.from_numpy((end == "truncated") | (end == "lost")),
        lost=torch.from_numpy(end == "lost"),
    )


def product_batch(steps):
    """The same steps as a batch of the product, in which a lost step leaves an idle row."""
    valid = ~steps.lost.numpy()
    end = np.full(valid.shape, gae.RUNNING, np.int8)
    end[steps.truncated.numpy()] = gae.CUT
    end[steps.terminated.numpy()] = gae.TERMINATED
    end[:, -1] = np.where(end[:, -1] == gae.RUNNING, gae.CUT, end[:, -1])
    before = (end == gae.RUNNING) & np.roll(~valid, -1, 1)
    end[before] = gae.CUT  # the episode was lost after this row
    end[~valid] = gae.TERMINATED
    first = np.roll(end != gae.RUNNING, 1, 1)
    columns = {key: column.numpy() for key, column in vars(steps).items()}
    return {
        "observation/features": columns["features"],
        "action/action": columns["action"],
        **{k: columns[k] * valid for k in ("logp", "value", "next_value", "reward")},
        "end": end,
        "first": first & valid,
        "valid": valid,
        "version": np.zeros(len(valid), np.int64),
    }


def product_advantages(batch):
    rows = (batch[key] for key in ("reward", "value", "next_value", "end"))
    return gae.advantages(*rows, gamma=SETTINGS.gamma, lambda_=SETTINGS.gae_lambda)


@pytest.mark.parametrize("seed", range(10))
def test_advantages_are_the_products(seed):
    steps = made_up_steps(seed)
    assert steps.lost.any()
    assert (steps.truncated & ~steps.lost).any()
    assert steps.terminated.any()
    expected, target = product_advantages(product_batch(steps))
    batch = single.batch_of(steps, SETTINGS)
    valid = ~steps.lost.numpy()
    np.testing.assert_allclose(batch["advantage"], expected[valid], atol=1e-5)
    np.testing.assert_allclose(batch["target"], target[valid], atol=1e-5)


@pytest.mark.parametrize("kind", ["terminated", "truncated", "lost"])
def test_each_kind_of_end_matters(kind):
    """Were one of them ignored, the test above would fail."""
    steps = made_up_steps(0)
    expected = single.advantages(steps, 0.99, 0.95)
    without = dataclasses.replace(steps, **{kind: torch.zeros_like(steps.lost)})
    assert not torch.allclose(single.advantages(without, 0.99, 0.95), expected, atol=1e-3)


def same_weights(agent):
    """The product's network with the weights of an agent."""
    observed = spaces.Dict({"features": spaces.Box(-np.inf, np.inf, (FEATURES,))})
    acted = spaces.Dict({"action": spaces.Discrete(ACTIONS)})
    policy = small(hidden=(HIDDEN, HIDDEN), columns=(), shared=False)
    network = policy.network(observed, acted, seed=1)
    for own, other in pairs(agent, network):
        with torch.no_grad():
            other.copy_(own)
    return network


def pairs(agent, network):
    """The weights of an agent and of the product's network, layer by layer."""
    bodies = (network.actor, network.policy_head), (network.critic, network.value_head)
    layers = [
        each
        for body, head in bodies
        for each in (body.encoder.linear, *body.layers, head)
        if isinstance(each, nn.Linear)
    ]
    own = [each for each in agent.modules() if isinstance(each, nn.Linear)]
    assert len(own) == len(layers) == 6
    for one, other in zip(own, layers, strict=True):
        yield from zip(one.parameters(), other.parameters(), strict=True)


@pytest.mark.heavy
def test_an_update_is_the_products():
    torch.manual_seed(0)
    agent = single.Agent(FEATURES, ACTIONS, HIDDEN)
    network = same_weights(agent)
    before = [own.detach().clone() for own in agent.parameters()]
    steps = made_up_steps(3)
    optimizer = torch.optim.Adam(agent.parameters(), lr=SETTINGS.lr, eps=1e-5)
    batch = single.batch_of(steps, SETTINGS)
    single.update(agent, optimizer, batch, SETTINGS, np.random.default_rng(5))

    names = {each.name for each in dataclasses.fields(Ppo)}
    shared = {k: v for k, v in dataclasses.asdict(SETTINGS).items() if k in names}
    options = Ppo(batch=4, minibatch=1, **shared)
    assert options.minibatches == SETTINGS.minibatches
    rates = Rates(SETTINGS.lr, SETTINGS.entropy)
    PpoLearner(network, options).learn(product_batch(steps), rates, np.random.default_rng(5))

    for own, other in pairs(agent, network):
        torch.testing.assert_close(own, other, atol=1e-6, rtol=0)
    after = [own.detach() for own in agent.parameters()]
    moved = [float((a - b).abs().max()) for a, b in zip(before, after, strict=True)]
    assert min(moved) > 1e-3


class Fallen(nn.Module):
    """Says 1 where the pole has fallen or the cart has left the track, else 0."""

    def forward(self, features):
        fallen = (features[:, 0].abs() > 2.4) | (features[:, 2].abs() > 0.2095)
        return fallen.float().unsqueeze(1)


def test_an_ended_episode_is_followed_by_its_true_final_observation():
    settings = dataclasses.replace(SETTINGS, slots=4, steps=60)
    env = single.make_env(settings)
    agent = single.Agent(4, 2, 8)
    agent.critic = Fallen()
    steps = single.Play(env, settings).steps(agent)
    env.close()
    assert steps.terminated.sum() > 3
    assert (steps.next_value == steps.terminated).all()
    assert (steps.value == 0).all()


def test_a_lost_step_is_neither_learned_from_nor_a_result():
    settings = dataclasses.replace(SETTINGS, slots=3, steps=40)
    bridge = FakeBridge(side=4, crash_on_step=0.05)
    task = Task("t", "", bridge.spec.state_space, FakeEvaluator(), Limits(steps=12))
    host = HostConfig(isolation="in_process", restarts=1000, backoff_s=0)
    env = RemoteVectorEnv(bridge, task, num_envs=3, autoreset="same_step", host=host)
    play = single.Play(env, settings)
    steps = play.steps(single.Agent(play.features.shape[1], 5, 8))
    env.close()
    lost = int(steps.lost.sum())
    ended = int((steps.terminated | steps.truncated).sum())
    assert 0 < lost < ended
    assert len(play.returns) == ended - lost
    assert len(single.batch_of(steps, settings)["action"]) == 3 * 40 - lost


@pytest.mark.long
@pytest.mark.heavy
def test_it_learns_cartpole():
    _, returns = single.train(dataclasses.replace(single.Settings(), env_steps=36_000, gamma=0.98))
    assert np.mean(returns[:50]) < 40
    assert np.mean(returns[-50:]) > 100


@pytest.mark.process
def test_it_needs_no_ray_and_prints_returns():
    code = """
import runpy, sys
sys.argv = ["x", "--env-steps", "640", "--slots", "8", "--steps", "40"]
runpy.run_path("examples/ppo_single_file.py", run_name="__main__")
assert "ray" not in sys.modules
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "640 steps  return" in done.stdout


def test_it_stays_one_short_file():
    assert len((ROOT / "examples/ppo_single_file.py").read_text().splitlines()) < 300
