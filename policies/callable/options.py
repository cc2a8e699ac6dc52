"""The options of the policy ``callable``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from pydantic import Field

from policies.vlm.options import ModelOptions
from rollout.api import NamedCode, option
from rollout.api.options import check_function_name, load_function, takes
from rollout.errors import ConfigError, named
from rollout.models.sections import RunLimits

Kind: TypeAlias = Literal["columns", "all columns", "game"]


class AgentLimits(RunLimits):
    """Limits that truncate an episode or pause a run; null for no limit."""

    unusable: int | None = Field(
        10, ge=1, description="steps in a row without a usable answer that truncate the episode"
    )
    episode_calls: int | None = Field(None, ge=1, description="calls of an episode")


@dataclass(frozen=True)
class CallableOptions(ModelOptions):
    """The options of ``CallablePolicy``.

    Raises:
        ConfigError: some options do not fit together.
    """

    renamed: ClassVar[Mapping[str, str]] = {"target": "function"}

    function: str = option("", "module:function, e.g. my_agent:play")
    fallback: str = option(
        "nothing", "after an unusable answer: nothing, repeat, random, stop, or an action"
    )
    limits: AgentLimits = option(AgentLimits, "limits of an episode and of the run")
    timeout_s: float = option(
        240.0, "deadline of a decision for one game, below host.policy_s", unit="s", gt=0
    )

    def __post_init__(self) -> None:
        with named("function"):
            check_function_name(self.function)
        if self.has_model:
            super().__post_init__()
            return
        given: dict[str, object] = {"replies": self.replies, "replay": self.replay}
        given |= {"prices": self.prices}
        for name in ("calls", "tokens", "usd", "episode_calls"):
            given[f"limits.{name}"] = getattr(self.limits, name)
        for name, value in given.items():
            if value:
                raise ConfigError(
                    f"{name}={value} is for a model, and there is none; name one in endpoint.url "
                    f"and model, or in local.model"
                )

    @property
    def has_model(self) -> bool:
        """True if the function may ask a model of the run."""
        return bool(self.endpoint.url or self.model or self.local.model)

    @property
    def keeps_files(self) -> bool:
        """True if a run has replies or limits: those of a model at an endpoint."""
        return self.has_model and super().keeps_files

    @property
    def calls(self) -> int:
        """Maximum concurrent decisions; see ``rollout.api.Concurrent``."""
        return super().calls if self.load()[1] == "game" else 1

    def code(self) -> Sequence[NamedCode]:
        """Returns the module of the function; see ``rollout.api.NamesCode``."""
        return [NamedCode("function", self.function.partition(":")[0])]

    def load(self) -> tuple[Callable[..., Any], Kind]:
        """Returns the function and what it takes.

        Raises:
            ConfigError: it cannot be imported, or takes other arguments.
        """
        with named("function"):
            function = load_function(self.function)
        return function, _kind(self.function, function)


def _kind(name: str, function: Callable[..., Any]) -> Kind:
    """Returns what a function takes: columns, columns with details and explore, or one game.

    Raises:
        ConfigError: it takes something else.
    """
    if inspect.iscoroutinefunction(function):
        if takes(function, 2):
            return "game"
    elif takes(function, 3, unknown=False):
        return "all columns"
    elif takes(function, 1):
        return "columns"
    elif takes(function, 2):
        return "game"
    raise ConfigError(
        f"function {name!r}: expected play(observation, context), plain or async, or a function of "
        f"(observations) or of (observations, details, explore), got {inspect.signature(function)}"
    )
