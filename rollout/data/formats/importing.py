"""Makes a dataset of episodes in another format; those that are wrong are listed and left out."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from rollout.api import (
    AnyText,
    Array,
    Columns,
    Factor,
    Flaw,
    Fragment,
    Importer,
    Outcome,
    SourceEpisode,
    SourceSpec,
    Start,
    StateSpace,
)
from rollout.api.fragment import EpisodeResult
from rollout.data.codec import parse_codec
from rollout.data.layout import Layout
from rollout.data.manifest import Manifest, now
from rollout.data.new_folder import new_folder
from rollout.data.schema import ACTION, EXTRA, OBSERVATION, SIGNAL, Column, column_name
from rollout.data.space_json import space_from_json
from rollout.data.writer import DatasetWriter
from rollout.errors import DatasetError

FLAWS = "import.jsonl"
"""File in ``quarantine/`` of the new dataset, a line for each episode that was left out."""

_KNOWN: Mapping[str, str] = {
    "reward": "float32",
    "progress": "float32",
    "outcome": "int8",
    "tick": "int64",
    "version": "int64",
    "wall_time": "float64",
    "latency": "float32",
}


@dataclass(frozen=True)
class Imported:
    """What an import did.

    Attributes:
        episodes: number of episodes in the new dataset.
        steps: number of their steps.
        flaws: what was left out, and why.
    """

    episodes: int
    steps: int
    flaws: tuple[Flaw, ...]


def import_dataset(importer: Importer, source: Path, target: Path, *, form: str) -> Imported:
    """Makes a dataset of a source in another format.

    The new folder appears when it is complete. Episodes that are wrong are left out, and listed in
    its ``quarantine/import.jsonl`` by file, episode and step; the source is not changed.

    Args:
        importer: reads the format.
        source: the file or folder to read.
        target: the new dataset.
        form: name of the format.

    Raises:
        DatasetError: the target exists, the source is not of this format, or no episode is whole.
        DiskFullError: the disk is full.
    """
    if not source.exists():
        raise DatasetError(f"there is no {source}; check the path")
    with new_folder(target) as root:
        spec = importer.describe(source)
        imported = _write(importer, source, root, manifest_of(spec, form, source))
        if imported.episodes == 0:
            said = "; ".join(map(str, imported.flaws[:3])) or "there is none"
            raise DatasetError(f"no episode of {source} is whole: {said}")
    return imported


def manifest_of(spec: SourceSpec, form: str, source: Path) -> Manifest:
    """Returns the description of the new dataset.

    A source without states of its own has one for each recording: their number.
    """
    origin = {"format": form, "source": str(source.resolve()), **spec.about}
    if spec.manifest:
        manifest = Manifest.from_json(spec.manifest)
        task = {**manifest.task}
        task["metadata"] = {**task.get("metadata", {}), "imported": origin}
        lossy = [manifest.codec, *manifest.codecs.values()]
        if any(parse_codec(each).is_lossy for each in lossy):
            # Images were decoded once; to encode them again would lose more.
            codecs = {k: _lossless(v) for k, v in manifest.codecs.items()}
            manifest = replace(manifest, codec=_lossless(manifest.codec), codecs=codecs)
        return replace(manifest, task=task, sessions=(), damaged=(), created=now())
    recordings = Factor("recording", range(max(1, spec.episodes)), doc="number in the source")
    return Manifest(
        bridge=form,
        bridge_version="",
        observation_space=spec.observation_space,
        action_space=spec.action_space,
        factors=tuple(StateSpace((recordings,)).describe()),
        task={
            "name": spec.name,
            "goal": spec.goal,
            "difficulty": None,
            "limit_steps": None,
            "evaluator": {"type": "", "options": {}},
            "metadata": {"imported": origin},
        },
        signals=dict(spec.signals),
        extras=dict(spec.extras),
        policy="imported",
        codec="png",
        created=now(),
    )


def _lossless(codec: str) -> str:
    return "png" if parse_codec(codec).is_lossy else codec


def _write(importer: Importer, source: Path, root: Path, manifest: Manifest) -> Imported:
    flaws: list[Flaw] = []
    count = steps = 0
    writer: DatasetWriter | None = None
    policy = None
    check = EpisodeCheck(manifest)
    try:
        for found in importer.episodes(source):
            flaw = found if isinstance(found, Flaw) else check.flaw(found)
            if flaw is not None or isinstance(found, Flaw):
                flaws.append(flaw or found)  # type: ignore[arg-type]
                continue
            named = str(found.about.get("policy", manifest.policy))
            if writer is None or named != policy:
                if writer is not None:
                    writer.close()
                policy = named
                writer = DatasetWriter(root, replace(manifest, policy=named), fsync="shard")
            fragment = fragment_of(found, manifest, count)
            writer.append(fragment)
            count, steps = count + 1, steps + fragment.length
    finally:
        if writer is not None:
            writer.close()
    if flaws and count:
        aside = Layout(root).quarantine
        aside.mkdir(exist_ok=True)
        lines = [json.dumps(flaw._asdict(), ensure_ascii=False) + "\n" for flaw in flaws]
        (aside / FLAWS).write_text("".join(lines), "utf-8")
    return Imported(count, steps, tuple(flaws))


class EpisodeCheck:
    """Finds what is wrong with an episode of a source."""

    def __init__(self, manifest: Manifest) -> None:
        self._columns = {c.name: c for c in manifest.columns if not c.name.startswith("final_")}
        self._needed = {
            *(c.name for c in manifest.columns if c.role in (OBSERVATION, ACTION, SIGNAL, EXTRA)),
            "reward",
        }
        self._spaces = {
            c.name: space_from_json(c.space)
            for c in self._columns.values()
            if c.role == ACTION and c.space is not None
        }
        self._states = manifest.state_space.size
        self._seen: set[tuple[int, int]] = set()

    def flaw(self, episode: SourceEpisode) -> Flaw | None:
        """Returns the first thing that is wrong, or None."""
        for problem, step in self._problems(episode):
            return Flaw(episode.file, episode.number, step, problem)
        return None

    def _problems(self, episode: SourceEpisode) -> Iterator[tuple[str, int | None]]:
        """Yields what is wrong, with its step; each check assumes those before."""
        columns = episode.columns
        if missing := sorted(self._needed - columns.keys()):
            yield f"lacks {', '.join(missing)}", None
        if extra := sorted(columns.keys() - self._columns.keys()):
            yield f"has {', '.join(extra)}, which the dataset does not", None
        lengths = {name: len(values) for name, values in columns.items()}
        if len(set(lengths.values())) > 1:
            yield f"expected columns of one length, got {lengths}", None
        count = lengths["reward"]
        if count == 0:
            yield "has no steps", None
        for name, values in columns.items():
            if problem := _misfit(self._columns[name], values):
                yield problem, None
        yield from self._wrong_values(columns)
        if problem := self._start(episode):
            yield problem, None
        if episode.end is None:
            yield "has no end: its last step neither terminates nor truncates it", count - 1

    def _wrong_values(self, columns: Columns) -> Iterator[tuple[str, int]]:
        """Yields values that are missing, no numbers, or outside the action space."""
        for name, values in columns.items():
            if (at := _first_missing(self._columns[name], values)) is not None:
                yield f"{name}: expected a value, got {values[at]!r}", at
        for at in np.flatnonzero(~np.isfinite(columns["reward"].astype(np.float64))).tolist():
            yield f"the reward is {columns['reward'][at]}", at
        for name, space in self._spaces.items():
            first = first_outside(space, columns[name])
            if first is not None:
                yield f"{name} is {columns[name][first]!s}, outside {space}", first

    def _start(self, episode: SourceEpisode) -> str:
        """What is wrong with the start that the source gives."""
        about = episode.about
        try:
            state, number = int(about.get("state", 0)), int(about.get("episode", -1))
            identity = (number, int(about.get("attempt", 0)))
            int(about.get("seed", 0)), int(about.get("instance", 0))
        except (ValueError, TypeError) as error:
            return f"its start cannot be read: {error}"
        if not 0 <= state < self._states:
            return f"its state {state} is not one of the {self._states} of the task"
        if number >= 0 and identity in self._seen:
            return f"is there twice: episode {number}, attempt {identity[1]}"
        self._seen.add(identity)
        return ""


def _misfit(column: Column, values: Array) -> str:
    """What is wrong with the type or shape of a column; numbers of a wider type may lose digits."""
    if values.shape[1:] != column.shape:
        return f"{column.name}: expected shape {list(column.shape)}, got {list(values.shape[1:])}"
    if column.dtype in ("string", "timestamp"):
        return ""
    if values.dtype == np.dtype(column.dtype) or column.name in _KNOWN:
        return ""
    return f"{column.name}: expected {column.dtype}, got {values.dtype}"


def _first_missing(column: Column, values: Array) -> int | None:
    """The first step without a text, or without data, of a column that has it in every row."""
    if column.dtype != "string" or column.nullable:
        return None
    is_json = column.codec.name == "json"
    there = [v is not None and (is_json or isinstance(v, str)) for v in values]
    return None if all(there) else there.index(False)


def first_outside(space: spaces.Space[Any], values: Array) -> int | None:
    """Returns the first row that a leaf space does not contain, or None.

    Args:
        space: the leaf.
        values: ``(n, ...)``.
    """
    match space:
        case spaces.Box():
            with np.errstate(invalid="ignore"):
                fits = (values >= space.low) & (values <= space.high)
        case spaces.Discrete():
            fits = (values >= int(space.start)) & (values - int(space.start) < int(space.n))
        case spaces.MultiDiscrete():
            start, sizes = (np.asarray(each, np.int64) for each in (space.start, space.nvec))
            fits = (values >= start) & (values - start < sizes)
        case spaces.MultiBinary():
            fits = (values == 0) | (values == 1)
        case spaces.Text() if not isinstance(space, AnyText):
            fits = np.array([space.contains(str(text)) for text in values], bool)
        case _:
            return None
    rows = fits.reshape(len(values), -1).all(1) if fits.ndim > 1 else fits
    wrong = np.flatnonzero(~rows)
    return int(wrong[0]) if len(wrong) else None


def fragment_of(episode: SourceEpisode, manifest: Manifest, number: int) -> Fragment:
    """Returns an episode without flaws as a fragment of one slot.

    Args:
        episode: the episode.
        manifest: what the dataset holds.
        number: number of the episode, unless the source has its own.
    """
    columns = episode.columns
    count = len(columns["reward"])
    start = _start_of(episode, manifest, number)
    known = _known(columns, count, episode)
    groups: dict[str, Columns] = {role: {} for role in (OBSERVATION, ACTION, SIGNAL, EXTRA)}
    for column in manifest.columns:
        if column.role in groups:
            groups[column.role][column.key] = columns[column_name(column.role, column.key)][:, None]
    last = np.zeros((count, 1), bool)
    last[-1] = True
    details = columns.get("details")
    outcome = Outcome(int(known["outcome"][-1]))
    instance = int(episode.about.get("instance", 0))
    result = EpisodeResult(
        *(start, instance, 0, episode.end or "truncated", outcome, count),
        *(float(known["reward"].sum()), float(known["progress"][-1]), 0.0),
    )
    none = np.zeros((count, 1), bool)
    first = none.copy()
    first[0] = True
    return Fragment(
        instance=instance,
        incarnation=0,
        starts=(start,),
        start_index=np.zeros((count, 1), np.int32),
        step=np.arange(count, dtype=np.int32)[:, None],
        observations=groups[OBSERVATION],
        actions=groups[ACTION],
        extras=groups[EXTRA],
        signals=groups[SIGNAL],
        reward=known["reward"][:, None],
        progress=known["progress"][:, None],
        outcome=known["outcome"][:, None],
        tick=known["tick"][:, None],
        version=known["version"],
        wall_time=known["wall_time"],
        latency=known["latency"],
        first=first,
        terminated=last if episode.end == "terminated" else none,
        truncated=last if episode.end == "truncated" else none,
        lost=none,
        details=None if details is None else [[each] for each in details],
        final_index=np.array([[count - 1, 0]], np.int64),
        final_observations={k: np.asarray(v)[None] for k, v in episode.final_observations.items()},
        final_details=[episode.final_details] if manifest.details else None,
        next_observations={},
        results=(result,),
    )


def _start_of(episode: SourceEpisode, manifest: Manifest, number: int) -> Start:
    about, space = episode.about, manifest.state_space
    return Start(
        space.state(int(about.get("state", number % space.size))),
        int(about.get("seed", 0)),
        int(about.get("episode", number)),
        int(about.get("attempt", 0)),
        str(about.get("state_set", "imported")),
    )


def _known(columns: Columns, count: int, episode: SourceEpisode) -> Columns:
    """Columns that every dataset has; those that the source lacks have their neutral value."""
    neutral: dict[str, Any] = {
        "progress": math.nan,
        "outcome": 0,
        "version": -1,
        "latency": 0.0,
        "tick": np.arange(1, count + 1),
        "wall_time": np.arange(count, dtype=np.float64),
    }
    return {
        name: np.asarray(columns.get(name, np.broadcast_to(neutral.get(name, 0), count))).astype(
            dtype, copy=False
        )
        for name, dtype in _KNOWN.items()
    }
