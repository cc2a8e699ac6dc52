"""Tasks as YAML files: goal, start states, evaluator and limits.

::

    name: collect_wood                      # default: the name of the file
    goal: Collect ten pieces of wood.
    bridge: crafter                         # default: the bridge that contains the file
    options: {size: 64}                     # options of the bridge that the task needs
    state_space:                            # default: every state of the bridge
      seed: {range: [0, 1000]}              # first, end, and a step if it is not 1
      biome: [plains, forest]
      weapon: axe
    evaluator: {name: signal_goal, signal: inventory/wood, at_least: 10}
    limits: {steps: 1000}
    difficulty: simple
    metadata: {source: MCU}

Within the ``parts`` of a composed evaluator (``rollout.composition``), ``{task: NAME}`` stands for
the evaluator of another task of the same bridge.

A bridge may also build tasks from names without a file (``rollout.api.bridge.TaskMaker``); if both
exist, the file takes precedence. Such a name may have a ``/``, as in ``GROUP/NAME``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from rollout.api import Bridge, BridgeSpec, Factor, Limits, StateSpace, Task
from rollout.api.state import Value
from rollout.config import BridgeConfig, PluginConfig, Section, build_plugin, key
from rollout.configuration import document
from rollout.configuration.document import Document, from_document
from rollout.configuration.plugins import default_options
from rollout.configuration.sections import Values
from rollout.errors import ConfigError, StateError, UnknownNameError
from rollout.registry import Group

DEFAULT_EVALUATOR = "game_reward"
"""The default evaluator, the reward of the game itself."""

_SUFFIXES = (".yaml", ".yml")


class _EvaluatorConfig(PluginConfig):
    """The evaluator of a task, and its options."""

    group: ClassVar[Group] = "evaluators"


class _LimitsConfig(Section):
    """Limits at which an episode is cut."""

    steps: int | None = key(None, "Most actions in an episode; null for the game's own.", gt=0)


class _TaskConfig(Section):
    """The contents of a task file."""

    name: str = key("", "Unique within its bridge; empty for the name of the file.")
    goal: str = key("", "Instruction for the agent.")
    bridge: str = key("", "Bridge of the task; empty for any.")
    options: dict[str, Any] = key(dict, "Options of the bridge that the task needs.")
    state_space: dict[str, Values] = key(dict, "Values of factors; other factors keep all values.")
    evaluator: _EvaluatorConfig = key(
        lambda: _EvaluatorConfig(name=DEFAULT_EVALUATOR), "What judges it."
    )
    limits: _LimitsConfig = key(_LimitsConfig, "Where an episode is cut.")
    difficulty: str = key("", "Difficulty, in a word.")
    metadata: dict[str, Any] = key(dict, "Any further information.")


@dataclass(frozen=True)
class _TaskFile:
    """A task and its document, before it is checked.

    Attributes:
        name: name of the task, unless the document sets another.
        key: identity of the task, however it was requested.
        document: the contents; its source is the path of the file, or the name of the task.
    """

    name: str
    key: str
    document: Document


def task_names(spec: BridgeSpec) -> tuple[str, ...]:
    """Returns the names of the tasks that come with a bridge as files, sorted."""
    if spec.tasks is None or not spec.tasks.is_dir():
        return ()
    return tuple(sorted({p.stem for p in spec.tasks.iterdir() if p.suffix in _SUFFIXES}))


def load_task(spec: BridgeSpec, bridge_name: str, name_or_path: str) -> Task:
    """Returns a task for a bridge, checked against it.

    Options of the bridge that the task needs are in ``metadata["options"]``; ``bridge_and_task``
    applies them.

    Args:
        spec: the bridge's.
        bridge_name: the name the bridge is installed under.
        name_or_path: a task of the bridge, or the path of a YAML file; empty for the default
            task: no goal, the game's own reward, every state, no limit.

    Raises:
        UnknownNameError: the bridge has no such task, factor or signal.
        ConfigError: the file does not exist, or is invalid.
        StateError: a factor value that the bridge does not have.
    """
    if not name_or_path:
        evaluator = build_plugin("evaluators", DEFAULT_EVALUATOR, {})
        task = Task("default", "", spec.state_space, evaluator)
        task.check(spec)
        return task
    return _load(spec, bridge_name, _find(spec, bridge_name, name_or_path))


def _load(spec: BridgeSpec, bridge_name: str, found: _TaskFile) -> Task:
    file, place = _read(spec, bridge_name, found), found.document.source
    if file.bridge not in ("", bridge_name):
        raise ConfigError(
            f"{place}: bridge: the task is made for bridge {file.bridge!r}, and it was to be "
            f"played in {bridge_name!r}; set bridge.name={file.bridge} or choose another task"
        )
    metadata = dict(file.metadata)
    if file.options:
        metadata["options"] = dict(file.options)
    task = Task(
        name=file.name or found.name,
        goal=file.goal,
        state_space=_state_space(spec, file.state_space, place),
        evaluator=file.evaluator.build(),
        limits=Limits(file.limits.steps),
        difficulty=file.difficulty,
        metadata=metadata,
    )
    try:
        task.check(spec)
    except UnknownNameError as error:
        raise UnknownNameError(
            f"{error.kind}, needed by {place},", error.name, error.valid
        ) from error
    return task


def read_task(spec: BridgeSpec, bridge_name: str, name_or_path: str) -> Mapping[str, Any]:
    """Returns the contents of a task's file, or what the bridge makes of its name, unchecked.

    Raises:
        InputError: as in ``load_task``.
    """
    found = _find(spec, bridge_name, name_or_path)
    if not isinstance(found.document.data, dict):
        raise ConfigError(f"{found.document.source}: expected a mapping, the contents of a task")
    return {"name": found.name, **found.document.data}


def bridge_and_task(
    config: BridgeConfig,
    name_or_path: str | Mapping[str, Any],
    check: Callable[[Bridge], None] | None = None,
) -> tuple[BridgeConfig, Bridge, Task]:
    """Returns a bridge with the options that a task needs, and the task.

    The configuration that is returned has the task's options in it. An option that the task needs
    replaces the default. A configured value that differs from both is an error.

    The task is a name, the path of a file, or the contents of one. ``check`` is called with a
    bridge before its ``spec`` is read, which may import modules.

    Raises:
        ConfigError: the configuration contradicts the task.
        InputError: as in ``load_task``.
    """
    bridge: Bridge = config.build()
    if check is not None:
        check(bridge)
    if not name_or_path:
        return config, bridge, load_task(bridge.spec, config.name, "")
    found = _given_or_found(bridge.spec, config.name, name_or_path)
    needed, place = _read(bridge.spec, config.name, found).options, found.document.source
    if not needed:
        return config, bridge, _load(bridge.spec, config.name, found)
    try:
        bridge = build_plugin("bridges", config.name, {**config.options, **needed})
    except ConfigError as error:
        raise ConfigError(f"{place}: options: {error}") from error
    if check is not None:
        check(bridge)
    wanted = BridgeConfig.model_validate({"name": config.name, **config.options, **needed})
    defaults = default_options("bridges", config.name)
    for name in needed:
        given, asked = config.options[name], wanted.options[name]
        by_default = name in defaults and given == defaults[name]
        if given != asked and not by_default:
            raise ConfigError(
                f"bridge.{name}: the configuration has {given!r}, but the task {place} needs "
                f"{asked!r}; leave the key out, or choose another task"
            )
    # Loaded again, because the needs of a task may depend on the options of its bridge.
    again = _given_or_found(bridge.spec, config.name, name_or_path)
    return wanted, bridge, _load(bridge.spec, config.name, again)


def _read(spec: BridgeSpec, bridge_name: str, found: _TaskFile) -> _TaskConfig:
    """Returns the contents of a task, with tasks in its evaluator replaced by evaluators."""
    source = found.document
    if isinstance(source.data, dict) and isinstance(source.data.get("evaluator"), dict):
        evaluator = _expanded(spec, bridge_name, source.data["evaluator"], (found.key,))
        source = replace(source, data={**source.data, "evaluator": evaluator})
    return from_document(_TaskConfig, source)


def _expanded(
    spec: BridgeSpec, bridge_name: str, evaluator: dict[str, Any], within: tuple[str, ...]
) -> dict[str, Any]:
    parts = evaluator.get("parts")
    if not isinstance(parts, list):
        return evaluator
    whole = []
    for number, part in enumerate(parts):
        if not isinstance(part, dict) or "task" not in part:
            inner = isinstance(part, dict)
            whole.append(_expanded(spec, bridge_name, part, within) if inner else part)
            continue
        place = f"{within[-1]}: evaluator.parts[{number}]"
        if len(part) > 1 or not isinstance(part["task"], str):
            raise ConfigError(f"{place}: expected the name of a task alone, got {part}")
        found = _find(spec, bridge_name, part["task"])
        if found.key in within:
            raise ConfigError(f"{place}: task {part['task']!r} is composed of itself")
        other = found.document.data
        other = other.get("evaluator") if isinstance(other, dict) else None
        other = {"name": other or DEFAULT_EVALUATOR} if not isinstance(other, dict) else other
        whole.append(_expanded(spec, bridge_name, other, (*within, found.key)))
    return {**evaluator, "parts": whole}


def _find(spec: BridgeSpec, bridge_name: str, name_or_path: str) -> _TaskFile:
    """Returns a task by its name, which may have a ``/`` as paths do, or the path of its file."""
    path, is_path = Path(name_or_path).expanduser(), "/" in name_or_path
    if name_or_path.endswith(_SUFFIXES) or (is_path and path.exists()):
        return _of_file(path)
    if spec.tasks is not None and (is_path or name_or_path in task_names(spec)):
        paths = (spec.tasks / f"{name_or_path}{suffix}" for suffix in _SUFFIXES)
        if (inside := next((each for each in paths if each.exists()), None)) is not None:
            return _of_file(inside)
    maker = spec.task_maker
    made = None if maker is None else maker.document(name_or_path)
    if made is not None:
        return _TaskFile(name_or_path, name_or_path, Document(dict(made), name_or_path))
    listed = (*task_names(spec), *(() if maker is None else maker.names()))
    groups = {name.partition("/")[0] for name in listed if "/" in name}
    if is_path and name_or_path.partition("/")[0] not in groups:
        return _of_file(path)
    raise UnknownNameError(f"task of bridge {bridge_name!r}", name_or_path, listed)


def _given_or_found(spec: BridgeSpec, bridge_name: str, task: str | Mapping[str, Any]) -> _TaskFile:
    if isinstance(task, str):
        return _find(spec, bridge_name, task)
    name = str(task.get("name", "task"))
    return _TaskFile(name, name, Document(dict(task), name))


def _of_file(path: Path) -> _TaskFile:
    return _TaskFile(path.stem, str(path.resolve()), document.read(path))


def _state_space(spec: BridgeSpec, given: Mapping[str, Sequence[Value]], place: str) -> StateSpace:
    space = spec.state_space
    chosen: dict[str, Sequence[Value]] = {}
    for name, values in given.items():
        try:
            chosen[name] = _restricted(space.factor(name), values)
        except UnknownNameError as error:
            kind = f"factor of bridge {spec.name!r} in state_space of {place}"
            raise UnknownNameError(kind, name, error.valid) from error
        except StateError as error:
            raise StateError(f"{place}: state_space.{name}: {error}") from error
    return space.restrict(chosen)


def _restricted(factor: Factor, values: Sequence[Value]) -> Sequence[Value]:
    """Checks that each of the values is one of the factor's; returns them."""
    allowed = replace(factor, values=values)  # refuses none at all, and one given twice
    if isinstance(values, range) and isinstance(factor.values, range):
        # An arithmetic progression lies within another if its first two and last values do.
        for end in {values[0], values[min(1, allowed.size - 1)], values[-1]}:
            factor.digit(end)
        return values
    if allowed.size > factor.size:
        raise StateError(f"has {factor.size} values in the bridge, and {allowed.size} were given")
    for value in values:
        factor.digit(value)
    return tuple(values)
