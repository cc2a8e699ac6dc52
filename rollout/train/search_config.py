"""The configuration of a search over keys of a training run; imports neither torch nor Ray."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import field_validator, model_validator

from rollout.config import (
    RayConfig,
    RunConfig,
    Section,
    key,
    make_config,
    resolved,
)
from rollout.configuration.document import Document
from rollout.errors import ConfigError, UnknownNameError
from rollout.train.config import SharedConfig, TrainConfig

SEED = "seed"
"""The key of ``train`` over whose values scores are averaged, if it is searched."""

_OWN = ("output", "seeds", "ray", "wandb", "log")

RANGES = {
    "grid": "every value, in each sample",
    "choice": "one of the values",
    "uniform": "a number of [low, high)",
    "loguniform": "a number of [low, high), log-uniform",
    "randint": "an integer of [low, high)",
}
"""Distributions of values, by name."""


class SearchedConfig(SharedConfig):
    """The configuration shared by all trials of a search."""

    @model_validator(mode="after")
    def _left_to_the_search(self) -> SearchedConfig:
        given = [name for name in _OWN if name in self.model_fields_set]
        if given:
            raise ValueError(
                f"{', '.join(given)}: set by the search for each trial; "
                + (
                    "search over seeds by space.seed, e.g. space.seed=[0, 1, 2]"
                    if given == ["seeds"]
                    else "move it out of train"
                )
            )
        return self


class AshaConfig(Section):
    """Asynchronous successive halving (Li et al., 2018): stops bad trials early."""

    grace_steps: int = key(
        ..., "Steps of every trial before it may be stopped.", unit="steps", gt=0
    )
    reduction: float = key(
        3.0, "Reduction factor: one trial in this many continues at each rung.", gt=1
    )


class SearchConfig(RunConfig):
    """Trains with many settings and reports the best."""

    may_change: ClassVar[tuple[str, ...]] = (
        *RunConfig.may_change,
        "parallel",
        "retries",
        "train.checkpoint",
    )
    may_grow: ClassVar[tuple[str, ...]] = ("samples",)
    spreads: ClassVar[bool] = True

    train: SearchedConfig = key(..., "The training: keys of gamut train.")
    space: dict[str, Any] = key(
        ...,
        "Keys of train, dotted, each with a list of values that are all tried, or one of "
        f"{{{', '.join(f'{name}: [...]' for name in RANGES)}}}. A list of seeds compares the other "
        "keys by their means over them.",
    )
    samples: int = key(1, "Random samples for each combination of lists.", gt=0)
    metric: str | None = key(
        None,
        "Metric to optimize, a name in metrics.jsonl; null for validation/score with "
        "train.validation, otherwise episode/return.",
    )
    mode: Literal["max", "min"] = key("max", "Whether the metric is maximized or minimized.")
    asha: AshaConfig | None = key(None, "Early stopping of bad trials; null runs all to their end.")
    seed: int = key(0, "Seed of the random samples.", ge=0)
    parallel: int | None = key(None, "Concurrent trials; null for as many as fit.", gt=0)
    retries: int = key(2, "Retries of a failed trial.", unit="attempts", ge=0)
    ray: RayConfig = key(RayConfig, "Which cluster.")

    @property
    def optimized(self) -> str:
        """The metric to optimize."""
        validated = self.train.validation.every is not None
        return self.metric or ("validation/score" if validated else "episode/return")

    @field_validator("space")
    @classmethod
    def _drawn(cls, space: dict[str, Any]) -> dict[str, Any]:
        if not space:
            raise ValueError("is empty; give keys of train to vary, e.g. {algorithm.lr: [1e-3]}")
        for name, values in space.items():
            _check_range(name, values)
        return space

    @model_validator(mode="after")
    def _possible(self) -> SearchConfig:
        for name, values in self.space.items():
            for value in ends_of(values):
                try:
                    self.trial({name: value}, "unused")
                except ConfigError as error:
                    raise ValueError(f"space: {error}") from error
        steps, asha = self.train.env_steps, self.asha
        kind, seeds = drawn(self.space.get(SEED, []))
        if kind == "grid" and len(set(seeds)) < len(seeds):
            raise ValueError(f"space.seed={seeds}: a seed is given twice; remove one")
        if asha is not None and SEED in self.space:
            raise ValueError(
                "asha ends trials early, and the mean over the seeds of space needs all of them at "
                "the same steps; leave asha or space.seed out"
            )
        if asha is not None and asha.grace_steps >= steps:
            raise ValueError(
                f"asha.grace_steps={asha.grace_steps} is not below train.env_steps={steps}: no "
                f"trial would ever end early; make it smaller, or leave asha out"
            )
        return self

    def trial(self, point: Mapping[str, Any], folder: Any) -> TrainConfig:
        """Returns the training configuration of a trial.

        Args:
            point: values by dotted key.
            folder: run directory of the trial.

        Raises:
            ConfigError: a key does not exist, or has an invalid value.
        """
        data = Document(resolved(self.train)).override(point.items()).data
        wandb = {**resolved(self.wandb), "group": self.wandb.group or self.output.name}
        data |= {"output": str(folder), "wandb": wandb, "log": resolved(self.log)}
        return make_config(TrainConfig, data)


def drawn(values: Any) -> tuple[str, Any]:
    """Returns the name of the distribution of values, one of ``RANGES``, and what it is given."""
    if isinstance(values, dict) and len(values) == 1:
        return next(iter(values.items()))
    return "grid", values


def _check_range(name: str, values: Any) -> None:
    """Raises ValueError unless values can be drawn from this distribution."""
    kind, given = drawn(values)
    if kind not in RANGES:
        raise ValueError(f"{name}: {UnknownNameError('range', str(kind), RANGES)}")
    if not isinstance(given, list) or not given:
        raise ValueError(
            f"{name}: expected a list of values, or one of {', '.join(RANGES)} with a list, got "
            f"{values!r}"
        )
    if kind in ("grid", "choice"):
        return
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in given)
    if len(given) != 2 or not numbers or not given[0] < given[1]:
        raise ValueError(f"{name}: {kind} expected [low, high] with low below high, got {given}")
    if kind == "loguniform" and not (given[0] > 0 and math.isfinite(given[1])):
        raise ValueError(f"{name}: loguniform expected numbers above 0, got {given}")
    if kind == "randint" and not all(isinstance(v, int) for v in given):
        raise ValueError(f"{name}: randint expected integers, got {given}")


def ends_of(values: Any) -> list[Any]:
    """Returns the values to check: each listed one, or both ends of a range."""
    kind, given = drawn(values)
    return [given[0], given[1] - 1] if kind == "randint" else list(given)
