"""Behaviour cloning: trains a policy on the actions of a dataset, and writes a checkpoint.

Training begins with it (``initialize_from``), or stays close to it (``algorithm.reference``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rollout.api import PolicyRecipe
from rollout.cli import Session
from rollout.data import Dataset, EpisodeRef
from rollout.errors import ConfigError
from rollout.job import Job, open_job
from rollout.train.batch import ACTION, OBSERVATION
from rollout.train.callbacks import Callback
from rollout.train.checkpoint import newest_checkpoint
from rollout.train.clone_config import Bc, CloneConfig
from rollout.train.config import SaveConfig
from rollout.train.network import TrainableRecipe
from rollout.train.reading import decided, explain
from rollout.train.rounds import Rounds


def clone(config: CloneConfig, session: Session, on_update: Sequence[Callback] = ()) -> str | None:
    """Clones as the configuration describes, in its own run directory.

    A resumed run continues after its last whole epoch, and ends with the same weights.

    Raises:
        InputError: the configuration is invalid, or there are too few demonstrations.
        KeyboardInterrupt: it was told to stop; whole epochs are saved.
    """
    with Dataset(config.dataset) as dataset:
        _check_policy(config)
        shown, held_out = _divided(config, dataset.episodes())
        with open_job("train", config, session, needs_ray=False) as job:
            cloning = _Cloning(config, job, dataset, (shown, held_out), on_update)
            job.report(mirrored={}, until=cloning.env_steps if cloning.number else -1)
            return job.finish(cloning.clone, cloning.conclude)


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
            f"needed, one of them to measure the loss on; record more with gamut collect"
        )
    count = min(max(1, round(config.held_out * len(refs))), len(refs) - 1)
    return refs[:-count], refs[-count:]


class _Cloning(Rounds):
    """One session of a cloning: its loop and its results."""

    def __init__(
        self,
        config: CloneConfig,
        job: Job,
        dataset: Dataset,
        refs: tuple[list[EpisodeRef], list[EpisodeRef]],
        on_update: Sequence[Callback],
    ) -> None:
        import torch  # noqa: PLC0415 - slow to import, and after the input is checked

        from rollout.train.imitation import Demonstrations, Imitation  # noqa: PLC0415 - likewise

        torch.set_num_threads(config.threads or torch.get_num_threads())
        manifest = dataset.manifest
        self._config, self._manifest = config, manifest
        saved, seen = newest_checkpoint(job.run.checkpoints), manifest.observation_space
        self._policy = decided(config.policy, seen, begun=saved)
        explain(config.policy if saved is None else self._policy, seen)
        recipe: Any = self._policy.build()
        self._reads = tuple(recipe.reads(seen))
        network = recipe.network(seen, manifest.action_space, seed=config.seed)
        columns = [OBSERVATION + k for k in self._reads]
        columns += [ACTION + k for k in manifest.action_space.spaces]
        self._shown, self._held_out = (Demonstrations.read(dataset, r, columns) for r in refs)
        self._options: Bc = config.algorithm.build()
        c = self._options
        self._imitation = Imitation(network, lr=c.lr, minibatch=c.minibatch, bptt=c.bptt)
        super().__init__(job, saved, SaveConfig(every=1, keep=1), on_update)
        self.env_steps = self.number * self._steps  # steps learned from; one counts in every epoch
        if saved is not None:
            network.load_state_dict(saved.weights())
            self._imitation.optimizer.load_state_dict(saved.optimizer())

    @property
    def _steps(self) -> int:
        return int(self._shown.lengths.sum())

    def clone(self) -> None:
        """Makes the epochs that are left; a signal ends it after the current one."""
        self.run(self._options.epochs, self._epoch, number="clone/epoch")

    def _epoch(self) -> dict[str, float]:
        epochs, imitation = self._options.epochs, self._imitation
        loss = imitation.epoch(self._shown, self.number, epochs, self._config.seed)
        self.env_steps += self._steps
        found = {"loss": loss, "held_out_loss": imitation.loss(self._held_out)}
        shown = {"epoch": self.number + 1, **found}
        self.job.progress.update((self.number + 1) / epochs, shown)
        return {f"clone/{k}": v for k, v in found.items()}

    def weights(self) -> dict[str, Any]:
        """Returns the tensors of the network."""
        return dict(self._imitation.network.state_dict())

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
            "optimizer": self._imitation.optimizer.state_dict(),
            "spec": manifest,
            "reads": self._reads,
        }

    def conclude(self, status: str) -> str:
        """Writes ``summary.json``; returns a status sentence."""
        manifest, shown, held_out = self._manifest, self._shown, self._held_out
        self.job.write_summary(
            status,
            protocol={
                "dataset": self._config.dataset,
                "dataset_run": manifest.run,
                "demonstrations_of": manifest.policy,
                "bridge": manifest.bridge,
                "task": manifest.task["name"],
                "policy": self._policy.name,
                "policy_options": self._policy.options,
                "algorithm": {
                    "name": self._config.algorithm.name,
                    **self._config.algorithm.options,
                },
                "seed": self._config.seed,
            },
            results={
                "epochs": self.number,
                "episodes": len(shown.lengths),
                "env_steps": self._steps,
                "held_out_episodes": len(held_out.lengths),
                **{name.removeprefix("clone/"): value for name, value in self.last.items()},
                "ended_by": self.ended_by or None,
                "seconds": round(self.seconds, 2),
            },
        )
        return f"epoch {self.number}"
