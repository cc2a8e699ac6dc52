"""Supervised fine-tuning: a language model learns to answer as recorded episodes do."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from rollout.api import Outcome, StateSet
from rollout.cli import Session
from rollout.config import BridgeConfig, make_config
from rollout.data import Dataset, EpisodeRef
from rollout.errors import ConfigError, UnknownNameError
from rollout.job import Job, open_job
from rollout.models.examples import TrainingExample
from rollout.named_code import check_code
from rollout.tasks import bridge_and_task
from rollout.train.callbacks import Callback
from rollout.train.checkpoint import newest_checkpoint
from rollout.train.language.config import FineTuneConfig
from rollout.train.language.learner import PassOptions
from rollout.train.language.rollouts import Rollouts, open_rollouts
from rollout.train.language.run import (
    LanguagePlan,
    LanguageRun,
    language_recipe,
    read_examples,
    replace_folder,
)
from rollout.train.workers import open_learners

log = logging.getLogger(__name__)

_MINIBATCHES_PER_CALL = 20  # minibatches between looks for a signal
_BASE = "base"  # folder of a run for a model that was built for it
_TOKENIZER_EXAMPLES = 2000  # examples whose texts a new tokenizer is trained on


def fine_tune(
    config: FineTuneConfig, session: Session, on_update: Sequence[Callback] = ()
) -> str | None:
    """Fine-tunes as the configuration describes, in its own run directory.

    A resumed run continues after its last checkpoint, and ends with the same weights.

    Raises:
        InputError: the configuration is invalid, or there are too few episodes.
        KeyboardInterrupt: a signal stopped it; whole epochs are saved.
    """
    with Dataset(config.dataset) as dataset:
        plan = _plan(config, dataset)
        shown, held_out = _split_episodes(config, dataset.episodes(filter=config.filter))
        needs_ray = bool(config.actors or config.learners.count)
        with open_job("train", config, session, needs_ray=needs_ray) as job:
            job.lineage.add("used", dataset, plan.recipe)
            log.info("reading %d episodes of %s", len(shown) + len(held_out), config.dataset)
            examples, others = (
                [
                    example
                    for ref in refs
                    for example in read_examples(dataset, ref, plan.example_builder)
                ]
                for refs in (shown, held_out)
            )
            if config.new_model is not None:
                plan = _with_new_model(config, plan, job.run.path / _BASE, examples)
            saved = newest_checkpoint(job.run.checkpoints)
            until = -1 if saved is None else saved.env_steps
            job.report(mirrored={}, until=until)
            with job.ray() as stack:
                learners = stack.enter_context(
                    open_learners(plan.learner, config.learners, job.run.path)
                )
                playing = None
                if plan.validation is not None:
                    games = open_rollouts(config, plan.bridge, plan.task, plan.recipe)
                    playing = stack.enter_context(games)
                run = LanguageRun(plan, job, learners, saved, on_update)
                tuning = _FineTuning(plan, job, run, (examples, others), playing)
                return job.finish(tuning.run, tuning.end)


def _plan(config: FineTuneConfig, dataset: Dataset) -> LanguagePlan:
    manifest = dataset.manifest
    options = {"name": manifest.bridge, **manifest.bridge_options}
    plays, source = bool(config.validation.states), f"the dataset {config.dataset}"
    name = str(manifest.task["name"])
    try:
        bridge_config, bridge, task = bridge_and_task(
            make_config(BridgeConfig, options),
            config.task or name,
            partial(check_code, source=source, starts=plays),
        )
    except UnknownNameError as error:
        if config.task or error.name != name:
            raise
        raise ConfigError(
            f"{source} is of the task {name!r}, which is none of {manifest.bridge}'s; set task to "
            f"the path of its file"
        ) from error
    if task.name != name:
        raise ConfigError(f"task={config.task} is {task.name!r}, and {source} is of {name!r}")
    # A new model has no folder yet; everything else is checked before the run directory is made.
    recipe = language_recipe(config.policy)
    recipe.example_builder(bridge.spec, task)
    if config.new_model is None:
        recipe.build(bridge.spec, task, seed=config.seed)
    states: StateSet | None = None
    if config.validation.states:
        states = config.state_set.of_part("validation", config.validation.states).take(
            task.state_space
        )
    return LanguagePlan(
        config=config,
        bridge=bridge,
        bridge_name=bridge_config.name,
        bridge_options=bridge_config.options,
        task=task,
        recipe=recipe,
        algorithm=config.algorithm.build(),
        validation=states,
    )


def _split_episodes(
    config: FineTuneConfig, refs: list[EpisodeRef]
) -> tuple[list[EpisodeRef], list[EpisodeRef]]:
    """Returns the training episodes and the held-out ones."""
    wanted = [
        ref
        for ref in refs
        if ref.length and (config.only == "all" or ref.outcome == Outcome.SUCCESS)
    ]
    wanted.sort(key=lambda ref: ref.episode)
    if len(wanted) < 2:
        filtered = f" and fulfil filter={config.filter!r}" if config.filter else ""
        raise ConfigError(
            f"dataset: {config.dataset} has {len(wanted)} episodes to learn from "
            f"(only={config.only}) of {len(refs)} that ended{filtered}, and at least 2 are needed; "
            f"record more with gamut collect"
        )
    count = min(max(1, round(config.held_out * len(wanted))), len(wanted) - 1)
    return wanted[:-count], wanted[-count:]


def _with_new_model(
    config: FineTuneConfig, plan: LanguagePlan, folder: Path, examples: Sequence[TrainingExample]
) -> LanguagePlan:
    """Builds the new model of a run unless an earlier session has; returns the plan with it."""
    from rollout.models.tiny import Sizes, build  # noqa: PLC0415 - slow to import

    if not folder.exists():
        assert config.new_model is not None
        texts = [text for example in examples[:_TOKENIZER_EXAMPLES] for text in _texts(example)]
        sizes = Sizes(**config.new_model.model_dump())
        replace_folder(folder, lambda new: build(new, sizes, texts, seed=config.seed))
    return replace(plan, recipe=language_recipe(config.policy, str(folder)))


def _texts(example: TrainingExample) -> list[str]:
    """Returns the texts of an example, as the template of a new model divides them."""
    parts = [
        part.get("text", "")
        for message in example.messages
        for part in (
            [{"text": message["content"]}]
            if isinstance(message["content"], str)
            else message["content"]
        )
    ]
    return [*parts, example.answer]


class _FineTuning:
    """One session of a fine-tuning: its loop and its results."""

    def __init__(
        self,
        plan: LanguagePlan,
        job: Job,
        run: LanguageRun,
        examples: tuple[list[TrainingExample], list[TrainingExample]],
        playing: Rollouts | None,
    ) -> None:
        self._plan, self._job, self._learners = plan, job, run.learners
        self._examples, self._held_out = examples
        self._playing = playing
        config = plan.config
        assert isinstance(config, FineTuneConfig)
        self._config = config
        self._run = run

    def run(self) -> None:
        """Makes the epochs that are left; a signal ends it within some minibatches."""
        self._run.run(self._plan.algorithm.epochs, self._epoch, self._validated)

    def _validated(self, last: bool) -> dict[str, float]:
        every, number = self._config.validation.every, self._run.number
        due = last or (every and number % every == 0)
        return self._run.validate(self._playing) if self._playing is not None and due else {}

    def _epoch(self) -> dict[str, float] | None:
        """Makes one pass; returns a line of metrics, or None if it was stopped."""
        c, run, job = self._plan.algorithm, self._run, self._job
        order = np.random.default_rng((self._config.seed, run.number)).permutation
        numbers = order(len(self._examples)).tolist()
        piece, losses = _MINIBATCHES_PER_CALL * c.minibatch, []
        for at in range(0, len(numbers), piece):
            if job.stop.requested:
                return None
            part = [self._examples[number] for number in numbers[at : at + piece]]
            done = [run.number + min(1.0, x / len(numbers)) for x in (at, at + piece)]
            lr = (c.learning_rate(done[0]), c.learning_rate(done[1]))
            step = PassOptions(lr, c.minibatch, None, c.max_grad_norm, c.memory)
            figures = self._learners.call("learn", part, step)
            losses.append((figures["loss"], len(part)))
            shown = {"epoch": f"{done[1]:.2f}", "loss": figures["loss"]}
            job.progress.update(done[1] / c.epochs, shown)
        values, counts = zip(*losses, strict=True)
        held_out = self._learners.call("loss", self._held_out)
        run.env_steps = (run.number + 1) * len(self._examples)
        return {
            "train/loss": float(np.average(values, weights=counts)),
            "train/held_out_loss": held_out["loss"],
            "done": (run.number + 1) / c.epochs,
        }

    def end(self, status: str) -> str:
        """Writes ``summary.json``; returns a status sentence."""
        return self._run.conclude(
            status,
            {
                "dataset": self._config.dataset,
                "only": self._config.only,
                "lessons": len(self._examples),
                "held_out_lessons": len(self._held_out),
            },
        )
