"""RLlib's own PPO on the same game and network: what ours is compared with."""

from __future__ import annotations

from typing import Any

from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from rollout.errors import ConfigError
from rollout.host.hosting import pool_options
from rollout.train.plan import TrainPlan
from rollout.train.rllib.module import NetworkModule
from rollout.train.rllib.runner import PLAN
from rollout.vector_env import RemoteVectorEnv, bare


def stock_config_of(plan: TrainPlan) -> PPOConfig:
    """Returns the configuration of RLlib's stock PPO that means the same as the plan.

    Its games are a ``RemoteVectorEnv`` of ``instances * width`` slots in each runner, and its
    network is that of the plan, as a ``NetworkModule``. ``config.build_algo()`` makes it.

    What stock PPO does not know is left out: the epsilon and the weight decay of AdamW (it has
    Adam with 1e-8), ``value_clip``, ``log_ratio_cap``, ``logp_floor``, ``accumulate``.

    Raises:
        ConfigError: the plan asks for what stock PPO cannot do: several action columns, a network
            that remembers, a reference policy.
    """
    c, spec = plan.config, plan.bridge.spec
    _check(plan)
    p = c.ppo
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
        minibatch_size=max(1, p.batch // (c.minibatches * max(1, c.learners.count))),
        num_epochs=p.epochs,
        lr=p.lr if p.schedule == "constant" else [[0, p.lr], [c.env_steps, 0.0]],
        gamma=p.gamma,
        lambda_=p.gae_lambda,
        clip_param=p.clip,
        vf_loss_coeff=0.5 * p.value_coef,  # its value loss is the mean square error itself
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


def _check(plan: TrainPlan) -> None:
    actions = list(plan.bridge.spec.action_space.spaces)
    if len(actions) > 1:
        raise ConfigError(
            f"RLlib's stock PPO chooses one action, and {plan.bridge.spec.name} has "
            f"{', '.join(actions)}; use scripts/train.py"
        )
    if plan.network().memory_keys:
        raise ConfigError(
            f"RLlib's stock PPO cannot train the memory of {plan.config.policy.name}; use "
            f"scripts/train.py, or policy.memory=none"
        )
    if plan.config.ppo.reference.checkpoint is not None:
        raise ConfigError(
            "RLlib's stock PPO knows no reference policy; use scripts/train.py, or "
            "ppo.reference.checkpoint=null"
        )


class _Games(RemoteVectorEnv):
    """The games of one runner; RLlib wants a class, and says how many slots in ``num_envs``."""

    def __init__(self, context: Any) -> None:
        plan: TrainPlan = context[PLAN]
        c = plan.config
        super().__init__(
            plan.bridge,
            plan.task,
            num_envs=context["num_envs"],
            states=plan.states,
            width=c.width,
            seed=c.seed,  # the runner resets it with a seed of its own
            options=pool_options(c.host, plan.bridge.spec),
        )
