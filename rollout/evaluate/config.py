"""The configuration of an evaluation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from pydantic import field_validator, model_validator

from rollout.config import (
    BridgeConfig,
    Directory,
    FragmentConfig,
    HostConfig,
    InferenceConfig,
    LogConfig,
    PolicyConfig,
    RayConfig,
    RunConfig,
    Section,
    StateSetConfig,
    WandbConfig,
    key,
    resolved,
)
from rollout.errors import UnknownNameError
from rollout.evaluate.legs import Actions
from rollout.evaluate.scoreboard import Metric

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+-]*([./][A-Za-z0-9][A-Za-z0-9_+-]*)*")


class VideoConfig(Section):
    """How episodes are filmed."""

    bridge: dict[str, Any] = key(
        dict,
        "Options of the bridge that add a picture while an episode is filmed, where the players "
        "need none, e.g. {observe: [rgb, semantic_rays]}.",
    )
    column: str | None = key(None, "Observation that is filmed; null for the first picture.")
    fps: float = key(20.0, "Speed of the film.", unit="frames/s", gt=0)


class EvaluateConfig(RunConfig):
    """Lets players play sets of states and reports how well they do."""

    may_change: ClassVar[tuple[str, ...]] = (
        *RunConfig.may_change,
        "actors",
        "instances",
        "inference",
        "fragment",
        "metric",
        "groups",
        "confidence",
        "resamples",
        "videos",
        "video",
    )
    may_grow: ClassVar[tuple[str, ...]] = ("episodes_per_state",)

    output: Directory = key(
        ..., "Run directory; relative to GAMUT_RUNS_DIR if that is set, else to where you are."
    )
    bridge: BridgeConfig = key(..., "The game.")
    task: str = key("", "Task of the bridge, or path of a .yaml; empty for the game's own reward.")
    players: dict[str, PolicyConfig] = key(
        ..., "Who plays, by a name of your choice; each as `policy` of a collection."
    )
    sets: dict[str, StateSetConfig] = key(
        ...,
        "Which states they play, by a name of your choice (train, test, full, extrapolation/x); "
        "each as `state_set` of a collection. Give each a size.",
    )
    seed: int = key(
        0, "Seed of the evaluation: with the state and the repeat it makes each episode's.", ge=0
    )
    episodes_per_state: int = key(
        1, "Episodes that each player plays from each state.", unit="episodes", gt=0
    )
    actions: tuple[Actions, ...] = key(
        ("sampled",), "Whether players sample, take their best action, or both.", strict=False
    )
    metric: Metric = key("return", "What the score is: return, or progress or success of the task.")
    groups: dict[str, list[str]] = key(
        dict,
        "Players that are training seeds of one model, by name of the model: their scores get an "
        "interval.",
    )
    actors: int = key(
        1, "Processes that play, over the cluster; 0 plays here, without Ray.", unit="actors", ge=0
    )
    instances: int = key(1, "Running games in each actor.", unit="instances", gt=0)
    width: int = key(1, "Slots in each game that step together.", unit="slots", gt=0)
    fragment: FragmentConfig = key(FragmentConfig, "When actors hand on what they have played.")
    confidence: float = key(0.95, "Confidence of intervals.", gt=0, lt=1)
    resamples: int = key(2000, "Resamples of bootstrap intervals.", ge=100)
    videos: int = key(
        0,
        "Best and worst episodes of each player, set and kind of actions to film; 0 for none.",
        unit="episodes of each",
        ge=0,
    )
    video: VideoConfig = key(VideoConfig, "How they are filmed.")
    host: HostConfig = key(HostConfig, "How games are kept alive.")
    inference: InferenceConfig = key(InferenceConfig, "Where the players decide.")
    ray: RayConfig = key(RayConfig, "Which cluster.")
    wandb: WandbConfig = key(WandbConfig, "Mirroring of metrics.")
    log: LogConfig = key(LogConfig, "What is said meanwhile.")

    @field_validator("players", "sets", "groups")
    @classmethod
    def _named(cls, named: Mapping[str, Any]) -> Mapping[str, Any]:
        for name in named:
            if not _NAME.fullmatch(name):
                raise ValueError(
                    f"expected names of letters, digits, -, _, +, and . or / between them, got "
                    f"{name!r}"
                )
        return named

    @field_validator("players", "sets")
    @classmethod
    def _different(cls, named: Mapping[str, Any]) -> Mapping[str, Any]:
        if not named:
            raise ValueError("is empty; name at least one")
        seen: dict[str, str] = {}
        for name, config in named.items():
            first = seen.setdefault(repr(resolved(config)), name)
            if first != name:
                raise ValueError(f"{first!r} and {name!r} are the same; drop one")
        return named

    @field_validator("actions")
    @classmethod
    def _once(cls, actions: tuple[Actions, ...]) -> tuple[Actions, ...]:
        if not actions or len(set(actions)) != len(actions):
            raise ValueError(f"expected sampled, deterministic, or both once, got {list(actions)}")
        return actions

    @model_validator(mode="after")
    def _groups_of_players(self) -> EvaluateConfig:
        grouped: list[str] = []
        for group, players in self.groups.items():
            _require_known(f"player in groups.{group}", players, self.players)
            if group in self.players:
                raise ValueError(f"groups.{group} has the name of a player; choose another")
            if not players:
                raise ValueError(f"groups.{group} names no player")
            grouped += players
        twice = sorted({player for player in grouped if grouped.count(player) > 1})
        if twice:
            raise ValueError(f"groups: {', '.join(twice)} is named more than once; drop one")
        return self


def _require_known(kind: str, names: Iterable[str], valid: Mapping[str, Any]) -> None:
    for name in names:
        if name not in valid:
            raise UnknownNameError(kind, name, valid)
