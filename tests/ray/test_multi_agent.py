"""RLlib's own PPO trains the agents of one Minecraft world, each with a policy of its own."""

import pytest
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.connectors.env_to_module import FlattenObservations
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
from ray.tune.registry import register_env

from bridges.mineflayer import MineflayerBridge
from bridges.mineflayer.node import packages_problem
from rollout.pettingzoo_env import ParallelWorld
from rollout.tasks import load_task

NAMES = ("Ann", "Ben")

pytestmark = [
    pytest.mark.ray,
    pytest.mark.long,
    pytest.mark.skipif(bool(packages_problem()), reason="run `make mineflayer`"),
]


def test_each_agent_of_a_world_learns_with_a_policy_of_its_own(local_ray):
    def world(_):
        bridge = MineflayerBridge(
            agents=2,
            names=NAMES,
            actions="compact",
            observe=("bearings", "on_ground"),
            view_distance=2,
        )
        task = load_task(bridge.spec, "mineflayer", "combat_1_zombie")
        return ParallelPettingZooEnv(ParallelWorld(bridge, task))

    register_env("two", world)
    config = (
        PPOConfig()
        .environment("two")
        .multi_agent(policies=set(NAMES), policy_mapping_fn=lambda agent, *_, **__: agent)
        .env_runners(
            num_env_runners=1,
            rollout_fragment_length=100,
            sample_timeout_s=600,
            env_to_module_connector=lambda *_, **__: FlattenObservations(multi_agent=True),
        )
        .training(train_batch_size_per_learner=400, minibatch_size=128, num_epochs=2)
    )
    algorithm = config.build_algo()
    try:
        result = algorithm.train()
    finally:
        algorithm.stop()
    assert set(result["env_runners"]["agent_episode_returns_mean"]) == set(NAMES)
    for name in NAMES:
        assert result["learners"][name]["num_module_steps_trained_lifetime"] >= 400
