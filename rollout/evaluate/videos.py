"""Videos of the best and the worst episodes, which are played again with an image observation.

Players that do not use images still see only their own observations: the filmed game provides the
image in addition. A deterministic game and player give the same score again, which is checked.
Otherwise the video shows another run of the same episode, and is marked as such.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gymnasium import spaces

from rollout.api import (
    Bridge,
    BridgeSpec,
    Columns,
    ColumnSpec,
    Decision,
    Details,
    Policy,
    PolicyRecipe,
    Start,
    Task,
)
from rollout.config import BridgeConfig, HostConfig
from rollout.data import Dataset, DatasetWriter, describe_dataset, play_video
from rollout.data.schema import OBSERVATION, column_name
from rollout.data.tables import Table
from rollout.errors import ConfigError, UnknownNameError
from rollout.evaluate.config import VideoConfig
from rollout.evaluate.legs import ChosenEpisodes, Legs, LegsPolicy, Place
from rollout.evaluate.scoreboard import Metric, Scoreboard, rows_of_leg
from rollout.host import PlayOptions
from rollout.host.hosting import HostPlan, LocalFleet

_FRAGMENT_STEPS = 64  # images held in memory at once


@dataclass(frozen=True)
class Shot:
    """An episode to record on video.

    Attributes:
        episode: its number.
        rank: ``best1``, ``best2``, ..., ``worst1``, ...
        score: its score.
        total_reward: undiscounted sum of its rewards.
        length: its steps.
        end: how it ended.
    """

    episode: int
    rank: str
    score: float
    total_reward: float
    length: int
    end: str


@dataclass(frozen=True)
class Film:
    """A video of an episode.

    Attributes:
        file: name of the file.
        leg: name of the leg.
        rank: as in ``Shot``.
        position: number of the state in its set.
        state: index of the state, decimal.
        repeat: number of the episode among those of the state.
        score: what it scored.
        replayed: its score while it was recorded.
        same: whether the video shows the scored episode: score, reward, length and end are the
            same.
        frames: number of frames.
    """

    file: str
    leg: str
    rank: str
    position: int
    state: str
    repeat: int
    score: float
    replayed: float
    same: bool
    frames: int


def check_pictures(spec: BridgeSpec, bridge: Bridge, task: Task, column: str | None) -> None:
    """Checks that a game can be filmed for players of another configuration of it.

    Args:
        spec: spec of the game that the players know.
        bridge: the game to film.
        task: the task.
        column: the image observation to film; None for any.

    Raises:
        ConfigError: the game has no image observation, or lacks one that the players use.
        UnknownNameError: the game does not have that column.
    """
    shown = bridge.spec
    task.check(shown)
    known = spec.observation_space.spaces
    other = [key for key, leaf in known.items() if shown.observation_space.spaces.get(key) != leaf]
    if other or shown.action_space != spec.action_space:
        what = f"the observations {other}" if other else "the actions"
        raise ConfigError(
            f"video.bridge changes {what}, which the players know; keep them as they are and add "
            f"a picture"
        )
    pictures = [key for key, leaf in shown.observation_space.spaces.items() if _is_picture(leaf)]
    if column is not None and column not in pictures:
        raise UnknownNameError("picture in video.column", column, pictures)
    if not pictures:
        raise ConfigError(
            f"videos: {spec.name} as it is configured shows no picture (it shows {list(known)}); "
            f"add one for the film by video.bridge, or set videos to 0"
        )


def filmed_bridge(
    video: VideoConfig, key: str, chosen: BridgeConfig, bridge: Bridge, task: Task
) -> Bridge:
    """Returns the game that is filmed, for players of another configuration of it.

    Args:
        video: how videos are recorded.
        key: the configuration key of the game, for messages.
        chosen: the game that the players know.
        bridge: the recipe made from it.
        task: the task.

    Raises:
        ConfigError: the game does not exist, has no image observation, or lacks what players use.
        UnknownNameError: the game does not have the column to film.
    """
    filmed = bridge
    if video.bridge:
        given = {"name": chosen.name, **chosen.options, **video.bridge}
        try:
            filmed = BridgeConfig.model_validate(given).build()
        except ValueError as error:  # also pydantic's own
            raise ConfigError(f"{key}.bridge: {' '.join(str(error).split())}") from error
    check_pictures(bridge.spec, filmed, task, video.column)
    return filmed


def _is_picture(leaf: spaces.Space[object]) -> bool:
    return isinstance(leaf, spaces.Box) and leaf.dtype == np.uint8 and len(leaf.shape) >= 2


def best_and_worst(legs: Legs, table: Table, count: int) -> list[Shot]:
    """Returns the ``count`` best and worst episodes of each leg, each episode at most once.

    Ties are resolved by the position of the state, then by the repeat.

    Args:
        legs: the legs that were played.
        table: the results, with a column ``score``; episodes without a score are left out.
        count: number of the best and of the worst episodes.
    """
    shots = []
    for number, leg in enumerate(legs.legs):
        rows = [row for row in rows_of_leg(table, leg) if not math.isnan(table["score"][row])]
        # Rows are in the order of position and repeat, and sorting is stable.
        best = sorted(rows, key=lambda row: -table["score"][row])[:count]
        rest = [row for row in rows if row not in best]
        worst = sorted(rest, key=lambda row: table["score"][row])[:count]
        for word, chosen in (("best", best), ("worst", worst)):
            for rank, row in enumerate(chosen, start=1):
                place = Place(number, int(table["position"][row]), int(table["repeat"][row]))
                shots.append(Shot(legs.number(place), f"{word}{rank}", *_facts(table, row)))
    return shots


def _facts(table: Table, row: int) -> tuple[float, float, int, str]:
    """Score, reward, length and end of an episode, as in ``Shot``."""
    score, reward = float(table["score"][row]), float(table["total_reward"][row])
    return score, reward, int(table["length"][row]), str(table["end"][row])


def film(
    bridge: Bridge,
    spec: BridgeSpec,
    task: Task,
    legs: Legs,
    shots: Sequence[Shot],
    folder: Path,
    *,
    metric: Metric,
    column: str | None = None,
    fps: float = 20.0,
    host: HostConfig | None = None,
    retries: int = 2,
) -> Iterator[Film]:
    """Plays episodes again in this process, one at a time, and records videos.

    Args:
        bridge: the game with an image observation.
        spec: spec of the game that the players know.
        task: the task.
        legs: the legs that were played.
        shots: the episodes to record.
        folder: folder of the videos; created if missing.
        metric: metric of the score.
        column: the image observation to film; None for the first one.
        fps: frames per second.
        host: how the game is supervised.
        retries: retries of an episode that is lost.

    Yields:
        each video after its file is complete; none for an episode that was lost in all attempts.

    Raises:
        BudgetExhausted: the game failed too often.
        DatasetError: a video cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    plan = HostPlan(
        bridge,
        task,
        _Blinkered(LegsPolicy.of(legs), spec),
        legs.seed,
        host=host or HostConfig(),
        play=PlayOptions(_FRAGMENT_STEPS, retries=retries),
    )
    fleet = LocalFleet(plan)
    try:
        for shot in shots:
            with tempfile.TemporaryDirectory(prefix="gamut-film-") as temporary:
                path = Path(temporary) / "dataset"
                board = _record(fleet, legs, shot.episode, path)
                with Dataset(path) as dataset:
                    for ref in dataset.episodes(episode=shot.episode):
                        name = _file_name(legs, shot)
                        source = None if column is None else column_name(OBSERVATION, column)
                        frames = play_video(dataset, ref, folder / name, column=source, fps=fps)
                        yield _film(legs, shot, name, frames, board.table(metric))
    finally:
        fleet.close()


def _record(fleet: LocalFleet, legs: Legs, episode: int, path: Path) -> Scoreboard:
    """Plays one episode into its own dataset."""
    plan = fleet.plan
    board = Scoreboard(legs, plan.task)
    manifest = describe_dataset(plan.bridge.spec, plan.task, policy="film")
    with DatasetWriter(path, manifest, fsync="never") as recorder:
        for fragment in fleet.play(ChosenEpisodes(legs, [episode])):
            recorder.append(fragment)
            board.add(fragment)
    return board


def _file_name(legs: Legs, shot: Shot) -> str:
    place = legs.place(shot.episode)
    leg = legs.legs[place.leg].name.replace("/", "-")
    return f"{leg}-{shot.rank}-state{place.position}-{place.repeat}.mp4"


def _film(legs: Legs, shot: Shot, name: str, frames: int, table: Table) -> Film:
    place = legs.place(shot.episode)
    facts = _facts(table, 0)
    return Film(
        file=name,
        leg=legs.legs[place.leg].name,
        rank=shot.rank,
        position=place.position,
        state=str(table["state"][0]),
        repeat=place.repeat,
        score=shot.score,
        replayed=facts[0],
        same=facts == (shot.score, shot.total_reward, shot.length, shot.end),
        frames=frames,
    )


@dataclass(frozen=True)
class _Blinkered:
    """Recipe of a policy that sees only the observations of another spec."""

    inner: PolicyRecipe
    spec: BridgeSpec

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> _BlinkeredPlayer:
        """Returns the policy, built for the spec that it knows."""
        inner = self.inner.build(self.spec, task, seed=seed)
        return _BlinkeredPlayer(inner, tuple(self.spec.observation_space.spaces))


class _BlinkeredPlayer:
    def __init__(self, inner: Policy, keys: Sequence[str]) -> None:
        self._inner, self._keys = inner, keys
        self.version = inner.version
        self.extras: Mapping[str, ColumnSpec] = inner.extras

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns the memory of the policy."""
        return self._inner.initial_memory(starts)

    def act(
        self,
        observations: Columns,
        memory: Columns,
        *,
        details: Sequence[Details] | None,
        explore: bool,
    ) -> Decision:
        """Lets the policy choose from the observations that it knows."""
        seen = {key: observations[key] for key in self._keys}
        return self._inner.act(seen, memory, details=details, explore=explore)
