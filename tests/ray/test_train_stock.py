"""Our path and RLlib's own PPO, on the same game, network and settings, come to the same."""

import numpy as np
import pytest
import ray
from ray import cloudpickle

from rollout.errors import ConfigError
from tests.ray import stock_ppo
from tests.ray.stock_ppo import stock_config_of
from tests.ray.training import SMALL, merged, plan_of

pytestmark = [
    pytest.mark.ray,
    pytest.mark.usefixtures("local_ray"),
]

BUDGET = 24_576
RANDOM = 23.0  # return of CartPole-v1 under random actions

CARTPOLE = {
    "bridge": {"name": "gymnasium", "id": "CartPole-v1"},
    "policy": {"name": "actor_critic", "hidden": [64, 64], "shared": False},
    "width": 16,
    "fragment": {"steps": 64},
    "env_steps": BUDGET,
    "learners": {"threads": 1},
    "algorithm": {
        "batch": 1024,
        "minibatch": 256,
        "epochs": 6,
        "lr": 1e-3,
        "entropy": 0.0,
        "adam_eps": 1e-8,
        "schedule": "constant",
    },
}


def make_task():
    """Returns the Ray task that trains; made here, so that it travels by value: see below."""
    cloudpickle.register_pickle_by_value(stock_ppo)

    @ray.remote(num_cpus=2)
    def late_return(plan, stock, budget):
        """Trains; returns the mean return of the episodes of the last third of the budget.

        In it each slot makes more steps than an episode has, so there are some. An update may
        have none: its mean is NaN, as Ray forgets the episodes of the one before. A function
        that is defined at the top of a test's module could not be imported where the task runs.
        """
        import torch

        from rollout.train.rllib.algorithm import build

        torch.set_num_threads(1)
        algorithm = stock_config_of(plan).build_algo() if stock else build(plan)
        total = ended = steps = 0
        try:
            while steps < budget:
                metrics = algorithm.train()
                steps = metrics["num_env_steps_sampled_lifetime"]
                found = metrics["env_runners"]
                count = found["num_episodes"] if stock else len(algorithm.last.results)
                if steps > 2 * budget / 3 and count:
                    total += count * found["episode_return_mean"]  # of those of this update alone
                    ended += count
        finally:
            algorithm.stop()
        return total / ended

    return late_return


@pytest.mark.slow
@pytest.mark.long
def test_both_reach_the_same_return_on_the_same_budget():
    """Within the spread of 3 seeds: 2 pooled standard deviations, and far from where they began."""
    task, plans = make_task(), [plan_of(CARTPOLE, seed=seed) for seed in (1, 2, 3)]
    asked = [task.remote(plan, stock, BUDGET) for plan in plans for stock in (True, False)]
    returns = np.array(ray.get(asked, timeout=600)).reshape(3, 2)
    stock, ours = returns.T
    assert stock.min() > 3 * RANDOM, returns
    assert ours.min() > 3 * RANDOM, returns
    pooled = np.sqrt((stock.var(ddof=1) + ours.var(ddof=1)) / 2)
    assert abs(stock.mean() - ours.mean()) < 2 * pooled, returns


def test_settings_mean_the_same():
    plan = plan_of(CARTPOLE, seed=4, algorithm={"value_coef": 0.6, "max_grad_norm": None})
    config = stock_config_of(plan)
    assert config.total_train_batch_size == 1024
    assert (config.minibatch_size, config.num_epochs, config.lr) == (256, 6, 1e-3)
    assert config.vf_loss_coeff == pytest.approx(0.3)  # ours is half the mean square error
    assert config.grad_clip is None
    assert config.num_envs_per_env_runner == 16
    falling = stock_config_of(plan_of(CARTPOLE, algorithm={"schedule": "linear"}))
    assert falling.lr == [[0, 1e-3], [BUDGET, 0.0]]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"policy": {"memory": "gru"}}, "memory"),
        ({"algorithm": {"reference": "/some/place"}}, "reference"),
    ],
)
def test_what_stock_cannot_do_is_refused(settings, said):
    with pytest.raises(ConfigError, match=said):
        stock_config_of(plan_of(merged(SMALL, settings)))
