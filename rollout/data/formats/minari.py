"""Minari's format, with Arrow or HDF5 storage; images are stored as numbers, without loss."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from gymnasium import spaces

from rollout.api import Array, Columns, Flaw, SourceEpisode, SourceSpec, flatten_space, option
from rollout.data.codec import JSON, decode, encode
from rollout.data.formats.common import (
    FACTS,
    MARK,
    about_text,
    facts_of,
    read_about,
    replacing_folder,
    require_free,
    results_of,
    step_columns,
)
from rollout.data.manifest import Manifest
from rollout.data.reader import Dataset
from rollout.data.refs import Episode, EpisodeRef
from rollout.data.schema import ACTION, EXTRA, OBSERVATION, Column, column_name
from rollout.errors import DatasetError

_NAME = re.compile(r"[-_\w]+-v\d+")
_DATA = "data"
_BEFORE = ("version", "details")
"""Columns that are known before the action; the others of the infos are results of it."""


def _library() -> Any:
    try:
        import minari  # noqa: PLC0415 - optional
        from minari.dataset import minari_storage  # noqa: F401, PLC0415
    except ImportError as error:
        raise DatasetError(
            f"Minari is missing ({error}); run: pip install gamut[formats]"
        ) from None
    return minari


@dataclass(frozen=True)
class ToMinari:
    """The exporter ``minari``: a folder NAME-vN in Minari's format, without loss.

    Observations, actions, rewards and ends are Minari's own; a key ``a/b`` becomes ``a.b``. Other
    columns are infos: row ``t + 1`` has the results of step ``t``, row ``t`` what the policy added
    to it. The metadata of an episode has its start, end and policy as ``gamut_...``. With
    ``gamut.json`` the importer ``minari`` makes the same dataset again.
    """

    storage: Literal["arrow", "hdf5"] = option("arrow", "Form of the files: arrow or hdf5.")

    def check(self, dataset: Dataset, episodes: Sequence[EpisodeRef], out: Path) -> None:
        """Checks the name of the folder; see ``rollout.api.Exporter``."""
        _library()
        if not _NAME.fullmatch(out.name):
            near = re.sub(r"[^-\w]", "-", out.name) + "-v0"
            raise DatasetError(f"expected a folder NAME-vN, got {out.name}; e.g. {near}")
        require_free(dataset, out, MARK)
        results_of(episodes, "Minari")

    def write(self, dataset: Dataset, episodes: Sequence[EpisodeRef], out: Path) -> int:
        """Writes the folder and returns the number of episodes; see ``rollout.api.Exporter``."""
        self.check(dataset, episodes, out)
        refs, manifest, minari = results_of(episodes, "Minari"), dataset.manifest, _library()
        from minari.data_collector import EpisodeBuffer  # noqa: PLC0415
        from minari.dataset.minari_storage import MinariStorage  # noqa: PLC0415

        with replacing_folder(out) as root:
            storage = MinariStorage.new(
                root / _DATA,
                _nested(manifest.observation_space, OBSERVATION),
                _nested(manifest.action_space, ACTION),
                data_format=self.storage,
                jpeg_encoding=False,
            )
            for number, ref in enumerate(refs):
                values = _values(manifest, dataset.read(ref, _names(manifest)))
                storage.update_episodes([EpisodeBuffer(id=number, seed=ref.seed, **values)])
                facts = {f"gamut_{k}": v for k, v in facts_of(ref, manifest).items()}
                storage.update_episode_metadata([facts], [number])
            about = {"dataset_id": out.name, "minari_version": minari.__version__}
            about |= {"algorithm_name": manifest.policy, "author": {"Gamut"}}
            about["description"] = str(manifest.task["goal"] or manifest.task["name"])
            storage.update_metadata(about)
            (root / MARK).write_text(about_text(manifest), "utf-8")
        return len(refs)

    def read(self, path: Path) -> Iterator[Columns]:
        """Yields the columns of each episode; see ``rollout.api.ReadsBack``."""
        for found in FromMinari().episodes(path):
            if isinstance(found, Flaw):
                raise DatasetError(f"{path}: {found}")
            yield found.columns


@dataclass(frozen=True)
class FromMinari:
    """The importer ``minari``: a dataset of Minari, its folder with ``data/`` in it.

    What the exporter ``minari`` wrote becomes the same dataset again. Of others, infos that are
    numbers of one shape are signals: those of row ``t + 1`` belong to step ``t``.
    """

    def describe(self, source: Path) -> SourceSpec:
        """Returns what a folder holds; see ``rollout.api.Importer``."""
        storage, about = _storage(source), read_about(source / MARK)
        leaves = {}
        for role in (OBSERVATION, ACTION):
            flat = flatten_space(getattr(storage, f"{role}_space"), role, text_columns=True)
            if flat.loose:
                raise DatasetError(f"{source}: {role} {', '.join(flat.loose)} has no fixed shape")
            leaves[role] = flat.columns
        metadata = storage.metadata
        return SourceSpec(
            name=str(metadata.get("dataset_id", source.resolve().name)),
            observation_space=leaves[OBSERVATION],
            action_space=leaves[ACTION],
            episodes=int(storage.total_episodes),
            goal=str(metadata.get("description", "")),
            about={k: str(metadata[k]) for k in ("env_spec", "author") if k in metadata},
            manifest="" if about is None else about["manifest"],
        )

    def episodes(self, source: Path) -> Iterator[SourceEpisode | Flaw]:
        """Yields the episodes; see ``rollout.api.Importer``."""
        storage, about = _storage(source), read_about(source / MARK)
        manifest = None if about is None else Manifest.from_json(about["manifest"])
        for number in range(int(storage.total_episodes)):
            try:
                (episode,) = storage.get_episodes([number])
                (facts,) = storage.get_episode_metadata([number])
                yield _episode(storage, manifest, number, episode, facts)
            except Exception as error:  # noqa: BLE001 - the library raises anything on damage
                yield Flaw(_DATA, number, None, f"cannot be read: {error!r}")


def _storage(source: Path) -> Any:
    _library()
    from minari.dataset.minari_storage import MinariStorage  # noqa: PLC0415

    try:
        return MinariStorage.read(source / _DATA)
    except Exception as error:
        raise DatasetError(f"{source} is no dataset of Minari: {error}") from error


def _nested(flat: spaces.Dict, role: str) -> spaces.Space[Any]:
    """The space in Minari: a leaf if it is the only one under the name of its role."""
    if list(flat.spaces) == [role]:
        return flat.spaces[role]
    names = [key.replace("/", ".") for key in flat.spaces]
    if len(set(names)) < len(names):
        raise DatasetError(f"{role}s of one name but for / and .: {', '.join(names)}; rename one")
    return spaces.Dict(list(zip(names, flat.spaces.values(), strict=True)))


def _names(manifest: Manifest) -> list[str]:
    return [column.name for column in step_columns(manifest)]


def _infos(manifest: Manifest) -> dict[str, Column]:
    """The columns that are infos, by their names there."""
    columns = [c for c in step_columns(manifest) if c.role not in (OBSERVATION, ACTION)]
    return {c.name.replace("/", "."): c for c in columns if c.name != "reward"}


def _is_before(column: Column) -> bool:
    return column.role == EXTRA or column.name in _BEFORE


def _values(manifest: Manifest, episode: Episode) -> dict[str, Any]:
    """The fields of Minari's buffer of an episode."""
    columns, count = episode.columns, episode.ref.length
    if not episode.final_observations:
        raise DatasetError(
            f"episode {episode.ref.episode} has no observation after its last action, which "
            f"Minari needs"
        )
    observations = {
        key: _appended(columns[column_name(OBSERVATION, key)], episode.final_observations[key])
        for key in manifest.observation_space.spaces
    }
    actions = {key: columns[column_name(ACTION, key)] for key in manifest.action_space.spaces}
    ends = np.zeros((2, count), bool)
    ends[int(episode.ref.end == "truncated"), -1] = True
    infos: dict[str, Any] = {}
    for name, column in _infos(manifest).items():
        values = columns[column.name]
        if column.codec == JSON:
            texts = [v or "null" for v in encode(JSON, column.arrow_type, values).to_pylist()]
            last = encode(JSON, column.arrow_type, np.array([episode.final_details], object))
            texts.append((last[0].as_py() or "null") if column.name == "details" else "null")
            infos[name] = texts
            continue
        empty = values[:1] if values.dtype == object else np.zeros_like(values[:1])
        both = (values, empty) if _is_before(column) else (empty, values)
        joined = np.concatenate(both)
        infos[name] = list(joined) if joined.ndim == 1 else joined
    return {
        "observations": _of_space(observations, OBSERVATION),
        "actions": _of_space(actions, ACTION),
        "rewards": columns["reward"],
        "terminations": ends[0],
        "truncations": ends[1],
        "infos": infos,
    }


def _appended(values: Array, last: Array) -> Array:
    """The values and one more; text stays objects."""
    if values.dtype == object:
        return np.append(values, np.array([str(last)], object))
    return np.concatenate([values, np.asarray(last)[None]])


def _of_space(values: Mapping[str, Array], role: str) -> Any:
    plain = {k: list(v) if v.dtype == object else v for k, v in values.items()}
    if list(plain) == [role]:
        return plain[role]
    return {key.replace("/", "."): value for key, value in plain.items()}


def _episode(
    storage: Any,
    manifest: Manifest | None,
    number: int,
    found: Mapping[str, Any],
    facts: Mapping[str, Any],
) -> SourceEpisode:
    columns: Columns = {"reward": np.asarray(found["rewards"]).astype(np.float32)}
    final: Columns = {}
    for role, name in ((OBSERVATION, "observations"), (ACTION, "actions")):
        for key, path, leaf in _leaves(storage, manifest, role):
            values = _leaf(found[name], path, leaf)
            if role == OBSERVATION:
                final[key] = values[-1] if len(values) else values
                values = values[:-1]
            columns[column_name(role, key)] = values
    ended = {
        "terminated": np.asarray(found["terminations"]),
        "truncated": np.asarray(found["truncations"]),
    }
    how = next((end for end, flags in ended.items() if len(flags) and flags[-1]), None)
    details = None
    if manifest is None:
        about: dict[str, Any] = {"seed": int(facts["seed"])} if "seed" in facts else {}
    else:
        about = {name: _plain(facts[f"gamut_{name}"]) for name in FACTS}
        for name, column in _infos(manifest).items():
            columns[column.name], last = _info(column, found["infos"][name])
            details = last if column.name == "details" else details
    return SourceEpisode(_DATA, number, columns, how, final, details, about)  # type: ignore[arg-type]


def _leaves(
    storage: Any, manifest: Manifest | None, role: str
) -> list[tuple[str, tuple[Any, ...], spaces.Space[Any]]]:
    """Key, path and space of each leaf; Minari does not keep the order of keys."""
    if manifest is None:
        flat = flatten_space(getattr(storage, f"{role}_space"), role, text_columns=True)
        return [(key, flat.paths[key], leaf) for key, leaf in flat.columns.spaces.items()]
    own = getattr(manifest, f"{role}_space").spaces
    alone = list(own) == [role]
    return [(k, () if alone else (k.replace("/", "."),), leaf) for k, leaf in own.items()]


def _leaf(values: Any, path: Sequence[Any], leaf: spaces.Space[Any]) -> Array:
    for part in path:
        values = values[part]
    if isinstance(leaf, spaces.Text):
        return np.array([_plain(v) for v in values], object)
    out: Array = np.asarray(values).astype(leaf.dtype, copy=False)
    return out


def _plain(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def _info(column: Column, values: Any) -> tuple[Array, Any]:
    """The values of the steps, and the one after the last action if there is one."""
    if column.dtype == "string":
        texts = pa.array([_plain(v) for v in list(values)], pa.string())
        read = decode(column.codec, "string", (), texts)
        return (read[:-1], read[-1]) if _is_before(column) else (read[1:], None)
    dtype = "float64" if column.dtype == "timestamp" else column.dtype
    array = np.asarray(values).astype(dtype, copy=False)
    array = array.reshape(len(array), *column.shape)
    return (array[:-1] if _is_before(column) else array[1:]), None
