"""The configuration of an evaluation over several tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar

from pydantic import field_validator, model_validator

from rollout.config import (
    OF_MODELS,
    BridgeConfig,
    CollectConfig,
    FragmentConfig,
    HostingConfig,
    PolicyConfig,
    RecordingConfig,
    Section,
    StateSetConfig,
    key,
    make_config,
)
from rollout.errors import ConfigError, named
from rollout.evaluate.config import named_like
from rollout.judge.config import JudgeConfig

TASK, NAME = "$task", "$name"
"""Stand in the options of a player for the task in its bridge, and for what ``tasks`` calls it."""

_NAMED = named_like(r"[A-Za-z0-9][A-Za-z0-9_+-]*", "letters, digits, -, _ and +")


class SuitePlayer(Section):
    """A player of a suite; its games may differ from those of others in how they are operated."""

    policy: PolicyConfig = key(
        ..., "The policy; $task in an option stands for the task, $name for its name in tasks."
    )
    bridge: dict[str, Any] = key(
        dict,
        "Options of the bridge for this player, e.g. its actions; likewise with $task and $name.",
    )
    tasks: tuple[str, ...] = key(
        ("*",),
        "Names of the tasks that it plays, * for anything; an empty list leaves the player out.",
        strict=False,
    )


class SuiteConfig(HostingConfig):
    """Evaluates players on several tasks, with machine goals and a judge beside one another."""

    may_change: ClassVar[tuple[str, ...]] = (
        *HostingConfig.may_change,
        *("actors", "instances", "fragment", "judge", "confidence"),
        *(f"players.*.policy.{name}" for name in OF_MODELS),
    )
    derives: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    estimates: ClassVar[bool] = True

    bridge: BridgeConfig = key(
        ..., "The game, with the options that all players share; pictures among them."
    )
    tasks: Annotated[dict[str, Annotated[dict[str, str], _NAMED]], _NAMED] = key(
        ...,
        "Tasks by difficulty (simple, hard) and by a name of your choice, each the name of a task "
        "of the bridge or the path of its file. Tasks of one name are compared between them.",
    )
    players: Annotated[dict[str, SuitePlayer], _NAMED] = key(
        ..., "Players, by a name of your choice."
    )
    state_set: StateSetConfig = key(
        lambda: StateSetConfig(split="test", size=30),
        "States of each task, one episode each, the same for all players; as of gamut collect.",
    )
    judge: dict[str, Any] | None = key(
        None,
        "Keys of gamut judge for the model that rates the recordings, e.g. endpoint, model and "
        "frames; rubric is mcu. null shows the machine's figures alone.",
    )
    confidence: float = key(0.95, "Confidence of intervals.", gt=0, lt=1)
    actors: int = key(
        0, "Actors that play, as of gamut collect; 0 plays in this process.", unit="actors", ge=0
    )
    fragment: FragmentConfig = key(FragmentConfig, "When actors send what they have played.")
    recording: RecordingConfig = key(RecordingConfig, "How episodes are recorded.")

    @field_validator("tasks", "players")
    @classmethod
    def _some(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        if not given or not all(given.values()):
            raise ValueError("is empty; name at least one")
        return given

    @field_validator("state_set")
    @classmethod
    def _counted(cls, given: StateSetConfig) -> StateSetConfig:
        if given.size is None:
            raise ValueError("size: expected a number of states, got null")
        return given

    @model_validator(mode="after")
    def _everyone_plays(self) -> SuiteConfig:
        playing = {cell.player for cell in self.cells()}
        idle = [name for name, each in self.players.items() if each.tasks and name not in playing]
        if idle or not playing:
            name = (idle or list(self.players))[0]
            raise ValueError(f"players.{name}.tasks: none of the tasks has such a name")
        if not self.recording.enabled:
            raise ValueError("recording.enabled=false: what is not recorded cannot be rated")
        return self

    def cells(self) -> Iterator[Cell]:
        """Yields what is played: every player with every task of each difficulty."""
        for difficulty, tasks in self.tasks.items():
            for name, task in tasks.items():
                for player, chosen in self.players.items():
                    if any(fnmatchcase(name, pattern) for pattern in chosen.tasks):
                        yield Cell(difficulty, name, task, player)

    def collection(self, cell: Cell) -> CollectConfig:
        """Returns the configuration by which a cell is played and recorded.

        Raises:
            ConfigError: an option is invalid; the message names the cell.
        """
        player = self.players[cell.player]
        policy = {"name": player.policy.name, **player.policy.options}
        bridge = {"name": self.bridge.name, **self.bridge.options, **player.bridge}
        own = json.dumps({"bridge": bridge, "policy": policy})
        own = own.replace(TASK, cell.task).replace(NAME, cell.name)
        keys = {
            **json.loads(own),
            "output": str(self.output / "runs" / cell.folder),
            "task": cell.task,
            "wandb": {"mode": "disabled"},
        }
        shared = ("seed", "instances", "width", "host", "ray", "log", "actors", "fragment")
        keys |= {name: getattr(self, name) for name in (*shared, "recording", "state_set")}
        keys["episodes"] = self.state_set.size
        with named(f"{cell.difficulty}, {cell.name}, {cell.player}"):
            return make_config(CollectConfig, keys)

    def judgement(self) -> JudgeConfig | None:
        """Returns the configuration of the judge; None without one.

        Raises:
            ConfigError: a key is invalid, or the judge is the model of a player.
        """
        if self.judge is None:
            return None
        if own := {"output", "dataset", "mode"} & self.judge.keys():
            raise ConfigError(f"judge.{min(own)}: the suite sets it; leave it out")
        keys = {
            "output": str(self.output / "judge"),
            "dataset": str(self.output),
            "rubric": "mcu",
            "measure": "progress",
            "wandb": {"mode": "disabled"},
            **self.judge,
        }
        with named("judge"):
            config = make_config(JudgeConfig, keys)
        for name, player in self.players.items():
            same = player.policy.options.get("model") == config.model
            if same and not config.allow_same_model:
                raise ConfigError(
                    f"judge.model: {config.model} is also the player {name}, and models prefer "
                    f"their own; choose another judge, or set judge.allow_same_model=true"
                )
        return config


@dataclass(frozen=True)
class Cell:
    """One player on one task.

    Attributes:
        difficulty: difficulty, e.g. ``simple``.
        name: what the configuration calls the task.
        task: name of the task in its bridge, or the path of its file.
        player: name of the player.
    """

    difficulty: str
    name: str
    task: str
    player: str

    @property
    def folder(self) -> str:
        """Name of its folder."""
        return f"{self.difficulty}.{self.name}.{self.player}"
