"""The interface to a game: a bridge makes instances, an instance shows frames."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from gymnasium import spaces

from rollout.api.masks import check_masks
from rollout.api.spaces import Labels, check_labels, check_stacks
from rollout.api.state import State, StateSpace
from rollout.api.task_tools import TaskTools
from rollout.api.types import Array, Bools, Columns, Details, Ints
from rollout.errors import ConfigError, InputError

NOTICE = "notice"
"""Key of ``Frame.details`` for a message to the user on why the episode ended, from games that have
one, such as a server that kicked the agent."""
PRIVILEGED = "privileged"
"""Key of ``Frame.details`` for what evaluators and datasets get and policies do not."""
PERSON = "person/"
"""Begins the names of actions, observations and details of a person who plays another player of the
agent's world; the policy ``with_person`` keeps them from the agent's."""


@dataclass(frozen=True)
class ColumnSpec:
    """Description of one recorded column: a signal of a game, or an extra of a policy.

    Attributes:
        dtype: numpy dtype name; ``object`` for JSON-able data without a fixed shape.
        shape: shape of one row's value, ``()`` for a scalar.
        unit: unit of the values.
        doc: meaning of the value.
    """

    dtype: str = "float32"
    shape: tuple[int, ...] = ()
    unit: str = ""
    doc: str = ""


@dataclass(frozen=True)
class Deadlines:
    """Seconds a game may take for each phase before it counts as hung."""

    start_s: float = 60.0
    reset_s: float = 30.0
    step_s: float = 10.0
    close_s: float = 5.0


@dataclass(frozen=True)
class Resources:
    """Resources of a machine that one instance needs."""

    cpus: float = 1.0
    memory_mb: int = 500
    gpus: float = 0.0
    custom: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Environment:
    """An interpreter for the games of a bridge whose packages contradict ours.

    ``gamut env make NAME`` makes it.

    Attributes:
        name: of the bridge.
        requirements: file with every package that is installed there, with its version; none is
            added. NumPy and Gymnasium must be among them.
        python: version of Python, e.g. ``"3.11"``; at least that.
        modules: what the game imports, without which nothing is launched.
        programs: programs on the path of the game that it needs, likewise.
        files: files that it needs, likewise.
        HOST: environment variable in the processes of a game with the path of the host's
            interpreter, for a game that starts programs which need our packages.
    """

    HOST: ClassVar[str] = "GAMUT_PYTHON"

    name: str
    requirements: Path
    python: str
    modules: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()


def cache_folder() -> Path:
    """Returns the user's folder of what can be made again.

    It is ``$GAMUT_CACHE``, else ``$XDG_CACHE_HOME/gamut``, else ``~/.cache/gamut``.
    """
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gamut"
    return Path(os.environ.get("GAMUT_CACHE") or home)


def environment_folder(name: str) -> Path:
    """Returns where ``gamut env make`` puts the interpreter of a game; see ``cache_folder``."""
    return cache_folder() / "environments" / name


class TaskMaker(Protocol):
    """Builds tasks from their names, for games with too many tasks to write a file for each.

    It belongs to the spec, so it is cheap and picklable.
    """

    def names(self) -> Iterable[str]:
        """Returns the names to list, in a fixed order."""
        ...

    def document(self, name: str) -> Mapping[str, Any] | None:
        """Returns the content of a task file (see ``rollout.tasks``).

        None for a name of another form; more names than ``names`` lists may be valid.

        Raises:
            InputError: the name has the right form but there is no such task; the message gives
                the reason and the nearest name.
        """
        ...


@dataclass(frozen=True)
class BridgeSpec:
    """Properties of a game that are known before it is launched.

    Attributes:
        name: name of the game, without options.
        version: version of the bridge and of the game, e.g. ``"1/crafter 1.8.3"``.
        observation_space: flat ``Dict`` of leaf spaces (see ``rollout.api.spaces``).
        action_space: flat ``Dict`` of leaf spaces.
        state_space: every state an episode can start from.
        signals: numeric facts of each frame, for evaluators, by key.
        max_width: most slots one instance can hold.
        width_step: number of slots that belong together, such as those of one world; widths are
            multiples of it.
        default_width: slots of an instance where none are configured: many for a game that is a
            quick call in this process, so that the policy decides for many at once; otherwise 1.
        reproducible: whether the same state, seed and actions give the same frames.
        uses_seed: whether ``Start.seed`` changes anything beside the state.
        process: ``"in_process"`` for a library that is called, ``"subprocess"`` for a game that
            must run in its own process because it may hang or crash.
        ticks_per_second: speed of game time; None when a step has no duration.
        ports: number of free network ports ``launch`` needs.
        deadlines: how long each phase may take.
        resources: what one instance needs.
        tasks: folder of the task files that come with the bridge.
        task_maker: builds tasks from names without a file; None if there are none.
        task_tools: reads and checks tasks; None if there are none.
        original_observation_space: the nested space, when the flat one was made from it.
        original_action_space: likewise.
        action_labels: names of the actions for people; see ``rollout.api.spaces.Labels``.
        stacks: observations that are stacks of the last frames, and the axis of the frames, oldest
            first: ``{"observation": 0}`` as of Gymnasium's ``FrameStackObservation``. Datasets
            store each frame once.
        action_defaults: values of ``Discrete`` columns that only some actions use, so that a model
            may leave them out.
    """

    name: str
    version: str
    observation_space: spaces.Dict
    action_space: spaces.Dict
    state_space: StateSpace
    signals: Mapping[str, ColumnSpec] = field(default_factory=dict)
    max_width: int = 1
    width_step: int = 1
    default_width: int = 1
    reproducible: bool = True
    uses_seed: bool = True
    process: Literal["in_process", "subprocess"] = "subprocess"
    ticks_per_second: float | None = None
    ports: int = 0
    deadlines: Deadlines = Deadlines()
    resources: Resources = Resources()
    tasks: Path | None = None
    task_maker: TaskMaker | None = None
    task_tools: TaskTools | None = None
    original_observation_space: spaces.Space[Any] | None = None
    original_action_space: spaces.Space[Any] | None = None
    action_labels: Labels = field(default_factory=dict)
    action_defaults: Mapping[str, int] = field(default_factory=dict)
    stacks: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_stacks(self.observation_space, self.stacks)
        check_labels(self.action_space, self.action_labels)
        check_masks(self.observation_space, self.action_space)

    def choose_width(
        self, width: int | None, *, episodes: int | None = None, calls: int = 1
    ) -> int:
        """Returns the number of slots of an instance: the configured one, or the game's usual one.

        Args:
            width: the configured number; None for ``default_width``.
            episodes: how many will be played, if that is known: an instance of its usual width has
                no more slots than that.
            calls: of the policy, see ``calls_of``: slots wait for one another, so there are as few
                as possible if decisions take long.

        Raises:
            ConfigError: an instance cannot have this number of slots.
        """
        if width is None:
            few = self.default_width if episodes is None else min(self.default_width, episodes)
            together = self.width_step
            if calls > 1:
                few = together
            width = max(together, few // together * together)
        self.require_width(width)
        return width

    def require_width(self, width: int, key: str = "width") -> None:
        """Checks that an instance can have this number of slots.

        Args:
            width: number of slots.
            key: configuration key of the width, for the message.

        Raises:
            ConfigError: it cannot.
        """
        least = self.width_step
        if not least <= width <= self.max_width or width % least:
            many = f", {least} at a time" if least > 1 else ""
            raise ConfigError(
                f"{key}={width}: an instance of {self.name} has {least} to {self.max_width} "
                f"slots{many}"
            )


@dataclass(frozen=True, slots=True)
class Trial:
    """Result of an earlier episode of the same player from the same state.

    Attributes:
        episode: its number.
        success: whether the task was accomplished; None if nothing was decided.
        total_reward: undiscounted sum of rewards.
        progress: last progress, 0 to 1, NaN if undefined.
        length: number of completed steps.
    """

    episode: int
    success: bool | None
    total_reward: float
    progress: float
    length: int


@dataclass(frozen=True, slots=True)
class Start:
    """Start of one episode.

    Attributes:
        state: the values of the factors.
        seed: randomness of the episode beyond its state; below 2**63.
        episode: number of the episode in its run, unique.
        attempt: 0 at first, increased by one with every retry of a lost episode.
        state_set: name of the set the state was drawn from.
        earlier: earlier episodes from the same state, oldest first, for a policy that is
            ``rollout.api.Remembering``; otherwise empty.
    """

    state: State
    seed: int
    episode: int = 0
    attempt: int = 0
    state_set: str = ""
    earlier: tuple[Trial, ...] = ()


@dataclass(slots=True)
class Frame:
    r"""Observations and signals of an instance after a reset or a step, ``n`` rows.

    Attributes:
        observations: for the policy, ``{key: (n, ...)}``.
        signals: numeric facts for evaluators, ``{key: (n,)}``, every key of the spec.
        game_over: the game itself ended the episode, ``(n,)`` bool.
        game_truncated: the game cut the episode at a limit of its own, ``(n,)`` bool.
        tick: game time since the reset in ticks, ``(n,)`` int64.
        details: one mapping per row of data without a fixed shape; None if there is none. The
            entry ``NOTICE`` of a frame that ends an episode is shown to the user; the host gives
            policies all but the entry ``PRIVILEGED``.

    Policy and dataset get details as JSON-able data. The host converts numpy scalars and arrays to
    numbers and lists, tuples to lists, NaN and infinities to None, bytes to UTF-8 text (a byte that
    is not UTF-8 to ``\xhh``), a lone surrogate to U+FFFD, and keys that are not text (numbers,
    tuples) to their text. A game loses its episodes if its details hold anything else: objects of
    other types (sets among them), more than 64 levels, cycles, integers of more than 4,096 bits,
    more than 2**20 values or 2**24 characters in one row. It also loses them if a column is missing
    or has another shape or kind of dtype than in the spec, or if an observation holds NaN.

    The arrays may be buffers of the instance: they are valid until its next call; copy them to
    keep them longer.
    """

    observations: Columns
    signals: Columns
    game_over: Bools
    game_truncated: Bools
    tick: Ints
    details: Sequence[Details] | None = None

    def take(self, rows: Sequence[int] | Array) -> Frame:
        """Returns a copy of some rows, in the given order."""
        rows = np.asarray(rows, np.int64)
        return Frame(
            {k: v[rows] for k, v in self.observations.items()},
            {k: v[rows] for k, v in self.signals.items()},
            self.game_over[rows],
            self.game_truncated[rows],
            self.tick[rows],
            None if self.details is None else [self.details[int(r)] for r in rows],
        )


def details_for_policies(details: Details) -> Details:
    """Returns the details of a row without the entry ``PRIVILEGED``."""
    if PRIVILEGED not in details:
        return details
    return {key: value for key, value in details.items() if key != PRIVILEGED}


def check_slots(game: str, width: int, slots: Sequence[int], starts: int) -> list[int]:
    """Returns the slots that a reset names as plain integers; for the instances of bridges.

    Args:
        game: name of the game, for the message.
        width: slots of the instance.
        slots: slots that the reset names.
        starts: number of starts of the reset.

    Raises:
        InputError: a slot does not exist or is named twice, or there is not one start for each.
    """
    rows = [operator.index(slot) for slot in slots]
    inside = all(0 <= row < width for row in rows)
    if not inside or len(set(rows)) != len(rows) or len(rows) != starts:
        raise InputError(
            f"{game}: expected distinct slots from 0 to {width - 1} with one start each, "
            f"got slots {rows} and {starts} starts"
        )
    return rows


class Instance(Protocol):
    """One running copy of a game, with ``width`` slots that step together.

    Rules for every instance:

    * Stepping an instance before any slot was reset raises ``OutOfTurnError``.
    * ``step`` moves every slot that is playing. A slot that is over and was not reset, or that was
      never reset, does not change: its row repeats (zeros if it never had one) and its action is
      ignored. The host uses this when fewer episodes than slots are left.
    * Slots do not affect one another unless the game documents it.
    """

    def reset(self, slots: Sequence[int], starts: Sequence[Start], *, timeout_s: float) -> Frame:
        """Begins an episode in some slots.

        Returns:
            a frame with ``len(slots)`` rows, in the order of ``slots``.

        Raises:
            GameTimeout: the game did not reply within ``timeout_s`` seconds.
            GameCrashed: it ended, or replied with an error.
            StateError: it cannot start from that state.
        """
        ...

    def step(self, actions: Columns, *, timeout_s: float) -> Frame:
        """Plays one action in every slot.

        Args:
            actions: ``{key: (width, ...)}`` as in the action space.
            timeout_s: seconds the game may take.

        Returns:
            a frame with ``width`` rows.

        Raises:
            GameTimeout: as in ``reset``.
            GameCrashed: as in ``reset``.
        """
        ...

    def close(self) -> None:
        """Ends the game and every process it started. Idempotent; never raises."""
        ...


@runtime_checkable
class Snapshots(Protocol):
    """An instance that can save a slot and restore it exactly."""

    def snapshot(self, slot: int) -> bytes:
        """Returns the complete state of the slot."""
        ...

    def restore(self, slot: int, snapshot: bytes) -> Frame:
        """Restores the slot and returns its frame, one row."""
        ...


class Bridge(Protocol):
    """The recipe for running copies of one game: cheap, picklable, importing it starts nothing.

    A bridge is a frozen dataclass; its fields are its options (see ``rollout.api.option``), and
    its class is what the entry point in the group ``gamut.bridges`` names.
    """

    @property
    def spec(self) -> BridgeSpec:
        """Properties of the game; must not start it."""
        ...

    def launch(
        self, workdir: Path, ports: Sequence[int], *, width: int, timeout_s: float
    ) -> Instance:
        """Starts one copy of the game.

        Args:
            workdir: an empty folder of this instance alone, for saves, logs and sockets.
            ports: ``spec.ports`` free network ports of this instance alone.
            width: number of slots, as ``spec.require_width`` allows.
            timeout_s: seconds the launch may take.

        Raises:
            GameStartError: the launch failed; the message gives the reason.
            ConfigError: it cannot have that width.
        """
        ...


@runtime_checkable
class HasEnvironment(Protocol):
    """A bridge whose games run in an interpreter of their own."""

    @property
    def environment(self) -> Environment:
        """How that is made; used unless ``host.python`` names another."""
        ...


@runtime_checkable
class CommonNoise(Protocol):
    """A bridge of a game whose random events depend on the state as well as on the seed.

    Two states then differ in their random events at least, although an agent that plays many
    episodes cannot tell them apart. ``rollout.distinguish`` needs the same random events in both.
    """

    def with_common_noise(self) -> Bridge:
        """Returns the bridge of the same game with random events that depend on the seed alone."""
        ...
