"""Sections of the configurations; every class of the program gets only its own section."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from rollout.api import Deadlines, Resources, Splits, StateSet, StateSpace
from rollout.api.sets import TRAIN
from rollout.api.state import Value
from rollout.api.subsets import LIST_NAMES, LISTS, PREFIX, choose, take_lists, take_prefix
from rollout.configuration.plugins import (
    build_plugin,
    check_options,
    default_options,
    plain_options,
    with_options,
    without_removed,
)
from rollout.configuration.problems import Problem
from rollout.errors import InputError, StateError
from rollout.registry import Group, load_plugin


def key(default: Any, doc: str, *, unit: str = "", **constraints: Any) -> Any:
    """Returns a configuration key with its documentation.

    Args:
        default: value when the key is not given; ``...`` if it must be given; or a function that
            returns the value.
        doc: one sentence, shown by ``--help``.
        unit: unit of the value; empty for names and pure numbers.
        constraints: other arguments of ``pydantic.Field``, e.g. ``gt=0``.
    """
    given = {"default_factory": default} if callable(default) else {"default": default}
    return Field(**given, description=doc, json_schema_extra={"unit": unit}, **constraints)


class Section(BaseModel):
    """A group of keys: frozen, strict, without unknown keys.

    Attributes:
        renamed: old names of keys, each with the dotted name of its replacement, for the error.
        removed: keys that no longer exist, each with the only value that is still accepted.
    """

    renamed: ClassVar[Mapping[str, str]] = {}
    removed: ClassVar[Mapping[str, object]] = {}
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        protected_namespaces=(),
        allow_inf_nan=False,
        ser_json_inf_nan="constants",
    )

    @model_validator(mode="before")
    @classmethod
    def _current_names(cls, data: Any) -> Any:
        given = cls.renamed.keys() & (data if isinstance(data, Mapping) else {})
        old = [Problem((k,), f"was renamed to {cls.renamed[k]}") for k in sorted(given)]
        if isinstance(data, Mapping):
            data, problems = without_removed(data, cls.removed)
            old += problems
        if old:
            raise _located(old)
        return data

    @model_validator(mode="before")
    @classmethod
    def _default_plugins(cls, data: Any) -> Any:
        """Adds the name of the default plug-in to options that are given without a name."""
        if isinstance(data, Mapping):
            for name, field in cls.model_fields.items():
                if isinstance(data.get(name), Mapping) and (default := default_plugin(field)):
                    data = {**data, name: {"name": default, **data[name]}}
        return data


def ordered_keys(model: type[BaseModel]) -> list[str]:
    """Returns the keys of a section in the order in which people read them.

    Those that must be given come first, then those of the section itself, of its base, and so on.
    """
    declared = [vars(kind).get("__annotations__", {}) for kind in model.__mro__]

    def place(name: str) -> tuple[bool, int]:
        depth = next((n for n, names in enumerate(declared) if name in names), 0)
        return not model.model_fields[name].is_required(), depth

    return sorted(model.model_fields, key=place)


class PluginConfig(Section):
    """The name of a plug-in, with its options as keys next to the name.

    A name alone may be written as ``bridge: crafter``. Once created, it contains every option.
    """

    model_config = ConfigDict(extra="allow", allow_inf_nan=True, ser_json_inf_nan="constants")
    group: ClassVar[Group]

    name: str = key(..., "Name of an installed plug-in.")

    @property
    def options(self) -> dict[str, Any]:
        """Every option of the plug-in, as plain data."""
        return dict(self.model_extra or {})

    @property
    def chosen(self) -> dict[str, Any]:
        """The options that differ from their defaults, as plain data."""
        defaults, options = default_options(self.group, self.name), self.options
        return {k: v for k, v in options.items() if k not in defaults or v != defaults[k]}

    def build(self) -> Any:
        """Returns the plug-in."""
        return build_plugin(self.group, self.name, self.options)

    @model_validator(mode="before")
    @classmethod
    def _resolve(cls, data: Any) -> Any:
        if isinstance(data, PluginConfig):
            return data
        data = {"name": data} if isinstance(data, str) else data
        default = cls.model_fields["name"].default
        name = data.get("name", default) if isinstance(data, Mapping) else None
        if not isinstance(name, str):
            return data  # pydantic reports it
        try:
            given = {k: v for k, v in data.items() if k != "name"}
            options, problems = check_options(cls.group, name, given)
        except InputError as error:
            raise _located([Problem(("name",), str(error))]) from error
        if options is None:
            raise _located(problems)
        try:
            with_options(load_plugin(cls.group, name), options)
        except InputError as error:
            raise _located([Problem((), str(error))]) from error
        return {"name": name, **plain_options(options)}


def default_plugin(field: FieldInfo) -> str | None:
    """Returns the name of the plug-in that a field holds by default; None if it holds none."""
    kind: Any = field.annotation
    if not (isinstance(kind, type) and issubclass(kind, PluginConfig)):
        return None
    held = field.get_default(call_default_factory=True, validated_data={})
    name = getattr(held, "name", kind.model_fields["name"].default)
    return name if isinstance(name, str) else None


def _located(problems: Sequence[Problem]) -> PydanticCustomError:
    """Returns an error with its own locations, which ``problems_of`` extracts."""
    text = "; ".join(map(str, problems)).replace("{", "{{").replace("}", "}}")
    return PydanticCustomError("plugin", text, {"problems": list(problems)})


class BridgeConfig(PluginConfig):
    """The game and its options."""

    group: ClassVar[Group] = "bridges"


class PolicyConfig(PluginConfig):
    """The policy and its options."""

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
    """States from which episodes start."""

    split: Annotated[str, BeforeValidator(_split)] = key(
        "train", "Part: train, validation, test, all, extrapolation or extrapolation/<factor>."
    )
    size: int | None = key(None, "Number of states; null for the whole part.", unit="states", gt=0)
    subset: Literal["random", "prefix", "lists"] = key(
        "random",
        "How the training states are sampled: random nested sets, from the first values of every "
        "factor, or from the first entries of three lists, as in MCU's code.",
    )
    prefix: dict[str, Annotated[int, Field(gt=0)]] = key(
        dict,
        "With subset=prefix: fixed numbers of values for some factors; the others grow with size.",
        unit="values",
    )
    lists: dict[str, Annotated[tuple[str, ...], Field(strict=False)]] = key(
        dict, "With subset=lists: the factors of each of the lists equipment, sheep and other."
    )
    shuffled: bool = key(
        False,
        "With subset=lists: put the entries of each list in a random order, which order chooses.",
    )
    cut: tuple[Annotated[str, Field(strict=True)], ...] | None = key(
        None,
        "With subset=lists: the lists that keep their first entries, and have random entries of "
        "the others; null for all three.",
        strict=False,
    )
    states: tuple[int, ...] | None = key(
        None, "Exactly the states with these indices, instead of a part.", strict=False
    )
    seed: int = key(0, "Seed that assigns the states to parts.", ge=0)
    validation: float = key(
        0.1, "Size of the validation part: a fraction below 1, or a number.", unit="states", ge=0
    )
    test: float = key(
        0.1, "Size of the test part: a fraction below 1, or a number.", unit="states", ge=0
    )
    hold_out: dict[str, Values] = key(
        dict, "Values reserved for extrapolation, by factor: a list or {range: [first, end]}."
    )
    only: dict[str, Values] = key(
        dict,
        "The only values of a factor, by factor, for training and testing: a list or "
        "{range: [first, end]}.",
    )
    order: int = key(
        0, "Selects a different order of the same part, e.g. one for each training seed.", ge=0
    )

    def splits(self, space: StateSpace) -> Splits:
        """Returns how the states of a space are divided.

        Raises:
            StateError: the space cannot be divided so.
        """
        return Splits(space, self.seed, self.validation, self.test, self.hold_out, self.only)

    def of_part(self, part: str, size: int | None) -> StateSetConfig:
        """Returns the first states of a part, divided as these are."""
        own: dict[str, Any] = {"split": part, "size": size, "order": 0}
        own |= {
            "subset": "random",
            "prefix": {},
            "lists": {},
            "shuffled": False,
            "cut": None,
            "states": None,
        }
        return self.model_copy(update=own)

    def take(self, space: StateSpace) -> StateSet:
        """Returns the chosen states of a space.

        Raises:
            StateError: the part has fewer states, or the space cannot be divided so.
            UnknownNameError: there is no such part.
        """
        self._check_subset()
        if self.subset == PREFIX and self.size is not None:
            return take_prefix(self.splits(space), self.size, self.prefix, order=self.order)
        if self.subset == LISTS and self.size is not None:
            return take_lists(
                self.splits(space),
                self.size,
                self.lists,
                order=self.order,
                shuffled=self.shuffled,
                cut=LIST_NAMES if self.cut is None else self.cut,
            )
        if self.states is None:
            return self.splits(space).take(self.split, self.size, order=self.order)
        if self.size not in (None, len(self.states)):
            raise StateError(
                f"state_set: {len(self.states)} states are listed but size is "
                f"{self.size}; remove one"
            )
        return choose(self.splits(space), self.states)

    def _check_subset(self) -> None:
        """Checks that the keys of the design of the training set fit together."""
        for name, subset in (
            *((n, n) for n in (PREFIX, LISTS)),
            ("shuffled", LISTS),
            ("cut", LISTS),
        ):
            if getattr(self, name) and self.subset != subset:
                raise StateError(
                    f"state_set.{name} is given but state_set.subset is {self.subset}; set "
                    f"state_set.subset={subset}, or remove state_set.{name}"
                )
        if self.subset == "random":
            return
        if self.split != TRAIN or self.states is not None:
            other = "state_set.states" if self.states is not None else f"split={self.split}"
            raise StateError(
                f"state_set.subset={self.subset} samples training states, but {other} is given; "
                f"other parts do not depend on the subset: remove one of the two"
            )
        if self.size is None:
            raise StateError(
                f"state_set.subset={self.subset} needs state_set.size, which determines how many "
                f"values each factor keeps"
            )


class FragmentConfig(Section):
    """Size of the fragments that actors send."""

    steps: int = key(64, "Steps in a fragment.", unit="steps", gt=0, le=1_000_000)
    seconds: float | None = key(
        None, "Maximum duration of a fragment; null for no limit.", unit="s", gt=0
    )


class InferenceConfig(Section):
    """Actors in which policies decide; without any, beside the games. See docs/inference.md."""

    actors: int = key(
        0,
        "Actors that decide for all games together; 0 gives every process that plays its own "
        "policy.",
        unit="actors",
        ge=0,
    )
    batch: int = key(64, "Rows at which an actor waits for no more requests.", unit="rows", gt=0)
    wait_ms: float = key(
        5.0, "Longest time a request waits for others to be decided with.", unit="ms", ge=0
    )
    cpus: float = key(
        1.0, "Processors of each; less where the games leave less.", unit="processors", ge=0
    )
    gpus: float = key(0.0, "GPUs of each; a fraction of one may be shared.", unit="GPUs", ge=0)
    deadline_s: float = key(
        300.0,
        "Deadline for a decision by any actor; after half of it, the request goes to another actor "
        "and one that hangs is replaced.",
        unit="s",
        gt=0,
    )
    restarts: int = key(
        5,
        "Failures of one inference actor within host.restart_window_s after which it is replaced; "
        "one more abandons it.",
        unit="restarts",
        ge=0,
    )

    @property
    def patience_s(self) -> float:
        """Seconds one actor may take: half the deadline, so that there is time for another."""
        return self.deadline_s / 2

    @field_validator("gpus")
    @classmethod
    def _whole(cls, gpus: float) -> float:
        if gpus > 1 and gpus != int(gpus):
            raise ValueError(f"expected a fraction of one GPU or whole GPUs, got {gpus:g}")
        return gpus


class RayConfig(Section):
    """The Ray cluster."""

    address: str | None = key(
        None,
        "Address of a running cluster; null starts a local Ray, or joins the job's cluster.",
    )


class HostConfig(Section):
    """Supervision of games and of the actors that play them; see docs/reliability.md.

    Pools of games and the supervisor of actors read this section itself.
    """

    renamed: ClassVar[Mapping[str, str]] = {"boots": "host.concurrent_launches"}

    isolation: Literal["auto", "in_process", "subprocess"] = key(
        "auto", "Where a game runs: beside the policy, or in its own process; auto asks the game."
    )
    python: str | None = key(
        None,
        "Interpreter of the games, with what they need, e.g. of a venv; null for the one that "
        "`gamut env make` made for the bridge, if it has one of its own, else Gamut's.",
    )
    restarts: int = key(
        5,
        "Failures of one instance of a game within restart_window_s after which it is restarted "
        "in any case; further ones send it into quarantine if it fails more than failure_rate.",
        unit="restarts",
        ge=0,
    )
    failure_rate: float = key(
        0.05,
        "Failures per step of one instance within restart_window_s up to which it is restarted "
        "without limit; 0 limits all failures by restarts.",
        unit="failures per step",
        ge=0,
        le=1,
    )
    actor_restarts: int = key(
        5,
        "Failures of one actor within restart_window_s after which it is replaced; one more "
        "abandons it.",
        unit="restarts",
        ge=0,
    )
    restart_window_s: float | None = key(
        3600.0, "Time after which a failure no longer counts; null counts all.", gt=0
    )
    backoff_s: float = key(
        0.1,
        "Pause before the second restart in a row, doubled for each one more.",
        unit="s",
        ge=0,
    )
    quarantine_s: float | None = key(
        300.0,
        "Time without new games after more failures than restarts, while others play; null "
        "abandons the game.",
        unit="s",
        gt=0,
    )
    machine_failures: int | None = key(
        3,
        "Failures of actors on one machine of a cluster within restart_window_s after which it "
        "gets no new actors for quarantine_s, if other machines fail less; null for no limit.",
        gt=0,
    )
    recycle_episodes: int | None = key(
        None, "Finished episodes after which a game is restarted; null never.", gt=0
    )
    recycle_minutes: float | None = key(
        None,
        "Age after which a game is restarted between two episodes; null never.",
        unit="minutes",
        gt=0,
    )
    memory_mb: float | None = key(
        None,
        "Resident memory of a game's processes at which it is killed; from 90 % of it on, it is "
        "restarted between two episodes. null for no limit.",
        unit="MB",
        gt=0,
    )
    spares: int = key(0, "Games that each actor keeps launched to replace one that fails.", ge=0)
    concurrent_launches: int | None = key(
        None, "Games that may be launched at the same time on one machine; null for no limit.", gt=0
    )
    resources: dict[str, Annotated[float, Field(ge=0)]] = key(
        dict,
        "What each game needs of its machine, where that is not what its bridge says: cpus, "
        "memory_mb, gpus, and Ray's own resources by name, e.g. {gamut_game: 1}.",
    )
    retries: int = key(20, "Times a lost episode is tried again.", unit="attempts", ge=0)
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
        "Deadline for a policy to decide; an actor whose policy takes longer is replaced, and a "
        "run that plays in its own process ends.",
        unit="s",
        gt=0,
    )
    max_in_flight: int | None = key(
        None,
        "Fragments that are requested from an actor at once; null for 2. Not for training, whose "
        "runners are asked for one at a time; see algorithm.max_staleness.",
        unit="fragments",
        gt=0,
    )

    @field_validator("python")
    @classmethod
    def _wherever_it_plays(cls, python: str | None) -> str | None:
        """Makes a path absolute: actors have other current folders. A home may be theirs."""
        if python is None or python.startswith("~"):
            return python
        return str(Path(python).absolute())

    @model_validator(mode="after")
    def _own_process(self) -> HostConfig:
        if self.python is not None and self.isolation == "in_process":
            raise ValueError(
                "python: games of another interpreter run in their own processes; set "
                "isolation=subprocess, or leave python out"
            )
        return self

    @property
    def recycle_s(self) -> float | None:
        """``recycle_minutes`` in seconds."""
        return None if self.recycle_minutes is None else 60.0 * self.recycle_minutes

    def plays_in_process(self, own: str) -> bool:
        """Returns whether a game runs in its player's process; ``own`` is its bridge's choice."""
        if self.python is not None:
            return False
        return (own if self.isolation == "auto" else self.isolation) == "in_process"

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
        given = {
            "start_s": self.start_s,
            "reset_s": self.reset_s,
            "step_s": self.step_s,
            "close_s": self.close_s,
        }
        return replace(own, **{name: s for name, s in given.items() if s is not None})
