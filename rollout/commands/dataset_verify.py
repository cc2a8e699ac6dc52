"""Plays recorded episodes again, and compares every frame with what was recorded."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rollout.api import Array, Bridge, Frame, Instance, Start
from rollout.configuration.plugins import build_plugin
from rollout.data import Dataset, EpisodeRef
from rollout.data.schema import ACTION, OBSERVATION, column_name
from rollout.errors import DatasetError
from rollout.host.instances import free_ports


class Difference(NamedTuple):
    """The first thing in an episode that was not the same when it was played again.

    Attributes:
        episode: number of the episode.
        step: number of the step; the length of the episode for what follows its last action.
        column: the column, or ``end`` if the game ended earlier.
    """

    episode: int
    step: int
    column: str

    def __str__(self) -> str:
        return f"episode {self.episode}, step {self.step}: {self.column} differs"


def compared(dataset: Dataset) -> tuple[list[str], list[str]]:
    """Returns the columns that are compared, and those that were stored with loss."""
    wanted = [c for c in dataset.manifest.columns if c.role in ("observation", "signal")]
    lossy = [c.name for c in wanted if c.codec.is_lossy]
    return [c.name for c in wanted if c.name not in lossy and c.codec.name != "json"], lossy


def verify(dataset: Dataset, episodes: Sequence[EpisodeRef]) -> Iterator[Difference | None]:
    """Plays each episode again from its start by its actions.

    Yields:
        for each episode None, or the first difference.

    Raises:
        DatasetError: the bridge has other spaces than the dataset.
        GameError: the game cannot be started, or fails.
    """
    manifest = dataset.manifest
    bridge: Bridge = build_plugin("bridges", manifest.bridge, manifest.bridge_options)
    spec = bridge.spec
    for name in ("observation_space", "action_space"):
        if getattr(spec, name) != getattr(manifest, name):
            raise DatasetError(
                f"the bridge {manifest.bridge} has another {name} than {dataset.layout.root}: "
                f"expected {getattr(manifest, name)}, got {getattr(spec, name)}"
            )
    with _game(bridge) as game:
        for ref in episodes:
            yield _again(game, dataset, ref, spec.width_step, spec.deadlines.step_s)


@contextmanager
def _game(bridge: Bridge) -> Iterator[Instance]:
    spec = bridge.spec
    with tempfile.TemporaryDirectory(prefix="gamut-verify-") as folder:
        start_s = spec.deadlines.start_s
        ports = free_ports(spec.ports)
        game = bridge.launch(Path(folder), ports, width=spec.width_step, timeout_s=start_s)
        try:
            yield game
        finally:
            game.close()


def _again(
    game: Instance, dataset: Dataset, ref: EpisodeRef, width: int, timeout_s: float
) -> Difference | None:
    manifest, (names, _) = dataset.manifest, compared(dataset)
    actions = {key: column_name(ACTION, key) for key in manifest.action_space}
    episode = dataset.read(ref, [*names, *actions.values()])
    state = manifest.state_space.state(ref.state)
    start = Start(state, ref.seed, ref.episode, ref.attempt, ref.state_set)
    frame = game.reset(list(range(width)), [start] * width, timeout_s=timeout_s)
    final = {column_name(OBSERVATION, k): v for k, v in episode.final_observations.items()}
    for step in range(ref.length):
        before = {n: episode.columns[n][step] for n in names if n.startswith("observation")}
        if column := _differs(frame, before):
            return Difference(ref.episode, step, column)
        done = {k: np.repeat(episode.columns[n][step][None], width, 0) for k, n in actions.items()}
        frame = game.step(done, timeout_s=timeout_s)
        after = {n: episode.columns[n][step] for n in names if n.startswith("signal/")}
        if column := _differs(frame, after):
            return Difference(ref.episode, step, column)
        if bool(frame.game_over[0]) and step < ref.length - 1:
            return Difference(ref.episode, step, "end")
    last = {n: final[n] for n in names if n in final}
    column = _differs(frame, last)
    return Difference(ref.episode, ref.length, column) if column else None


def _differs(frame: Frame, recorded: Mapping[str, Any]) -> str:
    """The first column whose value in the frame is another; empty if there is none."""
    for name, value in recorded.items():
        role, _, key = name.partition("/")
        shown = frame.signals if role == "signal" else frame.observations
        if not _same(shown[key or role][0], value):
            return name
    return ""


def _same(one: Any, other: Any) -> bool:
    left: Array = np.asarray(one)
    return bool(np.array_equal(left, np.asarray(other), equal_nan=left.dtype.kind == "f"))
