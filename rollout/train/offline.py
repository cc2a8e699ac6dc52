"""Trains a policy on the steps of a dataset, and writes a checkpoint.

Training by playing begins with it (``initialize_from``), or stays close to it
(``algorithm.reference``).
"""

from __future__ import annotations

import inspect
import logging
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from rollout.api import PolicyRecipe
from rollout.cli import Session
from rollout.data import Dataset, EpisodeRef, Manifest
from rollout.errors import ConfigError, InputError
from rollout.job import Job, open_job
from rollout.train.callbacks import Callback
from rollout.train.checkpoint import Checkpoint, newest_checkpoint
from rollout.train.config import LearnersConfig, SaveConfig
from rollout.train.network import TrainableRecipe
from rollout.train.offline_config import OfflineConfig, divided, weight_of
from rollout.train.reading import decided, explain
from rollout.train.rounds import Rounds

log = logging.getLogger(__name__)


def learn_offline(
    config: OfflineConfig, session: Session, on_update: Sequence[Callback] = ()
) -> str | None:
    """Learns from a dataset as the configuration describes, in its own run directory.

    A resumed run continues after the last whole part of an epoch, and ends with the same weights.

    Raises:
        InputError: the configuration is invalid, or there are too few demonstrations.
        KeyboardInterrupt: it was told to stop; whole parts of epochs are saved.
    """
    with Dataset(config.dataset) as dataset:
        manifest, refs = dataset.manifest, dataset.episodes(filter=config.filter)
        _check_policy(config)
        _check_learners(config)
        episodes = divided(config, refs)
        weight_of(config, dataset, refs)
    from rollout.train.dataset_learner import DatasetSetup  # noqa: PLC0415 - imports torch
    from rollout.train.workers import open_learners  # noqa: PLC0415 - likewise

    with open_job("train", config, session, needs_ray=bool(config.learners)) as job:
        with Dataset(config.dataset) as dataset:
            job.lineage.add("used", dataset)
        saved, seen = newest_checkpoint(job.run.checkpoints), manifest.observation_space
        policy = decided(config.policy, seen, begun=saved)
        explain(config.policy if saved is None else policy, seen)
        job.report(mirrored={}, until=saved.env_steps if saved is not None else -1)
        with job.ray() as stack:
            learners = stack.enter_context(
                open_learners(
                    DatasetSetup(config, policy),
                    LearnersConfig(count=config.learners),
                    job.run.path,
                )
            )
            training = _Offline(config, job, (manifest, episodes), saved, learners, on_update)
            return job.finish(training.learn, training.conclude)


def _check_policy(config: OfflineConfig) -> None:
    recipe: PolicyRecipe = config.policy.build()
    if not isinstance(recipe, TrainableRecipe):
        raise ConfigError(
            f"policy {config.policy.name} has no network that could be trained; use actor_critic, "
            f"or a policy that offers network() and reads()"
        )


def _check_learners(config: OfflineConfig) -> None:
    options: Any = config.algorithm.build()
    if config.learners > 1:
        if "reduce_gradients" not in inspect.signature(options.learner).parameters:
            raise ConfigError(
                f"learners={config.learners}: algorithm {config.algorithm.name} learns in one "
                f"process; use learners=0"
            )
        if (width := options.minibatch // options.bptt) < config.learners:
            raise ConfigError(
                f"learners={config.learners}: a minibatch has {width} sequences of "
                f"algorithm.bptt={options.bptt} steps, and each learner needs one; use fewer "
                f"learners, or a larger algorithm.minibatch"
            )


class _Offline(Rounds):
    """One session of a training on a dataset: its loop and its results."""

    def __init__(
        self,
        config: OfflineConfig,
        job: Job,
        data: tuple[Manifest, tuple[list[EpisodeRef], list[EpisodeRef]]],
        saved: Checkpoint | None,
        learners: Any,
        on_update: Sequence[Callback],
    ) -> None:
        self._config, self._learners = config, learners
        self._manifest, (self._shown, self._held_out) = data
        seen = self._manifest.observation_space
        self._policy = decided(config.policy, seen, begun=saved)
        recipe: Any = self._policy.build()
        self._reads = tuple(recipe.reads(seen))
        self._epochs_in_all = config.algorithm.build().epochs
        self._parts, self._learned = learners.call("parts"), False
        super().__init__(job, saved, SaveConfig(every=1, keep=1), on_update)
        if saved is not None:
            learners.call("restore", saved.weights(), saved.optimizer())
        if self._parts > 1:
            log.info(
                "the %d episodes are read in %d parts in each epoch (memory_mb=%g)",
                len(self._shown),
                self._parts,
                config.memory_mb,
            )

    @property
    def _steps(self) -> int:
        return sum(ref.length for ref in self._shown)

    @property
    def _epochs(self) -> float:
        return self.number / int(self._parts)

    def learn(self) -> None:
        """Makes the epochs that are left; a signal ends it after the current part of one."""
        number = "clone/epoch" if self._parts == 1 else "clone/part"
        self.run(self._epochs_in_all * self._parts, self._part, number=number)

    def _part(self) -> dict[str, float]:
        began, parts = time.monotonic(), self._parts
        found = self._learners.call("part", self.number)
        self.env_steps += found["steps"]
        self._learned = self._learned or found["weight"] > 0
        if not self._learned and (self.number + 1) % parts == 0:
            raise InputError(
                f"weight: {self._config.weight} is 0 for each step of the {len(self._shown)} "
                f"episodes to learn from; expected another weight for some"
            )
        line = dict(found["figures"])
        measured = self._learners.call("measured")
        line |= {f"held_out_{k}": v for k, v in measured.items() if k in line}
        if parts > 1:
            line |= {"epoch": (self.number + 1) / parts}
            line |= {"wait_share": found["wait_s"] / max(1e-9, time.monotonic() - began)}
        share = (self.number + 1) / (self._epochs_in_all * parts)
        self.job.progress.update(share, {"epoch": self._epochs, **line})
        return {f"clone/{k}": v for k, v in line.items()}

    def weights(self) -> dict[str, Any]:
        """Returns the tensors of the network."""
        return dict(self._learners.call("weights"))

    def checkpoint(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """See ``Rounds``."""
        policy, manifest = self._policy, self._manifest
        return {
            "policy": {"name": policy.name, "options": policy.options},
            "bridge": {
                "name": manifest.bridge,
                "options": dict(manifest.bridge_options),
                "version": manifest.bridge_version,
            },
            "task": manifest.task["name"],
            "demonstrations": {"run": manifest.run, "policy": manifest.policy},
        }, {
            "optimizer": self._learners.call("state"),
            "spec": manifest,
            "reads": self._reads,
        }

    def conclude(self, status: str) -> str:
        """Writes ``summary.json``; returns a status sentence."""
        manifest = self._manifest
        self.job.write_summary(
            status,
            protocol={
                "dataset": self._config.dataset,
                "dataset_run": manifest.run,
                "demonstrations_of": manifest.policy,
                "bridge": manifest.bridge,
                "task": manifest.task["name"],
                "filter": self._config.filter,
                "weight": self._config.weight,
                "policy": self._policy.name,
                "policy_options": self._policy.options,
                "algorithm": {
                    "name": self._config.algorithm.name,
                    **self._config.algorithm.options,
                },
                "seed": self._config.seed,
            },
            results={
                "epochs": self.number if self._parts == 1 else self._epochs,
                "episodes": len(self._shown),
                "env_steps": self._steps,
                "visits": _visits(self._shown),
                "held_out_episodes": len(self._held_out),
                **{name.removeprefix("clone/"): value for name, value in self.last.items()},
                "ended_by": self.ended_by or None,
                "seconds": round(self.seconds, 2),
            },
        )
        return f"epoch {self._epochs:g}"


def _visits(refs: Sequence[EpisodeRef]) -> dict[str, float]:
    """Returns how many episodes begin in each start state that there is."""
    counts = list(Counter(ref.state for ref in refs).values())
    return {
        "states": len(counts),
        "min": min(counts),
        "median": float(np.median(counts)),
        "max": max(counts),
        "never": 0.0,
    }
