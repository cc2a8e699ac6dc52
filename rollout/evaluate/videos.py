"""Videos of the best and the worst episodes, which are played again with an image observation.

Players that do not use images still see only their own observations: the recorded game provides the
image in addition. A deterministic game and player give the same score again, which is checked.
Otherwise the video shows another run of the same episode, and is marked as such.
"""

from __future__ import annotations

import logging
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rollout.api import (
    Bridge,
    BridgeSpec,
    Columns,
    Decision,
    Policy,
    PolicyRecipe,
    Start,
    Task,
    is_picture,
)
from rollout.config import BridgeConfig, HostConfig
from rollout.data import Dataset, DatasetWriter, Mp4, describe_dataset
from rollout.data.schema import OBSERVATION, column_name
from rollout.data.tables import Table
from rollout.errors import ConfigError, UnknownNameError
from rollout.evaluate.config import VideoConfig
from rollout.evaluate.legs import Legs, LegsPolicy, Place
from rollout.evaluate.scoreboard import Metric, Scoreboard, rows_of_leg
from rollout.host import PlayOptions
from rollout.host.hosting import HostPlan, LocalFleet
from rollout.host.schedule import Schedule

log = logging.getLogger(__name__)

_FRAGMENT_STEPS = 64  # images held in memory at once


class Chosen(NamedTuple):
    """An episode to record on video; further fields as in ``scoreboard.COLUMNS``.

    Attributes:
        episode: its number.
        rank: ``best1``, ``best2``, ..., ``worst1``, ...
    """

    episode: int
    rank: str
    score: float
    total_reward: float
    length: int
    end: str


@dataclass(frozen=True)
class EpisodeVideo:
    """A video of an episode; further fields as in ``scoreboard.COLUMNS``.

    Attributes:
        file: name of the file.
        leg: name of the leg.
        rank: as in ``Chosen``.
        replayed: its score while it was recorded.
        same: the video shows the scored episode: score, reward, length and end are the
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
    """Checks that a game can be recorded for players that know another ``spec`` of it.

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
    pictures = [key for key, leaf in shown.observation_space.spaces.items() if is_picture(leaf)]
    if column is not None and column not in pictures:
        raise UnknownNameError("picture in video.column", column, pictures)
    if not pictures:
        raise ConfigError(
            f"videos: {spec.name} as it is configured shows no picture (it shows {list(known)}); "
            f"add one for the video by video.bridge, or set videos to 0"
        )


def video_bridge(
    video: VideoConfig, key: str, chosen: BridgeConfig, bridge: Bridge, task: Task
) -> Bridge:
    """Returns the game that is recorded, for players of another configuration of it.

    Args:
        video: options of videos.
        key: the configuration key of the game, for messages.
        chosen: the game that the players know.
        bridge: the recipe made from it.
        task: the task.

    Raises:
        ConfigError: the game does not exist, has no image observation, or lacks what players use.
        UnknownNameError: the game does not have the column to record.
    """
    recorded = bridge
    if video.bridge:
        given = {"name": chosen.name, **chosen.options, **video.bridge}
        try:
            recorded = BridgeConfig.model_validate(given).build()
        except ValueError as error:  # also pydantic's own
            raise ConfigError(f"{key}.bridge: {' '.join(str(error).split())}") from error
    check_pictures(bridge.spec, recorded, task, video.column)
    return recorded


def best_and_worst(legs: Legs, table: Table, best: int, worst: int) -> list[Chosen]:
    """Returns the best and the worst episodes of each leg, each episode at most once.

    They start from different states as far as there are enough: further episodes of a state
    are chosen only after those of all states. Ties are resolved by the position of the state,
    then by the repeat.

    Args:
        legs: the legs that were played.
        table: the results, with a column ``score``; episodes without a score are left out.
        best: number of the best episodes.
        worst: number of the worst episodes.
    """
    found = []
    for number, leg in enumerate(legs.legs):
        rows = [row for row in rows_of_leg(table, leg) if not math.isnan(table["score"][row])]
        # Rows are in the order of position and repeat, and sorting is stable.
        ranked = sorted(rows, key=lambda row: -table["score"][row])
        highest = _of_different_states(table, ranked, best)
        ranked = sorted(rows, key=lambda row: table["score"][row])
        lowest = _of_different_states(table, ranked, worst, highest)
        for word, ranked in (("best", highest), ("worst", lowest)):
            for rank, row in enumerate(ranked, start=1):
                place = Place(number, int(table["position"][row]), int(table["repeat"][row]))
                found.append(Chosen(legs.number(place), f"{word}{rank}", *_result(table, row)))
    return found


def _of_different_states(
    table: Table, ranked: Sequence[int], count: int, taken: Sequence[int] = ()
) -> list[int]:
    """Returns the first rows of new states, then others, in their order; none that is taken."""
    seen = {int(table["position"][row]) for row in taken}
    fresh: list[int] = []
    for row in ranked:
        position = int(table["position"][row])
        if position not in seen:
            fresh.append(row)
            seen.add(position)
    others = [row for row in ranked if row not in {*fresh, *taken}]
    chosen = {*fresh[:count], *others[: max(0, count - len(fresh))]}
    return [row for row in ranked if row in chosen]


def _result(table: Table, row: int) -> tuple[float, float, int, str]:
    """Returns score, reward, length and end of an episode, as in ``Chosen``."""
    score, reward = float(table["score"][row]), float(table["total_reward"][row])
    return score, reward, int(table["length"][row]), str(table["end"][row])


def record(
    bridge: Bridge,
    spec: BridgeSpec,
    task: Task,
    legs: Legs,
    chosen: Sequence[Chosen],
    folder: Path,
    *,
    metric: Metric,
    video: VideoConfig,
    host: HostConfig,
    start: Callable[[int], Start] | None = None,
) -> Iterator[EpisodeVideo]:
    """Plays episodes again in this process, one at a time, and records videos.

    A video that shows another run of its episode causes a warning.

    Args:
        bridge: the game with an image observation.
        spec: spec of the game that the players know.
        task: the task.
        legs: the legs that were played.
        chosen: the episodes to record.
        folder: folder of the videos in the folder of the run; created if missing.
        metric: metric of the score.
        video: image observation and frame rate.
        host: options of hosting.
        start: returns the start of an episode; ``legs.start`` where no player sees earlier ones.

    Yields:
        each video after its file is complete; none for an episode that was lost in all attempts.

    Raises:
        BudgetExhausted: the game failed too often.
        DatasetError: a video cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # Decisions that the run has kept are read from its folder.
    policy = _Restricted(LegsPolicy.of(legs).in_run(folder.parent), spec)
    play = PlayOptions(_FRAGMENT_STEPS, retries=host.retries)
    fleet = LocalFleet(HostPlan(bridge, task, policy, legs.seed, host=host, play=play))
    source = None if video.column is None else column_name(OBSERVATION, video.column)
    try:
        for each in chosen:
            leg, position, repeat = legs.place(each.episode)
            name = legs.legs[leg].name.replace("/", "-")
            file = folder / f"{name}-{each.rank}-state{position}-{repeat}.mp4"
            with tempfile.TemporaryDirectory(prefix="gamut-video-") as temporary:
                path = Path(temporary) / "dataset"
                board = _play(fleet, legs, (start or legs.start)(each.episode), path)
                with Dataset(path) as dataset:
                    for ref in dataset.episodes(episode=each.episode):
                        frames = Mp4(source, video.fps).write(dataset, [ref], file)
                        yield _episode_video(legs, each, file, frames, board.table(metric))
    finally:
        fleet.close()


def _play(fleet: LocalFleet, legs: Legs, start: Start, path: Path) -> Scoreboard:
    """Plays one episode into its own dataset."""
    plan = fleet.plan
    board = Scoreboard(legs, plan.task)
    # Without further episodes, it hands out only the one that is given to it.
    schedule = Schedule(legs.legs[0].states, seed=legs.seed, episodes=0)
    schedule.give_back([start])
    extras = dict(fleet.extras)
    manifest = describe_dataset(plan.bridge.spec, plan.task, policy="video", extras=extras)
    with DatasetWriter(path, manifest, fsync="never") as recorder:
        for fragment in fleet.play(schedule):
            recorder.append(fragment)
            board.add(fragment)
    return board


def _episode_video(
    legs: Legs, chosen: Chosen, file: Path, frames: int, table: Table
) -> EpisodeVideo:
    leg, position, repeat = legs.place(chosen.episode)
    result = _result(table, 0)
    same = result == (chosen.score, chosen.total_reward, chosen.length, chosen.end)
    if not same:
        log.warning(
            "%s shows another run of its episode, which scored %g, not %g: the game, or the "
            "player, does not repeat",
            file,
            result[0],
            chosen.score,
        )
    return EpisodeVideo(
        file=file.name,
        leg=legs.legs[leg].name,
        rank=chosen.rank,
        position=position,
        state=str(table["state"][0]),
        repeat=repeat,
        score=chosen.score,
        replayed=result[0],
        same=same,
        frames=frames,
    )


@dataclass(frozen=True)
class _Restricted:
    """Recipe of a policy that sees only the observations of another spec."""

    inner: PolicyRecipe
    spec: BridgeSpec

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> _RestrictedPolicy:
        """Returns the policy, built for the spec that it knows."""
        inner = self.inner.build(self.spec, task, seed=seed)
        return _RestrictedPolicy(inner, tuple(self.spec.observation_space.spaces))


class _RestrictedPolicy:
    def __init__(self, inner: Policy, keys: Sequence[str]) -> None:
        self._inner, self._keys = inner, keys
        self.version, self.extras = inner.version, inner.extras
        self.initial_memory = inner.initial_memory

    def act(self, observations: Columns, memory: Columns, **how: Any) -> Decision:
        """Returns the decision of the policy on the observations that it knows."""
        return self._inner.act({key: observations[key] for key in self._keys}, memory, **how)
