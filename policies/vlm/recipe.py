"""The recipe of the policy ``vlm``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from policies.vlm.composing import Composer
from policies.vlm.options import Options
from policies.vlm.policy import Vlm
from policies.vlm.prompt import load_prompt
from policies.vlm.reflecting import Logs
from policies.vlm.teaching import EpisodeTeacher
from rollout.api import BridgeSpec, Task
from rollout.errors import ConfigError
from rollout.models.asking import Asker
from rollout.models.local import LocalModel

_FOLDER, _LOGS = "replies", "trials"


@dataclass(frozen=True)
class VlmPolicy(Options):
    """Asks a language or vision-language model for each action; see docs/vlm.md.

    All calls of a run are made by one process, so that its limits hold exactly and its replies are
    kept: a call that was paid is not paid again when the run is resumed.
    """

    _folder: Path | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def keeps_files(self) -> bool:
        """Whether it has limits, replies or logs of a run; a local model has logs at most."""
        return not self.local.model or self.trials > 0

    @property
    def trials(self) -> int:
        """Of how many earlier episodes it is told; see ``rollout.api.Remembering``."""
        return self.reflect.episodes

    @property
    def calls(self) -> int:
        """Most calls at once; see ``rollout.api.Concurrent``. A local model decides in batches."""
        return 1 if self.local.model else self.endpoint.calls

    def in_run(self, folder: Path) -> VlmPolicy:
        """Returns the recipe that keeps its replies in the folder of the run."""
        found = replace(self)
        object.__setattr__(found, "_folder", folder / _FOLDER)
        return found

    def teacher(self, spec: BridgeSpec, task: Task) -> EpisodeTeacher:
        """Returns what turns recorded steps into lessons; see ``LanguageRecipe``.

        Raises:
            ConfigError: the prompt, the actions, the pictures or other options do not fit.
        """
        given = {"examples.dataset": self.examples.dataset, "reflect.episodes": self.trials}
        for name, value in given.items():
            if value:
                raise ConfigError(f"{name}={value} is for play; leave it out where a model learns")
        return EpisodeTeacher(Composer(self, spec, task, load_prompt(self.prompt, spec.tasks)))

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> Vlm:
        """Returns the policy; see ``rollout.api.PolicyRecipe``.

        Raises:
            ConfigError: the prompt, the key, the actions or the pictures do not fit.
        """
        prompt = load_prompt(self.prompt, spec.tasks)
        if self.trials and not prompt.shows_lessons:
            raise ConfigError(
                f"reflect.episodes={self.trials}: the prompt {self.prompt} does not show the "
                f"variable lessons; take act, think, react or plan, or use it in yours"
            )
        logs = Logs(self._folder.parent / _LOGS if self._folder else None) if self.trials else None
        if self.local.model:
            model = LocalModel(self.local, images=bool(self.history.images))
            return Vlm(self, spec, task, prompt, asker=model, logs=logs)
        folder = Path(self.replies).expanduser() if self.replies else self._folder
        asker = Asker(
            self.endpoint,
            self.model,
            limits=self.limits,
            prices=self.prices,
            replies=folder,
            replay=self.replay,
        )
        return Vlm(self, spec, task, prompt, asker=asker, logs=logs)
