"""The options of the policy ``vlm``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Self

from pydantic import Field

from policies.vlm.answers import Form
from rollout.api import option
from rollout.errors import ConfigError
from rollout.models.client import ModelClient
from rollout.models.local import LocalModel
from rollout.models.sections import Endpoint, Examples, Local, OptionGroup, RunLimits, Sampling
from rollout.models.spending import price_of
from rollout.models.transport import chat_url


class History(OptionGroup):
    """The earlier steps of an episode that the model sees."""

    texts: int = Field(16, ge=0, description="steps whose observation and answer it sees as text")
    images: int = Field(0, ge=0, description="pictures it sees: 0 none, 1 the current one, ...")


class Picture(OptionGroup):
    """The observation column that is sent as a picture."""

    column: str = Field("", description="its name; empty for the only one there is")
    goal: str = Field("", description="column with a picture of the goal, shown first; '' for none")
    scale: int = Field(1, ge=1, description="each pixel becomes a square of this side")
    codec: Literal["png", "jpeg"] = Field("png", description="png is lossless")


class Reflect(OptionGroup):
    """Critiques that the model writes of its earlier episodes from the same state."""

    episodes: int = Field(0, ge=0, description="earlier episodes whose critiques it sees; 0 none")
    words: int = Field(150, ge=1, description="longest critique")


class Limits(RunLimits):
    """Limits that truncate an episode or pause a run; null for no limit."""

    reparse: int = Field(1, ge=0, description="times an unusable answer is asked for again")
    unusable: int | None = Field(
        10, ge=1, description="steps in a row without a usable answer that truncate the episode"
    )
    stuck: int | None = Field(
        None, ge=1, description="steps without a change of what is observed that truncate it"
    )
    episode_calls: int | None = Field(None, ge=1, description="calls of an episode")


_REPLIES_FOLDER = "replies"


@dataclass(frozen=True)
class ModelOptions:
    """Options of policies that ask a model.

    All calls of a run are made by one process, so that its limits hold exactly and its replies are
    kept: a call that was paid is not paid again when the run is resumed.

    Raises:
        ConfigError: some do not fit together.
    """

    endpoint: Endpoint = option(Endpoint, "where the model is")
    model: str = option("", "name of the model at the endpoint")
    local: Local = option(Local, "a model that is run here, instead of an endpoint")
    sampling: Sampling = option(Sampling, "how answers are drawn")
    limits: RunLimits = option(RunLimits, "limits of the run")
    prices: str = option("", "file of prices; empty for Gamut's")
    replies: str = option("", "folder of replies that runs share; empty for one of the run's own")
    replay: bool = option(False, "use recorded replies only; an episode without them is lost")

    _folder: Path | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.local.model:
            self._check_local()
            return
        chat_url(self.endpoint.url)
        if not self.model:
            raise ConfigError("model: expected the name of a model at the endpoint, got none")
        if self.limits.usd is not None and price_of(self.model, self.prices) is None:
            raise ConfigError(
                f"limits.usd={self.limits.usd:g}: the price of {self.model} is not known; list it "
                f"in a file and name that in prices, or limit calls or tokens"
            )

    def _check_local(self) -> None:
        both: dict[str, object] = {
            "endpoint.url": self.endpoint.url,
            "model": self.model,
            "replies": self.replies,
        }
        both |= {"replay": self.replay, "prices": self.prices, "limits.usd": self.limits.usd}
        both |= {"limits.calls": self.limits.calls, "limits.tokens": self.limits.tokens}
        for name, value in both.items():
            if value:
                raise ConfigError(
                    f"{name}={value} is for a model at an endpoint, and local.model="
                    f"{self.local.model} is run here; leave one of them out"
                )

    @property
    def keeps_files(self) -> bool:
        """True if a run has replies or limits; a local model has none."""
        return not self.local.model

    @property
    def calls(self) -> int:
        """Maximum concurrent calls; see ``rollout.api.Concurrent``. Local models use batches."""
        return 1 if self.local.model else self.endpoint.calls

    def in_run(self, folder: Path) -> Self:
        """Returns the recipe that keeps its replies in the folder of the run."""
        found = replace(self)
        object.__setattr__(found, "_folder", folder / _REPLIES_FOLDER)
        return found

    def make_model(self, *, images: bool = False) -> ModelClient | LocalModel:
        """Returns the model.

        Raises:
            ConfigError: the key or a file is missing, or a local model cannot be loaded.
        """
        if self.local.model:
            return LocalModel(self.local, images=images)
        folder = Path(self.replies).expanduser() if self.replies else self._folder
        return ModelClient(
            self.endpoint,
            self.model,
            limits=self.limits,
            prices=self.prices,
            replies=folder,
            replay=self.replay,
        )


@dataclass(frozen=True)
class VlmOptions(ModelOptions):
    """The options of ``VlmPolicy``.

    Raises:
        ConfigError: some do not fit together.
    """

    prompt: str = option("think", "name of a prompt (act, think, react, plan), or a YAML file")
    form: Form = option("tags", "form of an answer", choices=("tags", "json", "tool"))
    history: History = option(History, "what the model sees of earlier steps")
    picture: Picture = option(Picture, "the observation that is sent as a picture")
    reflect: Reflect = option(Reflect, "what it writes about its earlier episodes")
    examples: Examples = option(Examples, "recorded episodes that it is shown")
    fallback: str = option(
        "nothing", "after an unusable answer: nothing, repeat, random, stop, or an action"
    )
    limits: Limits = option(Limits, "limits of an episode and of the run")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.history.images and not self.local.model and not self.endpoint.images:
            raise ConfigError(
                f"history.images={self.history.images}: endpoint.images=false says that the model "
                f"takes no pictures; set history.images=0"
            )

    def _check_local(self) -> None:
        super()._check_local()
        if self.form != "tags":
            raise ConfigError(
                f"form={self.form}: a local model answers in text; set form=tags, or ask it "
                f"through a server (docs/vlm.md)"
            )
