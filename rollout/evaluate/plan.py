"""The plan of an evaluation: its configuration, built and checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from rollout.api import Bridge, PolicyRecipe, StateSet, Task, calls_of, trials_of
from rollout.api.sets import ALL
from rollout.api.subsets import CHOSEN
from rollout.config import resolved
from rollout.errors import ConfigError, named
from rollout.evaluate.config import EvaluateConfig
from rollout.evaluate.legs import Leg, Legs
from rollout.evaluate.published import Published, load_published
from rollout.evaluate.scoreboard import check_metric
from rollout.evaluate.videos import video_bridge
from rollout.host.opening import check_inference
from rollout.tasks import bridge_and_task

_MOST_EPISODES = 10_000_000  # results are kept in memory, about 500 bytes each


@dataclass(frozen=True)
class EvaluationPlan:
    """A configuration that is built and checked; nothing has been launched.

    Attributes:
        config: the configuration, including the options that the task requires.
        bridge: recipe of the game.
        task: the task.
        legs: the legs to play.
        versions: the version of each player's weights.
        published: the published results that the report shows; None for none.
        video_bridge: the game with an image observation; None without videos.
    """

    config: EvaluateConfig
    bridge: Bridge
    task: Task
    legs: Legs
    versions: Mapping[str, int]
    published: Published | None
    video_bridge: Bridge | None

    @classmethod
    def make(cls, config: EvaluateConfig) -> EvaluationPlan:
        """Returns the plan of a configuration.

        Raises:
            InputError: something in the configuration does not exist or does not fit.
        """
        bridge_config, bridge, task = bridge_and_task(config.bridge, config.task)
        check_metric(config.metric, task)
        published = _published(config, bridge.spec.tasks)
        sets = _sets(config, task)
        recipes, numbers = _players(config, bridge, task)
        for recipe in recipes.values():
            check_inference(recipe, config.inference)
            if trials_of(recipe) and config.episodes_per_state == 1:
                raise ConfigError(
                    "episodes_per_state=1: a player is to be told of its earlier episodes from "
                    "the same state, and there are none; set 2 or more, or leave reflect out"
                )
        calls = max(map(calls_of, recipes.values()))
        width = bridge.spec.choose_width(config.width, calls=calls)
        config = config.model_copy(update={"bridge": bridge_config, "width": width})
        legs = [
            Leg(player, recipes[player], name, sets[name], actions, config.episodes_per_state)
            for player, name, actions in product(recipes, sets, config.actions)
        ]
        recorded = None
        if config.videos:
            recorded = video_bridge(config.video, "video", bridge_config, bridge, task)
        played = Legs(tuple(legs), task.state_space, config.seed)
        return cls(config, bridge, task, played, numbers, published, recorded)

    @property
    def divisions(self) -> dict[str, list[str]]:
        """Names of the sets by how they divide the space; sets of two divisions may overlap.

        Sets that are drawn from all states, or listed, overlap on purpose and are left out.
        """
        divisions: dict[str, list[str]] = {}
        for leg in self.legs.legs:
            if leg.states.part not in (ALL, CHOSEN):
                names = divisions.setdefault(json.dumps(leg.states.splits.describe()), [])
                names += [leg.set_name] * (leg.set_name not in names)
        return divisions


def _sets(config: EvaluateConfig, task: Task) -> dict[str, StateSet]:
    sets: dict[str, StateSet] = {}
    for name, chosen in config.sets.items():
        with named(f"sets.{name}"):
            sets[name] = chosen.take(task.state_space)
    total = sum(states.size for states in sets.values())
    total *= len(config.players) * len(config.actions) * config.episodes_per_state
    if total > _MOST_EPISODES:
        sizes = ", ".join(f"{name} {states.size}" for name, states in sets.items())
        raise ConfigError(
            f"sets: the job has {total} episodes, and at most {_MOST_EPISODES} are supported "
            f"(states: {sizes}); give the sets a size"
        )
    names: dict[str, str] = {}
    for name, states in sets.items():
        first = names.setdefault(states.digest, name)
        if first != name:
            raise ConfigError(f"sets.{first} and sets.{name} are the same states; drop one")
    return sets


def _published(config: EvaluateConfig, tasks: Path | None) -> Published | None:
    if not config.published:
        return None
    published = load_published(config.published, tasks)
    if published.metric != config.metric:
        raise ConfigError(
            f"published={config.published}: its results are of metric={published.metric}, and the "
            f"evaluation has metric={config.metric}; set the same, or leave published empty"
        )
    return published


def _players(
    config: EvaluateConfig, bridge: Bridge, task: Task
) -> tuple[dict[str, PolicyRecipe], dict[str, int]]:
    """The recipes. Each is built once, to refuse one that does not fit before any launch."""
    recipes, numbers = {}, {}
    for name, chosen in config.players.items():
        with named(f"players.{name}"):
            recipes[name] = chosen.build()
            numbers[name] = recipes[name].build(bridge.spec, task, seed=config.seed).version
    return recipes, numbers


def protocol(plan: EvaluationPlan) -> dict[str, Any]:
    """Everything needed to reproduce the figures; the same in every session of a run."""
    c = plan.config
    return {
        "bridge": c.bridge.name,
        "bridge_version": plan.bridge.spec.version,
        "bridge_options": c.bridge.options,
        "task": plan.task.name,
        "limit_steps": plan.task.limits.steps,
        "metric": c.metric,
        "seed": c.seed,
        "players": {name: resolved(player) for name, player in c.players.items()},
        "player_versions": dict(plan.versions),
        "groups": dict(c.groups),
        "sets": {leg.set_name: leg.states.describe() for leg in plan.legs.legs},
        "episodes_per_state": c.episodes_per_state,
        "actions": list(c.actions),
        "episode_seed": "numpy SeedSequence(seed, spawn_key=(state, repeat, 1)), for all players",
        "lost_episodes": f"tried again up to {c.host.retries} times, never counted as results",
    }
