"""The seam to a game: a bridge makes instances, an instance shows frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from gymnasium import spaces

from rollout.api.labels import Labels, check_labels
from rollout.api.state import State, StateSpace
from rollout.api.types import Array, Bools, Columns, Details, Ints
from rollout.errors import ConfigError

NOTICE = "notice"
"""Key of ``Frame.details``: a sentence for the user on why the episode ended, where the game has
words of its own for it, as a server that kicked the agent has."""


@dataclass(frozen=True)
class ColumnSpec:
    """What one recorded column holds: a signal of a game, or an extra of a policy.

    Attributes:
        dtype: numpy dtype name.
        shape: shape of one row's value, ``()`` for a scalar.
        unit: unit of the values.
        doc: what the value says.
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
    """What one instance needs of the machine it runs on."""

    cpus: float = 1.0
    memory_mb: int = 500
    gpus: float = 0.0
    custom: Mapping[str, float] = field(default_factory=dict)


class TaskMaker(Protocol):
    """Makes tasks out of their names, for games with more of them than anyone writes files for.

    It belongs to the spec, so it is cheap and picklable.
    """

    def names(self) -> Iterable[str]:
        """Returns the names that are worth listing, in an order that never changes."""
        ...

    def document(self, name: str) -> Mapping[str, Any] | None:
        """Returns what the file of a task would say (see ``rollout.tasks``).

        None for a name that is nothing like one of its own; there may be more than ``names`` lists.

        Raises:
            InputError: the name is one of its own and there is no such task; the message says why,
                and the nearest there is.
        """
        ...


@dataclass(frozen=True)
class BridgeSpec:
    """Everything known about a game before it is launched.

    Attributes:
        name: name of the game, without options.
        version: version of the bridge and of the game, e.g. ``"1/crafter 1.8.3"``.
        observation_space: flat ``Dict`` of leaf spaces (see ``rollout.api.spaces``).
        action_space: flat ``Dict`` of leaf spaces.
        state_space: every state an episode can start from.
        signals: numeric facts of each frame, for evaluators, by key.
        max_width: most slots one instance can hold.
        width_step: slots that come together, as those of one world do: widths are multiples of it.
        reproducible: whether the same state, seed and actions give the same frames.
        uses_seed: whether ``Start.seed`` changes anything beside the state.
        process: ``"in_process"`` for a library that is called, ``"subprocess"`` for a game that
            must be kept apart because it may hang or take its process with it.
        ticks_per_second: speed of game time; None when a step has no duration.
        ports: number of free network ports ``launch`` needs.
        deadlines: how long each phase may take.
        resources: what one instance needs.
        tasks: folder of the task files that come with the bridge.
        task_maker: makes tasks out of names that no file has; None when there are no such.
        original_observation_space: the nested space, when the flat one was made from it.
        original_action_space: likewise.
        action_labels: what the actions are called, for people; see ``rollout.api.labels``.
    """

    name: str
    version: str
    observation_space: spaces.Dict
    action_space: spaces.Dict
    state_space: StateSpace
    signals: Mapping[str, ColumnSpec] = field(default_factory=dict)
    max_width: int = 1
    width_step: int = 1
    reproducible: bool = True
    uses_seed: bool = True
    process: Literal["in_process", "subprocess"] = "subprocess"
    ticks_per_second: float | None = None
    ports: int = 0
    deadlines: Deadlines = Deadlines()
    resources: Resources = Resources()
    tasks: Path | None = None
    task_maker: TaskMaker | None = None
    original_observation_space: spaces.Space[Any] | None = None
    original_action_space: spaces.Space[Any] | None = None
    action_labels: Labels = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_labels(self.action_space, self.action_labels)

    def require_width(self, width: int, key: str = "width") -> None:
        """Checks that an instance can hold so many slots.

        Args:
            width: number of slots.
            key: what the user calls it.

        Raises:
            ConfigError: it cannot.
        """
        least = self.width_step
        if not least <= width <= self.max_width or width % least:
            many = f", {least} at a time" if least > 1 else ""
            raise ConfigError(
                f"{key}={width}: an instance of {self.name} holds {least} to {self.max_width} "
                f"slots{many}"
            )


@dataclass(frozen=True, slots=True)
class Start:
    """Where and how one episode begins.

    Attributes:
        state: the values of the factors.
        seed: randomness of the episode beyond its state; below 2**63.
        episode: number of the episode in its run, unique.
        attempt: 0, and one more each time the episode was lost and is tried again.
        state_set: name of the set the state was drawn from.
    """

    state: State
    seed: int
    episode: int = 0
    attempt: int = 0
    state_set: str = ""


@dataclass(slots=True)
class Frame:
    """What the slots of an instance show after a reset or a step; ``n`` rows.

    Attributes:
        observations: for the policy, ``{key: (n, ...)}``.
        signals: numeric facts for evaluators, ``{key: (n,)}``, every key of the spec.
        game_over: the game itself ended the episode, ``(n,)`` bool.
        game_truncated: the game cut the episode at a limit of its own, ``(n,)`` bool.
        tick: game time since the reset in ticks, ``(n,)`` int64.
        details: one mapping per row of what has no fixed shape, or None when there is nothing. What
            stands under ``NOTICE`` in a frame that ends an episode is told to the user.

    The arrays may be buffers of the instance: they are valid until its next call, and whoever
    keeps them copies them.
    """

    observations: Columns
    signals: Columns
    game_over: Bools
    game_truncated: Bools
    tick: Ints
    details: Sequence[Details] | None = None

    def take(self, rows: Sequence[int] | Array) -> Frame:
        """Returns a copy of some rows, in the order asked."""
        rows = np.asarray(rows, np.int64)
        return Frame(
            {k: v[rows] for k, v in self.observations.items()},
            {k: v[rows] for k, v in self.signals.items()},
            self.game_over[rows],
            self.game_truncated[rows],
            self.tick[rows],
            None if self.details is None else [self.details[int(r)] for r in rows],
        )


class Instance(Protocol):
    """One running copy of a game, holding ``width`` slots that step together.

    The rules every instance keeps:

    * Stepping an instance none of whose slots was ever reset is refused (``OutOfTurnError``).
    * ``step`` moves every slot that is playing. A slot that is over and was not reset, or that was
      never reset, is left alone: its row repeats (zeros if it never had one) and its action is
      ignored. The host relies on it when it has fewer episodes left than slots.
    * Slots do not influence one another unless the game says so in its documentation.
    """

    def reset(self, slots: Sequence[int], starts: Sequence[Start], *, timeout_s: float) -> Frame:
        """Begins an episode in some slots.

        Returns:
            a frame with ``len(slots)`` rows, in the order of ``slots``.

        Raises:
            GameTimeout: the game did not answer within ``timeout_s`` seconds.
            GameCrashed: it ended, or answered with an error.
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
    """Offered by an instance that can save a slot and go back to it exactly."""

    def snapshot(self, slot: int) -> bytes:
        """Returns everything that decides the slot's future."""
        ...

    def restore(self, slot: int, snapshot: bytes) -> Frame:
        """Puts the slot back and returns its frame, one row."""
        ...


class Bridge(Protocol):
    """The recipe for running copies of one game: cheap, picklable, importing it starts nothing.

    A bridge is a frozen dataclass; its fields are its options (see ``rollout.api.option``), and
    its class is what the entry point in the group ``gamut.bridges`` names.
    """

    @property
    def spec(self) -> BridgeSpec:
        """What is known before anything is launched; must not start the game."""
        ...

    def launch(
        self, workdir: Path, ports: Sequence[int], *, width: int, timeout_s: float
    ) -> Instance:
        """Starts one copy of the game.

        Args:
            workdir: an empty folder of this instance alone, for saves, logs and sockets.
            ports: ``spec.ports`` free network ports of this instance alone.
            width: number of slots, 1 to ``spec.max_width``.
            timeout_s: seconds it may take to come up.

        Raises:
            GameStartError: it did not come up; the message says why.
            ConfigError: it cannot have that width.
        """
        ...
