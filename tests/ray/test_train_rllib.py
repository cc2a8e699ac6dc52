"""Training through RLlib: runners, learners, what becomes of a run when one of them dies."""

import os
import signal
import time
from collections import Counter

import pytest
import ray
import torch

from rollout.errors import BudgetExhausted
from rollout.train.checkpoint import write_checkpoint
from rollout.train.updates import Trainer
from tests.ray.training import SMALL, merged, plan_of, same_weights, whole_episodes

pytestmark = [
    pytest.mark.ray,
    pytest.mark.usefixtures("local_ray"),
    # A process that starts learners copies Ray Data's settings, those it has deprecated too.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context"),
]


@pytest.fixture
def build():
    """Builds algorithms, and stops them at the end of the test."""
    from rollout.train.rllib.algorithm import build as make

    made = []

    def build_one(settings, **more):
        made.append(make(plan_of(settings, **more)))
        return made[-1]

    yield build_one
    for algorithm in made:
        algorithm.stop()


def trained(algorithm, updates):
    """Makes updates; returns the iterations they were."""
    iterations = []
    for _ in range(updates):
        algorithm.train()
        iterations.append(algorithm.last)
    return iterations


def ended(iterations):
    return Counter(r.start.episode for i in iterations for r in i.results)


def in_turn(episodes, runners):
    """Whether every runner played its share from the start, skipping and repeating nothing."""
    shares = [sorted(e for e in episodes if e % runners == k) for k in range(runners)]
    whole = all(s == list(range(k, k + runners * len(s), runners)) for k, s in enumerate(shares))
    return whole and set(episodes.values()) <= {1}


def handle_of(algorithm, number):
    return algorithm._runners.supervisor.actors[number - 1].handle


def kill(algorithm, number):
    pid = ray.get(handle_of(algorithm, number).__ray_call__.remote(lambda _: os.getpid()))
    os.kill(pid, signal.SIGKILL)
    return pid


@pytest.mark.long
def test_two_runners_and_two_learners_with_uneven_shares(build):
    """9 sequences are shared as 5 and 4; nothing waits for ever, and the weights stay the same."""
    settings = merged(
        whole_episodes(), {"width": 3, "algorithm": {"name": "ppo", "batch": 72, "minibatch": 20}}
    )
    algorithm = build(settings, runners=2, learners={"count": 2})
    before = algorithm.weights()
    iterations = trained(algorithm, 5)
    one, two = (a.get() for a in algorithm.learner_group.foreach_learner(lambda x: x.weights()))
    assert same_weights(one, two)
    assert not same_weights(before, one)
    assert all(i.figures["skipped_steps"] == 0 for i in iterations)
    assert all(i.staleness <= 1 for i in iterations)
    assert any(i.staleness == 1 for i in iterations), "games stood still during the updates"
    assert sum(i.dropped_steps for i in iterations) == 0
    assert [i.update for i in iterations] == [1, 2, 3, 4, 5]
    assert iterations[-1].env_steps == sum(i.fresh_steps for i in iterations)
    episodes = ended(iterations)
    assert in_turn(episodes, 2)
    assert 8 * episodes.total() == iterations[-1].env_steps, "steps of a fragment went nowhere"


def test_a_remote_runner_and_learner_do_what_one_process_does(build):
    """Without staleness, where something is computed makes no difference in any bit."""
    settings = merged(whole_episodes(), {"algorithm": {"max_staleness": 0}})
    here, without = build(settings), Trainer(plan_of(settings))
    own = trained(without, 3)
    without.stop()
    assert [i.figures for i in own] == [i.figures for i in trained(here, 3)]
    there = build(settings, runners=1, learners={"count": 1})
    iterations = trained(there, 3)
    assert [i.staleness for i in iterations] == [0, 0, 0]
    for other in (here, there):
        assert same_weights(without.weights(), other.weights())
    assert without.positions() == here.positions()


def test_a_killed_runner_comes_back_and_skips_nothing(build):
    algorithm = build(whole_episodes(), runners=2)
    iterations = trained(algorithm, 3)
    first = kill(algorithm, 1)
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        iterations += trained(algorithm, 1)
        held = {s.start.episode for i in iterations for s in i.losses if s.phase == "actor"}
        if held & set(ended(iterations)):
            break
    runner = algorithm._runners.supervisor.actors[0]
    assert runner.incarnation == 1, "one death counts once"
    assert kill(algorithm, 1) != first
    again = {s.start.episode for i in iterations for s in i.losses}
    assert again
    assert all(e % 2 == 0 for e in again)
    episodes = ended(iterations)
    assert in_turn(episodes, 2)
    assert again & set(episodes), "what it held was not played again"
    attempts = {r.start.episode: r.start.attempt for i in iterations for r in i.results}
    assert all(attempts[e] == 1 for e in again if e in attempts)
    assert [i.update for i in iterations] == list(range(1, len(iterations) + 1))


@pytest.mark.long
def test_a_runner_that_hangs_is_replaced(build, tmp_path):
    """A game that hangs in the runner's own process: only the algorithm can notice."""
    marker = tmp_path / "once"
    bridge = {"hang_on_step": 20.0, "once_file": str(marker)}
    algorithm = build(merged(whole_episodes(), {"bridge": bridge}), runners=1)
    algorithm._runners.supervisor.stall_s = 4.0  # instead of all deadlines plus a margin
    iterations = trained(algorithm, 4)
    assert marker.exists()
    assert algorithm._runners.supervisor.actors[0].incarnation == 1
    assert in_turn(ended(iterations), 1)
    assert {s.phase for i in iterations for s in i.losses} == {"actor"}


@pytest.mark.long
def test_runners_that_die_too_often_end_the_training(build):
    algorithm = build(whole_episodes(), runners=1, host={"actor_restarts": 0})
    trained(algorithm, 2)
    positions = algorithm.positions()
    kill(algorithm, 1)
    with pytest.raises(BudgetExhausted, match="all 1 runners"):
        trained(algorithm, 50)
    assert algorithm.last.losses, "what the runner held was lost without a word"
    assert algorithm.last.update >= 2
    assert algorithm.positions()["1"]["cursor"] >= positions["1"]["cursor"]


def test_crashing_games_cost_attempts_not_episodes(build):
    """Lost episodes are cut, counted and played again; the update never sees a hole."""
    bridge = {"name": "fake", "crash_on_step": 0.02, "max_steps": 20}
    settings = merged(SMALL, {"bridge": bridge, "host": {"restarts": 500, "retries": 50}})
    algorithm = build(settings, instances=2)
    iterations = trained(algorithm, 30)
    losses = [s for i in iterations for s in i.losses]
    assert {s.phase for s in losses} == {"step"}
    episodes = ended(iterations)
    assert set(episodes.values()) == {1}
    again = {s.start.episode for s in losses}
    assert again & set(episodes)
    # All but those in progress: episodes are handed out in turn and none is dropped.
    assert set(range(max(episodes) - 40)) <= set(episodes)
    assert all(i.figures["skipped_steps"] == 0 for i in iterations)
    assert not any(i.abandoned for i in iterations)


def test_a_checkpoint_of_rllib_continues_without_a_difference(build, tmp_path):
    """Weights, optimizer, schedule of episodes and of rates; the runner plays with them at once."""
    from rollout.train.rllib.algorithm import ColumnAlgorithm

    settings = merged(
        whole_episodes(), {"env_steps": 640, "algorithm": {"name": "ppo", "max_staleness": 0}}
    )
    unbroken = build(settings)
    trained(unbroken, 3)
    path = unbroken.save_to_path(str(tmp_path / "saved"))
    at_three = unbroken.weights()
    last = trained(unbroken, 2)[-1]

    unbroken.restore_from_path(path)  # restored by an algorithm that is further ahead
    assert unbroken.last.update == 3
    assert same_weights(unbroken.weights(), at_three)
    again = trained(unbroken, 2)[-1]
    assert (again.update, again.env_steps) == (last.update, last.env_steps)
    assert again.figures["learning_rate"] == last.figures["learning_rate"] > 0
    final = unbroken.weights()
    assert not same_weights(final, at_three)

    restored = ColumnAlgorithm.from_checkpoint(path)
    try:
        assert restored.iteration == 3
        assert same_weights(restored.weights(), at_three)
        trained(restored, 2)
        assert restored.last.env_steps == last.env_steps
        assert same_weights(restored.weights(), final)
    finally:
        restored.stop()


@pytest.mark.long
@pytest.mark.parametrize("most", [0, 1])
def test_a_remote_runner_continues_without_a_difference(build, tmp_path, most):
    """Fragments that were in flight are played again, by the weights that played them."""
    from rollout.train.rllib.algorithm import ColumnAlgorithm

    settings = merged(whole_episodes(), {"algorithm": {"max_staleness": most}})
    unbroken = build(settings, runners=1)
    trained(unbroken, 3)
    path = unbroken.save_to_path(str(tmp_path / "saved"))
    last = trained(unbroken, 2)
    restored = ColumnAlgorithm.from_checkpoint(path)
    try:
        iterations = trained(restored, 2)
        assert [i.staleness for i in iterations] == [i.staleness for i in last]
        assert ended(iterations) == ended(last)
        assert same_weights(restored.weights(), unbroken.weights())
    finally:
        restored.stop()


@pytest.mark.long
def test_tune_runs_it_and_its_checkpoint_continues(tmp_path):
    from ray import tune

    from rollout.train.rllib.algorithm import ColumnAlgorithm, config_of

    tuner = tune.Tuner(
        ColumnAlgorithm,
        param_space=config_of(plan_of(whole_episodes())),
        run_config=tune.RunConfig(
            name="small",
            storage_path=str(tmp_path),
            stop={"training_iteration": 2},
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=True),
            verbose=0,
        ),
    )
    result = tuner.fit()[0]
    assert result.error is None
    assert result.metrics["num_env_steps_sampled_lifetime"] == 128
    assert result.metrics["env_runners"]["episode_return_mean"] < 0
    assert tune.Tuner.can_restore(str(tmp_path / "small"))
    restored = ColumnAlgorithm.from_checkpoint(result.checkpoint.path)
    try:
        assert (restored.last.update, restored.last.env_steps) == (2, 128)
        metrics = restored.train()
        assert metrics["num_env_steps_sampled_lifetime"] == 192
        assert metrics["training_iteration"] == 3
        assert sorted(ended([restored.last])) == list(range(16, 24))
    finally:
        restored.stop()


def test_the_reference_holds_the_policy_and_lets_go(build, tmp_path):
    plan = plan_of(SMALL, seed=5)
    path = write_checkpoint(
        tmp_path,
        {"update": 1, "env_steps": 0, "policy": {"name": "actor_critic", "options": {}}},
        weights=plan.network().state_dict(),
        optimizer={},
        spec=plan.bridge.spec,
        reads=plan.reads,
    )
    away = {}
    for coef in (0.0, 100.0):
        decay = 0.5 if coef == 0 else 1.0
        options = {"reference_coef": coef, "reference_decay": decay, "lr": 1e-2}
        algorithm = build(SMALL, seed=5, algorithm={"reference": str(path), **options})
        iterations = trained(algorithm, 8)
        away[coef] = iterations[-1].figures["reference_kl"]
        assert [i.figures["reference_coef"] for i in iterations] == [
            coef * decay**k for k in range(8)
        ]
    assert away[100.0] < 0.1 * away[0.0]


def test_a_network_that_remembers_is_trained(build):
    settings = merged(SMALL, {"policy": {"memory": "lstm", "memory_size": 8}})
    algorithm = build(settings, runners=1)
    before = algorithm.weights()
    iterations = trained(algorithm, 4)
    after = algorithm.weights()
    moved = [k for k in before if not torch.equal(before[k], after[k])]
    assert any(k.startswith("core.") for k in moved), sorted(before)
    assert all(i.figures["skipped_steps"] == 0 for i in iterations)
    # The first minibatch of an update is on-policy, unless memories were mixed up.
    assert all(abs(i.figures["approx_kl"]) < 0.1 for i in iterations)
