"""Behaviour cloning: trains a policy on the actions of a dataset, and writes a checkpoint.

Training begins with it (``initialize_from``), or stays close to it (``algorithm.reference``).
"""

from __future__ import annotations

import logging
import time
from typing import Any, ClassVar

from rollout.api import PolicyRecipe
from rollout.cli import Session
from rollout.config import PolicyConfig, RunConfig, key
from rollout.data import Dataset, EpisodeRef
from rollout.errors import ConfigError
from rollout.job import Job, open_job
from rollout.run_directory import versions
from rollout.train.batch import ACTION, OBSERVATION
from rollout.train.checkpoint import newest_checkpoint, prune, write_checkpoint
from rollout.train.network import TrainableRecipe
from rollout.train.reading import decided, explain

log = logging.getLogger(__name__)


class CloneConfig(RunConfig):
    """Trains a policy to choose the actions of a dataset."""

    may_change: ClassVar[tuple[str, ...]] = (*RunConfig.may_change, "threads")

    dataset: str = key(..., "Dataset of the demonstrations, or the run directory that recorded it.")
    policy: PolicyConfig = key(
        lambda: PolicyConfig(name="actor_critic"), "The policy to train; actor_critic."
    )
    seed: int = key(0, "Seed of the initial weights and the order of the steps.", ge=0)
    epochs: int = key(10, "Passes over the demonstrations.", unit="epochs", gt=0)
    held_out: float = key(
        0.1,
        "Share of the episodes, the last ones, that are not learned from: the loss on them is "
        "measured after every epoch.",
        gt=0,
        lt=1,
    )
    lr: float = key(1e-3, "Initial learning rate; it decays linearly to 0.", gt=0)
    minibatch: int = key(2048, "Steps of a minibatch.", unit="steps", gt=0)
    bptt: int = key(32, "Length of truncated backpropagation through time.", unit="steps", gt=0)
    threads: int = key(1, "Torch threads; 0 for all.", unit="threads", ge=0)


def clone(config: CloneConfig, session: Session) -> None:
    """Clones as the configuration describes, in its own run directory.

    A resumed run continues after its last whole epoch, and ends with the same weights.

    Raises:
        InputError: the configuration is invalid, or there are too few demonstrations.
        KeyboardInterrupt: it was told to stop; whole epochs are saved.
    """
    with Dataset(config.dataset) as dataset:
        _check_policy(config)
        shown, held_out = _divided(config, dataset.episodes())
        with open_job("clone", config, session, needs_ray=False) as job:
            cloning = _Cloning(config, job, dataset, (shown, held_out))
            job.report(mirrored={}, until=cloning.seen if cloning.epoch else -1)
            job.finish(cloning.run, cloning.conclude)


def _check_policy(config: CloneConfig) -> None:
    recipe: PolicyRecipe = config.policy.build()
    if not isinstance(recipe, TrainableRecipe):
        raise ConfigError(
            f"policy {config.policy.name} has no network that could be trained; use actor_critic, "
            f"or a policy that offers network() and reads()"
        )


def _divided(
    config: CloneConfig, refs: list[EpisodeRef]
) -> tuple[list[EpisodeRef], list[EpisodeRef]]:
    """The episodes to learn from, and the others, in the order of their numbers."""
    refs = sorted((ref for ref in refs if ref.length), key=lambda ref: ref.episode)
    if len(refs) < 2:
        raise ConfigError(
            f"dataset: {config.dataset} has {len(refs)} finished episodes, and at least 2 are "
            f"needed, one of them to measure the loss on; record more with scripts/collect.py"
        )
    count = min(max(1, round(config.held_out * len(refs))), len(refs) - 1)
    return refs[:-count], refs[-count:]


class _Cloning:
    """One session of a cloning: its loop and its results."""

    def __init__(
        self,
        config: CloneConfig,
        job: Job,
        dataset: Dataset,
        refs: tuple[list[EpisodeRef], list[EpisodeRef]],
    ) -> None:
        import torch  # noqa: PLC0415 - slow to import, and after the input is checked

        from rollout.train.imitation import Demonstrations, Imitation  # noqa: PLC0415 - likewise

        torch.set_num_threads(config.threads or torch.get_num_threads())
        manifest = dataset.manifest
        self._config, self._job, self._manifest = config, job, manifest
        saved, seen = newest_checkpoint(job.run.checkpoints), manifest.observation_space
        self._policy = decided(config.policy, seen, begun=saved)
        explain(config.policy if saved is None else self._policy, seen)
        recipe: Any = self._policy.build()
        self._reads = tuple(recipe.reads(seen))
        network = recipe.network(seen, manifest.action_space, seed=config.seed)
        columns = [OBSERVATION + k for k in self._reads]
        columns += [ACTION + k for k in manifest.action_space.spaces]
        self._shown, self._held_out = (Demonstrations.read(dataset, r, columns) for r in refs)
        self._imitation = Imitation(
            network, lr=config.lr, minibatch=config.minibatch, bptt=config.bptt
        )
        self._began, self._last = time.monotonic(), dict[str, float]()
        self.epoch = 0
        if saved is not None:
            self.epoch = saved.update
            network.load_state_dict(saved.weights())
            self._imitation.optimizer.load_state_dict(saved.optimizer())
            log.info("continues after epoch %d", self.epoch)

    def run(self) -> None:
        """Makes the epochs that are left; a signal ends it after the current one."""
        c, job = self._config, self._job
        with job.stop.deferred():
            while self.epoch < c.epochs and not job.stop.requested:
                loss = self._imitation.epoch(self._shown, self.epoch, c.epochs, c.seed)
                self.epoch += 1
                self._last = {"loss": loss, "held_out_loss": self._imitation.loss(self._held_out)}
                values = {f"clone/{k}": v for k, v in self._last.items()}
                # Before the checkpoint: a line without one is made again, not the reverse.
                job.metrics.write(self.seen, {**values, "clone/epoch": self.epoch})
                self._save()
                job.progress.update(self.epoch / c.epochs, {"epoch": self.epoch, **self._last})

    @property
    def seen(self) -> int:
        """Steps learned from so far; one counts in every epoch."""
        return self.epoch * self._steps

    @property
    def _steps(self) -> int:
        return int(self._shown.lengths.sum())

    def _save(self) -> None:
        policy, manifest = self._policy, self._manifest
        write_checkpoint(
            self._job.run.checkpoints,
            {
                "update": self.epoch,
                "env_steps": 0,
                "policy": {"name": policy.name, "options": policy.options},
                "bridge": {
                    "name": manifest.bridge,
                    "options": dict(manifest.bridge_options),
                    "version": manifest.bridge_version,
                },
                "task": manifest.task["name"],
                "demonstrations": {"run": manifest.run, "policy": manifest.policy},
                "run_id": self._job.run.run_id,
                "versions": versions(),
            },
            weights=self._imitation.network.state_dict(),
            optimizer=self._imitation.optimizer.state_dict(),
            spec=manifest,
            reads=self._reads,
        )
        prune(self._job.run.checkpoints, 1)

    def conclude(self, status: str) -> str:
        """Writes ``summary.json``; returns a status sentence."""
        manifest, shown, held_out = self._manifest, self._shown, self._held_out
        self._job.write_summary(
            status,
            protocol={
                "dataset": self._config.dataset,
                "dataset_run": manifest.run,
                "demonstrations_of": manifest.policy,
                "bridge": manifest.bridge,
                "task": manifest.task["name"],
                "policy": self._policy.name,
                "policy_options": self._policy.options,
                "seed": self._config.seed,
            },
            results={
                "epochs": self.epoch,
                "episodes": len(shown.lengths),
                "env_steps": self._steps,
                "held_out_episodes": len(held_out.lengths),
                **self._last,
                "seconds": round(time.monotonic() - self._began, 2),
            },
        )
        return f"epoch {self.epoch}"
