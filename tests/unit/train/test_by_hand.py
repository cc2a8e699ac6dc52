"""PPO's gradient and AdamW by hand, against autograd and torch."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.actor_critic.policy import ActorCriticPlayer, ActorCriticPolicy
from rollout.api.masks import mask_spaces
from rollout.train.gradients import FlatOptimizer, Optimizer
from rollout.train.ppo.by_hand import backward
from rollout.train.ppo.learner import PpoLearner
from rollout.train.ppo.options import PpoOptions, Rates

pytestmark = pytest.mark.heavy

ROWS = 40
BOXES = {
    "plain": spaces.Box(-np.inf, np.inf, (3,), np.float32),
    "bounded": spaces.Box(-2.0, 6.0, (2, 2), np.float32),
}
CODES = {
    "codes": spaces.Box(1, 5, (3,), np.uint8),
    "between": spaces.Box(0, 4, (2, 2), np.float32),
}
ACTIONS = {
    "one": spaces.Discrete(3, start=-1),
    "many": spaces.MultiDiscrete([2, 5, 2]),
    "keys": spaces.MultiBinary(4),
    "free": spaces.Box(-np.inf, np.inf, (2,), np.float32),
    "tight": spaces.Box(-0.5, 0.7, (2,), np.float32),
}
RATES = Rates(3e-4, 0.02, 0.3)
OPTIONS = PpoOptions(batch=ROWS, minibatch=ROWS)


def masks_for(actions):
    space = spaces.Dict({key: ACTIONS[key] for key in actions})
    return {f"mask/{key}": each for key, each in mask_spaces(space).items()}


def drawn_masks(actions, rng):
    """Random masks; some choices have no legal value, as those of slots that do not play."""
    return {
        key: (rng.random((ROWS, *space.shape)) < 0.5).astype(np.int8)
        for key, space in masks_for(actions).items()
    }


def network_of(actions, *, seed=0, codes=False, masked=False, **options):
    seen = BOXES | (CODES if codes else {}) | (masks_for(actions) if masked else {})
    symbols = tuple(CODES) if codes else ()
    policy = ActorCriticPolicy(numbers=("bounded",), symbols=symbols, **options)
    space = spaces.Dict({key: ACTIONS[key] for key in actions})
    return policy.network(spaces.Dict(seen), space, seed=seed)


def rows_of(network, actions, rng, *, codes=False, masked=False):
    """Rows in which the policy that acted was another, and every branch of the loss is met."""
    seen = {f"observation/{k}": rng.normal(size=(ROWS, *s.shape)) for k, s in BOXES.items()}
    if codes:
        seen["observation/codes"] = rng.integers(1, 6, (ROWS, 3)).astype(np.uint8)
        seen["observation/between"] = rng.uniform(0, 4, (ROWS, 2, 2))
    taken = {}
    for key in actions:
        space = ACTIONS[key]
        if isinstance(space, spaces.Box):
            taken[key] = rng.normal(size=(ROWS, 2)).clip(space.low, space.high)
        else:
            space.seed(int(rng.integers(1000)))
            taken[key] = np.stack([space.sample() for _ in range(ROWS)])
    choices = network.layout.encode(taken)
    if masked:
        masks = drawn_masks(actions, rng)
        for key, mask in masks.items():  # what was chosen was legal
            place = network.layout.place(key.removeprefix("mask/"))
            np.bitwise_or(mask, network.layout.inputs(choices)[:, place].numpy() > 0, out=mask)
        seen |= {f"observation/{key}": mask for key, mask in masks.items()}
    with torch.no_grad():
        plain = {k.removeprefix("observation/"): torch.from_numpy(v) for k, v in seen.items()}
        outputs, value, _ = network(plain, {})
        logp = network.distribution(outputs).log_prob(choices).numpy()
    return seen | {
        "choices": choices.numpy(),
        "logp": logp + rng.normal(scale=0.3, size=ROWS),
        "value": value.numpy() + rng.normal(size=ROWS),
        "advantage": rng.normal(size=ROWS),
        "target": rng.normal(size=ROWS),
    }


@given(
    actions=st.sets(st.sampled_from(sorted(ACTIONS)), min_size=1).map(sorted),
    hidden=st.sampled_from([(8,), (8, 6), (4, 4, 4)]),
    activation=st.sampled_from(["tanh", "relu"]),
    shared=st.booleans(),
    value_clip=st.sampled_from([None, 0.5]),
    floor=st.sampled_from([None, -1.5]),
    refers=st.booleans(),
    codes=st.booleans(),
    masked=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(max_examples=20, deadline=None)
def test_it_is_the_gradient_of_autograd(
    actions, hidden, activation, shared, value_clip, floor, refers, codes, masked, seed
):
    options = {"hidden": hidden, "activation": activation, "shared": shared}
    network = network_of(actions, codes=codes, masked=masked, **options).double()
    with torch.no_grad():  # away from where all choices are as likely
        generator = torch.Generator().manual_seed(seed)
        for parameter in network.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.3)
    options = dataclasses.replace(OPTIONS, value_clip=value_clip, logp_floor=floor)
    learner = PpoLearner(network, options)
    rows = rows_of(network, actions, np.random.default_rng(seed), codes=codes, masked=masked)
    if refers:
        count = network.layout.outputs
        rows["reference"] = 0.5 * np.random.default_rng(seed).normal(size=(ROWS, count))
    columns = {k: torch.from_numpy(v) for k, v in rows.items()}
    loss, figures = learner._loss(columns, None, RATES.entropy, RATES.reference_coef)
    loss.backward()
    wanted = [parameter.grad.clone() for parameter in network.parameters()]

    by_hand = learner._by_hand
    seen = {k.removeprefix("observation/"): v for k, v in rows.items() if "observation/" in k}
    prepared = by_hand.prepare(seen)
    prepared |= {k: v.astype(np.float64) for k, v in prepared.items() if v.dtype == np.float32}
    rest = {k: v for k, v in rows.items() if "observation/" not in k}
    found = backward(by_hand, rest | prepared, options, RATES)
    assert found.keys() == figures.keys()
    for key, figure in figures.items():
        assert found[key] == pytest.approx(float(figure), rel=1e-6, abs=1e-6), key
    for parameter, gradient in zip(network.parameters(), wanted, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-6, atol=1e-6)


@given(
    actions=st.sets(st.sampled_from(sorted(ACTIONS)), min_size=1).map(sorted),
    explore=st.booleans(),
    masked=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(max_examples=30, deadline=None)
def test_a_player_decides_in_numpy_as_in_torch(actions, explore, masked, seed):
    network = network_of(actions, hidden=(8,), seed=seed, codes=True, masked=masked)
    masks = masks_for(actions) if masked else {}
    players = [ActorCriticPlayer(network, sorted(BOXES | CODES | masks)) for _ in range(2)]
    players[1]._in_numpy = None
    rng = np.random.default_rng(seed)
    seen = {k: rng.normal(size=(ROWS, *s.shape)).astype(np.float32) for k, s in BOXES.items()}
    seen["codes"] = rng.integers(1, 6, (ROWS, 3)).astype(np.uint8)
    seen["between"] = rng.uniform(0, 4, (ROWS, 2, 2)).astype(np.float32)
    seen |= drawn_masks(actions, rng) if masked else {}
    starts = [SimpleNamespace(seed=100 * seed + n) for n in range(ROWS)]
    one, two = (
        player.act(seen, player.initial_memory(starts), details=None, explore=explore)
        for player in players
    )
    for key in actions:
        np.testing.assert_allclose(one.actions[key], two.actions[key], rtol=1e-4, atol=1e-5)
        assert one.actions[key].dtype == two.actions[key].dtype
    for key in ("logp", "value"):
        np.testing.assert_allclose(one.extras[key], two.extras[key], rtol=1e-4, atol=1e-4)
        assert one.extras[key].dtype == np.float32
    assert one.memory.keys() == two.memory.keys()


def test_masked_choices_have_no_gradient():
    observations = spaces.Dict({**BOXES, "mask/one": spaces.MultiBinary(3)})
    policy = ActorCriticPolicy(numbers=("bounded", "mask/one"))
    network = policy.network(observations, spaces.Dict({"one": spaces.Discrete(3)}), seed=0)
    by_hand = network.in_numpy()
    rng = np.random.default_rng(0)
    seen = {k: s.sample()[None].repeat(5, 0) for k, s in BOXES.items()}
    seen["mask/one"] = np.array([[1, 0, 1]] * 4 + [[0, 0, 0]], np.int8)
    outputs, value = by_hand.forward(by_hand.prepare(seen))
    with torch.no_grad():
        wanted, expected, _ = network({k: torch.from_numpy(v) for k, v in seen.items()}, {})
    np.testing.assert_allclose(outputs, wanted.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(value, expected.numpy(), rtol=1e-5, atol=1e-6)
    by_outputs = rng.normal(size=(5, 3)).astype(np.float32)
    by_hand.backward(by_outputs, np.zeros(5, np.float32))
    # Where nothing is legal, nothing is hidden.
    assert network.policy_head.bias.grad[1] == pytest.approx(float(by_outputs[4, 1]), rel=1e-5)


@pytest.mark.parametrize(
    "options",
    [{"activation": "silu"}, {"memory": "gru"}, {"continuous": "squashed"}, {"embedding": 4}],
    ids=lambda options: next(iter(options)),
)
def test_other_networks_learn_by_autograd(options):
    learner = PpoLearner(network_of(["tight"], codes=True, **options), OPTIONS)
    assert learner._by_hand is None
    assert not isinstance(learner.optimizer, FlatOptimizer)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_it_is_chosen_where_minibatches_are_not_accumulated(accumulate):
    options = dataclasses.replace(OPTIONS, epochs=2, accumulate=accumulate)
    learner = PpoLearner(network_of(["one"]), options)
    assert (learner._by_hand is not None) == (accumulate == 1)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_it_is_torchs_adamw_and_continues_its_state(decay):
    torch.manual_seed(0)
    options = {"lr": 0.01, "max_grad_norm": 1.0, "weight_decay": decay, "eps": 1e-5}
    mine, other = network_of(["one"]), network_of(["one"])
    by_hand = mine.in_numpy()

    def flat():
        return FlatOptimizer(list(mine.parameters()), by_hand.weights, by_hand.gradient, **options)

    one, two = flat(), Optimizer(other.parameters(), **options)
    for number in range(6):
        for p, gradient, q in zip(
            mine.parameters(), by_hand._gradients.values(), other.parameters(), strict=True
        ):
            q.grad = torch.randn_like(q)
            gradient.copy_(q.grad)
            p.grad = gradient
        if number == 4:  # not finite: both skip it
            by_hand.gradient[3] = next(iter(other.parameters())).grad.view(-1)[3] = np.nan
        norms = one.apply(), two.apply()
        assert norms[0] == pytest.approx(float(norms[1]), rel=1e-5, nan_ok=True)
        for p, q in zip(mine.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(p, q, rtol=1e-6, atol=1e-6)
            assert p.grad is None
        if number == 2:  # states are exchanged: each continues what the other did
            kept = one.state()
            one = flat()
            one.restore(two.state())
            two.restore(kept)
    assert (one.skipped, two.skipped) == (0, 1) or (one.skipped, two.skipped) == (1, 1)
    assert one.apply() is None  # without a gradient nothing changes


def test_a_learner_without_rows_gives_zeros_to_the_others():
    network = network_of(["one"])
    by_hand = network.in_numpy()
    by_hand.gradient[:] = 1.0
    given = []
    optimizer = FlatOptimizer(
        list(network.parameters()),
        by_hand.weights,
        by_hand.gradient,
        lr=0.1,
        reduce_gradients=lambda gradients: given.append([g.clone() for g in gradients]),
    )
    assert optimizer.apply() == 0.0
    assert float(given[0][0].abs().sum()) == 0.0
