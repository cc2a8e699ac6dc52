"""Runners without Ray: what they hand over, where they go on, and that one learns from it."""

import json
import re
from collections import Counter

import numpy as np
import pytest

from rollout.api import Progress
from rollout.errors import BudgetExhausted, ConfigError
from rollout.testing import FakeBridge
from rollout.train.batch import env_steps, join
from rollout.train.ppo import Ppo
from rollout.train.sampler import Sample, enough
from tests.unit.train.learning_tools import Likes, make_schedule, network_of, sampling, small

pytestmark = pytest.mark.heavy

BRIDGE = FakeBridge(side=4)


def test_samples_hold_what_was_played():
    bridge = FakeBridge(side=4, crash_on_step=0.02)
    with sampling(bridge, small(), width=4, steps=8, limit=6) as sampler:
        assert sampler.untouched
        samples = [sampler.sample() for _ in range(12)]
        assert not sampler.untouched
    assert all(s.env_steps == env_steps(s.batch) for s in samples if s.batch)
    results = [r for s in samples for r in s.results]
    assert {r.end for r in results} == {"terminated", "truncated"}
    assert sum(len(s.losses) for s in samples) > 0
    ended = Counter(r.start.episode for r in results)
    assert set(ended.values()) == {1}
    # Rewards of the batches are those of the episodes.
    total = sum(s.batch["reward"].sum() for s in samples if s.batch)
    lost = sum(s.batch["reward"][s.batch["valid"]].size for s in samples if s.batch)
    assert total == pytest.approx(sum(r.total_reward for r in results), abs=0.01 * lost)


def test_a_batch_is_the_number_of_fragments_nearest_to_its_steps():
    sample = lambda steps: Sample({}, steps, 0)  # noqa: E731
    assert not enough([], 100)
    assert not enough([sample(0)], 100)
    assert enough([sample(100)], 100)
    assert enough([sample(93)], 100)  # seven rows had no step; two fragments would be 186
    assert not enough([sample(66)], 100)  # 132 is nearer
    assert enough([sample(67)], 100)
    assert not enough([sample(20), sample(0), sample(30)], 100)
    assert enough([sample(1000)], 100)


def test_last_signals_go_with_each_result():
    wanted = ("distance", "reached")
    with sampling(BRIDGE, small(), width=3, steps=8, limit=6, signals=wanted) as sampler:
        samples = [sampler.sample() for _ in range(40)]
    ended = [x for s in samples for x in zip(s.results, s.signals, strict=True)]
    assert {result.end for result, _ in ended} == {"terminated", "truncated"}
    for result, signals in ended:
        there = result.end == "terminated"
        assert signals["reached"] is there
        assert (signals["distance"] == 0) == there


def until_exhausted(sampler):
    """All samples there are, and what was said when there were no more."""
    samples = []
    while len(samples) < 50:
        try:
            sample = sampler.sample()
        except BudgetExhausted as error:
            return samples, str(error)
        samples.append(sample)
    raise AssertionError("the games never ran out")


def test_no_game_left_is_reported():
    with sampling(FakeBridge(crash_on_step=3), small(), restarts=1, limit=None) as sampler:
        samples, said = until_exhausted(sampler)
    assert re.search(r"failed more than 1 times.*crashes on request", said)
    assert sum(s.env_steps for s in samples) > 0
    assert sum(len(s.losses) for s in samples) > 0


def test_a_game_that_fails_with_no_episode_in_it_is_reported(tmp_path):
    bridge = FakeBridge(side=4, fail_on_start=1, once_file=str(tmp_path / "once"))
    with sampling(bridge, small(), restarts=2) as sampler:
        samples = [sampler.sample() for _ in range(3)]
    ((number, event),) = [failure for s in samples for failure in s.idle_failures]
    assert (number, event.phase) == (0, "start")
    assert "start" in event.reason


def test_episodes_that_are_lost_too_often_are_abandoned_and_told():
    with sampling(FakeBridge(crash_on_step=3), small(), retries=1, restarts=6, width=2) as sampler:
        samples, _ = until_exhausted(sampler)
        abandoned = [start for s in samples for start in s.abandoned]
        assert len(abandoned) >= 2
        assert all(start.attempt == 1 for start in abandoned)
        held = {episode for episode, _ in sampler.position()["playing"]}
        assert not held & {start.episode for start in abandoned}


@pytest.mark.parametrize(("scale", "clip"), [(0.5, None), (1.0, 0.005), (3.0, 0.5)])
@pytest.mark.parametrize("width", [1, 3])
def test_rewards_are_scaled_and_clipped_for_the_learner_only(scale, clip, width):
    with sampling(BRIDGE, small(), width=width) as plain:
        own = [plain.sample() for _ in range(6)]
    algorithm = Ppo(reward_scale=scale, reward_clip=clip)
    with sampling(BRIDGE, small(), width=width, algorithm=algorithm) as changed:
        other = [changed.sample() for _ in range(6)]
    most = np.inf if clip is None else clip
    for a, b in zip(own, other, strict=True):
        expected = np.clip(a.batch["reward"] * np.float32(scale), -most, most)
        np.testing.assert_allclose(b.batch["reward"], expected, rtol=1e-6)
        assert [r.total_reward for r in a.results] == [r.total_reward for r in b.results]


def test_new_weights_play_from_the_next_sample_on():
    with sampling(BRIDGE, small(), width=2, steps=8) as sampler:
        sampler.load(network_of(BRIDGE, small(), seed=9).state_dict(), 4)
        sample = sampler.sample()
        assert sample.version == 4
        assert (sample.batch["version"] == 4).all()
        sampler.load(network_of(BRIDGE, small(), seed=1).state_dict(), 5)
        assert (sampler.sample().batch["version"] == 5).all()


def test_a_fragment_is_as_old_as_the_oldest_weights_that_played_in_it():
    """Two games fill their fragments together; the second one is handed over later."""
    with sampling(BRIDGE, small(), instances=2, width=2, steps=8, limit=None) as sampler:
        played = []
        for version in (3, 4, 5, 6):
            sampler.load(network_of(BRIDGE, small(), seed=version).state_dict(), version)
            played.append(sampler.sample())
    # What the second game began under number 3 is handed over when number 4 plays already.
    assert [s.version for s in played] == [3, 3, 4, 5]
    assert all((s.batch["version"] == s.version).all() for s in played)


def starts_and_ends(samples):
    ended = [r.start.episode for s in samples for r in s.results]
    states = {
        r.start.episode: (r.start.state.index, r.start.seed) for s in samples for r in s.results
    }
    return ended, states


def test_a_sampler_rebuilt_continues_with_the_same_starts():
    """Closed in the middle of episodes: each is played to its end once, from where it would be."""
    options = {"width": 3, "steps": 7, "limit": 11, "seed": 4}
    with sampling(BRIDGE, small(), **options) as whole:
        _, expected = starts_and_ends([whole.sample() for _ in range(40)])
    ended, states = [], {}
    position = None
    for _ in range(4):
        schedule = make_schedule(BRIDGE, seed=4)
        if position is not None:
            schedule.restore(position)
        with sampling(BRIDGE, small(), schedule=schedule, **options) as sampler:
            samples = [sampler.sample() for _ in range(8)]
            position = json.loads(json.dumps(sampler.position()))
            under_way = {episode for episode, _ in position["playing"]}
        now, own = starts_and_ends(samples)
        ended += now
        states.update(own)
        assert not under_way & set(ended)
        assert set(ended) | under_way == set(range(position["cursor"]))
    assert Counter(ended).most_common(1)[0][1] == 1
    assert all(states[e] == expected[e] for e in states if e in expected)
    assert len(set(states) & set(expected)) > 10


def test_the_position_of_another_run_is_refused():
    with sampling(BRIDGE, small(), seed=1) as sampler:
        sampler.sample()
        position = sampler.position()
    with pytest.raises(ConfigError, match="saved schedule has seed=1 and this one seed=2"):
        make_schedule(BRIDGE, seed=2).restore(position)


def learn(updates, *, policy=None, evaluator=None, lr=3e-2, batch=256, states=2, **settings):
    """Plays and learns a few times; returns the mean reward of each batch and the figures."""
    policy = policy or small(hidden=(16,))
    rewards, figures = [], []
    with sampling(
        BRIDGE, policy, evaluator=evaluator, width=16, steps=16, states=states, limit=16
    ) as sampler:
        network = network_of(BRIDGE, policy)
        own = Ppo(batch=4, minibatch=1, lr=lr, schedule="constant", entropy=0.0, **settings)
        learner = own.learner(network, references={}, reduce_gradients=None)
        for number in range(updates):
            sampler.load(network.state_dict(), number)
            samples = []
            while sum(s.env_steps for s in samples) < batch:
                samples.append(sampler.sample())
            joined = join([s.batch for s in samples])
            rewards.append(float(joined["reward"][joined["valid"]].mean()))
            figures.append(learner.update(joined, Progress(number, 0, 1, 0)))
    return rewards, figures


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_a_bandit_is_learned(memory):
    """One of five moves pays: from a fifth of the time to nearly always."""
    policy = small(hidden=(16,), memory=memory)
    rewards, figures = learn(8, policy=policy, evaluator=Likes())
    assert rewards[0] < 0.35
    assert rewards[-1] > 0.6
    assert figures[-1]["entropy"] < figures[0]["entropy"]
    assert all(f["skipped_steps"] == 0 for f in figures)


def test_the_way_to_a_distant_target_is_learned():
    """The reward comes at the end, and each step costs: credit must flow back through time."""
    rewards, figures = learn(12, batch=512, lr=2e-2, gamma=0.95, states=1)
    assert rewards[-1] > 3 * max(rewards[0], 0.02)
    assert figures[-1]["explained_variance"] > 0.1


def test_the_bandit_is_not_learned_without_learning():
    rewards, _ = learn(4, evaluator=Likes(), lr=1e-12)
    assert max(rewards) < 0.35
