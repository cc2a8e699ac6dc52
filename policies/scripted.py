"""A policy that replays recorded actions exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from policies.program import Program
from policies.scripts import EVERY, Key, Script, read_scripts, script_columns
from rollout.api import (
    BridgeSpec,
    Columns,
    ColumnSpec,
    Decision,
    Details,
    Start,
    Task,
    allocate,
    option,
)
from rollout.errors import ConfigError, OutOfTurnError

AFTER = ("error", "repeat_last", "noop")


@dataclass(frozen=True)
class ScriptedPolicy:
    """Replays the actions of a script per episode.

    ``actions`` is a mapping in memory or a file:

    * mapping: ``{key: {column: (T, ...)}}``, where a key is the number of an episode, or ``(state
      index, seed)``; or ``{column: (T, ...)}`` for every episode. If both keys are present, the one
      with state and seed has priority.
    * ``.json``: the same, with the keys ``"3"`` for an episode, ``"17:42"`` for state and seed.
    * ``.npz``: arrays named ``3/action`` or ``17:42/action``, or ``action`` for every episode.
    * ``.npy``: one array ``(T, ...)`` for every episode, if the action space has one column.
    * ``.js``: a program that is started once in every episode and then continues, whatever
      ``after`` says; for Mineflayer's actions ``code``.

    The position in the script is in the memory, so slots may be batched in any order.
    """

    actions: str | Mapping[Any, Any] = option(
        "", "file of the actions (.json, .npz, .npy; .js: a program), or a mapping in memory"
    )
    after: str = option("error", "what to do when a script ends before its episode", choices=AFTER)

    def __post_init__(self) -> None:
        if self.after not in AFTER:
            raise ConfigError(f"after must be one of {', '.join(AFTER)}, got {self.after!r}")
        if not self.actions:
            raise ConfigError("actions must name a file (.json, .npz, .npy, .js) or be a mapping")

    def build(self, spec: BridgeSpec, task: Task, *, seed: int) -> Scripted | Program:
        """Returns the policy; see ``rollout.api.PolicyRecipe``.

        Raises:
            ConfigError: the file cannot be read, or its actions are not of this game.
        """
        if isinstance(self.actions, str) and Path(self.actions).suffix == ".js":
            return Program(Path(self.actions), spec.action_space)
        data = self.actions if isinstance(self.actions, Mapping) else read_scripts(self.actions)
        return Scripted(spec.action_space, script_columns(data, spec.action_space), self.after)


class Scripted:
    """Plays scripts that are concatenated in one array per column."""

    version = 0
    extras: Mapping[str, ColumnSpec] = {}

    def __init__(self, space: spaces.Dict, scripts: Mapping[Key, Script], after: str) -> None:
        self._after, self._names = after, list(scripts)
        self._numbers = {key: number for number, key in enumerate(scripts)}
        lengths = [len(next(iter(script.values()))) for script in scripts.values()]
        self._length = np.array(lengths, np.int64)
        self._first = np.concatenate([[0], np.cumsum(self._length)[:-1]]).astype(np.int64)
        # One row more than the scripts have: the no-op, for ``after: noop``.
        idle = _idle(space)
        self._actions = {
            key: np.concatenate([*(script[key] for script in scripts.values()), idle[key]])
            for key in space.spaces
        }
        self._idle = int(self._length.sum())

    def initial_memory(self, starts: Sequence[Start]) -> Columns:
        """Returns the script of each slot, counted from 1, and the position in it: the beginning.

        Raises:
            ConfigError: there is no script for an episode.
        """
        numbers = [self._script(start) + 1 for start in starts]
        return {
            "script": np.array(numbers, np.int64),
            "position": np.zeros(len(starts), np.int64),
        }

    def act(
        self,
        observations: Columns,
        memory: Columns,
        *,
        details: Sequence[Details] | None,
        explore: bool,
    ) -> Decision:
        """Returns the next action of each row's script.

        Raises:
            OutOfTurnError: a script has ended and ``after`` is ``error``.
        """
        position, script = memory["position"], memory["script"] - 1
        length = self._length[script]
        ended = (position >= length) & (script >= 0)  # less where there is no episode
        row = self._first[script] + np.minimum(position, length - 1)
        if ended.any():
            if self._after == "error":
                raise self._ran_out(int(script[ended][0]))
            if self._after == "noop":
                row[ended] = self._idle
        actions = {key: column[row] for key, column in self._actions.items()}
        return Decision(actions, {"script": memory["script"], "position": position + 1})

    def _script(self, start: Start) -> int:
        for key in ((start.state.index, start.seed), start.episode, EVERY):
            number = self._numbers.get(key)
            if number is not None:
                return number
        raise ConfigError(
            f"no script for episode {start.episode} (state {start.state.index}, seed "
            f"{start.seed}); there are scripts for {self._names[:10]}"
            f"{' and more' if len(self._names) > 10 else ''}"
        )

    def _ran_out(self, number: int) -> OutOfTurnError:
        name = self._names[number]
        which = "every episode" if name == EVERY else f"{name}"
        return OutOfTurnError(
            f"the script for {which} has {self._length[number]} actions and the episode continues; "
            f"record more, or set after to repeat_last or noop"
        )


def _idle(space: spaces.Dict) -> Columns:
    """Returns zero, moved into the space, for every column: one row."""
    idle = allocate(space, 1)
    for key, leaf in space.spaces.items():
        if isinstance(leaf, spaces.Box):
            idle[key] = np.clip(idle[key], leaf.low, leaf.high).astype(leaf.dtype)
        elif isinstance(leaf, spaces.Discrete | spaces.MultiDiscrete):
            least = np.asarray(leaf.start)
            most = (
                least + np.asarray(leaf.n if isinstance(leaf, spaces.Discrete) else leaf.nvec) - 1
            )
            idle[key] = np.clip(idle[key], least, most).astype(leaf.dtype)
    return idle
