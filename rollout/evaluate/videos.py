"""Films of the best and the worst episodes: they are played again, with a picture.

Players that do not look at a picture are not made to: the game that is filmed shows one beside
what they know, and they see what they know. A game and a player that repeat give the same score
again, which is checked; where they do not, the film shows another run of the same episode, and
says so.
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
from rollout.data import Dataset, DatasetWriter, describe_dataset, play_video
from rollout.data.schema import OBSERVATION, column_name
from rollout.data.tables import Table
from rollout.errors import ConfigError, UnknownNameError
from rollout.evaluate.legs import ChosenEpisodes, Leg, Legs, LegsPolicy, Place
from rollout.evaluate.scoreboard import Metric, Scoreboard
from rollout.host import PlayOptions, PoolOptions
from rollout.host.hosting import HostPlan, LocalFleet

_FRAGMENT_STEPS = 64  # pictures held at once


@dataclass(frozen=True)
class Shot:
    """An episode to film.

    Attributes:
        episode: its number.
        rank: ``best1``, ``best2``, ..., ``worst1``, ...
        score: what it scored.
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
    """A film of an episode.

    Attributes:
        file: name of the file.
        leg: name of the leg.
        rank: as in ``Shot``.
        position: number of the state in its set.
        state: index of the state, decimal.
        repeat: number of the episode among those of the state.
        score: what it scored.
        replayed: what it scored when it was filmed.
        same: whether the film shows the episode that was scored: score, reward, length and end
            are the same.
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
    """Checks that a game can be filmed for players that know another configuration of it.

    Args:
        spec: of the game as the players know it.
        bridge: the game to film.
        task: what is played.
        column: observation that is filmed; None for any picture.

    Raises:
        ConfigError: it shows no picture, or lacks what the players see.
        UnknownNameError: it does not show that column.
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


def _is_picture(leaf: spaces.Space[object]) -> bool:
    return isinstance(leaf, spaces.Box) and leaf.dtype == np.uint8 and len(leaf.shape) >= 2


def best_and_worst(legs: Legs, table: Table, count: int) -> list[Shot]:
    """Returns the ``count`` best and worst episodes of each leg, no episode twice.

    Ties go to the state that comes first in its set, and to its first episode.

    Args:
        legs: what was played.
        table: the results, with a column ``score``; episodes without one are left out.
        count: of each.
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
    """What an episode came to, as ``Shot`` remembers it."""
    score, reward = float(table["score"][row]), float(table["total_reward"][row])
    return score, reward, int(table["length"][row]), str(table["end"][row])


def rows_of_leg(table: Table, leg: Leg) -> list[int]:
    """Returns the rows of a table that belong to a leg."""
    columns = {"player": leg.player, "set": leg.set_name, "actions": leg.actions}
    mine = np.logical_and.reduce([table[name] == value for name, value in columns.items()])
    rows: list[int] = np.flatnonzero(mine).tolist()
    return rows


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
    pool: PoolOptions | None = None,
    retries: int = 2,
) -> Iterator[Film]:
    """Plays episodes again, here and one by one, and films them.

    Args:
        bridge: the game, with a picture.
        spec: of the game as the players know it.
        task: what is played.
        legs: what was played.
        shots: which episodes.
        folder: where the films go; made if it is not there.
        metric: what was scored.
        column: observation to film; None for the first picture.
        fps: frames per second.
        pool: how the game is hosted.
        retries: how often an episode that is lost is tried again.

    Yields:
        each film, the file being complete; an episode that was lost too often has none.

    Raises:
        BudgetExhausted: the game died too often.
        DatasetError: a film cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    plan = HostPlan(
        bridge,
        task,
        _Blinkered(LegsPolicy.of(legs), spec),
        legs.seed,
        pool=pool or PoolOptions(),
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
    """Plays one episode into a dataset of its own."""
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
        """Returns the policy; it is built for the spec it knows."""
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
        """Lets the policy choose by what it knows."""
        seen = {key: observations[key] for key in self._keys}
        return self._inner.act(seen, memory, details=details, explore=explore)
