"""Prioritized level replay: which state is played next, and how states are scored."""

import itertools
import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.api import Splits
from rollout.errors import ConfigError
from rollout.testing import FakeBridge
from rollout.train.config import TrainConfig
from rollout.train.curriculum import ScoredSchedule
from rollout.train.gae import RUNNING, TERMINATED
from rollout.train.plan import TrainPlan
from tests.unit.train.learning_tools import PPO, sampling, small

BRIDGE = FakeBridge(side=4)


def schedule(states=20, *, temperature=0.1, staleness=0.1, **share):
    return ScoredSchedule(
        Splits(BRIDGE.spec.state_space).take("train", states), seed=3, temperature=temperature,
        staleness=staleness, gamma=PPO.gamma, lambda_=PPO.gae_lambda, **share,
    )  # fmt: skip


def test_states_are_played_in_turn_until_they_are_scored():
    numbers = [start.episode for start in schedule().take(50)]
    assert [n % 20 for n in numbers] == [*range(20), *range(20), *range(10)]
    assert len(set(numbers)) == 50


def test_a_number_says_which_state_it_is():
    plan = schedule()
    plan.take(20)
    plan._scores = {3: 1.0, 7: 2.0}
    for start in plan.take(100):
        assert start.state == plan._states[start.episode % 20]


def test_probabilities_are_those_of_the_paper():
    plan = schedule(3, temperature=0.5, staleness=0.25)
    plan.take(3)
    plan._scores = {0: 1.0, 1: 9.0, 2: 4.0}
    got = plan._probabilities(np.array([0, 1, 2]))
    # Ranks 3, 1, 2 to the power of -2; last handed out 3, 2 and 1 episodes ago.
    by_rank = np.array([1 / 9, 1, 1 / 4])
    want = 0.75 * by_rank / by_rank.sum() + 0.25 * np.array([3, 2, 1]) / 6
    np.testing.assert_allclose(got, want)


def test_states_with_high_scores_are_played_more_often():
    plan = schedule(20, temperature=1.0)
    plan.take(20)
    plan._scores = {position: float(position) for position in range(20)}
    played = Counter(start.episode % 20 for _ in range(200) for start in plan.take(5))
    assert sum(played[p] for p in range(15, 20)) > 3 * sum(played[p] for p in range(5))
    assert set(played) == set(range(20))  # staleness


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 9), st.integers(1, 40))
def test_runners_share_the_states_and_no_episode_is_played_twice(runners, states):
    plans = [schedule(states, stride=runners, offset=k) for k in range(runners)]
    numbers = [[s.episode for s in plan.take(3 * states)] for plan in plans]
    every = list(itertools.chain.from_iterable(numbers))
    assert len(set(every)) == len(every)
    assert {n % states for n in every} == set(range(states))


def test_a_restored_schedule_goes_on_with_the_same_episodes():
    plan = schedule()
    plan.take(30)
    plan._scores = {p: float(p % 7) for p in range(15)}
    saved = json.loads(json.dumps(plan.state()))
    other = schedule()
    other.restore(saved)
    assert [s.episode for s in other.take(40)] == [s.episode for s in plan.take(40)]


def test_a_schedule_without_scores_is_refused():
    saved = dict(schedule().state())
    del saved["curriculum"]
    with pytest.raises(ConfigError, match=r"without curriculum\.sampler=score"):
        schedule().restore(saved)


def test_a_score_is_the_mean_absolute_advantage_of_the_last_episode():
    game, plan, want, sums = FakeBridge(side=4, crash_on_step=0.02), schedule(), {}, {}

    def learn(fragment, batch, results):
        ScoredSchedule.learn(plan, fragment, batch, results)
        for t, b in np.argwhere(fragment.valid):  # the sum of each row's discounted errors
            advantage, factor = 0.0, 1.0
            for u in range(t, fragment.length):
                end = batch["end"][b, u]
                following = (
                    batch["value"][b, u + 1] if end == RUNNING else batch["next_value"][b, u]
                )
                following = 0.0 if end == TERMINATED else following
                error = batch["reward"][b, u] + PPO.gamma * following - batch["value"][b, u]
                advantage += factor * error
                factor *= PPO.gamma * PPO.gae_lambda
                if end != RUNNING:
                    break
            start = fragment.starts[fragment.start_index[t, b]]
            sums.setdefault((start.episode, start.attempt), []).append(abs(advantage))
        for result in results:
            start = result.start
            want[start.episode % 20] = np.mean(sums[start.episode, start.attempt])

    plan.learn = learn
    with sampling(game, small(), schedule=plan, width=4, steps=8, limit=20) as sampler:
        samples = [sampler.sample() for _ in range(60)]
        held = {(start.episode, start.attempt) for start in sampler._ledger.held.values()}
    assert sum(len(sample.losses) for sample in samples) > 0
    assert plan._scores == pytest.approx(want, rel=1e-4)
    assert set(plan._sums) <= held  # nothing is kept of what ended or was lost


def config(**more):
    game = {"name": "gymnasium", "id": "CartPole-v1"}
    return TrainConfig.model_validate(
        {"bridge": game, "task": "cartpole", "env_steps": 10, "output": "runs/x", **more}
    )


def test_an_algorithm_without_values_is_refused():
    keys = {"algorithm": {"name": "dqn"}, "policy": {"name": "q_network"}}
    with pytest.raises(ConfigError, match=r"curriculum\.sampler=score needs .* ppo or appo"):
        TrainPlan.make(config(curriculum={"sampler": "score"}, **keys))
