"""Continuous actions: distributions against torch's own, what is recorded, and that they learn."""

import dataclasses
import itertools
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pytest
import torch
from gymnasium import spaces
from scipy import stats
from torch.distributions import (
    AffineTransform,
    Categorical,
    Normal,
    TanhTransform,
    TransformedDistribution,
    kl_divergence,
)

from policies.actor_critic.distributions import ActionLayout
from policies.actor_critic.policy import gumbel_and_normal
from rollout.api import Limits, Outcome, Progress, Task, Verdict, check_columns, sample
from rollout.errors import ConfigError
from rollout.testing import FakeBridge, check_policy
from rollout.train.batch import join
from rollout.train.ppo import Ppo
from tests.unit.train.learning_tools import network_of, sampling, small

pytestmark = pytest.mark.heavy

BOX = spaces.Box(np.array([-2, 0, 10], np.float32), np.array([2, 1, 50], np.float32))
OPEN = spaces.Box(-np.inf, np.inf, (2,))
HALF = spaces.Box(0.0, np.inf, (2,), np.float64)
MIXED = spaces.Dict({"push": BOX, "move": spaces.Discrete(4, start=1), "turn": spaces.Box(-1, 1)})
KINDS = {
    "gaussian": (spaces.Dict({"push": BOX}), False),
    "open": (spaces.Dict({"push": OPEN}), False),
    "half open": (spaces.Dict({"push": HALF}), False),
    "squashed": (spaces.Dict({"push": BOX}), True),
    "mixed": (MIXED, False),
    "mixed, squashed": (MIXED, True),
}


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def layout(request):
    space, squashed = request.param
    own = ActionLayout(space, squashed=squashed)
    own.space = space
    return own


def outputs_of(layout, *leading, seed=0, spread=0.5):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(*leading, layout.outputs, generator=generator)
    rows[..., -layout.dims :] = spread * rows[..., -layout.dims :] - 1.0
    return rows


def by_torch(space, squashed, outputs):
    """One distribution of torch's for each column; the actions are in the units of the space."""
    boxes = [k for k, s in space.spaces.items() if isinstance(s, spaces.Box)]
    sizes = [int(s.n) for s in space.spaces.values() if isinstance(s, spaces.Discrete)]
    dims = [int(np.prod(space[key].shape)) for key in boxes]
    logits, means, log_stds = outputs.split([sum(sizes), sum(dims), sum(dims)], -1)
    out = {}
    for key, mean, log_std in zip(
        boxes, means.split(dims, -1), log_stds.split(dims, -1), strict=True
    ):
        low, high = torch.from_numpy(space[key].low), torch.from_numpy(space[key].high)
        bounded = (low.isfinite() & high.isfinite()).all()
        half = (high - low) / 2 if bounded else torch.ones_like(mean)
        middle = (high + low) / 2 if bounded else torch.zeros_like(mean)
        turns = [TanhTransform(cache_size=1)] if squashed else []
        turns.append(AffineTransform(middle.float(), half.float()))
        out[key] = TransformedDistribution(Normal(mean, log_std.exp()), turns)
    if sizes:
        out["move"] = Categorical(logits=logits)
    return out


@pytest.mark.parametrize("leading", [(50,), (5, 8)])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_log_probabilities_entropies_and_divergences_are_those_of_torch(kind, leading):
    space, squashed = kind
    layout = ActionLayout(space, squashed=squashed)
    rows, others = outputs_of(layout, *leading), outputs_of(layout, *leading, seed=1)
    ours, theirs = by_torch(space, squashed, rows), by_torch(space, squashed, others)
    torch.manual_seed(0)
    inside = {}  # actions that are not clipped
    for key, distribution in ours.items():
        if key == "move":
            inside[key] = distribution.sample() + 1
            continue
        low, high = torch.from_numpy(space[key].low), torch.from_numpy(space[key].high)
        margin = torch.where(high.isfinite() & low.isfinite(), 1e-3 * (high - low), 1e-3)
        drawn = distribution.sample().to(low.dtype)
        inside[key] = torch.minimum(torch.maximum(drawn, low + margin), high - margin)
    logp = 0.0
    for key, distribution in ours.items():
        chosen = inside[key] - 1 if key == "move" else inside[key].float()
        own = distribution.log_prob(chosen)
        logp = logp + (own if key == "move" else own.sum(-1))
    own, other = layout.distribution(rows), layout.distribution(others)
    got = own.log_prob(layout.encode(inside))
    assert got.shape == leading
    torch.testing.assert_close(got, logp, rtol=1e-3, atol=2e-2 if squashed else 1e-3)
    kl = sum(
        kl_divergence(p, q) if key == "move" else kl_divergence(p.base_dist, q.base_dist).sum(-1)
        for (key, p), q in zip(ours.items(), theirs.values(), strict=True)
    )
    torch.testing.assert_close(own.kl(other), kl, rtol=1e-4, atol=1e-4)
    assert own.entropy().shape == leading
    if not squashed:
        entropy = sum(
            d.entropy() if key == "move"
            else (d.base_dist.entropy() + d.transforms[-1].scale.log()).sum(-1)
            for key, d in ours.items()
        )  # fmt: skip
        torch.testing.assert_close(own.entropy(), entropy, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("mean", "log_std"), [(0.0, -2.0), (0.7, 0.0), (-2.0, -0.5), (3.0, 0.5), (0.0, 1.0)]
)
def test_the_entropy_of_a_squashed_action_is_its_integral(mean, log_std):
    layout = ActionLayout(spaces.Dict({"push": spaces.Box(-2, 2)}), squashed=True)
    std = np.exp(log_std)

    def log_slope(u):  # of 2 tanh(u)
        return np.log(2) + 2 * (np.log(2) - u - np.logaddexp(0, -2 * u))

    exact = stats.norm.entropy(mean, std) + stats.norm(mean, std).expect(log_slope)
    got = layout.distribution(torch.tensor([[mean, log_std]])).entropy()
    assert got.item() == pytest.approx(exact, abs=0.01)


def test_a_clipped_action_is_as_likely_as_all_beyond_its_bound():
    layout = ActionLayout(spaces.Dict({"push": spaces.Box(-2, 2)}))
    distribution = layout.distribution(torch.tensor([[0.6, np.log(0.5)]]))
    for action, tail in ((2.0, stats.norm.sf(1, 0.6, 0.5)), (-2.0, stats.norm.cdf(-1, 0.6, 0.5))):
        got = distribution.log_prob(layout.encode({"push": np.array([[action]], np.float32)}))
        assert got.item() == pytest.approx(np.log(tail), rel=1e-4)
    # With the density inside, these are all probabilities there are.
    grid = np.linspace(-2, 2, 20_001, dtype=np.float32)[1:-1]
    many = layout.distribution(torch.tensor([[0.6, np.log(0.5)]]).expand(len(grid), -1))
    inside = many.log_prob(layout.encode({"push": grid[:, None]})).exp().sum().item() * 4 / 20_000
    outside = stats.norm.sf(1, 0.6, 0.5) + stats.norm.cdf(-1, 0.6, 0.5)
    assert inside + outside == pytest.approx(1, abs=1e-3)


def test_gradients_are_those_of_small_differences(layout):
    rows = outputs_of(layout, 6).double().requires_grad_()
    actions = sample(layout.space, 6, np.random.default_rng(0))
    for key, leaf in layout.space.spaces.items():
        if isinstance(leaf, spaces.Box):  # some of them at their bounds
            actions[key][0], actions[key][1] = leaf.low, leaf.high
            actions[key] = np.where(np.isfinite(actions[key]), actions[key], 1).astype(leaf.dtype)
    encoded = layout.encode(actions).double()
    others = outputs_of(layout, 6, seed=1).double()
    for value in (
        lambda r: layout.distribution(r).log_prob(encoded),
        lambda r: layout.distribution(r).entropy(),
        lambda r: layout.distribution(r).kl(layout.distribution(others)),
    ):
        assert torch.autograd.gradcheck(value, (rows,), atol=1e-4)


def test_extreme_outputs_stay_finite(layout):
    """Means far outside of the bounds, tiny and huge deviations: the loss is still a number."""
    for mean, log_std in itertools.product((-300.0, 0.0, 300.0), (-5.0, 3.0)):
        rows = torch.full((4, layout.outputs), mean)
        rows[:, -layout.dims :] = log_std
        rows.requires_grad_()
        noise = torch.from_numpy(
            gumbel_and_normal(
                np.arange(4, dtype=np.uint64), np.arange(4), layout.logits, layout.dims
            )
        )
        actions = layout.decode(layout.pick(rows.detach(), noise))
        check_columns(layout.space, actions, (4,))
        assert all(layout.space[k].contains(v[i]) for k, v in actions.items() for i in range(4))
        distribution = layout.distribution(rows)
        total = distribution.log_prob(layout.encode(actions)).sum() + distribution.entropy().sum()
        total.backward()
        assert total.isfinite()
        assert rows.grad.isfinite().all()


def test_actions_survive_being_recorded(layout):
    actions = sample(layout.space, 200, np.random.default_rng(0))
    back = layout.decode(layout.encode(actions))
    check_columns(layout.space, back, (200,))
    for key, column in actions.items():
        np.testing.assert_allclose(back[key], column, rtol=1e-4, atol=1e-4)
    timed = {k: v.reshape(5, 40, *v.shape[1:]) for k, v in actions.items()}
    torch.testing.assert_close(
        layout.encode(timed).flatten(0, 1), layout.encode(actions), rtol=0, atol=0
    )


def test_normal_noise_is_normal_and_leaves_the_gumbel_noise_alone():
    seeds, steps = np.arange(20_000, dtype=np.uint64), np.full(20_000, 3)
    noise = gumbel_and_normal(seeds, steps, 2, 3)
    assert noise.dtype == np.float32
    assert np.isfinite(noise).all()
    for column in noise[:, 2:].T:
        assert stats.kstest(column, "norm").pvalue > 1e-3
    np.testing.assert_array_equal(noise[:, :2], gumbel_and_normal(seeds, steps, 2, 0))


WRONG = {
    "no bounds": (OPEN, True, "squashed needs bounds on every side.*use continuous=gaussian"),
    "one bound": (HALF, True, "use continuous=gaussian"),
    "no room": (
        spaces.Box(np.zeros(2, np.float32), np.array([1, 0], np.float32)),
        False,
        "low below high",
    ),
}


@pytest.mark.parametrize(("box", "squashed", "said"), WRONG.values(), ids=WRONG)
def test_spaces_that_cannot_be_are_refused(box, squashed, said):
    with pytest.raises(ConfigError, match=said):
        ActionLayout(spaces.Dict({"push": box}), squashed=squashed)


@dataclass(frozen=True)
class PushBridge:
    """The fake game with two continuous numbers and a choice as its actions."""

    inner: FakeBridge = field(default_factory=lambda: FakeBridge(side=4))
    squashable: bool = True

    @cached_property
    def spec(self):
        push = spaces.Box(-2, 2, (2,)) if self.squashable else OPEN
        acted = spaces.Dict({"push": push, "move": spaces.Discrete(3)})
        return dataclasses.replace(self.inner.spec, action_space=acted)

    def launch(self, workdir, ports, *, width, timeout_s):
        return PushInstance(self.inner.launch(workdir, ports, width=width, timeout_s=timeout_s))


class PushInstance:
    def __init__(self, game):
        self._game = game

    def reset(self, slots, starts, *, timeout_s):
        return self._game.reset(slots, starts, timeout_s=timeout_s)

    def step(self, actions, *, timeout_s):
        return self._game.step({"move": np.zeros_like(actions["move"])}, timeout_s=timeout_s)

    def close(self):
        self._game.close()


@dataclass(frozen=True)
class PushRight:
    """The reward is highest for pushing to (0.5, -1.5), and for one of three moves."""

    requires: frozenset[str] = frozenset()

    def build(self, width):
        return PushJudge(width)


class PushJudge:
    def __init__(self, width):
        self._width = width

    def reset(self, slots, starts, frame):
        pass

    def judge(self, actions, frame):
        miss = np.square(actions["push"] - np.array([0.5, -1.5])).sum(1)
        reward = np.maximum(-4, -miss) + (actions["move"] == 1)
        blank = np.full(self._width, np.nan, np.float32)
        running = np.full(self._width, int(Outcome.RUNNING), np.int8)
        return Verdict(reward.astype(np.float32), blank, running)


@pytest.mark.parametrize("memory", ["none", "gru"])
@pytest.mark.parametrize("continuous", ["gaussian", "squashed"])
def test_the_suite_passes_and_fragments_record_floats(continuous, memory):
    bridge = PushBridge()
    policy = small(continuous=continuous, memory=memory)
    task = Task("t", "", bridge.spec.state_space, PushRight(), Limits(9))
    check_policy(policy, bridge.spec, task=task).raise_if_failed()
    with sampling(bridge, policy, steps=8, width=3, evaluator=PushRight()) as sampler:
        batch = join([sampler.sample().batch for _ in range(3)])
        network = sampler._policy.network
    assert batch["action/push"].dtype == np.float32
    assert batch["action/push"].shape == (9, 8, 2)
    assert (np.abs(batch["action/push"]) <= 2).all()
    assert np.unique(batch["action/push"]).size > 50
    learner = Ppo(batch=3, minibatch=1, bptt=4, lr=1e-12).learner(
        network, references={}, reduce_gradients=None
    )
    figures = learner.update(batch, Progress(0, 0, 1, 0))
    # What acted and what learns agree on every action, clipped or not.
    assert figures["old_approx_kl"] == pytest.approx(0, abs=1e-4)
    assert figures["approx_kl"] == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize(
    ("continuous", "squashable"), [("gaussian", True), ("gaussian", False), ("squashed", True)]
)
def test_a_continuous_bandit_is_learned(continuous, squashable):
    bridge, policy = PushBridge(squashable=squashable), small(hidden=(16,), continuous=continuous)
    algorithm = Ppo(
        batch=512, minibatch=128, epochs=6, lr=0.015, schedule="constant", entropy=0.0, gamma=0.5
    )
    network = network_of(bridge, policy)
    learner = algorithm.learner(network, references={}, reduce_gradients=None)
    rewards = []
    with sampling(
        bridge, policy, evaluator=PushRight(), width=32, steps=16, limit=16, algorithm=algorithm
    ) as sampler:
        for number in range(15):
            sampler.load(network.state_dict(), number)
            batch = sampler.sample().batch
            rewards.append(float(batch["reward"].mean()))
            learner.update(batch, Progress(number, 0, 1, 0))
    assert rewards[0] < -1.5
    assert rewards[-1] > 0.0, rewards
