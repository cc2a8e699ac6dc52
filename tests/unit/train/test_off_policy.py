"""What off-policy algorithms learn from, and that they learn."""

from dataclasses import replace

import gamut
import numpy as np
import pytest
import torch
from gymnasium import spaces

from policies.actor_critic import ActorCriticPolicy, QNetworkPolicy
from rollout.api import Progress
from rollout.data import Dataset
from rollout.errors import ConfigError, DatasetError
from rollout.testing import FakeBridge, make_fragments
from rollout.train.off_policy import Appo, Dagger, Dqn, Sac
from rollout.train.replay import ReplayBuffer, transitions

pytestmark = pytest.mark.heavy

SEEN = spaces.Dict({"at": spaces.Box(-1.0, 1.0, (1,), np.float32)})
BOX = spaces.Dict({"push": spaces.Box(-2.0, 2.0, (1,), np.float32)})
CHOICES = spaces.Dict({"move": spaces.MultiDiscrete([3, 2])})


def test_a_buffer_keeps_the_newest_rows():
    buffer = ReplayBuffer(5)
    for first in range(0, 9, 3):
        buffer.add({"x": np.arange(first, first + 3)})
    assert buffer.state()["x"].tolist() == [4, 5, 6, 7, 8]
    again = ReplayBuffer(5)
    again.restore(buffer.state())
    buffer.add({"x": np.array([9])})
    again.add({"x": np.array([9])})
    assert again.state()["x"].tolist() == buffer.state()["x"].tolist() == [5, 6, 7, 8, 9]
    again.add({"x": np.arange(20)})
    assert again.state()["x"].tolist() == [15, 16, 17, 18, 19]


def test_a_transition_has_the_observation_after_the_action():
    policy = ActorCriticPolicy(hidden=(8,), columns=("position",))
    bridge = FakeBridge(side=4, max_steps=5)
    for fragment in make_fragments(4, length=8, width=3, bridge=bridge, policy=policy):
        batch = transitions(fragment, reads=["position"], steps=8)
        seen, following = batch["observation/position"], batch["next/position"]
        ends = {(int(b), int(t)): k for k, (t, b) in enumerate(fragment.final_index)}
        assert ends
        for b, t in np.ndindex(3, 8):
            if (b, t) in ends:
                expected = fragment.final_observations["position"][ends[b, t]]
            elif t < 7:
                expected = seen[b, t + 1]
            else:
                expected = fragment.next_observations["position"][b]
            assert (following[b, t] == expected).all()


def test_exploring_chooses_any_legal_action_and_otherwise_the_best():
    network = QNetworkPolicy(hidden=(4,)).network(SEEN, CHOICES, seed=0)
    values = torch.tensor([[1.0, 3.0, -1e9, 0.5, 0.2]])
    logits = network.layout.explored(values, torch.tensor(0.2))
    probabilities = [own.exp() for own in network.layout.discrete.stacked(logits)]
    sizes = {p.shape[-1]: p.flatten().tolist() for p in probabilities}
    assert sizes[3] == pytest.approx([0.1, 0.9, 0.0], abs=1e-6)
    assert sizes[2] == pytest.approx([0.9, 0.1], abs=1e-6)
    always = network.layout.explored(values, torch.tensor(1.0))
    assert network.layout.pick(always, None).tolist() == [[1, 0]]


def bandit(space, reward, count=4096):
    """Steps of one-step episodes, in which every action was played."""
    rng = np.random.default_rng(0)
    at = rng.uniform(-1, 1, (count, 1, 1)).astype(np.float32)
    space.seed(0)
    actions = [space.sample() for _ in range(count)]
    columns = {f"action/{k}": np.stack([a[k] for a in actions])[:, None] for k in space.spaces}
    return {
        "observation/at": at,
        "next/at": at,
        **columns,
        "reward": reward(at[:, 0, 0], columns)[:, None].astype(np.float32),
        "terminated": np.ones((count, 1), bool),
        "valid": np.ones((count, 1), bool),
        "first": np.ones((count, 1), bool),
        "version": np.zeros(count, np.int64),
    }


def learned(algorithm, recipe, space, reward, updates=12):
    network = recipe.network(SEEN, space, seed=0)
    learner = algorithm.learner(network, references={}, reduce_gradients=None)
    batch = bandit(space, reward)
    for update in range(updates):
        progress = Progress(update, update * 4096, updates * 4096, seed=0)
        figures = learner.update(batch if update == 0 else cut(batch), progress)
    assert all(np.isfinite(v) for v in figures.values()), figures
    network.eval()
    with torch.no_grad():
        seen = {"at": torch.linspace(-0.9, 0.9, 50).unsqueeze(-1)}
        outputs, _, _ = network(seen, {})
        return seen["at"][:, 0].numpy(), network.layout.decode(network.layout.pick(outputs, None))


def cut(batch):
    return {k: v[:1] for k, v in batch.items()}


def test_dqn_learns_which_choices_pay():
    def reward(at, columns):
        move = columns["action/move"][:, 0]
        return (move[:, 0] == np.where(at > 0, 2, 1)) + 0.5 * (move[:, 1] == (at < 0.5))

    options = Dqn(batch=4096, passes=4.0, minibatch=256, lr=3e-3, memory=8192)
    at, actions = learned(options, QNetworkPolicy(hidden=(64, 64)), CHOICES, reward)
    clear = (np.abs(at) > 0.1) & (np.abs(at - 0.5) > 0.1)
    assert (actions["move"][clear, 0] == np.where(at > 0, 2, 1)[clear]).all()
    assert (actions["move"][clear, 1] == (at < 0.5)[clear]).all()


def test_sac_learns_how_far_to_push():
    def reward(at, columns):
        return -np.square(columns["action/push"][:, 0, 0] - 1.5 * at)

    policy = ActorCriticPolicy(hidden=(64, 64), continuous="squashed", shared=False)
    options = Sac(batch=4096, passes=4.0, minibatch=256, lr=3e-3, memory=8192, target_entropy=-2.0)
    at, actions = learned(options, policy, BOX, reward)
    assert np.abs(actions["push"][:, 0] - 1.5 * at).mean() < 0.2


@pytest.mark.parametrize(
    ("algorithm", "policy", "match"),
    [
        (Dqn(), ActorCriticPolicy(hidden=(4,), columns=("position",)), "use policy.name=q_network"),
        (Sac(), ActorCriticPolicy(hidden=(4,), columns=("position",)), "continuous=squashed"),
        (
            Dagger(),
            ActorCriticPolicy(hidden=(4,), columns=("position",)),
            "privileged_oracle/move, and",
        ),
        (
            Sac(),
            ActorCriticPolicy(hidden=(4,), columns=("position",), memory="gru"),
            "use policy.memory=none, or ppo, appo or dagger",
        ),
    ],
)
def test_what_does_not_fit_is_refused(algorithm, policy, match):
    spec = FakeBridge().spec
    network = policy.network(spec.observation_space, spec.action_space, seed=0)
    with pytest.raises(ConfigError, match=match):
        algorithm.check_fit(network, spec)


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ConfigError, match="larger than memory=100"):
        Dqn(memory=100, minibatch=200)


def test_appo_learns_as_ppo_does_from_the_newest_weights():
    """The ratio is 1 there; of an old policy it is not."""
    policy = ActorCriticPolicy(hidden=(8,), columns=("position",))
    bridge = FakeBridge(side=4)
    spec = bridge.spec
    network = policy.network(spec.observation_space, spec.action_space, seed=0)
    algorithm = Appo(batch=32, minibatch=32, epochs=1)
    fragment = make_fragments(1, length=8, width=4, bridge=bridge, policy=policy)[0]
    batch = algorithm.gather(fragment, network, reads=["position"], steps=8)
    learner = algorithm.learner(network, references={}, reduce_gradients=None)
    progress = Progress(0, 0, 100, seed=0)
    assert learner.update(batch, progress)["ratio"] == pytest.approx(1.0, abs=1e-5)
    assert learner.update({**batch, "logp": batch["logp"] + 1.0}, progress)["ratio"] < 0.5


def test_skipped_steps_are_those_of_the_update():
    network = QNetworkPolicy(hidden=(4,)).network(SEEN, CHOICES, seed=0)
    options = Dqn(batch=16, minibatch=8, passes=1.0, memory=16, warmup=0)
    learner = options.learner(network, references={}, reduce_gradients=None)
    broken = bandit(CHOICES, lambda at, columns: np.full(16, np.nan), count=16)
    whole = bandit(CHOICES, lambda at, columns: np.zeros(16), count=16)
    found = [
        learner.update(b, Progress(n, 16 * n, 100, seed=0)) for n, b in enumerate([broken, whole])
    ]
    assert [figures["skipped_steps"] for figures in found] == [2.0, 0.0]


def test_a_buffer_of_sequences_counts_their_steps():
    buffer = ReplayBuffer(25)
    for first in range(4):
        buffer.add({"x": np.full((1, 10), first), "valid": np.ones((1, 10), bool)})
    assert (buffer.size, buffer.steps) == (2, 20)
    assert buffer.state()["x"][:, 0].tolist() == [2, 3]
    again = ReplayBuffer(25)
    again.restore(buffer.state())
    for each in (buffer, again):
        each.add({"x": np.full((1, 10), 4), "valid": np.ones((1, 10), bool)})
        assert each.state()["x"][:, 0].tolist() == [3, 4]
    assert buffer.sample(np.random.default_rng(0), 30)["x"].shape == (3, 10)


def remembered(rng, count, steps=6):
    """Sequences in which the action of the teacher is the sign seen first in the episode."""
    first = np.zeros((count, steps), bool)
    first[:, 0] = True
    first[: count // 2, 3] = True
    at = np.where(first, rng.choice([-1.0, 1.0], (count, steps)), 0.0)
    shown = np.array([np.where(f)[0][np.cumsum(f) - 1] for f in first])
    sign = np.take_along_axis(at, shown, 1)
    valid = np.ones((count, steps), bool)
    valid[-2:, 4:] = False
    return {
        "observation/at": at[..., None].astype(np.float32) * valid[..., None],
        "action/move": np.stack([sign > 0, sign < 0], -1).astype(np.int64) * valid[..., None],
        "first": first,
        "valid": valid,
        "memory/core/h": np.zeros((count, 16), np.float32),
        "version": np.zeros(count, np.int64),
    }


@pytest.mark.long
@pytest.mark.parametrize("teacher", [False, True])
def test_dagger_teaches_a_recurrent_network_what_it_has_to_remember(teacher):
    policy = ActorCriticPolicy(hidden=(16,), memory="gru", memory_size=16)
    networks = [policy.network(SEEN, CHOICES, seed=seed) for seed in (0, 1)]
    options = Dagger(batch=1200, minibatch=240, passes=20.0, lr=0.01, memory=1300)
    rng, references = np.random.default_rng(0), dict[str, torch.nn.Module]()
    for network in reversed(networks) if teacher else networks[:1]:
        learner = options.learner(network, references=references, reduce_gradients=None)
        for update in range(4):
            figures = learner.update(remembered(rng, 200), Progress(update, update, 4, seed=0))
        references = {"teacher": network}
    assert figures["buffer_steps"] == 216 * 6
    batch = remembered(rng, 100)
    seen = {"at": torch.from_numpy(batch["observation/at"]).swapaxes(0, 1)}
    blank = {"core/h": torch.zeros(100, 16)}
    with torch.no_grad():
        outputs, _, _ = networks[0].unroll(seen, blank, torch.from_numpy(batch["first"]).T)
    layout = networks[0].layout
    chosen = layout.decode(layout.pick(outputs.swapaxes(0, 1).flatten(0, 1), None))["move"]
    right = (chosen.reshape(100, 6, 2) == batch["action/move"]).all(-1)
    assert right[batch["valid"]].mean() > 0.95  # without a memory at most 0.6


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The run directory of a dataset of random moves in the fake game."""
    folder = tmp_path_factory.mktemp("recorded") / "run"
    keys = {"output": str(folder), "bridge": {"name": "fake", "max_steps": 12}, "policy": "random"}
    gamut.collect(keys, episodes=9, actors=0, width=4, **{"wandb.mode": "disabled"})
    return folder


def test_the_buffer_begins_with_the_last_steps_of_a_dataset(recorded):
    bridge = FakeBridge(max_steps=12)
    policy = QNetworkPolicy(hidden=(8,), columns=("position",))
    spec = bridge.spec
    network = policy.network(spec.observation_space, spec.action_space, seed=0)
    fragment = make_fragments(1, length=8, width=3, bridge=bridge, policy=policy)[0]
    with Dataset(recorded) as dataset:
        refs = sorted(dataset.episodes(), key=lambda ref: ref.episode)
        episodes = [dataset.read(ref, ["reward", "observation/position"]) for ref in refs]
    total = sum(ref.length for ref in refs)
    for memory, kept in ((10_000, total), (30, 6)):
        options = Dqn(memory=memory, minibatch=16, batch=24, warmup=0, dataset=str(recorded))
        options.check_fit(network, spec)
        batch = options.gather(fragment, network, reads=["position"], steps=8)
        learner = options.learner(network, references={}, reduce_gradients=None)
        figures = learner.update(batch, Progress(0, 0, 100, seed=0))
        assert figures["buffer_steps"] == kept + 24
        rows = learner.state()["buffer"]
        rewards = np.concatenate([each.columns["reward"] for each in episodes])
        assert rows["reward"][:kept].tolist() == rewards[-kept:].tolist()
        last = episodes[-1].final_observations["position"]
        assert rows["next/position"][kept - 1].tolist() == last.tolist()
        assert {key: v.dtype for key, v in rows.items()} == {
            key: torch.from_numpy(v).dtype for key, v in batch.items() if key in rows
        }
        again = options.learner(network, references={}, reduce_gradients=None)
        again.restore(learner.state())
        figures = again.update(cut(batch), Progress(1, 24, 100, seed=0))
        assert figures["buffer_steps"] == min(memory, kept + 32)  # not read again


def test_a_dataset_of_another_game_is_refused(recorded):
    policy = QNetworkPolicy(hidden=(4,))
    network = policy.network(SEEN, CHOICES, seed=0)
    spec = replace(FakeBridge().spec, action_space=CHOICES)
    with pytest.raises(
        ConfigError, match=r"algorithm.dataset=.*expected the action 'move' of fake"
    ):
        Dqn(dataset=str(recorded)).check_fit(network, spec)
    with pytest.raises(DatasetError, match="nowhere"):
        Dqn(dataset="nowhere").check_fit(network, spec)
