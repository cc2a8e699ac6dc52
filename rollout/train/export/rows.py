"""Observations on which an exported network is compared with the original."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from rollout.api import MASK, Bridge, Columns, Start, allocate, leaf_dtype, sample
from rollout.api.masks import choices_of
from rollout.configuration.plugins import build_plugin
from rollout.data import Dataset
from rollout.data.schema import column_name
from rollout.errors import GamutError, InputError
from rollout.observe.run_files import RUN
from rollout.train.checkpoint import Checkpoint
from rollout.yaml12 import load_yaml

log = logging.getLogger(__name__)

_STEPS, _WIDTH = 16, 8
_ROWS = _STEPS * _WIDTH
_TIMEOUT_S = 60.0
_CONFIG, _DATASET = "config.yaml", "dataset"


@dataclass(frozen=True)
class Rows:
    """Observations in batches, one after another.

    Attributes:
        batches: each ``{key: (B, ...)}``.
        source: where they come from, for people.
    """

    batches: list[Columns]
    source: str

    @property
    def count(self) -> int:
        """Number of rows."""
        return sum(len(next(iter(batch.values()))) for batch in self.batches)


def run_of(checkpoint: Checkpoint) -> Path:
    """Returns the run directory of a checkpoint, or the folder that it is in."""
    parents = checkpoint.path.resolve().parents
    return next((each for each in parents if (each / RUN).is_file()), parents[0])


def rows_for(checkpoint: Checkpoint, run: Path, policy: Any) -> Rows:
    """Returns recorded observations; where there are none, played or drawn ones.

    Args:
        checkpoint: the checkpoint.
        run: its run directory.
        policy: plays, if there are no recorded ones.
    """
    wanted = list(checkpoint.observation_space)
    for path in _datasets(run):
        try:
            with Dataset(path) as dataset:
                return Rows(list(_recorded(dataset, wanted)), f"recorded in {path.name}")
        except InputError as error:
            log.info("observations recorded in %s are not used: %s", path, error)
    try:
        return Rows(list(_played(checkpoint, policy)), "played from its game")
    except Exception as error:  # noqa: BLE001 - a game may raise anything; others will do
        text = str(error) if isinstance(error, GamutError) else f"{type(error).__name__}: {error}"
        log.info("its game is not played for the check: %s", text)
    space, rng = checkpoint.observation_space, np.random.default_rng(0)
    return Rows(
        [_drawn(space, checkpoint.action_space, rng) for _ in range(_STEPS)],
        "drawn from its observation space",
    )


def _datasets(folder: Path) -> Iterator[Path]:
    """Yields the datasets that a run has recorded or learned from."""
    try:
        written = load_yaml(folder / _CONFIG)
    except (OSError, InputError):
        written = {}
    found: list[Any] = [folder / _DATASET]
    if isinstance(written, Mapping):
        algorithm = written.get("algorithm")
        found.append(written.get(_DATASET))
        found.append(algorithm.get(_DATASET) if isinstance(algorithm, Mapping) else None)
    yield from (Path(each) for each in found if each and Path(each).exists())


def _recorded(dataset: Dataset, wanted: list[str]) -> Iterator[Columns]:
    names, left = {name: column_name("observation", name) for name in wanted}, _ROWS
    for ref in dataset.episodes():
        if ref.length == 0 or left <= 0:
            continue
        window = next(dataset.stream(ref, list(names.values()), length=left))
        yield {name: np.array(window.columns[column]) for name, column in names.items()}
        left -= len(window.columns[names[wanted[0]]])
    if left == _ROWS:
        raise InputError("there is no finished episode in it")


def _played(checkpoint: Checkpoint, policy: Any) -> Iterator[Columns]:
    about: Any = checkpoint.about.get("bridge")  # of the keys for human readers
    bridge: Bridge = build_plugin("bridges", about["name"], about["options"])
    spec = bridge.spec
    if spec.process != "in_process":
        raise InputError(f"{spec.name} runs in a process of its own")
    checkpoint.require_spaces(spec)
    width, episode = spec.choose_width(None, episodes=_WIDTH), 0
    with tempfile.TemporaryDirectory(prefix="gamut-export-") as folder:
        instance = bridge.launch(Path(folder), (), width=width, timeout_s=_TIMEOUT_S)
        try:
            over = np.ones(width, bool)
            memory: Columns = {}
            seen: Columns = {}
            for _ in range(_STEPS):
                slots = np.flatnonzero(over).tolist()
                if slots:
                    states = [(episode + n) % spec.state_space.size for n in range(len(slots))]
                    starts = [Start(spec.state_space.state(n), seed=n) for n in states]
                    episode += len(slots)
                    first = instance.reset(slots, starts, timeout_s=_TIMEOUT_S)
                    seen = _into(seen, first.observations, slots, width)
                    memory = _into(memory, policy.initial_memory(starts), slots, width)
                shown = {name: seen[name] for name in checkpoint.observation_space}
                yield shown
                decision = policy.act(shown, memory, details=None, explore=True)
                memory = dict(decision.memory)
                frame = instance.step(decision.actions, timeout_s=_TIMEOUT_S)
                seen = {name: array.copy() for name, array in frame.observations.items()}
                over = frame.game_over | frame.game_truncated
        finally:
            instance.close()


def _into(columns: Columns, rows: Columns, slots: list[int], width: int) -> Columns:
    """Returns columns of all slots in which some rows are new."""
    found: Columns = {}
    for name, new in rows.items():
        old = columns.get(name)
        found[name] = np.zeros((width, *new.shape[1:]), new.dtype) if old is None else old.copy()
        found[name][slots] = new
    return found


def _drawn(space: spaces.Dict, actions: spaces.Dict, rng: np.random.Generator) -> Columns:
    """Returns random observations, of which the masks allow a value of each choice."""
    columns = allocate(space, _WIDTH)
    columns |= sample(space, _WIDTH, rng)
    for name, leaf in space.spaces.items():
        if not name.startswith(MASK):
            continue
        at = 0
        for size in choices_of(actions[name.removeprefix(MASK)]):
            columns[name][np.arange(_WIDTH), at + rng.integers(size, size=_WIDTH)] = 1
            at += size
        columns[name] = columns[name].astype(leaf_dtype(leaf))
    return columns
