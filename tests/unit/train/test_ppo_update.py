"""The PPO update: against a loss written by hand, and in every way it can go wrong."""

import copy
import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from rollout.testing import FakeBridge
from rollout.train.batch import MEMORY, OBSERVATION, env_steps, join, part
from rollout.train.gae import CUT, advantages
from rollout.train.gradients import Optimizer
from rollout.train.ppo import Ppo, Rates
from rollout.train.ppo.learner import PpoLearner
from tests.unit.train.learning_tools import (
    RichBridge,
    made_up_batch,
    network_of,
    sampling,
    small,
)

pytestmark = pytest.mark.heavy

BRIDGE = FakeBridge(side=4)
ONCE = Ppo(batch=1, minibatch=1, epochs=1, gamma=0.9, max_grad_norm=None)


class Counted(torch.optim.SGD):
    """Plain gradient descent that counts its steps, and skips those that Adam would skip."""

    steps = 0

    def step(self, closure=None):
        if self.__dict__.pop("found_inf"):
            return None
        self.steps += 1
        return super().step(closure)


def a_batch(network, *, slots=6, steps=8, holes=True, seed=0):
    """A made-up batch whose behaviour is near that of the network, with rows without a step."""
    rng = np.random.default_rng(seed)
    valid = np.ones((slots, steps), bool)
    if holes:
        valid[1, 5:] = valid[4, 2:] = False
    batch = made_up_batch(rng, slots, steps, valid=valid, memory_keys=network.memory_keys)
    seen = {k: torch.from_numpy(v).swapaxes(0, 1) for k, v in part(batch, OBSERVATION).items()}
    memory = {k: torch.from_numpy(v) for k, v in part(batch, MEMORY).items()}
    with torch.no_grad():
        logits, _, _ = network.unroll(seen, memory, torch.from_numpy(batch["first"]).T)
    moves = torch.from_numpy(batch["action/move"]).T
    logp = logits.log_softmax(-1).gather(-1, moves[..., None])[..., 0].T.numpy()
    batch["logp"] = logp + rng.normal(scale=0.2, size=valid.shape).astype(np.float32)
    return batch


def decided(**options):
    """A network of the fake game whose actions are far from equally likely."""
    network = network_of(BRIDGE, small(**options))
    with torch.no_grad():
        network.policy_head.weight.mul_(100)
    return network


def learner_of(network, settings, **more):
    learner = PpoLearner(network, settings, **more)
    learner.optimizer = Optimizer(
        network.parameters(),
        lr=0.1,
        max_grad_norm=settings.max_grad_norm,
        reduce_gradients=more.get("reduce_gradients"),
    )
    learner.optimizer.adam = Counted(network.parameters(), lr=0.1)
    return learner


def gradients_of(network, batch, settings, **how):
    """What one update adds to the weights, divided by its learning rate of 1: the gradient."""
    own = copy.deepcopy(network)
    learner = learner_of(own, settings, reference=how.pop("reference", None))
    figures = learn(learner, batch, lr=1.0, **how)
    before = dict(network.named_parameters())
    return {k: (before[k] - p).detach() for k, p in own.named_parameters()}, figures


def loss_by_hand(network, batch, s, *, reference=None, reference_coef=0.0):
    """The textbook loss: every valid row, one by one, no minibatches, no vectorised pieces."""
    advantage, target = advantages(
        *(batch[k] for k in ("reward", "value", "next_value", "end")),
        gamma=s.gamma, lambda_=s.gae_lambda,
    )  # fmt: skip
    valid = batch["valid"]
    if s.normalize_advantages:
        chosen = advantage[valid]
        advantage = (advantage - chosen.mean()) / (chosen.std() + 1e-8)
    seen = {k: torch.from_numpy(v).swapaxes(0, 1) for k, v in part(batch, OBSERVATION).items()}
    memory = {k: torch.from_numpy(v) for k, v in part(batch, MEMORY).items()}
    first = torch.from_numpy(batch["first"]).T
    logits, values, _ = network.unroll(seen, memory, first)
    if reference is not None:
        with torch.no_grad():
            blank = {k: torch.zeros_like(v) for k, v in memory.items()}
            anchors, _, _ = reference.unroll(seen, blank, first)
    total = torch.zeros(())
    for n, t in np.argwhere(valid):
        log_p = logits[t, n].log_softmax(-1)
        logp = log_p[batch["action/move"][n, t]]
        own, goal = float(advantage[n, t]), float(target[n, t])
        if s.logp_floor is not None and own < 0:
            logp = torch.maximum(logp, torch.tensor(s.logp_floor))
        log_ratio = torch.minimum(logp - float(batch["logp"][n, t]), torch.tensor(s.log_ratio_cap))
        ratio = log_ratio.exp()
        gain = torch.minimum(ratio * own, ratio.clamp(1 - s.clip, 1 + s.clip) * own)
        error = (values[t, n] - goal) ** 2
        if s.value_clip is not None:
            old = float(batch["value"][n, t])
            near = old + (values[t, n] - old).clamp(-s.value_clip, s.value_clip)
            error = torch.maximum(error, (near - goal) ** 2)
        total = total - gain + s.value_coef * 0.5 * error
        total = total + s.entropy * (log_p.exp() * log_p).sum()
        if reference is not None:
            kl = (log_p.exp() * (log_p - anchors[t, n].log_softmax(-1))).sum()
            total = total + reference_coef * kl
    return total / valid.sum()


def settings_of(*, minibatches=1, **changes):
    return dataclasses.replace(ONCE, batch=minibatches, **changes)


def learn(learner, batch, *, lr=0.0, number=0, seed=0, reference_coef=0.0):
    """One update with these rates; seed and number decide the order of the minibatches."""
    rates = Rates(lr, learner.settings.entropy, reference_coef)
    return learner.learn(batch, rates, np.random.default_rng((seed, number)))


VARIANTS = {
    "plain": ONCE,
    "clipped values": settings_of(value_clip=0.1),
    "entropy": settings_of(entropy=0.5),
    "floor": settings_of(logp_floor=-1.6),
    "capped": settings_of(log_ratio_cap=0.05, clip=0.5),
    "raw advantages": settings_of(normalize_advantages=False, entropy=0.0, gae_lambda=0.3),
}


@pytest.mark.parametrize("memory", ["none", "lstm", "gru"])
@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
def test_the_gradient_is_that_of_the_loss_by_hand(memory, settings):
    network = decided(memory=memory)
    batch = a_batch(network)
    got, _ = gradients_of(network, batch, settings)
    loss_by_hand(network, batch, settings).backward()
    for key, parameter in network.named_parameters():
        torch.testing.assert_close(got[key], parameter.grad, atol=2e-5, rtol=2e-3)


def test_each_variant_of_the_loss_matters():
    """Were one of the settings ignored, the test above could not tell it from the plain loss."""
    network = decided()
    batch = a_batch(network)
    plain, _ = gradients_of(network, batch, ONCE)
    for name, settings in VARIANTS.items():
        other, _ = gradients_of(network, batch, settings)
        same = all(torch.allclose(plain[k], other[k], atol=1e-4) for k in plain)
        assert same == (name == "plain"), name


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_the_kl_to_the_reference_is_part_of_the_gradient(memory):
    network = network_of(BRIDGE, small(memory=memory))
    reference = network_of(BRIDGE, small(memory=memory), seed=5)
    with torch.no_grad():
        reference.policy_head.weight.mul_(100)
    batch = a_batch(network)
    got, figures = gradients_of(network, batch, ONCE, reference=reference, reference_coef=0.7)
    loss_by_hand(network, batch, ONCE, reference=reference, reference_coef=0.7).backward()
    for key, parameter in network.named_parameters():
        torch.testing.assert_close(got[key], parameter.grad, atol=2e-5, rtol=2e-3)
    without, _ = gradients_of(network, batch, ONCE)
    assert not torch.allclose(without["policy_head.weight"], got["policy_head.weight"], atol=1e-3)
    assert figures["reference_kl"] > 1e-3


def quiet(batch):
    """The batch without anything to gain: the policy's loss has no gradient of its own."""
    return {
        **batch,
        **{k: np.zeros_like(batch[k]) for k in ("reward", "value", "next_value")},
    }


def test_the_reference_pulls_the_policy_towards_it_as_its_weight_says():
    settings = settings_of(
        epochs=20, entropy=0.0, value_coef=0.0, normalize_advantages=False, clip=9.0
    )
    reference = network_of(BRIDGE, small(), seed=5)
    with torch.no_grad():
        reference.policy_head.weight.mul_(100)
    kept = copy.deepcopy(reference.state_dict())
    left = {}
    for coef in (0.0, 1.0):
        network = network_of(BRIDGE, small())
        learner = learner_of(network, settings, reference=reference.requires_grad_(False))
        batch = quiet(a_batch(network))
        far = learn(learner, batch, lr=0.0)["reference_kl"]
        learn(learner, batch, number=1, lr=0.3, reference_coef=coef)
        near = learn(learner, batch, number=2, lr=0.0)["reference_kl"]
        left[coef] = near / far
    assert left[0.0] == pytest.approx(1.0)
    assert left[1.0] < 0.7
    for key, tensor in reference.state_dict().items():
        torch.testing.assert_close(tensor, kept[key])


@pytest.mark.parametrize("memory", ["none", "lstm", "gru"])
def test_a_fresh_batch_has_a_ratio_of_one(memory):
    bridge, policy = RichBridge(FakeBridge(side=4, crash_on_step=0.02)), small(
        memory=memory, columns=("cell", "position")
    )  # fmt: skip
    with sampling(bridge, policy, steps=8, limit=9, width=6) as sampler:
        network = sampler._policy.network
        batch = join([s.batch for s in (sampler.sample() for _ in range(8)) if s.env_steps])
    assert not batch["valid"].all()  # a short fragment is filled up with rows without a step
    learner = learner_of(network, settings_of(minibatches=3, bptt=4))
    figures = learn(learner, batch, lr=0.0)
    assert figures["approx_kl"] == pytest.approx(0, abs=1e-6)
    assert figures["old_approx_kl"] == pytest.approx(0, abs=1e-5)
    assert figures["clip_fraction"] == 0
    assert figures["policy_loss"] == pytest.approx(0, abs=0.2)  # advantages have mean 0
    stale = {**batch, "logp": batch["logp"] - 1}
    assert learn(learner, stale, lr=0.0)["old_approx_kl"] == pytest.approx(-1, abs=1e-4)


@pytest.mark.parametrize("memory", ["lstm", "gru"])
@pytest.mark.parametrize("bptt", [2, 4, 8, 64])
def test_cut_sequences_give_the_same_numbers_as_whole_ones(memory, bptt):
    network = network_of(BRIDGE, small(memory=memory))
    batch = a_batch(network, steps=16)
    whole = learn(learner_of(network, settings_of(bptt=16)), batch)
    cut = learn(learner_of(network, settings_of(bptt=bptt)), batch)
    for key in ("policy_loss", "value_loss", "entropy", "approx_kl", "explained_variance"):
        assert cut[key] == pytest.approx(whole[key], abs=1e-5), key


class Witness(nn.Module):
    """Notes which rows it is shown."""

    memory_keys = ()

    def __init__(self, inner):
        super().__init__()
        self.inner, self.layout, self.seen = inner, inner.layout, []

    def forward(self, observations, memory):
        self.seen.append(observations["position"][:, 0].numpy().copy())
        return self.inner(observations, memory)

    def distribution(self, logits):
        return self.inner.distribution(logits)


@pytest.mark.parametrize("minibatches", [1, 4, 7])
def test_every_row_is_used_once_in_each_epoch(minibatches):
    network = network_of(BRIDGE, small())
    batch = a_batch(network)
    numbers = np.arange(batch["valid"].size, dtype=np.float32).reshape(batch["valid"].shape)
    batch["observation/position"][..., 0] = numbers
    witness = Witness(network)
    learner = learner_of(witness, settings_of(minibatches=minibatches, epochs=3))
    learn(learner, batch, lr=0.01)
    assert len(witness.seen) == 3 * minibatches
    orders = [np.concatenate(witness.seen[i * minibatches :][:minibatches]) for i in range(3)]
    for order in orders:
        np.testing.assert_array_equal(np.sort(order), numbers[batch["valid"]])
    assert not np.array_equal(orders[0], orders[1])
    assert not np.array_equal(orders[0], np.sort(orders[0]))  # the first epoch is mixed too
    sizes = [len(rows) for rows in witness.seen]
    assert max(sizes) - min(sizes) <= 1


class Together:
    """Averages the tensors of several learners in threads, weighted, as torch.distributed does."""

    def __init__(self, weights):
        self._weights, self._sent = weights, [None] * len(weights)
        self._barrier = threading.Barrier(len(weights), timeout=60)

    def reduce(self, number, tensors):
        self._sent[number] = [t.clone() * self._weights[number] for t in tensors]
        self._barrier.wait()
        for tensor, *parts in zip(tensors, *self._sent, strict=True):
            tensor.copy_(sum(parts) / sum(self._weights))
        self._barrier.wait()


@pytest.mark.parametrize("cut", [1, 3, 5])
def test_several_learners_make_the_update_of_one_with_all_batches(cut):
    network = network_of(BRIDGE, small())
    batch = a_batch(network)
    batch["reward"][:cut] += 3.0  # so that the shares differ in the scale of their advantages
    shares = [{k: v[:cut] for k, v in batch.items()}, {k: v[cut:] for k, v in batch.items()}]
    together = Together([env_steps(share) for share in shares])
    whole = copy.deepcopy(network)
    learn(learner_of(whole, ONCE), batch, lr=1.0)
    parts = [copy.deepcopy(network) for _ in shares]
    learners = [
        learner_of(part, ONCE, reduce_gradients=partial(together.reduce, number))
        for number, part in enumerate(parts)
    ]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda pair: learn(*pair, lr=1.0), zip(learners, shares, strict=True)))
    for key, tensor in whole.state_dict().items():
        for part_ in parts:
            torch.testing.assert_close(part_.state_dict()[key], tensor, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("memory", ["none", "gru"])
@pytest.mark.parametrize("slots", [1, 2, 5, 9])
def test_the_number_of_steps_does_not_depend_on_the_rows(memory, slots):
    """Learners wait for one another's gradients; also one with fewer rows than minibatches."""
    network = network_of(BRIDGE, small(memory=memory))
    batch = a_batch(network, slots=slots, steps=2, holes=False)
    calls = []

    def reduce(gradients):
        calls.append(sum(g.numel() for g in gradients))

    settings = settings_of(minibatches=4, epochs=2, bptt=2)
    learner = learner_of(network, settings, reduce_gradients=reduce)
    figures = learn(learner, batch, lr=0.01)
    moments, *calls = calls
    assert moments == 2  # mean and mean square of the advantages
    assert len(calls) == learner.optimizer.adam.steps == 8
    assert set(calls) == {sum(p.numel() for p in network.parameters())}
    assert all(np.isfinite(v) for v in figures.values())
    assert figures["skipped_steps"] == 0


def test_a_batch_without_a_single_step_changes_nothing():
    network = network_of(BRIDGE, small())
    batch = a_batch(network)
    batch["valid"][:] = False
    before = copy.deepcopy(network.state_dict())
    figures = learn(learner_of(network, ONCE), batch, lr=0.5)
    assert figures["skipped_steps"] == 0
    for key, tensor in network.state_dict().items():
        torch.testing.assert_close(tensor, before[key])


def test_accumulated_minibatches_are_one_large_one():
    network = network_of(BRIDGE, small())
    batch = a_batch(network, holes=False)  # 48 rows: four equal parts
    whole, _ = gradients_of(network, batch, ONCE)
    parts, _ = gradients_of(network, batch, settings_of(minibatches=4, accumulate=4))
    for key, gradient in whole.items():
        torch.testing.assert_close(parts[key], gradient, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize(("accumulate", "steps"), [(1, 6), (2, 3), (3, 2), (6, 1)])
def test_the_last_minibatches_are_never_dropped(accumulate, steps):
    network = network_of(BRIDGE, small())
    learner = learner_of(network, settings_of(minibatches=3, epochs=2, accumulate=accumulate))
    learn(learner, a_batch(network), lr=0.01)
    assert learner.optimizer.adam.steps == steps
    assert all(p.grad is None for p in network.parameters())


def test_a_gradient_that_is_not_finite_is_skipped_and_counted():
    network = network_of(BRIDGE, small())
    batch = a_batch(network, holes=False)
    batch["end"][:] = CUT  # every row stands for itself
    batch["reward"][2, 0] = np.nan
    settings = settings_of(minibatches=4, epochs=2, normalize_advantages=False)
    learner = learner_of(network, settings)
    before = copy.deepcopy(network.state_dict())
    figures = learn(learner, batch, lr=0.1)
    assert figures["skipped_steps"] == 2
    assert learner.optimizer.adam.steps == 6
    assert np.isfinite(figures["grad_norm"])
    after = network.state_dict()
    assert all(v.isfinite().all() for v in after.values())
    assert not torch.allclose(after["policy_head.weight"], before["policy_head.weight"])


def test_gradients_are_cut_to_the_largest_norm():
    network = network_of(BRIDGE, small())
    batch = a_batch(network)
    free, figures = gradients_of(network, batch, ONCE)
    norm = torch.cat([g.flatten() for g in free.values()]).norm().item()
    assert figures["grad_norm"] == pytest.approx(norm, rel=1e-4)
    cut, _ = gradients_of(network, batch, settings_of(max_grad_norm=norm / 4))
    for key, gradient in free.items():
        torch.testing.assert_close(cut[key], gradient / 4, atol=1e-6, rtol=1e-3)


def run(network, batch, settings=None, updates=2, seed=3, first=0, lr=1e-2):
    own = copy.deepcopy(network)
    learner = PpoLearner(own, settings or settings_of(minibatches=3, epochs=2, bptt=4))
    for number in range(first, first + updates):
        learn(learner, batch, number=number, seed=seed, lr=lr)
    return torch.cat([p.detach().flatten() for p in own.parameters()])


@pytest.mark.parametrize("memory", ["none", "lstm"])
def test_an_update_depends_on_seed_and_number_alone(memory):
    network = network_of(BRIDGE, small(memory=memory))
    batch = a_batch(network)
    one = run(network, batch)
    torch.manual_seed(99)
    np.random.default_rng().random()
    assert torch.equal(one, run(network, batch))
    assert not torch.equal(one, run(network, batch, seed=4))
    assert not torch.equal(one, run(network, batch, first=1))


def test_the_learning_rate_is_that_of_the_update():
    network = network_of(BRIDGE, small())
    batch = a_batch(network)
    start = torch.cat([p.detach().flatten() for p in network.parameters()])
    assert torch.equal(run(network, batch, lr=0.0), start)
    large, small_ = (run(network, batch, updates=1, lr=lr) - start for lr in (1e-2, 1e-4))
    assert large.norm() > 20 * small_.norm() > 0


@pytest.mark.parametrize("options", [
    {}, {"memory": "lstm"}, {"memory": "gru"},
    {"columns": ("image",), "cnn": "impala", "cnn_width": 0.3, "cnn_features": 8},
])  # fmt: skip
def test_half_precision_learns_about_the_same(options):
    with sampling(BRIDGE, small(**options), steps=8, limit=9, width=4) as sampler:
        network = sampler._policy.network
        batch = join([sampler.sample().batch for _ in range(3)])
    whole, figures = gradients_of(network, batch, settings_of(bptt=4, precision="float32"))
    half, coarse = gradients_of(network, batch, settings_of(bptt=4, precision="bfloat16"))
    a, b = (torch.cat([g.flatten() for g in gs.values()]) for gs in (whole, half))
    assert torch.nn.functional.cosine_similarity(a, b, dim=0) > 0.98
    assert not torch.equal(a, b)
    assert coarse["entropy"] == pytest.approx(figures["entropy"], rel=1e-2)


def test_what_ray_hands_over_is_read_only():
    """Torch would warn, and here warnings are errors; nothing may be written to it either."""
    network = network_of(BRIDGE, small(memory="gru"))
    batch = a_batch(network)
    kept = copy.deepcopy(batch)
    for array in batch.values():
        array.flags.writeable = False
    learn(learner_of(network, settings_of(epochs=2, bptt=4)), batch, lr=0.1)
    for key, array in batch.items():
        np.testing.assert_array_equal(array, kept[key])


def test_symbols_that_do_not_begin_at_zero_survive_rows_without_a_step():
    """Short fragments are filled up with zeros, which are neither symbols nor choices here."""
    bridge = RichBridge(FakeBridge(side=4, crash_on_step=5))
    policy = small(memory="gru", columns=("cell", "position"))
    with sampling(bridge, policy, steps=8, width=3) as sampler:
        sample = sampler.sample()
        network = sampler._policy.network
    assert env_steps(sample.batch) < sample.batch["valid"].size
    learner = learner_of(network, settings_of(bptt=4), reference=copy.deepcopy(network))
    figures = learn(learner, sample.batch, lr=0.1)
    assert all(np.isfinite(v) for v in figures.values())


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_weights_decay_as_adamw_says(decay):
    network = network_of(BRIDGE, small())
    optimizer = PpoLearner(network, settings_of(weight_decay=decay)).optimizer
    before = {k: v.detach().clone() for k, v in network.named_parameters()}
    for parameter in network.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.set_lr(0.5)
    optimizer.apply()
    for key, parameter in network.named_parameters():
        torch.testing.assert_close(parameter.detach(), before[key] * (1 - 0.5 * decay))
