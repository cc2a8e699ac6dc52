"""Shared parts of language-model training: data, checkpoints, validations, results."""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rollout.api import (
    ACTION,
    OBSERVATION,
    Call,
    PlayedEpisode,
    details_for_policies,
    read_calls,
)
from rollout.config import PolicyConfig, build_plugin
from rollout.data import Dataset, EpisodeRef
from rollout.data.calls import COLUMN
from rollout.errors import ConfigError
from rollout.files import read_lines
from rollout.job import Job
from rollout.models.examples import (
    ExampleBuilder,
    LanguageRecipe,
    TrainingExample,
    columns_of_role,
    select_role,
)
from rollout.models.local import EXPORT
from rollout.train.callbacks import Callback
from rollout.train.checkpoint import Checkpoint
from rollout.train.language.algorithms import Reals
from rollout.train.language.config import FineTuneConfig, PlayGroupsConfig
from rollout.train.language.learner import LearnerSetup
from rollout.train.language.rollouts import Rollouts, validate
from rollout.train.rounds import GamePlan, Rounds
from rollout.train.workers import Learners

_DETAILS, _REWARD = "details", "reward"


@dataclass(frozen=True)
class AnsweredEpisode:
    """An episode in which a model answered.

    Attributes:
        rewards: of each step, ``(T,)``.
        states: for each step, a digest of the observation before it.
        examples: the calls of each step, with their token ids and without advantages.
    """

    rewards: Reals
    states: Sequence[str]
    examples: Sequence[Sequence[TrainingExample]]

    @property
    def played(self) -> PlayedEpisode:
        """The data for the advantages of an algorithm."""
        return PlayedEpisode(self.rewards, self.states, [len(calls) for calls in self.examples])


def read_examples(
    dataset: Dataset, ref: EpisodeRef, example_builder: ExampleBuilder
) -> list[TrainingExample]:
    """Returns the examples of an episode: the usable answers of a model, or an expert's actions."""
    columns = _columns(dataset, ref)
    observations = select_role(dataset, columns, OBSERVATION)
    if COLUMN not in columns:
        actions, details = select_role(dataset, columns, ACTION), columns.get(_DETAILS)
        if details is not None:
            details = [details_for_policies(each or {}) for each in details]
        return list(example_builder.from_actions(observations, details, actions))
    files = example_builder.pictures(observations)
    return [
        TrainingExample(call.messages or (), _pictures_of(call, files), answer=call.answer)
        for calls in columns[COLUMN]
        for call in read_calls(calls)
        if call.usable
    ]


def read_answered_episode(
    dataset: Dataset, ref: EpisodeRef, example_builder: ExampleBuilder, version: int
) -> AnsweredEpisode | None:
    """Returns an episode of a local model; None if other weights answered in it.

    Calls with unusable answers are examples as well: they were sampled, too.
    """
    columns = _columns(dataset, ref)
    files = example_builder.pictures(select_role(dataset, columns, OBSERVATION))
    states, examples = [], []
    for recorded in columns[COLUMN]:
        calls = read_calls(recorded)
        if any(call.version != version for call in calls):
            return None
        states.append(calls[0].seen or "" if calls else "")
        examples.append(
            [
                TrainingExample(
                    call.messages or (),
                    _pictures_of(call, files),
                    prompt_ids=call.prompt_ids or (),
                    output_ids=call.output_ids or (),
                    logprobs=call.output_logprobs or (),
                    temperature=1.0 if call.temperature is None else call.temperature,
                )
                for call in calls
            ]
        )
    return AnsweredEpisode(np.asarray(columns[_REWARD], np.float64), states, examples)


def _columns(dataset: Dataset, ref: EpisodeRef) -> dict[str, Any]:
    known = set(dataset.columns)
    wanted = [*columns_of_role(dataset, OBSERVATION), *columns_of_role(dataset, ACTION)]
    wanted += [name for name in (COLUMN, _DETAILS, _REWARD) if name in known]
    return dict(dataset.read(ref, wanted).columns)


def _pictures_of(call: Call, files: dict[str, bytes]) -> dict[str, bytes]:
    """Returns the pictures of a call.

    Raises:
        ConfigError: its messages have others than the policy shows of the observations.
    """
    parts = [p for m in call.messages or () if isinstance(m["content"], list) for p in m["content"]]
    named = [p["digest"] for p in parts if p["type"] == "image"]
    if not files.keys() >= set(named):
        raise ConfigError(
            "policy: the recorded messages have pictures that it does not show of the "
            "observations; name the policy that recorded them, with its options for pictures, "
            "whose agent sent pictures of the observation as they were (docs/agents.md)"
        )
    return {digest: files[digest] for digest in named}


_SIZE = (8.0, 3.2)  # inches
_PLAYED, _LEARNED, _VALIDATED = "0.6", "C0", "C1"


def draw_curve(metrics: Path, out: Path, *, unit: str) -> None:
    """Draws success and return over the updates, or the loss where nothing is played.

    Validations have their 95 % intervals.

    Args:
        metrics: ``metrics.jsonl`` of the run.
        out: the picture, ``.png``.
        unit: label of the horizontal axis: ``epochs`` or ``updates``.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415 - likewise

    lines = [json.loads(line) for line in read_lines(metrics)]
    figure = Figure(_SIZE, layout="constrained")
    FigureCanvasAgg(figure)
    played = any("episode/success" in line for line in lines)
    panels = ("success", "return") if played else ("success", "loss")
    for axes, name in zip(figure.subplots(1, 2), panels, strict=True):
        axes.set_xlabel(unit)
        axes.set_title(name, loc="left", fontsize="medium")
        axes.spines[["top", "right"]].set_visible(False)
        if name == "loss":
            _line(axes, lines, "train/loss", "training", _LEARNED)
            _line(axes, lines, "train/held_out_loss", "held-out episodes", _VALIDATED)
        else:
            _line(axes, lines, f"episode/{name}", "training states", _PLAYED)
            _validations(axes, lines, name)
        if name == "success":
            axes.set_ylim(0.0, 1.0)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False, fontsize="small")
    figure.savefig(out, dpi=120)


def _points(lines: list[dict[str, Any]], key: str) -> tuple[list[float], list[float]]:
    found = [(line.get("train/update", 0), line[key]) for line in lines if key in line]
    return [x for x, _ in found], [y for _, y in found]


def _line(axes: Any, lines: list[dict[str, Any]], key: str, label: str, color: str) -> None:
    x, y = _points(lines, key)
    if x:
        axes.plot(x, y, marker=".", color=color, label=label)


def _validations(axes: Any, lines: list[dict[str, Any]], name: str) -> None:
    key = f"validation/{name}"
    lines = [line for line in lines if f"{key}_low" in line and f"{key}_high" in line]
    x, y = _points(lines, key)
    if not x:
        return
    low, high = _points(lines, f"{key}_low")[1], _points(lines, f"{key}_high")[1]
    below = [a - b for a, b in zip(y, low, strict=True)]
    above = [b - a for a, b in zip(y, high, strict=True)]
    axes.errorbar(
        x, y, yerr=[below, above], fmt="o-", capsize=3, color=_VALIDATED, label="validation, 95 %"
    )


log = logging.getLogger(__name__)

CURVE = "curve.png"
_PRIVILEGED = "privileged"


@dataclass(frozen=True, kw_only=True)
class LanguagePlan(GamePlan):
    """A configuration that is built and checked; the recipe is a ``LanguageRecipe``.

    Attributes:
        config: the configuration.
        bridge_name: name of the game, with ``bridge_options``.
        bridge_options: its options.
    """

    config: FineTuneConfig | PlayGroupsConfig
    bridge_name: str
    bridge_options: Mapping[str, Any]

    @property
    def example_builder(self) -> ExampleBuilder:
        """The builder of training examples from recorded steps."""
        recipe: LanguageRecipe = self.recipe
        return recipe.example_builder(self.bridge.spec, self.task)

    @property
    def learner(self) -> LearnerSetup:
        """The setup of the learner."""
        c = self.config
        return LearnerSetup(
            self.recipe.local,
            self.algorithm.weight_decay,
            c.seed,
            c.learners.threads,
            gpu=bool(c.learners.gpus),
        )


def language_recipe(policy: PolicyConfig, model: str | None = None) -> Any:
    """Returns the recipe of a policy with a local language model.

    Args:
        policy: its name and options.
        model: the folder of its model, instead of the one in the options.

    Raises:
        ConfigError: its model cannot be trained.
    """
    options = dict(policy.options)
    if model is not None:
        options["local"] = {**dict(options.get("local") or {}), "model": model}
    recipe: Any = build_plugin("policies", policy.name, options)
    if not isinstance(recipe, LanguageRecipe) or not recipe.local.model:
        raise ConfigError(
            f"policy {policy.name}: expected vlm with local.model, a model whose weights are here; "
            f"what answers at an endpoint cannot be trained"
        )
    return recipe


def replace_folder(folder: Path, write: Callable[[Path], object]) -> None:
    """Writes a folder and puts it in the place of an older one; never half of it."""
    new, old = (folder.with_name(f".{folder.name}.{word}") for word in ("tmp", "old"))
    for path in (new, old):
        shutil.rmtree(path, ignore_errors=True)
    write(new)
    if folder.exists():
        folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


class LanguageRun(Rounds):
    """One session of a training of a language model."""

    def __init__(
        self,
        plan: LanguagePlan,
        job: Job,
        learners: Learners,
        saved: Checkpoint | None,
        on_update: Sequence[Callback] = (),
    ) -> None:
        super().__init__(job, saved, plan.config.checkpoint, on_update)
        self._plan, self.learners = plan, learners
        self._validated = -1
        if saved is not None:
            learners.call("restore", saved.weights(), saved.optimizer())

    def weights(self) -> dict[str, Any]:
        """Returns the tensors that are trained, by name."""
        return dict(self.learners.call("weights"))

    def checkpoint(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """See ``Rounds``; writes the model in the form of transformers or PEFT, too."""
        plan = self._plan
        spec, policy = plan.bridge.spec, plan.config.policy
        local = plan.recipe.local.model_dump(exclude_defaults=True)
        replace_folder(self.job.run.path / EXPORT, self.learners.save)
        return {
            "policy": {"name": policy.name, "options": {**policy.options, "local": local}},
            "bridge": {
                "name": plan.bridge_name,
                "options": dict(plan.bridge_options),
                "version": spec.version,
            },
            "task": plan.task.name,
        }, {
            "optimizer": self.learners.call("state"),
            "spec": spec,
            "reads": tuple(k for k in spec.observation_space if not k.startswith(_PRIVILEGED)),
        }

    def validate(self, playing: Rollouts) -> dict[str, float]:
        """Plays the validation states with the newest weights; returns a line of metrics."""
        states, stop = self._plan.validation, self.job.stop
        if states is None or self._validated == self.number:
            return {}
        began = time.monotonic()
        playing.load(self.weights(), self.number)
        found = validate(playing, states, lambda: stop.requested)
        if not found:
            return {}
        self._validated = self.number
        log.info(
            "validation after %d: success %.3f, return %.3f",
            *(self.number, found["success"], found["return"]),
        )
        line = {f"validation/{name}": value for name, value in found.items()}
        return {**line, "seconds/validation": time.monotonic() - began}

    def conclude(self, status: str, protocol: Mapping[str, Any]) -> str:
        """Writes ``summary.json``; returns a status sentence."""
        plan, config = self._plan, self._plan.config
        unit = "epochs" if isinstance(config, FineTuneConfig) else "updates"
        draw_curve(self.job.run.metrics, self.job.run.path / CURVE, unit=unit)
        self.job.write_summary(
            status,
            protocol={
                "bridge": plan.bridge_name,
                "bridge_options": dict(plan.bridge_options),
                "bridge_version": plan.bridge.spec.version,
                "task": plan.task.name,
                "policy": config.policy.name,
                "policy_options": config.policy.options,
                "seed": config.seed,
                "algorithm": {"name": config.algorithm.name, **config.algorithm.options},
                "validation": None if plan.validation is None else plan.validation.describe(),
                **protocol,
            },
            results={
                "updates": self.number,
                "env_steps": self.env_steps,
                "last": self.last,
                "ended_by": self.ended_by or None,
                "seconds": round(self.seconds, 2),
            },
        )
        return f"{self.number} {unit}, {self.env_steps} steps"
