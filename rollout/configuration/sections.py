"""The parts that configurations are made of; every class of the program is given only its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator
from pydantic_core import PydanticCustomError

from rollout.api import Deadlines, Resources, Splits, StateSet, StateSpace
from rollout.api.chosen import choose
from rollout.api.prefix import PREFIX, take_prefix
from rollout.api.sets import TRAIN
from rollout.api.state import Value
from rollout.configuration.plugins import build_plugin, check_options, options_of
from rollout.configuration.problems import Problem
from rollout.errors import InputError, StateError
from rollout.registry import Group, load_plugin


def key(default: Any, doc: str, *, unit: str = "", **constraints: Any) -> Any:
    """Returns a configuration key with its documentation.

    Args:
        default: value when the key is not given; ``...`` if it must be; a function that makes it
            if it is mutable.
        doc: one sentence, shown by ``--help``.
        unit: unit of the value; empty for names and pure numbers.
        constraints: what else ``pydantic.Field`` takes, e.g. ``gt=0``.
    """
    given = {"default_factory": default} if callable(default) else {"default": default}
    return Field(**given, description=doc, json_schema_extra={"unit": unit}, **constraints)


class Section(BaseModel):
    """A group of keys: frozen, strict, and closed to keys it does not know."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        protected_namespaces=(),
        allow_inf_nan=False,
        ser_json_inf_nan="constants",
    )


class PluginConfig(Section):
    """The choice of a plug-in by name, and its options, which lie beside the name.

    Once made, it holds every option with its default spelled out. The name alone may be written
    for the whole: ``bridge: crafter``.
    """

    model_config = ConfigDict(extra="allow", allow_inf_nan=True, ser_json_inf_nan="constants")
    group: ClassVar[Group]

    name: str = key(..., "Name of an installed plug-in.")

    @property
    def options(self) -> dict[str, Any]:
        """Every option of the plug-in, as plain data."""
        return dict(self.model_extra or {})

    def build(self) -> Any:
        """Returns the plug-in."""
        return build_plugin(self.group, self.name, self.options)

    @model_validator(mode="before")
    @classmethod
    def _resolve(cls, data: Any) -> Any:
        if isinstance(data, PluginConfig):
            return data
        data = {"name": data} if isinstance(data, str) else data
        if not isinstance(data, Mapping) or not isinstance(data.get("name"), str):
            return data  # pydantic says what is wrong with it
        name = data["name"]
        given = {k: v for k, v in data.items() if k != "name"}
        problems: list[Problem] = []
        try:
            options = options_of(cls.group, name)
            values, problems = check_options(cls.group, name, given)
        except InputError as error:
            raise _located([Problem(("name",), str(error))]) from error
        if problems:
            raise _located(problems)
        try:
            load_plugin(cls.group, name)(**values)
        except InputError as error:
            raise _located([Problem((), str(error))]) from error
        return {"name": name, **{k: options[k].plain(v) for k, v in values.items()}}


def _located(problems: Sequence[Problem]) -> PydanticCustomError:
    """An error that carries its own places; ``problems_of`` takes them out again."""
    text = "; ".join(map(str, problems)).replace("{", "{{").replace("}", "}}")
    return PydanticCustomError("plugin", text, {"problems": list(problems)})


class BridgeConfig(PluginConfig):
    """Which game, and its options."""

    group: ClassVar[Group] = "bridges"


class PolicyConfig(PluginConfig):
    """Who chooses the actions, and its options."""

    group: ClassVar[Group] = "policies"


def parse_values(data: Any) -> Sequence[Value]:
    """Returns the values of a factor that a file lists.

    Args:
        data: a list of values, one value, or ``{range: [first, end]}`` or
            ``{range: [first, end, step]}``, which stops before ``end`` as Python's does.

    Raises:
        ValueError: it is none of these.
    """
    if isinstance(data, range):
        return data
    if isinstance(data, Mapping):
        bounds: Any = data.get("range")
        whole = isinstance(bounds, list | tuple) and all(type(b) is int for b in bounds)
        if set(data) != {"range"} or not whole or len(bounds) not in (2, 3) or 0 in bounds[2:]:
            raise ValueError(
                f"expected {{range: [first, end]}} or {{range: [first, end, step]}} of whole "
                f"numbers with a step that is not 0, got {dict(data)}"
            )
        return range(*bounds)
    values = data if isinstance(data, list | tuple) else [data]
    for value in values:
        if not isinstance(value, str | int | float | bool):
            raise ValueError(f"expected texts, numbers, true or false, got {value!r}")
    return tuple(values)


def plain_values(values: Sequence[Value]) -> Any:
    """Returns the values of a factor as ``parse_values`` reads them."""
    if isinstance(values, range):
        return {"range": [values.start, values.stop, values.step]}
    return list(values)


Values: TypeAlias = Annotated[
    Any, BeforeValidator(parse_values), PlainSerializer(plain_values, return_type=Any)
]
"""Values of a factor: a list, a single value, or ``{range: [first, end(, step)]}``."""

_SPLITS = re.compile(r"train|validation|test|all|extrapolation(/.+)?")


def _split(name: object) -> object:
    if isinstance(name, str) and not _SPLITS.fullmatch(name):
        raise ValueError(
            f"expected train, validation, test, all, extrapolation or extrapolation/<factor>, "
            f"got {name!r}"
        )
    return name


class StateSetConfig(Section):
    """Which states episodes start from."""

    split: Annotated[str, BeforeValidator(_split)] = key(
        "train", "Part: train, validation, test, all, extrapolation or extrapolation/<factor>."
    )
    size: int | None = key(None, "Number of states; null for the whole part.", unit="states", gt=0)
    subset: Literal["random", "prefix"] = key(
        "random",
        "How the training states are drawn: random nested sets, or from the first values of every "
        "factor, as MCU's experiment does.",
    )
    prefix: dict[str, Annotated[int, Field(gt=0)]] = key(
        dict,
        "With subset=prefix: how many values some factors keep; the others grow with size.",
        unit="values",
    )
    states: tuple[int, ...] | None = key(
        None, "Exactly the states with these indices, instead of a part.", strict=False
    )
    seed: int = key(0, "Chooses which states fall into which part.", ge=0)
    validation: float = key(
        0.1, "Size of the validation part: a fraction below 1, or a number.", unit="states", ge=0
    )
    test: float = key(
        0.1, "Size of the test part: a fraction below 1, or a number.", unit="states", ge=0
    )
    hold_out: dict[str, Values] = key(
        dict, "Values kept for extrapolation, by factor: a list or {range: [first, end]}."
    )
    only: dict[str, Values] = key(
        dict,
        "The only values that factors may take, by factor, in training and testing alike: a list "
        "or {range: [first, end]}.",
    )
    order: int = key(0, "Another order of the same part, e.g. one for each training seed.", ge=0)

    def splits(self, space: StateSpace) -> Splits:
        """Returns how the states of a space are divided.

        Raises:
            StateError: the space cannot be divided so.
        """
        return Splits(space, self.seed, self.validation, self.test, self.hold_out, self.only)

    def take(self, space: StateSpace) -> StateSet:
        """Returns the chosen states of a space.

        Raises:
            StateError: the part has fewer states, or the space cannot be divided so.
            UnknownNameError: there is no such part.
        """
        if self.subset == PREFIX or self.prefix:
            return self._take_prefix(space)
        if self.states is None:
            return self.splits(space).take(self.split, self.size, order=self.order)
        if self.size not in (None, len(self.states)):
            raise StateError(
                f"state_set: {len(self.states)} states are listed and size is {self.size}; drop one"
            )
        return choose(self.splits(space), self.states)

    def _take_prefix(self, space: StateSpace) -> StateSet:
        if self.subset != PREFIX:
            raise StateError(
                f"state_set.prefix is given and state_set.subset is {self.subset}; set "
                f"state_set.subset={PREFIX}, or drop state_set.prefix"
            )
        if self.split != TRAIN or self.states is not None:
            other = "state_set.states" if self.states is not None else f"split={self.split}"
            raise StateError(
                f"state_set.subset={PREFIX} draws training states, and {other} is given; the "
                f"other parts are what they are without it: drop one of the two"
            )
        if self.size is None:
            raise StateError(
                f"state_set.subset={PREFIX} needs state_set.size: it decides how many values "
                f"each factor keeps"
            )
        return take_prefix(self.splits(space), self.size, self.prefix, order=self.order)


class FragmentConfig(Section):
    """When an actor hands on what it has played."""

    steps: int = key(64, "Steps in a fragment.", unit="steps", gt=0)
    seconds: float | None = key(
        None, "Longest time a fragment may take; null for no such limit.", unit="s", gt=0
    )


class HostConfig(Section):
    """How games are kept alive; see docs/reliability.md."""

    isolation: Literal["auto", "in_process", "subprocess"] = key(
        "auto", "Where a game runs: beside the policy, or in a process of its own; auto asks it."
    )
    restarts: int = key(
        5,
        "Failures within restart_window_s that each game may have made good, and each actor in "
        "the whole run.",
        unit="restarts",
        gt=0,
    )
    restart_window_s: float | None = key(
        3600.0, "Time after which a failure of a game is forgotten; null never forgets.", gt=0
    )
    backoff_s: float = key(
        0.1, "Pause before the second restart in a row, doubled for each one more.", unit="s", ge=0
    )
    quarantine_s: float | None = key(
        300.0,
        "Rest of a game that used up its restarts, while others play; null gives it up.",
        unit="s",
        gt=0,
    )
    machine_failures: int | None = key(
        3,
        "Actors that may fail on one machine of a cluster within restart_window_s; after that it "
        "gets no new ones for quarantine_s, while others fail less. null for any number.",
        gt=0,
    )
    recycle_episodes: int | None = key(
        None, "Finished episodes after which a game is restarted as planned; null never.", gt=0
    )
    recycle_minutes: float | None = key(
        None, "Age at which it is, between two episodes; null never.", unit="minutes", gt=0
    )
    memory_mb: float | None = key(
        None,
        "Resident memory of a game's processes at which it is killed; from nine tenths of it on it "
        "is restarted between two episodes. null for no cap.",
        unit="MB",
        gt=0,
    )
    spares: int = key(
        0, "Games each actor keeps launched to take the place of one that fails.", ge=0
    )
    boots: int | None = key(
        None, "Games that may come up at once on one machine; null for any number.", gt=0
    )
    resources: dict[str, Annotated[float, Field(ge=0)]] = key(
        dict,
        "What each game needs of its machine, where that is not what its bridge says: cpus, "
        "memory_mb, gpus, and Ray's own resources by name, e.g. {gamut_game: 1}.",
    )
    retries: int = key(2, "Times a lost episode is tried again.", unit="attempts", ge=0)
    start_s: float | None = key(
        None, "Deadline for a game to come up; null for the bridge's own.", unit="s", gt=0
    )
    reset_s: float | None = key(
        None, "Deadline for a reset; null for the bridge's own.", unit="s", gt=0
    )
    step_s: float | None = key(
        None, "Deadline for a step; null for the bridge's own.", unit="s", gt=0
    )
    close_s: float | None = key(
        None, "Deadline for a game to end; null for the bridge's own.", unit="s", gt=0
    )
    policy_s: float = key(
        300.0,
        "Deadline for a policy to decide; an actor whose policy takes longer is replaced.",
        unit="s",
        gt=0,
    )
    max_in_flight: int = key(
        2, "Fragments an actor may have under way at once.", unit="fragments", gt=0
    )

    def needs(self, own: Resources) -> Resources:
        """Returns what a bridge's games need, with what is given here in its place."""
        given = dict(self.resources)
        return Resources(
            cpus=given.pop("cpus", own.cpus),
            memory_mb=int(given.pop("memory_mb", own.memory_mb)),
            gpus=given.pop("gpus", own.gpus),
            custom={**own.custom, **given},
        )

    def deadlines(self, own: Deadlines) -> Deadlines:
        """Returns the deadlines of a bridge, with those given here in their place."""
        return Deadlines(
            own.start_s if self.start_s is None else self.start_s,
            own.reset_s if self.reset_s is None else self.reset_s,
            own.step_s if self.step_s is None else self.step_s,
            own.close_s if self.close_s is None else self.close_s,
        )


class RayConfig(Section):
    """Which Ray cluster."""

    address: str | None = key(
        None, "Address of a running cluster; null starts one here, or joins the job's own."
    )


class RecordingConfig(Section):
    """What is kept on the disk, and how."""

    enabled: bool = key(True, "Whether to write a dataset.")
    codec: Literal["auto", "raw", "png", "webp", "jpeg"] = key(
        "auto", "Codec of image columns; jpeg loses detail; auto is lossless and goes by size."
    )
    codecs: dict[str, Literal["auto", "raw", "png", "webp", "jpeg"]] = key(
        dict, "Codec of single columns, by observation key."
    )
    quality: int = key(95, "Quality of jpeg, from 1 to 100.", ge=1, le=100)
    details: bool = key(True, "Whether to keep what has no fixed shape: text, structured state.")
    shard_mb: int = key(256, "Size at which a shard is closed.", unit="MB", gt=0)
    fsync: Literal["never", "episode", "shard"] = key(
        "shard", "When to force data to the disk: never by us, after an episode, or after a shard."
    )


class WandbConfig(Section):
    """Mirroring of the metrics to Weights & Biases; metrics.jsonl stays the truth."""

    mode: Literal["auto", "online", "offline", "disabled"] = key(
        "auto",
        "auto is online with an API key and offline without (send it later by `wandb sync`).",
    )
    project: str = key("gamut", "Project.")
    entity: str | None = key(None, "User or team; null for the key's own.")
    group: str | None = key(None, "Runs that belong together, e.g. one experiment.")
    name: str | None = key(None, "Name shown for the run; null for that of the run directory.")
    tags: tuple[str, ...] = key((), "Labels.", strict=False)


class LogConfig(Section):
    """What is said while it runs."""

    level: Literal["debug", "info", "warning", "error"] = key("info", "Least level that is shown.")
    every_s: float = key(10.0, "Time between lines of progress.", unit="s", gt=0)
