"""Trains a policy on the steps of a dataset, and writes a checkpoint.

Training by playing begins with it (``initialize_from``), or stays close to it
(``algorithm.reference``).
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rollout.api import Array, Columns, PolicyRecipe, Progress, StepLearner
from rollout.cli import Session
from rollout.data import Dataset, EpisodeRef, StepWeight
from rollout.errors import ConfigError, InputError
from rollout.job import Job, open_job
from rollout.train.callbacks import Callback
from rollout.train.checkpoint import newest_checkpoint
from rollout.train.config import SaveConfig
from rollout.train.network import TrainableRecipe
from rollout.train.offline_config import OfflineConfig
from rollout.train.reading import decided, explain
from rollout.train.rounds import Rounds

if TYPE_CHECKING:
    from rollout.train.recorded import Demonstrations

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
        _check_policy(config)
        refs = dataset.episodes(filter=config.filter)
        shown, held_out = _divided(config, refs)
        weight = _weight(config, dataset, refs)
        with open_job("train", config, session, needs_ray=False) as job:
            training = _Offline(config, job, dataset, (shown, held_out), weight, on_update)
            job.stack.callback(training.close)
            job.lineage.add("used", dataset)
            job.report(mirrored={}, until=training.env_steps if training.number else -1)
            return job.finish(training.learn, training.conclude)


def _check_policy(config: OfflineConfig) -> None:
    recipe: PolicyRecipe = config.policy.build()
    if not isinstance(recipe, TrainableRecipe):
        raise ConfigError(
            f"policy {config.policy.name} has no network that could be trained; use actor_critic, "
            f"or a policy that offers network() and reads()"
        )


def _divided(
    config: OfflineConfig, refs: list[EpisodeRef]
) -> tuple[list[EpisodeRef], list[EpisodeRef]]:
    """The episodes to learn from, and the others, in the order of their numbers."""
    refs = sorted((ref for ref in refs if ref.length), key=lambda ref: ref.episode)
    if len(refs) < 2:
        filtered = f" of filter={config.filter!r}" if config.filter else ""
        raise ConfigError(
            f"dataset: {config.dataset} has {len(refs)} finished episodes{filtered}, and at least "
            f"2 are needed, one of them to measure the loss on; record more with gamut collect"
        )
    count = min(max(1, round(config.held_out * len(refs))), len(refs) - 1)
    return refs[:-count], refs[-count:]


def _weight(
    config: OfflineConfig, dataset: Dataset, refs: Sequence[EpisodeRef]
) -> StepWeight | None:
    """The weights of the steps; None if they are equal."""
    evaluator = dataset.manifest.task.get("evaluator") or {}
    parts = evaluator["options"]["parts"] if evaluator.get("type") == "Then" else [None]
    return StepWeight(config.weight, refs, parts=len(parts)) if config.weight else None


class _Offline(Rounds):
    """One session of a training on a dataset: its loop and its results."""

    def __init__(
        self,
        config: OfflineConfig,
        job: Job,
        dataset: Dataset,
        refs: tuple[list[EpisodeRef], list[EpisodeRef]],
        weight: StepWeight | None,
        on_update: Sequence[Callback],
    ) -> None:
        import torch  # noqa: PLC0415 - slow to import, and after the input is checked

        from rollout.train.recorded import (  # noqa: PLC0415 - likewise
            Demonstrations,
            PartReader,
            StepColumns,
        )

        torch.set_num_threads(config.threads or torch.get_num_threads())
        manifest = dataset.manifest
        self._config, self._manifest = config, manifest
        saved, seen = newest_checkpoint(job.run.checkpoints), manifest.observation_space
        self._policy = decided(config.policy, seen, begun=saved)
        explain(config.policy if saved is None else self._policy, seen)
        recipe: Any = self._policy.build()
        self._reads = tuple(recipe.reads(seen))
        network = recipe.network(seen, manifest.action_space, seed=config.seed)
        self._network, self._options = network, config.algorithm.build()
        columns = StepColumns(
            reads=self._reads,
            actions=tuple(manifest.action_space.spaces),
            needs=self._options.needs,
            gamma=getattr(self._options, "gamma", 1.0),
            weight=weight,
        )
        shown, held_out = refs
        self._held_out = Demonstrations.read(dataset, held_out, columns)
        self._reader = PartReader(
            dataset, shown, columns, memory_mb=config.memory_mb, seed=config.seed
        )
        self._shown, self._learned = shown, False
        self._learner: StepLearner = self._options.learner(network)
        super().__init__(job, saved, SaveConfig(every=1, keep=1), on_update)
        if saved is not None:
            network.load_state_dict(saved.weights())
            self._learner.restore(saved.optimizer())
        if self._reader.parts > 1:
            log.info(
                "the %d episodes are read in %d parts in each epoch (memory_mb=%g)",
                len(shown),
                self._reader.parts,
                config.memory_mb,
            )

    @property
    def _steps(self) -> int:
        return sum(ref.length for ref in self._shown)

    @property
    def _epochs(self) -> float:
        return self.number / self._reader.parts

    def learn(self) -> None:
        """Makes the epochs that are left; a signal ends it after the current part of one."""
        parts = self._reader.parts
        number = "clone/epoch" if parts == 1 else "clone/part"
        self.run(self._options.epochs * parts, self._part, number=number)

    def _part(self) -> dict[str, float]:
        options, parts = self._options, self._reader.parts
        began, waited = time.monotonic(), self._reader.wait_s
        steps = self._reader.part(self.number)
        # The order of a whole epoch in memory is that of version 0.1.
        seed = (self._config.seed, self.number)
        chunks = self._chunks(steps, np.random.default_rng(seed))
        total = options.epochs * parts
        figures = _Means()
        memory: Mapping[str, Any] = {}
        for at, (batch, count) in enumerate(chunks):
            progress = Progress(
                update=self.number * len(chunks) + at,
                env_steps=self.number * len(chunks) + at,
                budget=total * len(chunks),
                seed=self._config.seed,
            )
            found, memory = self._learner.update(batch, self._memory(memory, batch), progress)
            figures.add(found, count)
        self.env_steps += int(steps.lengths.sum())
        self._learned = self._learned or figures.weight > 0
        if not self._learned and (self.number + 1) % parts == 0:
            raise InputError(
                f"weight: {self._config.weight} is 0 for each step of the {len(self._shown)} "
                f"episodes to learn from; expected another weight for some"
            )
        line = figures.means()
        line |= {f"held_out_{k}": v for k, v in self._measured().items() if k in line}
        if parts > 1:
            waited = self._reader.wait_s - waited
            line |= {"epoch": (self.number + 1) / parts}
            line |= {"wait_share": waited / max(1e-9, time.monotonic() - began)}
        self.job.progress.update((self.number + 1) / total, {"epoch": self._epochs, **line})
        return {f"clone/{k}": v for k, v in line.items()}

    def _measured(self) -> dict[str, float]:
        """Returns the figures of the episodes that are not learned from."""
        figures, memory = _Means(), dict[str, Any]()
        for batch, count in self._chunks(self._held_out, None):
            found, memory = self._learner.measure(batch, self._memory(memory, batch))
            figures.add(found, count)
        return figures.means()

    def _memory(self, memory: Mapping[str, Any], batch: Mapping[str, Array]) -> Mapping[str, Any]:
        """Returns the memory before a batch: zeros at first."""
        import torch  # noqa: PLC0415 - see above

        width, network = batch["valid"].shape[1], self._network
        return memory or {k: torch.zeros(width, network.memory_size) for k in network.memory_keys}

    def _chunks(self, steps: Demonstrations, rng: np.random.Generator | None) -> _Chunks:
        options = self._options
        return _Chunks(
            steps,
            list(
                steps.chunks(
                    rng,
                    minibatch=options.minibatch,
                    bptt=options.bptt,
                    recurrent=bool(self._network.memory_keys),
                )
            ),
        )

    def close(self) -> None:
        """Ends the thread that reads. Idempotent."""
        self._reader.close()

    def weights(self) -> dict[str, Any]:
        """Returns the tensors of the network."""
        return dict(self._network.state_dict())

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
            "optimizer": self._learner.state(),
            "spec": manifest,
            "reads": self._reads,
        }

    def conclude(self, status: str) -> str:
        """Writes ``summary.json``; returns a status sentence."""
        manifest, held_out = self._manifest, self._held_out
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
                "epochs": self.number if self._reader.parts == 1 else self._epochs,
                "episodes": len(self._shown),
                "env_steps": self._steps,
                "visits": _visits(self._shown),
                "held_out_episodes": len(held_out.lengths),
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


class _Chunks:
    """The batches of some steps, made when they are asked for.

    Args:
        steps: the steps.
        chunks: numbers of the steps of each batch, see ``Demonstrations.chunks``.
    """

    def __init__(self, steps: Demonstrations, chunks: Sequence[tuple[Array, Array, Array]]) -> None:
        self._steps = steps
        self._chunks = [chunk for chunk in chunks if chunk[2].any()]

    def __len__(self) -> int:
        return len(self._chunks)

    def __iter__(self) -> Iterator[tuple[Columns, float]]:
        """Yields batches ``(T, N, ...)`` with the sums of the weights of their steps."""
        for index, first, valid in self._chunks:
            batch = {key: array[index] for key, array in self._steps.columns.items()}
            weight = batch["weight"][valid].sum() if "weight" in batch else valid.sum()
            yield {**batch, "first": first, "valid": valid}, float(weight)


class _Means:
    """Means of figures over batches, weighted by their steps.

    Attributes:
        weight: sum of the weights.
    """

    def __init__(self) -> None:
        self._totals: dict[str, float] = {}
        self.weight = 0.0

    def add(self, figures: Mapping[str, float], weight: float) -> None:
        """Adds the figures of a batch."""
        for name, value in figures.items():
            self._totals[name] = self._totals.get(name, 0.0) + value * weight
        self.weight += weight

    def means(self) -> dict[str, float]:
        """Returns the means; none if all weights are 0."""
        return {name: total / self.weight for name, total in self._totals.items() if self.weight}
