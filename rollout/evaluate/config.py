"""The configuration of an evaluation; what it leaves out comes from a training run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, field_validator, model_validator

from rollout.api import Task
from rollout.config import (
    OF_MODELS,
    BridgeConfig,
    FleetConfig,
    PolicyConfig,
    Section,
    StateSetConfig,
    key,
    make_config,
    resolved,
)
from rollout.configuration.document import read
from rollout.errors import ConfigError, InputError, UnknownNameError, named
from rollout.evaluate.legs import Actions
from rollout.evaluate.scoreboard import Metric
from rollout.named_code import check_code
from rollout.observe.run_files import seed_folders
from rollout.tasks import bridge_and_task


def _once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    twice = sorted({value for value in values if values.count(value) > 1})
    if twice:
        raise ValueError(f"{', '.join(map(str, twice))} is given twice; remove one")
    return values


def _some(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:
        raise ValueError("is empty; give at least one")
    return values


def named_like(pattern: str, words: str) -> AfterValidator:
    """Returns a check that all keys of a mapping match a pattern, which is described in words."""

    def check(named: dict[str, Any]) -> dict[str, Any]:
        if wrong := [name for name in named if not re.fullmatch(pattern, name)]:
            raise ValueError(f"expected names of {words}, got {wrong[0]!r}")
        return named

    return AfterValidator(check)


PLAYER = "trained"
"""Name of the player in an evaluation of a training run."""

_STATES = 100  # of each set: enough for an interval, and played in a minute by small games
_FROM_RUN = ("bridge", "task", "players", "sets", "output")

_T = TypeVar("_T")
_NAMED = named_like(
    r"[A-Za-z0-9][A-Za-z0-9_+-]*([./][A-Za-z0-9][A-Za-z0-9_+-]*)*",
    "letters, digits, -, _, +, and . or / between them",
)
Once = Annotated[tuple[_T, ...], AfterValidator(_once)]
Some = Annotated[tuple[_T, ...], AfterValidator(_once), AfterValidator(_some)]


class VideoConfig(Section):
    """Options of videos."""

    bridge: dict[str, Any] = key(
        dict,
        "Options of the bridge that add images while a video is recorded, if the players "
        "need none, e.g. {observe: [rgb, semantic_rays]}.",
    )
    column: str | None = key(None, "Image observation of the video; null for the first.")
    fps: float = key(20.0, "Frame rate of the video.", unit="frames/s", gt=0)


class ScoringConfig(Section):
    """Episodes of each state, and their score."""

    episodes_per_state: int = key(
        1, "Episodes that each player plays from each state.", unit="episodes", gt=0
    )
    actions: Some[Actions] = key(
        ("sampled",), "Whether actions are sampled, deterministic, or both.", strict=False
    )
    metric: Metric = key("return", "The score: return, or progress or success of the task.")


class EvaluateConfig(FleetConfig, ScoringConfig):
    """Evaluates players on sets of states and reports their scores."""

    may_change: ClassVar[tuple[str, ...]] = (
        *FleetConfig.may_change,
        *("metric", "groups", "baseline", "confidence", "videos", "video", "published"),
        "record",
        *(f"players.*.{name}" for name in OF_MODELS),
    )
    may_grow: ClassVar[tuple[str, ...]] = ("episodes_per_state",)
    estimates: ClassVar[bool] = True
    derives: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **FleetConfig.derives,
        "player": ("bridge", "task", "players", "sets"),
    }

    player: str | None = key(
        None,
        "Run directory of a training, or a checkpoint in it: whatever of bridge, task, players, "
        "sets and output is not given is its own. With several seeds each of them is a player of "
        "one group. Same as --player.",
    )
    players: Annotated[dict[str, PolicyConfig], _NAMED] = key(
        ..., "Policies to evaluate, by a name of your choice; each like `policy` of collect.py."
    )
    sets: Annotated[dict[str, StateSetConfig], _NAMED] = key(
        ...,
        "State sets, by a name of your choice (train, test, full, extrapolation/x); "
        "each like `state_set` of collect.py. Give each a size.",
    )
    groups: Annotated[dict[str, list[str]], _NAMED] = key(
        dict,
        "Players that are training seeds of one model, by name of the model: their scores get an "
        "interval.",
    )
    baseline: str | None = key(
        None,
        "Player or group that is subtracted in each of its comparisons; null for the first group, "
        "or the first player if there are no groups.",
    )
    confidence: float = key(0.95, "Confidence of intervals.", gt=0, lt=1)
    published: str = key(
        "",
        "Published results that the report shows beside these: their name, or path of a .yaml "
        "file; empty for none.",
    )
    record: bool | None = key(
        None,
        "Whether to record the steps of all episodes as a dataset, which report.html shows; null "
        "for yes if a player calls models.",
    )
    videos: int = key(
        0,
        "Videos of this many best and worst episodes of each leg; 0 for none.",
        unit="episodes of each",
        ge=0,
    )
    video: VideoConfig = key(VideoConfig, "How videos are recorded.")

    @model_validator(mode="before")
    @classmethod
    def _of_player(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and data.get("player") is not None:
            try:
                return complete(data)
            except InputError as error:
                raise ValueError(str(error)) from error
        return data

    @field_validator("players", "sets")
    @classmethod
    def _different(cls, named: Mapping[str, Any]) -> Mapping[str, Any]:
        if not named:
            raise ValueError("is empty; name at least one")
        seen: dict[str, str] = {}
        for name, config in named.items():
            first = seen.setdefault(repr(resolved(config)), name)
            if first != name:
                raise ValueError(f"{first!r} and {name!r} are the same; remove one")
        return named

    @model_validator(mode="after")
    def _groups_of_players(self) -> EvaluateConfig:
        grouped: list[str] = []
        for group, players in self.groups.items():
            for player in players:
                if player not in self.players:
                    raise UnknownNameError(f"player in groups.{group}", player, self.players)
            if group in self.players:
                raise ValueError(f"groups.{group} has the name of a player; choose another")
            if not players:
                raise ValueError(f"groups.{group} is empty; name at least one player")
            grouped += players
        twice = sorted({player for player in grouped if grouped.count(player) > 1})
        if twice:
            raise ValueError(f"groups: {', '.join(twice)} is named more than once; remove one")
        models = [*self.groups, *(name for name in self.players if name not in grouped)]
        if self.baseline is not None and self.baseline not in models:
            raise UnknownNameError("baseline", self.baseline, models)
        return self


def complete(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keys of an evaluation, with the missing ones taken from its training run.

    The sets are states that the run trained on and states of its validation part, of each at most
    100. Test states are not opened unless ``sets`` names them.

    Args:
        given: keys, among them ``player``: a run directory of a training, or a checkpoint in it.

    Raises:
        InputError: ``player`` is not of a training run, or its game imports a module of the current
            folder that ``given`` does not name.
    """
    player = given["player"]
    if not isinstance(player, str) or not player:
        raise ConfigError(f"player: expected the folder of a training run, got {player!r}")
    if all(key in given for key in _FROM_RUN) and "name" in dict(given["bridge"] or {}):
        return dict(given)
    run = _run_of(Path(player).expanduser())
    trained = read(run / "config.yaml").data
    bridge, states = dict(trained["bridge"]), dict(trained["state_set"])
    changed = given.get("bridge") or {}
    bridge |= changed if isinstance(changed, Mapping) else {"name": changed}
    task = given.get("task", trained["task"])
    config = make_config(BridgeConfig, bridge)
    own = set(changed) if isinstance(changed, Mapping) else set()
    check = partial(check_code, source=f"the run {run}", kind="bridge", given=own)
    with named("bridge"):
        check(config.build())
        _, _, built = bridge_and_task(config, task, None if "task" in given else check)
    players = {name: {"name": "checkpoint", "path": str(p)} for name, p in _seeds_of(run).items()}
    return {
        "output": str(run / "evaluation"),
        "players": players or {PLAYER: {"name": "checkpoint", "path": player}},
        **({"groups": {PLAYER: [*players]}} if players and "players" not in given else {}),
        "sets": _sets(states, built) if "sets" not in given else None,
        **given,
        "task": task,
        "bridge": bridge,
    }


def _run_of(path: Path) -> Path:
    """Returns the run directory of a training, given the run or one of its checkpoints."""
    if _seeds_of(path):
        return path
    for folder in (path, *path.parents[:2]):
        if (folder / "config.yaml").is_file() and (folder / "checkpoints").is_dir():
            return folder
    raise ConfigError(
        f"player: expected the run directory of a training with its checkpoints, got {path}; train "
        f"one by `gamut train`, or name its output"
    )


def _seeds_of(run: Path) -> dict[str, Path]:
    """Returns the run directories of the seeds of a training; none if it has but one."""
    return seed_folders(run) if (run / "config.yaml").is_file() else {}


def _sets(states: dict[str, Any], built: Task) -> dict[str, Any]:
    """Returns the states of the training, and validation states if there are any."""
    config = make_config(StateSetConfig, states)
    if config.states is not None:
        return {"train": states}
    own = config.take(built.state_space)
    sets = {"train": {**states, "size": min(own.size, _STATES)}}
    if held_out := config.splits(built.state_space).part_size("validation"):
        sets["validation"] = resolved(config.of_part("validation", min(held_out, _STATES)))
    return sets
