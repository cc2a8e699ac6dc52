"""The configuration of a sweep over numbers of training states."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from rollout.config import (
    PolicyConfig,
    RayConfig,
    RunConfig,
    Section,
    key,
    make_config,
    resolved,
)
from rollout.configuration.document import Document
from rollout.errors import ConfigError
from rollout.evaluate.config import Once, ScoringConfig, Some, VideoConfig, named_like
from rollout.evaluate.legs import TRAIN
from rollout.sweep.curves import INSIDE
from rollout.sweep.imitation_config import DemonstrationsConfig
from rollout.train.config import AlgorithmConfig, SharedConfig
from rollout.train.jobs import learns_from

_NAMED = named_like(r"[A-Za-z0-9][A-Za-z0-9_.=,+-]*", "letters, digits and any of _.=,+-")
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.=,+-]+")
_OWN = ("output", "seed", "seeds", "ray", "wandb", "log")
_OWN_STATES = ("size", "order")
_BASE = "random"


Size = Annotated[int, Field(gt=0)]
Seed = Annotated[int, Field(ge=0)]


class AnyAlgorithmConfig(AlgorithmConfig):
    """An algorithm that learns from fragments, or from the steps of demonstrations."""

    @model_validator(mode="after")
    def _of_this_kind(self) -> AnyAlgorithmConfig:
        if (found := learns_from(self.name)) not in ("fragments", "actions"):
            raise ValueError(f"{self.name} learns from {found}, and runs of a sweep do not")
        return self


class TemplateConfig(SharedConfig):
    """The configuration shared by all training runs; the sweep sets the rest for each run."""

    algorithm: AnyAlgorithmConfig = key(
        lambda: AnyAlgorithmConfig(name="ppo"),
        "How it learns; with demonstrations bc, marwil or iql.",
    )
    env_steps: int = key(
        0, "Steps to train for; left out with demonstrations.", unit="steps of single slots", ge=0
    )
    demonstrations: DemonstrationsConfig | None = key(
        None, "What a run learns from instead of playing, or before; null for none."
    )
    seed: int = key(0, "Set by the sweep, from seeds; leave it out.", exclude=True)

    @model_validator(mode="after")
    def _left_to_the_sweep(self) -> TemplateConfig:
        given = [name for name in _OWN if name in self.model_fields_set]
        states = self.state_set
        given += [
            f"state_set.{name}"
            for name in _OWN_STATES
            if getattr(states, name) != type(states).model_fields[name].default
        ]
        if given:
            raise ValueError(
                f"{', '.join(given)}: set by the sweep for each run (output, sizes, seeds, ray, "
                f"wandb, log are keys of the sweep itself); leave it out"
            )
        return self

    @model_validator(mode="after")
    def _has_what_it_learns_from(self) -> TemplateConfig:
        name, shown = self.algorithm.name, self.demonstrations
        clone = None if shown is None else shown.clone
        if learns_from(name) == "actions":
            if shown is None:
                raise ValueError(
                    f"algorithm {name} learns from demonstrations, and there are none; set "
                    f"demonstrations.policy and demonstrations.episodes"
                )
            if clone is not None:
                raise ValueError(
                    f"demonstrations.clone: {name} learns from the demonstrations itself; "
                    f"set one of the two"
                )
            return self
        if shown is not None and clone is None:
            raise ValueError(
                f"demonstrations: algorithm {name} learns from what it plays; set demonstrations "
                f"to null, demonstrations.clone to begin with a policy cloned from them, or choose "
                f"an algorithm that learns from actions, e.g. bc"
            )
        if clone is not None and self.initialize_from is not None:
            raise ValueError(
                "initialize_from: a run begins with the clone of demonstrations.clone; set one of "
                "the two"
            )
        if not self.env_steps:
            raise ValueError("env_steps: is missing; expected the steps to train for, above 0")
        return self


class ArmConfig(Section):
    """A variation of the sweep: changed keys of ``train``, and its own sizes and seeds."""

    set: dict[str, Any] = key(
        dict, "Keys of train that it changes, dotted, e.g. {state_set.subset: prefix}."
    )
    sizes: Once[Size] | None = key(
        None, "Its numbers of training states; null for those of the sweep.", strict=False
    )
    seeds: Once[Seed] | None = key(
        None, "Its training seeds; null for those of the sweep.", strict=False
    )
    doc: str = key("", "Description in a sentence; shown in the report.")


class SweepEvaluation(ScoringConfig):
    """The state sets on which every trained policy is evaluated."""

    split: Literal["validation", "test"] = key(
        "test",
        "The part that held-out states are taken from: validation to choose settings, test once, "
        "for the figures that are reported.",
    )
    test_states: int = key(512, "Held-out states, the same for all runs.", unit="states", gt=0)
    train_states: int = key(
        512,
        "Number of first states of the run's own training set; if it has fewer, all of them, "
        "repeated for about as many episodes.",
        unit="states",
        gt=0,
    )
    full_states: int = key(
        0,
        "Number of states of the whole space, trained on or not; 0 for none.",
        unit="states",
        ge=0,
    )
    inside_states: int = key(
        0,
        "Number of held-out states with the entries of a run's own lists, if it has "
        "state_set.subset=lists; if there are fewer, all of them, repeated; 0 for none.",
        unit="states",
        ge=0,
    )
    extrapolation: Once[str] = key(
        (),
        "Factors of state_set.hold_out whose held-out values are evaluated too, or `all`; at most "
        "test_states of each.",
        strict=False,
    )
    seed: int = key(0, "Seed of the evaluation, the same for all runs.", ge=0)
    width: int | None = key(
        None, "Slots that step together; null for those of training.", unit="slots", gt=0
    )

    def repeats(self, name: str, size: int) -> int:
        """Returns how many episodes are played from each state of a set of ``size`` states.

        A score from only 16 episodes would be too noisy, even if all 16 states are played.
        """
        if name == INSIDE:
            wanted = self.inside_states
        elif name.partition("/")[0] == TRAIN:  # those of other runs are played as often as by them
            wanted = self.train_states
        else:
            return self.episodes_per_state
        return max(1, round(wanted / size)) * self.episodes_per_state


class SweepVideos(VideoConfig):
    """Videos of held-out episodes, of the smallest and the largest N."""

    best: int = key(0, "Number of best episodes of each selected run.", unit="episodes", ge=0)
    worst: int = key(0, "Number of worst episodes of each selected run.", unit="episodes", ge=0)


class IntervalsConfig(Section):
    """Method of the confidence intervals; see docs/statistics.md."""

    method: Literal["t", "percentile"] = key("t", "t, or percentile bootstrap.")
    confidence: float = key(0.95, "Confidence of intervals.", gt=0, lt=1)
    resamples: int = key(2000, "Resamples of the bootstrap.", ge=100)


@dataclass(frozen=True)
class Arm:
    """An arm with its complete training configuration.

    Attributes:
        name: its name in results and folder names.
        doc: its description.
        template: the configuration shared by its runs.
        sizes: its numbers of training states.
        seeds: its training seeds.
    """

    name: str
    doc: str
    template: TemplateConfig
    sizes: tuple[int, ...]
    seeds: tuple[int, ...]


class SweepConfig(RunConfig):
    """Trains on increasing numbers of states and measures the gap to held-out states."""

    # Each run stores a digest of its configuration, so when a sweep is extended or reduced,
    # unchanged runs are not repeated; a run that would differ is refused.
    may_change: ClassVar[tuple[str, ...]] = (
        *RunConfig.may_change,
        *("title", "score", "sizes", "seeds", "arms", "grid", "evaluate", "baselines"),
        *("parallel", "retries", "stall_s", "mirror_runs", "videos", "intervals"),
        *("train.checkpoint", "train.learners.gpus"),
    )
    spreads: ClassVar[bool] = True

    title: str = key("", "Title of report and figure; empty for the name of the output.")
    score: str = key("", "Label of the score; empty for the name of the metric.")
    train: TemplateConfig = key(
        ..., "The training: keys of gamut train except those that the sweep sets."
    )
    sizes: Some[Size] = key(..., "Numbers of training states N.", unit="states", strict=False)
    seeds: Some[Seed] = key((0, 1, 2), "Training seeds; intervals need two or more.", strict=False)
    arms: Annotated[dict[str, ArmConfig], _NAMED] = key(
        lambda: {_BASE: ArmConfig()},
        "Variations, by a name of your choice; the others are compared with the first.",
    )
    grid: dict[str, list[Any]] = key(
        dict, "Keys of train with the values to try; each combination becomes an arm."
    )
    evaluate: SweepEvaluation = key(SweepEvaluation, "The evaluation of every run.")
    baselines: Annotated[dict[str, PolicyConfig], _NAMED] = key(
        dict, "Untrained policies, e.g. {chance: random}, evaluated on the held-out states."
    )
    parallel: int | None = key(
        None,
        "Concurrent runs; null for one per CPU; 0 runs them in this process, one by one.",
        ge=0,
    )
    retries: int = key(2, "Retries of a failed run.", unit="attempts", ge=0)
    stall_s: float | None = key(
        900.0, "A run without output for this long has failed; null for no limit.", unit="s", gt=0
    )
    videos: SweepVideos = key(SweepVideos, "Videos of held-out episodes.")
    intervals: IntervalsConfig = key(IntervalsConfig, "Confidence intervals.")
    ray: RayConfig = key(RayConfig, "Which cluster.")
    mirror_runs: bool = key(
        True, "Whether each training run is mirrored too, in a group named after the sweep."
    )

    @model_validator(mode="after")
    def _arms_differ(self) -> SweepConfig:
        if not self.arms:
            raise ValueError("arms: is empty; give at least one, or leave it out")
        names: dict[str, Arm] = {}
        same: dict[str, str] = {}
        for arm in self.expanded():
            if arm.name in names:
                raise ValueError(f"arms: two are called {arm.name!r}; rename one")
            names[arm.name] = arm
            first = same.setdefault(repr(resolved(arm.template)), arm.name)
            if first != arm.name:
                raise ValueError(
                    f"arms: {first!r} and {arm.name!r} train the same; remove one, or change one"
                )
            shown = arm.template.demonstrations
            learns = shown is not None and shown.clone is None  # a clone sees the first states
            if shown is not None and learns and shown.episodes < max(arm.sizes):
                raise ValueError(
                    f"arm {arm.name!r}: N = {max(arm.sizes)} training states, and "
                    f"demonstrations.episodes={shown.episodes} do not begin in all of them; "
                    f"expected as many or more"
                )
        return self

    def expanded(self) -> tuple[Arm, ...]:
        """Returns the arms, each with every combination of ``grid``.

        Raises:
            ConfigError: an arm or the grid changes a key that does not exist, or sets an invalid
                value.
        """
        return tuple(
            self._arm(name, arm, point)
            for name, arm in self.arms.items()
            for point in self._points()
        )

    def _points(self) -> list[dict[str, Any]]:
        empty = [name for name, values in self.grid.items() if not values]
        if empty:
            raise ConfigError(f"grid.{empty[0]}: is empty; give values, or leave it out")
        return [
            dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())
        ]

    def _arm(self, name: str, arm: ArmConfig, point: Mapping[str, Any]) -> Arm:
        both = sorted(point.keys() & arm.set.keys())
        if both:
            raise ConfigError(f"arms.{name}.set.{both[0]} is in grid too; remove one of the two")
        template = self.train
        for source, changes in ((f"arms.{name}.set", arm.set), ("grid", point)):
            if changes:
                template = _changed(template, changes, source)
        words = [f"{_short(k, self.grid)}={_shown(v)}" for k, v in point.items()]
        # The default arm adds nothing to the name.
        lone = list(self.arms) == [_BASE] and not arm.set
        parts = [*([] if lone and words else [name]), *words]
        full = _NOT_IN_A_NAME.sub("-", ",".join(parts)).strip("-")
        return Arm(full, arm.doc, template, arm.sizes or self.sizes, arm.seeds or self.seeds)


def _changed(template: TemplateConfig, changes: Mapping[str, Any], source: str) -> TemplateConfig:
    """Returns the template with some of its keys changed."""
    data = Document(resolved(template)).override(changes.items()).data
    return make_config(TemplateConfig, data, source=source)


def _short(key_: str, keys: Mapping[str, Any]) -> str:
    """Returns the last part of a dotted key, or the whole key if that is not unique."""
    last = key_.rpartition(".")[2]
    return last if sum(k.rpartition(".")[2] == last for k in keys) == 1 else key_


def _shown(value: object) -> str:
    if isinstance(value, list | tuple):
        return "+".join(map(_shown, value))
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)
