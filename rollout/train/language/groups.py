"""GRPO, RLOO and GiGPO: a language model learns from groups of episodes with the same start.

::

    for update in ...:
        play groups of episodes      # recorded in dataset/, with the tokens of every answer
        compare each with its group  # advantages.py
        learn                        # learner.py
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rollout.api import (
    CALLS,
    CALLS_SPEC,
    Array,
    EpisodeResult,
    Fragment,
    GroupAlgorithm,
    Outcome,
    StateSet,
)
from rollout.cli import Session
from rollout.data import Dataset, DatasetWriter, describe_dataset
from rollout.errors import ContractError
from rollout.host.schedule import derived_seed
from rollout.job import Job, open_job
from rollout.models.examples import TrainingExample
from rollout.observe.logs import log_losses, log_notices
from rollout.run_directory import versions
from rollout.tasks import bridge_and_task
from rollout.train.callbacks import Callback
from rollout.train.checkpoint import newest_checkpoint
from rollout.train.language.config import PlayGroupsConfig
from rollout.train.language.learner import PassOptions
from rollout.train.language.rollouts import GroupSchedule, Rollouts, open_rollouts
from rollout.train.language.run import (
    AnsweredEpisode,
    LanguagePlan,
    LanguageRun,
    language_recipe,
    read_answered_episode,
)
from rollout.train.workers import open_learners

log = logging.getLogger(__name__)

_STATES = 2  # key of the seeds that draw the states of updates


def play_groups(
    config: PlayGroupsConfig, session: Session, on_update: Sequence[Callback] = ()
) -> str | None:
    """Trains as the configuration describes, in its own run directory.

    A resumed run continues after its last checkpoint; episodes that it had recorded since are not
    played again.

    Raises:
        InputError: the configuration is invalid; nothing was launched.
        KeyboardInterrupt: a signal stopped it; whole updates are saved.
    """
    plan, states = _plan(config)
    needs_ray = bool(config.actors or config.learners.count or config.inference.actors)
    with open_job("train", plan.config, session, needs_ray=needs_ray) as job:
        writer = job.stack.enter_context(_writer(plan, job))
        saved = newest_checkpoint(job.run.checkpoints)
        until = -1 if saved is None else saved.env_steps
        job.lineage.add("used", plan.recipe)
        job.report(mirrored={"state_set_digest": states.digest}, until=until)
        with job.ray() as stack:
            learners = stack.enter_context(
                open_learners(plan.learner, config.learners, job.run.path)
            )
            playing = stack.enter_context(
                open_rollouts(config, plan.bridge, plan.task, plan.recipe, config.inference)
            )
            run = LanguageRun(plan, job, learners, saved, on_update)
            training = _Training(plan, job, run, playing, writer, states)
            return job.finish(training.run, training.end)


def _plan(config: PlayGroupsConfig) -> tuple[LanguagePlan, StateSet]:
    bridge_config, bridge, task = bridge_and_task(config.bridge, config.task)
    config = config.model_copy(update={"bridge": bridge_config})
    recipe = language_recipe(config.policy)
    recipe.build(bridge.spec, task, seed=config.seed)
    states = config.state_set.take(task.state_space)
    states.require_trainable()
    validation: StateSet | None = None
    if config.validation.states:
        validation = config.state_set.of_part("validation", config.validation.states).take(
            task.state_space
        )
    plan = LanguagePlan(
        config=config,
        bridge=bridge,
        bridge_name=bridge_config.name,
        bridge_options=bridge_config.options,
        task=task,
        recipe=recipe,
        algorithm=config.algorithm.build(),
        validation=validation,
    )
    return plan, states


def _writer(plan: LanguagePlan, job: Job) -> DatasetWriter:
    spec, policy = plan.bridge.spec, plan.config.policy
    manifest = describe_dataset(
        spec,
        plan.task,
        bridge=plan.bridge_name,
        bridge_options=dict(plan.bridge_options),
        policy=policy.name,
        policy_options=policy.options,
        extras={CALLS: CALLS_SPEC},
        codec="raw",
        codecs={},
        details=True,
        code_version=str(versions()["gamut"]),
        run=job.run.run_id,
    )
    return DatasetWriter(job.run.dataset, manifest)


def _with_advantages(
    algorithm: GroupAlgorithm, groups: Sequence[Sequence[AnsweredEpisode]]
) -> Iterator[tuple[AnsweredEpisode, Sequence[float] | Array]]:
    """Yields every episode with the advantages of its steps."""
    played = [[each.played for each in group] for group in groups]
    found = algorithm.advantages(played)
    if [[len(a) for a in group] for group in found] != [
        [len(each.rewards) for each in group] for group in played
    ]:
        raise ContractError(
            f"algorithm {type(algorithm).__name__}: expected an advantage for each step of each "
            f"episode of each group"
        )
    for group, advantages in zip(groups, found, strict=True):
        yield from zip(group, advantages, strict=True)


class _Training:
    """One session of a training: its loop and its results."""

    def __init__(
        self,
        plan: LanguagePlan,
        job: Job,
        run: LanguageRun,
        playing: Rollouts,
        writer: DatasetWriter,
        states: StateSet,
    ) -> None:
        self._plan, self._job, self._learners = plan, job, run.learners
        self._playing, self._writer, self._states = playing, writer, states
        config = plan.config
        assert isinstance(config, PlayGroupsConfig)
        self._config, self._run, self._lost = config, run, 0

    def run(self) -> None:
        """Makes the updates that are left; a signal ends it."""
        run = self._run
        with self._job.stop.deferred():
            if not run.number:
                self._job.metrics.write(0, self._validated(last=False))
            run.run(self._config.updates, self._update, self._validated)

    def _validated(self, last: bool) -> dict[str, float]:
        every, number = self._config.validation.every, self._run.number
        due = last or (every and number % every == 0)
        return self._run.validate(self._playing) if due else {}

    def _update(self) -> dict[str, Any] | None:
        """Plays and learns; returns a line of metrics, or None if it was stopped."""
        run = self._run
        began = time.monotonic()
        if run.number:
            self._playing.load(run.weights(), run.number)
        results = self._play()
        if results is None:
            return None
        played = time.monotonic()
        examples, figures = self._read_examples()
        run.env_steps += int(figures.pop("steps"))
        if examples:
            figures |= self._learn(examples)
        returns = [r.total_reward for r in results]
        figures |= {
            "episode/return": float(np.mean(returns)) if returns else float("nan"),
            "episode/success": float(np.mean([r.outcome == Outcome.SUCCESS for r in results]))
            if results
            else float("nan"),
            "lost": float(self._lost),
            "seconds/sample": played - began,
            "seconds/update": time.monotonic() - played,
            "done": (run.number + 1) / self._config.updates,
        }
        shown = {"update": run.number + 1, "steps": run.env_steps}
        shown |= {name: figures[f"episode/{name}"] for name in ("return", "success")}
        self._job.progress.update(figures["done"], shown)
        log.debug("%d examples", len(examples))
        return {k: v for k, v in figures.items() if not math.isnan(v)}

    def _play(self) -> list[EpisodeResult] | None:
        """Plays the groups of this update; returns the results, or None if it was stopped."""
        c, stop = self._config, self._job.stop
        first = self._first_episode()
        with Dataset(self._job.run.dataset) as dataset:
            finished, newest = dataset.finished()
        attempts = {e: a + 1 for e, a in newest.items() if e not in finished}
        schedule = GroupSchedule(
            self._states,
            self._draw_states(),
            self._plan.algorithm.size,
            seed=c.seed,
            first=first,
            finished=finished,
            attempts=attempts,
        )

        def watch(fragment: Fragment) -> None:
            self._writer.append(fragment)
            log_notices(log, fragment.results)
            log_losses(log, fragment.losses)
            self._lost += len(fragment.losses)

        results = self._playing.play(schedule, watch=watch, stopping=lambda: stop.requested)
        return None if stop.requested else results

    def _first_episode(self) -> int:
        """Returns the number of the first episode of this update."""
        c = self._plan.algorithm
        return int(self._run.number * c.groups * c.size)

    def _draw_states(self) -> list[int]:
        """Returns random positions in the state set, seeded by the run and the update."""
        c = self._config
        rng = np.random.default_rng(derived_seed(c.seed, _STATES, self._run.number))
        return [int(n) for n in rng.integers(self._states.size, size=self._plan.algorithm.groups)]

    def _read_examples(self) -> tuple[list[TrainingExample], dict[str, Any]]:
        """Returns the examples of this update with their advantages, and metrics."""
        c, first = self._plan.algorithm, self._first_episode()
        groups: dict[int, list[AnsweredEpisode]] = {}
        stale = steps = 0
        with Dataset(self._job.run.dataset) as dataset:
            last = first + c.groups * c.size
            for ref in dataset.episodes():
                if not first <= ref.episode < last:
                    continue
                found = read_answered_episode(
                    dataset, ref, self._plan.example_builder, self._run.number
                )
                steps += ref.length
                if found is None:
                    stale += 1
                    continue
                groups.setdefault((ref.episode - first) // c.size, []).append(found)
        examples: list[TrainingExample] = []
        for own, advantages in _with_advantages(c, list(groups.values())):
            for step, advantage in zip(own.examples, advantages, strict=True):
                examples += [replace(each, advantage=float(advantage)) for each in step]
        calls = [len(step) for group in groups.values() for own in group for step in own.examples]
        returns = [[each.rewards.sum() for each in group] for group in groups.values()]
        examples = [example for example in examples if example.advantage]
        return examples, {
            "steps": steps,
            "train/lessons": len(examples),
            "train/equal_groups": sum(np.ptp(r) < 1e-6 for r in returns) / max(1, len(returns)),
            "train/stale_episodes": stale,
            "train/asked_again": sum(max(0, n - 1) for n in calls) / max(1, sum(calls)),
        }

    def _learn(self, examples: list[TrainingExample]) -> dict[str, float]:
        c, run = self._plan.algorithm, self._run
        clip = (c.clip_low, c.clip_high)
        step = PassOptions((c.lr, c.lr), c.minibatch, clip, c.max_grad_norm, c.memory)
        figures: dict[str, float] = {}
        for epoch in range(c.epochs):
            rng = np.random.default_rng((self._config.seed, run.number, epoch))
            order = rng.permutation(len(examples)).tolist()
            figures = self._learners.call("learn", [examples[n] for n in order], step)
        return {f"train/{name}": value for name, value in figures.items()}

    def end(self, status: str) -> str:
        """Writes ``summary.json``; returns a status sentence."""
        self._writer.close()
        with Dataset(self._job.run.dataset) as dataset:
            self._job.lineage.add("made", dataset)
        return self._run.conclude(
            status,
            {
                "state_set": self._states.describe(),
                "lost_episodes": "tried again; a group is compared among those that ended",
            },
        )
