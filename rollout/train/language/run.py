"""What trainings of language models share: checkpoints, validations, results."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollout.api import Bridge, StateSet, Task
from rollout.config import PolicyConfig, build_plugin
from rollout.errors import ConfigError
from rollout.job import Job
from rollout.models.lessons import LanguageRecipe, Teacher
from rollout.models.local import EXPORT
from rollout.train.callbacks import Callback
from rollout.train.checkpoint import Checkpoint
from rollout.train.language.config import FineTuneConfig, PlayGroupsConfig
from rollout.train.language.learners import LearnerPlan, Learners
from rollout.train.language.rollouts import Playing, validate
from rollout.train.rounds import Rounds

log = logging.getLogger(__name__)

CURVE = "curve.png"
_PRIVILEGED = "privileged"


@dataclass(frozen=True)
class LanguagePlan:
    """A configuration that is built and checked.

    Attributes:
        config: the configuration.
        bridge: the game.
        bridge_name: its name, with ``bridge_options``.
        bridge_options: its options.
        task: the task.
        recipe: recipe of the policy, a ``LanguageRecipe``.
        algorithm: how it learns.
        validation: the states of validations; None for none.
    """

    config: FineTuneConfig | PlayGroupsConfig
    bridge: Bridge
    bridge_name: str
    bridge_options: Mapping[str, Any]
    task: Task
    recipe: Any
    algorithm: Any
    validation: StateSet | None

    @property
    def teacher(self) -> Teacher:
        """What turns recorded steps into lessons."""
        recipe: LanguageRecipe = self.recipe
        return recipe.teacher(self.bridge.spec, self.task)

    @property
    def learner(self) -> LearnerPlan:
        """Returns what a learner is made of."""
        c = self.config
        return LearnerPlan(
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


def put_folder(folder: Path, write: Callable[[Path], object]) -> None:
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
        put_folder(self.job.run.path / EXPORT, self.learners.save)
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

    def validate(self, playing: Playing) -> dict[str, float]:
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
        from rollout.train.language.curve import draw_curve  # noqa: PLC0415 - slow to import

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
