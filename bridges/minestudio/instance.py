"""MineStudio's simulator as an ``Instance``; imported in its own interpreter only."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.utils import seeding
from minestudio.simulator import MinecraftSim, callbacks

from bridges.mineflayer.spaces import RGB
from bridges.minestudio.actions import env_action
from bridges.minestudio.columns import NAME, SIGNALS, WORLDS, Shape
from bridges.minestudio.hunt_sheep import start_commands
from rollout.api import Columns, Frame, Start, check_slots, probing
from rollout.errors import GameCrashed, GameStartError, OutOfTurnError

_COUNTED = (
    *("use_item", "pickup", "break_item", "craft_item", "mine_block", "kill_entity"),
    *("damage_dealt", "custom"),
)
_SUMS = {
    "mined": "mine_block",
    "crafted": "craft_item",
    "picked_up": "pickup",
    "killed": "kill_entity",
}
# The picture is an observation, and the boxes of blocks and mobs are asked for by the reset alone.
_LEFT_OUT = ("pov", "message", "voxels", "mobs", *_COUNTED)
_SHOWN = 300


class Commands(callbacks.CommandsCallback):  # type: ignore[misc]  # of an untyped package
    """MineStudio's callback, which fails without commands."""

    def after_reset(self, sim: Any, obs: Any, info: Any) -> Any:
        """Runs the commands; see MineStudio."""
        return super().after_reset(sim, obs, info) if self.commands else (obs, info)


class MinestudioInstance:
    """One simulator with its engine; see ``rollout.api.Instance``.

    Args:
        shape: its options. The environment variables of MineStudio are set.

    Raises:
        GameStartError: it did not start.
    """

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._frame: Frame | None = None
        self._tick, self._over = 0, False
        self._counts: dict[str, dict[str, int]] = {}  # at the start of the episode
        self._commands = Commands([])
        self._sim: Any = None
        try:
            self._sim = MinecraftSim(
                action_type="env",
                obs_size=shape.rgb,
                render_size=shape.render,
                preferred_spawn_biome=shape.biome or None,
                callbacks=self._callbacks(),
            )
            self._sim.env.reset()  # starts the engine
        except BaseException as error:
            self.close()
            raise GameStartError(f"MineStudio did not start: {_said(error)}") from error

    def _callbacks(self) -> list[Any]:
        """Returns those of MineStudio that make the start, then that of the reward."""
        made = {
            name: getattr(callbacks, f"{name}Callback")(_plain(given))
            for name, given in self._shape.callbacks.items()
            if given  # some fail on empty lists
        }
        made["Commands"] = self._commands
        order = ("SummonMobs", "InitInventory", "Commands", "Rewards")
        return [made[name] for name in order if name in made]

    def reset(self, slots: Sequence[int], starts: Sequence[Start], *, timeout_s: float) -> Frame:
        """Begins an episode in a new world; see ``rollout.api.Instance``."""
        del timeout_s  # a call of MineStudio cannot be interrupted; the host ends this process
        if not check_slots(NAME, 1, slots, len(starts)):
            assert self._frame is not None
            return self._frame.take([])
        [start] = starts
        self._seed(int(start.state.values["world"]), start.seed)
        commands = [*self._shape.commands]
        if self._shape.hunt_sheep:
            commands += start_commands(start.state.values)
        self._commands.commands = commands
        obs, info = self._call("reset", self._sim.reset)
        self._tick, self._over = 0, False
        self._counts = {key: _counts(info.get(key)) for key in _COUNTED}
        return self._show(obs, 0.0, info)

    def _seed(self, world: int, seed: int) -> None:
        """Seeds the world and all random numbers of MineStudio's code."""
        if self._shape.ours:  # whose worlds have the number of the seed, cut
            world += WORLDS * (seed % 2**21)
        self._sim.env.seed(world, seed_spaces=False)
        self._sim.info = {}  # or values of earlier episodes stay
        self._sim._np_random, _ = seeding.np_random(seed)
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002 - of MineStudio's callbacks

    def step(self, actions: Columns, *, timeout_s: float) -> Frame:
        """Plays a tick; see ``rollout.api.Instance``."""
        del timeout_s
        if self._frame is None:
            raise OutOfTurnError(f"{NAME}: the slot was never reset; reset it first")
        if self._over:
            return self._frame
        action = env_action(self._shape.actions, actions)
        obs, reward, over, _, info = self._call("step", self._sim.step, action)
        if "error" in info:
            raise GameCrashed(f"MineStudio lost its engine: {info['error']}")
        self._tick += 1
        self._over = bool(over)
        return self._show(obs, float(reward), info)

    def _call(self, name: str, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            raise GameCrashed(f"MineStudio's {name} failed: {_said(error)}") from error

    def _show(self, obs: Mapping[str, Any], reward: float, info: Mapping[str, Any]) -> Frame:
        counts = {key: self._since(key, info) for key in _COUNTED}
        deaths = counts["custom"].get("deaths", 0)
        self._over |= deaths > 0 and not self._shape.respawn
        position = info["player_pos"]
        signals = {
            "reward": reward,
            "health": info.get("health", 0.0),
            "food": info.get("food_level", 0.0),
            **{key: position[key] for key in ("x", "y", "z", "pitch", "yaw")},
            "deaths": deaths,
            **{key: sum(counts[name].values()) for key, name in _SUMS.items()},
        }
        details = {key: value for key, value in info.items() if key not in _LEFT_OUT}
        self._frame = Frame(
            {RGB: np.ascontiguousarray(obs["image"])[None]},
            {key: np.array([signals[key]], spec.dtype) for key, spec in SIGNALS.items()},
            np.array([self._over]),
            np.zeros(1, np.bool_),
            np.array([self._tick], np.int64),
            [{**details, **counts}],
        )
        return self._frame

    def _since(self, key: str, info: Mapping[str, Any]) -> dict[str, int]:
        before = self._counts.get(key, {})
        now = _counts(info.get(key))
        return {name: n - before.get(name, 0) for name, n in now.items() if n != before.get(name)}

    def close(self) -> None:
        """Ends the simulator and its engine. Idempotent."""
        sim, self._sim = self._sim, None
        # MineStudio takes seconds for it. The host ends all that a process of a game has started.
        if sim is not None and not probing.supervised:
            with contextlib.suppress(Exception):
                sim.close()


def _counts(value: Any) -> dict[str, int]:
    """Returns the statistics that are not 0; some are a number without a name."""
    if not isinstance(value, Mapping):
        value = {} if value is None else {"total": value}
    found = {str(name): int(np.asarray(n)) for name, n in value.items()}
    return {name: n for name, n in found.items() if n}


def _plain(value: Any) -> Any:
    """Returns a value of the options with plain lists and mappings, as MineStudio expects."""
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[-_SHOWN:]}"
