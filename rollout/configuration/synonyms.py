"""Names that other libraries give to keys: Stable-Baselines3, CleanRL, RLlib and Gymnasium."""

from __future__ import annotations

from collections.abc import Collection

SYNONYMS: dict[str, tuple[str, ...]] = {
    "learning_rate": ("algorithm.lr",),
    "lr_schedule": ("algorithm.schedule",),
    "anneal_lr": ("algorithm.schedule",),
    "gamma": ("algorithm.gamma",),
    "discount": ("algorithm.gamma",),
    "lambda": ("algorithm.gae_lambda",),
    "lambda_": ("algorithm.gae_lambda",),
    "gae_lambda": ("algorithm.gae_lambda",),
    "batch_size": ("algorithm.minibatch", "algorithm.batch"),
    "minibatch_size": ("algorithm.minibatch",),
    "sgd_minibatch_size": ("algorithm.minibatch",),
    "train_batch_size": ("algorithm.batch",),
    "train_batch_size_per_learner": ("algorithm.batch",),
    "n_epochs": ("algorithm.epochs",),
    "num_epochs": ("algorithm.epochs",),
    "num_sgd_iter": ("algorithm.epochs",),
    "update_epochs": ("algorithm.epochs",),
    "clip_param": ("algorithm.clip",),
    "clip_range": ("algorithm.clip",),
    "clip_coef": ("algorithm.clip",),
    "clip_range_vf": ("algorithm.value_clip",),
    "vf_clip_param": ("algorithm.value_clip",),
    "ent_coef": ("algorithm.entropy",),
    "entropy_coeff": ("algorithm.entropy",),
    "vf_coef": ("algorithm.value_coef",),
    "vf_loss_coeff": ("algorithm.value_coef",),
    "grad_clip": ("algorithm.max_grad_norm",),
    "max_grad_norm": ("algorithm.max_grad_norm",),
    "norm_adv": ("algorithm.normalize_advantages",),
    "normalize_advantage": ("algorithm.normalize_advantages",),
    "n_steps": ("fragment.steps",),
    "num_steps": ("fragment.steps",),
    "rollout_fragment_length": ("fragment.steps",),
    "total_timesteps": ("env_steps",),
    "timesteps": ("env_steps",),
    "max_steps": ("env_steps",),
    "n_envs": ("width", "instances"),
    "num_envs": ("width", "instances"),
    "num_envs_per_env_runner": ("width", "instances"),
    "num_envs_per_worker": ("width", "instances"),
    "num_workers": ("runners", "actors"),
    "num_rollout_workers": ("runners", "actors"),
    "num_env_runners": ("runners", "actors"),
    "workers": ("runners", "actors"),
    "num_learners": ("learners.count",),
    "num_gpus": ("learners.gpus",),
    "num_gpus_per_learner": ("learners.gpus",),
    "net_arch": ("policy.hidden",),
    "fcnet_hiddens": ("policy.hidden",),
    "hidden_sizes": ("policy.hidden",),
    "use_lstm": ("policy.memory",),
    "lstm_cell_size": ("policy.memory_size",),
    "env": ("bridge.name", "task"),
    "env_id": ("bridge.name", "task"),
    "n_eval_episodes": ("episodes",),
    "num_episodes": ("episodes",),
    "deterministic": ("explore",),
    "tensorboard_log": ("output",),
    "log_dir": ("output",),
    "save_freq": ("checkpoint.every",),
    "checkpoint_frequency": ("checkpoint.every",),
    "random_seed": ("seed",),
    "wandb_project": ("wandb.project",),
    "wandb_project_name": ("wandb.project",),
    "verbose": ("log.level",),
}
"""The name elsewhere, and the keys that may be meant, the most likely first."""


def known_as(name: str, valid: Collection[str]) -> list[str]:
    """Returns the valid keys that a name means in other libraries, the most likely first.

    Args:
        name: last part of an unknown key.
        valid: the dotted keys that the configuration may have; those of training lie under
            ``train`` in a sweep and a search.
    """
    meant = SYNONYMS.get(name.lower().replace("-", "_"), ())
    return [key for base in meant for key in (base, f"train.{base}") if key in valid]
