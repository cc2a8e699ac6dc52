"""``dataset.json``: the contents of a dataset and their origin.

The same text is in the metadata of every shard and journal, so a lost ``dataset.json`` can be
restored from any of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from gymnasium import spaces

from rollout.api import BridgeSpec, ColumnSpec, StateSpace, Task, factor_from_data, leaf_shape
from rollout.api.spaces import check_labels, check_stacks
from rollout.data.codec import LONGEST_LIST, Codec, choose_codec, numeric_codec
from rollout.data.layout import Layout
from rollout.data.schema import (
    ACTION,
    DETAILS,
    EXTRA,
    FINAL,
    IDENTITY,
    OBSERVATION,
    RESULT,
    SIGNAL,
    Column,
    json_column,
    leaf_column,
    spec_column,
)
from rollout.data.space_json import space_from_json, space_to_json
from rollout.data.stacks import FrameStack, frame_shape
from rollout.errors import DatasetError, GamutError
from rollout.files import parse_json, read_document, write_atomically

FORMATS = (1, 2)
METADATA_KEY = "gamut"
_COMPRESSIONS = ("zstd", "lz4", "none")


@dataclass(frozen=True)
class Manifest:
    """The description of a dataset, made by ``describe_dataset``.

    Attributes:
        bridge: configured name of the bridge.
        bridge_version: version of the bridge and the game.
        bridge_options: options of the bridge.
        task: name, goal, difficulty, limits, evaluator and metadata of the task.
        observation_space: flat ``Dict``.
        action_space: flat ``Dict``.
        factors: the task's state space as ``StateSpace.describe`` gives it; ``state`` counts in it.
        action_labels: names of actions, by column; see ``rollout.api.spaces``.
        signals: columns of the game, by key.
        extras: columns of the policy, by key.
        policy: name of the policy.
        policy_options: its options.
        codec: codec of image observations.
        codecs: codecs of individual observations, by key.
        stack_axes: observations that are stacks of the last frames, and the axis of the frames,
            oldest first; only the newest frame of a step is stored.
        details: True if data without a fixed shape is recorded.
        compression: of the shards: zstd, lz4 or none.
        code_version: version of the code that made the dataset.
        run: id of the run that made it.
        created: when, ISO 8601, UTC.
        sessions: one entry per writer that opened it: run, time, code and policy.
        damaged: ``(episode, attempt)`` of episodes that ``repair`` could not keep completely.
    """

    bridge: str
    bridge_version: str
    observation_space: spaces.Dict
    action_space: spaces.Dict
    factors: tuple[Mapping[str, Any], ...]
    task: Mapping[str, Any]
    bridge_options: Mapping[str, Any] = field(default_factory=dict)
    action_labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    signals: Mapping[str, ColumnSpec] = field(default_factory=dict)
    extras: Mapping[str, ColumnSpec] = field(default_factory=dict)
    policy: str = ""
    policy_options: Mapping[str, Any] = field(default_factory=dict)
    codec: str = "raw"
    codecs: Mapping[str, str] = field(default_factory=dict)
    stack_axes: Mapping[str, int] = field(default_factory=dict)
    details: bool = False
    compression: str = "zstd"
    code_version: str = ""
    run: str = ""
    created: str = ""
    sessions: tuple[Mapping[str, Any], ...] = ()
    damaged: tuple[tuple[int, int], ...] = ()

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Every column of the data, in order, as it is read."""
        leaves, own = self.observation_space.spaces, self.codecs
        unknown = sorted(own.keys() - leaves.keys())
        if unknown:
            raise DatasetError(
                f"codecs names observations that do not exist: {unknown}; "
                f"there are {sorted(leaves)}"
            )
        check_stacks(self.observation_space, self.stack_axes)
        observed, final = [], []
        after = "after the last action; null except in the last row of an episode"
        for key, leaf in leaves.items():
            column = leaf_column(OBSERVATION, key, leaf, "before the action")
            name = column.name
            if column.dtype != "string":
                axis, shape = self.stack_axes.get(key), column.shape
                shape = shape if axis is None else frame_shape(shape, axis)
                codec = choose_codec(name, column.dtype, shape, self.codec, own.get(key))
                column = replace(column, codec=codec)
            elif key in own:
                raise DatasetError(f"column {name!r} holds text, which has no codec to choose")
            observed.append(column)
            name = FINAL if key == OBSERVATION else f"{FINAL}/{key}"
            if key in self.stack_axes:
                column = replace(column, codec=numeric_codec(name, column.dtype, column.shape))
            elif column.codec.is_video:  # it follows no other image
                column = replace(column, codec=Codec("png"))
            final.append(replace(column, name=name, role=FINAL, nullable=True, doc=after))
        actions = self.action_space.spaces.items()
        columns = [*IDENTITY, *observed]
        columns += [leaf_column(ACTION, key, leaf, "chosen action") for key, leaf in actions]
        columns += RESULT
        columns += [spec_column(SIGNAL, key, spec) for key, spec in self.signals.items()]
        columns += [spec_column(EXTRA, key, spec) for key, spec in self.extras.items()]
        if self.details:
            before = "what had no fixed shape before the action, JSON"
            likewise = "likewise after the last action of an episode"
            columns.append(json_column(DETAILS, before))
            final.append(json_column("final_details", likewise))
        return (*columns, *final)

    @property
    def lossy(self) -> Mapping[str, Codec]:
        """The codecs of the observations that are stored with loss, by the name of their column."""
        return {c.name: c.codec for c in self.columns if c.codec.is_lossy and c.role == OBSERVATION}

    @cached_property
    def frame_stacks(self) -> Mapping[str, FrameStack]:
        """The stacks of frames, by the name of their column."""
        seen = {c.key: c for c in self.columns if c.role == OBSERVATION}
        found = (FrameStack.of(seen[key], axis) for key, axis in self.stack_axes.items())
        return {stack.whole.name: stack for stack in found}

    @cached_property
    def stored(self) -> tuple[Column, ...]:
        """Columns of the files in order, those of ``columns`` with two for each stack of frames."""
        stacks = self.frame_stacks
        columns = [stacks[c.name].newest if c.name in stacks else c for c in self.columns]
        return (*columns, *(stack.older for stack in stacks.values()))

    @cached_property
    def schema(self) -> pa.Schema:
        """Arrow schema of shards and journals; its metadata holds the manifest."""
        alone = replace(self, sessions=(), damaged=())
        fields = [column.field() for column in self.stored]
        return pa.schema(fields, metadata={METADATA_KEY: alone.to_json(indent=None)})

    @cached_property
    def state_space(self) -> StateSpace:
        """The space that the column ``state`` counts in."""
        return StateSpace(tuple(factor_from_data(f) for f in self.factors))

    @cached_property
    def row_bytes(self) -> int:
        """Bytes of one decoded step, without final observations."""
        return sum(c.row_bytes for c in self.columns if not c.nullable)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Returns the text of ``dataset.json``."""
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        for key in ("observation_space", "action_space"):
            data[key] = space_to_json(data[key])
        for key in ("signals", "extras"):
            data[key] = {k: plain(s, key) for k, s in data[key].items()}
        columns = [{**c.describe(), "lossy": c.codec.is_lossy} for c in self.stored]
        if not self.stack_axes:
            del data["stack_axes"]  # format 1 has none
        number = FORMATS[bool(self.stack_axes)]
        return json.dumps({"format": number, **data, "columns": columns}, indent=indent)

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Returns the manifest of a text.

        Raises:
            DatasetError: it is not a manifest, or has a newer format.
        """
        try:
            data = parse_json(text)
            if data.pop("format") not in FORMATS:
                raise DatasetError(f"this code reads datasets of formats {FORMATS}; update it")
            data.pop("columns", None)
            for key in ("observation_space", "action_space"):
                data[key] = space_from_json(data[key])
            for key in ("signals", "extras"):
                data[key] = {
                    k: ColumnSpec(s["dtype"], tuple(s["shape"]), s["unit"], s["doc"])
                    for k, s in data[key].items()
                }
            labels = data.get("action_labels", {})  # datasets of version 0.1 have none
            data["action_labels"] = {k: tuple(names) for k, names in labels.items()}
            data["factors"], data["sessions"] = tuple(data["factors"]), tuple(data["sessions"])
            data["damaged"] = tuple((int(e), int(a)) for e, a in data["damaged"])
            manifest = cls(**data)
            check_labels(manifest.action_space, manifest.action_labels)
            _ = manifest.schema, manifest.state_space, manifest.task["name"]
        except (
            *(ValueError, TypeError, KeyError, AttributeError, OverflowError, GamutError),
        ) as error:
            raise DatasetError(f"not a description of a dataset: {error!r}") from error
        return manifest


def describe_dataset(
    spec: BridgeSpec,
    task: Task,
    *,
    bridge: str = "",
    extras: Mapping[str, ColumnSpec] | None = None,
    compression: str = "zstd",
    **about: Any,
) -> Manifest:
    """Returns the description of a dataset that is about to be written.

    Args:
        spec: the game.
        task: the task.
        bridge: configured name of the bridge; ``spec.name`` when empty.
        extras: ``Policy.extras`` of the policy.
        compression: of the shards: ``zstd``, ``lz4`` or ``none``.
        about: other attributes of ``Manifest``: ``bridge_options``, ``policy``,
            ``policy_options``, ``codec`` (see ``rollout.data.codec``),
            ``codecs``, ``details``, ``code_version``, ``run``.

    Raises:
        DatasetError: a codec cannot carry its observation, or options are not JSON-able.
    """
    if compression not in _COMPRESSIONS:
        raise DatasetError(f"compression {compression!r} does not exist; valid: {_COMPRESSIONS}")
    about |= {k: plain(about.get(k, {}), k) for k in ("bridge_options", "policy_options")}
    evaluator: object = task.evaluator  # a recipe is a dataclass, but nothing enforces it
    leaves = spec.observation_space.spaces
    stacks = {
        # Smaller frames are not worth a second column.
        key: axis
        for key, axis in spec.stacks.items()
        if math.prod(frame_shape(leaf_shape(leaves[key]), axis)) > LONGEST_LIST
    }
    options: Any = plain(evaluator, "evaluator") if is_dataclass(evaluator) else {}
    manifest = Manifest(
        bridge=bridge or spec.name,
        bridge_version=spec.version,
        task={
            "name": task.name,
            "goal": task.goal,
            "difficulty": task.difficulty,
            "limit_steps": task.limits.steps,
            "evaluator": {"type": type(evaluator).__name__, "options": options},
            "metadata": plain(task.metadata, "task.metadata"),
        },
        observation_space=spec.observation_space,
        action_space=spec.action_space,
        factors=tuple(task.state_space.describe()),
        action_labels={k: tuple(names) for k, names in spec.action_labels.items()},
        signals=dict(spec.signals),
        extras=dict(extras or {}),
        stack_axes=stacks,
        compression=compression,
        created=now(),
        **about,
    )
    _ = manifest.schema  # refuses what cannot be stored before anything is written
    return manifest


def differences(expected: Manifest, came: Manifest) -> list[str]:
    """Returns why rows of ``came`` do not fit ``expected``: one line per difference."""
    options = ("bridge", "bridge_options")
    pairs: list[tuple[str, Any, Any]] = [
        (k, getattr(expected, k), getattr(came, k)) for k in options
    ]
    pairs.append(("task", expected.task["name"], came.task["name"]))
    if expected.state_space.digest != came.state_space.digest:
        # The digests differ where names agree and values do not.
        texts = [_state_text(m.state_space) for m in (expected, came)]
        pairs.append(("state space", texts[0], texts[1]))
    old = {c.name: c.short() for c in expected.stored}
    new = {c.name: c.short() for c in came.stored}
    pairs += [(f"column {n}", old.get(n, "none"), new.get(n, "none")) for n in old | new]
    return [f"{what}: expected {a}, got {b}" for what, a, b in pairs if a != b]


def _state_text(space: StateSpace) -> str:
    return f"{'/'.join(f.name for f in space)} ({space.size} states, {space.digest})"


def read_manifest(layout: Layout) -> Manifest:
    """Returns the manifest of a dataset.

    Raises:
        DatasetError: there is no dataset, or its ``dataset.json`` cannot be read.
    """
    try:
        return Manifest.from_json(read_document(layout.manifest).decode())
    except FileNotFoundError:
        if any(layout.numbers(folder) for folder in layout.folders):
            raise DatasetError(
                f"{layout.manifest} is missing but there are shards; "
                f"run: gamut dataset repair {layout.root}"
            ) from None
        raise DatasetError(f"{layout.root} holds no dataset (no dataset.json)") from None
    except (OSError, UnicodeDecodeError, DatasetError) as error:
        raise DatasetError(f"cannot read {layout.manifest}: {error}") from error


def write_manifest(layout: Layout, manifest: Manifest) -> None:
    """Puts ``dataset.json`` in place."""
    write_atomically(layout.manifest, manifest.to_json() + "\n")


def now() -> str:
    """Returns the time, ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def plain(value: Any, what: str) -> Any:
    """Returns dataclasses, mappings, sequences and paths as JSON-able data.

    Raises:
        DatasetError: something in ``value`` cannot be written as JSON.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, range):
        return {"range": [value.start, value.stop, value.step]}
    if is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v, f"{what}.{k}") for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value, key=str) if isinstance(value, set | frozenset) else value
        return [plain(v, what) for v in items]
    raise DatasetError(f"{what} cannot be written as JSON: {type(value).__name__} {value!r}")
