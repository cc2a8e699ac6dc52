"""RLlib's own PPO on the same game and network, as a baseline for ours."""

from __future__ import annotations

from typing import Any

from gymnasium.spaces import Box
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from rollout.errors import ConfigError
from rollout.train.plan import TrainPlan
from rollout.train.ppo import Ppo
from rollout.train.rllib.learner import PLAN
from rollout.train.rllib.module import NetworkModule
from rollout.vector_env import RemoteVectorEnv, bare


def stock_config_of(plan: TrainPlan) -> PPOConfig:
    """Returns the configuration of RLlib's stock PPO that is equivalent to the plan.

    The environment is a ``RemoteVectorEnv`` of ``instances * width`` slots in each runner, and the
    network is that of the plan, as a ``NetworkModule``. ``config.build_algo()`` builds the
    algorithm.

    Options that stock PPO does not have are left out: epsilon and weight decay of AdamW (it has
    Adam with 1e-8), ``value_clip``, ``log_ratio_cap``, ``logp_floor``, ``accumulate``.

    Raises:
        ConfigError: the plan needs what stock PPO does not support: several action columns, a
            recurrent network, or a reference policy.
    """
    c, spec = plan.config, plan.bridge.spec
    p = _checked(plan)
    slots = c.instances * c.width
    config = PPOConfig()
    config.environment(
        env=_Games,
        observation_space=bare(spec.observation_space),
        action_space=bare(spec.action_space),
        env_config={PLAN: plan},
        disable_env_checking=True,
    )
    config.env_runners(
        num_env_runners=c.runners,
        num_envs_per_env_runner=slots,
        gym_env_vectorize_mode="vector_entry_point",
        rollout_fragment_length=c.fragment.steps,
        batch_mode="truncate_episodes",
    )
    config.learners(num_learners=c.learners.count, num_gpus_per_learner=c.learners.gpus)
    config.training(
        train_batch_size_per_learner=max(1, p.batch // max(1, c.learners.count)),
        minibatch_size=max(1, p.batch // (p.minibatches * max(1, c.learners.count))),
        num_epochs=p.epochs,
        lr=p.lr if p.schedule == "constant" else [[0, p.lr], [c.env_steps, 0.0]],
        gamma=p.gamma,
        lambda_=p.gae_lambda,
        clip_param=p.clip,
        vf_loss_coeff=0.5 * p.value_coef,  # its value loss has no factor 0.5
        vf_clip_param=float("inf"),
        entropy_coeff=p.entropy,
        use_kl_loss=False,
        grad_clip=p.max_grad_norm,
        grad_clip_by="global_norm",
    )
    config.rl_module(
        rl_module_spec=RLModuleSpec(
            module_class=NetworkModule,
            model_config={
                "policy": c.policy.name,
                "options": c.policy.options,
                "seed": c.seed,
            },
        )
    )
    config.debugging(seed=c.seed, log_level="ERROR")
    return config


def _checked(plan: TrainPlan) -> Ppo:
    if not isinstance(plan.algorithm, Ppo):
        raise ConfigError(
            f"RLlib's stock PPO is what algorithm ppo is compared with, and this run's is "
            f"{plan.config.algorithm.name}; use scripts/train.py"
        )
    actions = list(plan.bridge.spec.action_space.spaces)
    if len(actions) > 1:
        raise ConfigError(
            f"RLlib's stock PPO chooses one action, and {plan.bridge.spec.name} has "
            f"{', '.join(actions)}; use scripts/train.py"
        )
    if any(isinstance(s, Box) for s in plan.bridge.spec.action_space.spaces.values()):
        raise ConfigError(
            "RLlib's stock PPO has other continuous distributions than actor_critic, so they are "
            "not compared; use scripts/train.py"
        )
    if plan.network().memory_keys:
        raise ConfigError(
            f"RLlib's stock PPO cannot train the memory of {plan.config.policy.name}; use "
            f"scripts/train.py, or policy.memory=none"
        )
    if plan.algorithm.reference is not None:
        raise ConfigError(
            "RLlib's stock PPO knows no reference policy; use scripts/train.py, or "
            "algorithm.reference=null"
        )
    return plan.algorithm


class _Games(RemoteVectorEnv):
    """The games of one runner; RLlib needs a class, and gives ``num_envs`` slots."""

    def __init__(self, context: Any) -> None:
        plan: TrainPlan = context[PLAN]
        c = plan.config
        super().__init__(
            plan.bridge,
            plan.task,
            num_envs=context["num_envs"],
            states=plan.states,
            width=c.width,
            seed=c.seed,  # the runner resets it with its own seed
            host=c.host,
        )
