"""EnvPool's games as a bridge: Atari, MiniGrid, Procgen, Craftax, MuJoCo, ViZDoom and others."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bridges.gymnasium.columns import rows_of
from bridges.gymnasium.envpool_spaces import describe, space_of
from bridges.gymnasium.instance import REWARD, SEED, GymnasiumInstance
from bridges.gymnasium.making import REWARD_SPEC, check_seeds, seed_space
from rollout.api import (
    ACTION,
    BridgeSpec,
    Columns,
    ColumnSpec,
    Deadlines,
    Environment,
    FlatSpace,
    Instance,
    Resources,
    Start,
    environment_folder,
    flatten_space,
    option,
    probing,
)
from rollout.errors import (
    ConfigError,
    GameCrashed,
    GameStartError,
    SpaceError,
    UnknownNameError,
    raise_signal,
)

NAME = "envpool"
SEEDING = ("episode", "slot")
MAX_WIDTH = 1024

_REQUIREMENTS = Path(__file__).with_name("envpool_requirements.txt")
_DESCRIBE_S = 120.0
_LARGEST = 2**31  # seeds of EnvPool are below this
_OURS = {"num_envs", "batch_size", "env_type", "seed", "env_seed", "gym_reset_return_info"}
_LEVELS = {"num_levels", "start_level"}
_TAKEN = "info/"


@dataclass(frozen=True)
class EnvpoolBridge:
    """Hosts games of EnvPool, in an interpreter of their own; ``gamut env make envpool`` makes it.

    EnvPool seeds a game only when it makes it. With ``seeding=episode`` a slot makes its game
    again for every episode, from the seed in the state: episodes are reproducible. With
    ``seeding=slot`` all slots are one batch, whose random numbers run on from episode to episode:
    there is one state, and episodes are not reproducible. EnvPool's autoreset never shows: the last
    frame of an episode is its own, and the next one begins at the reset.

    In games with levels, as Procgen, the seed of a state is the level (``start_level=seed,
    num_levels=1``).

    Every number in EnvPool's info is a signal under its name, e.g. ``lives`` or
    ``Achievements/eat_cow``; one with the name ``reward`` is ``info/reward``.
    """

    id: str = option("Pong-v5", "EnvPool id, e.g. Pong-v5, CoinrunEasy-v0, MiniGrid-DoorKey-5x5-v0")
    kwargs: Mapping[str, Any] = option(dict, "options of the game for envpool.make")
    seeding: str = option(
        "episode",
        "episode: a game is made again for every episode, which its seed decides; slot: one batch, "
        "faster for small games, in which no episode can be repeated",
        choices=SEEDING,
    )
    seeds: int = option(2**31, "number of states: the seeds 0 to seeds - 1", unit="seeds")

    def __post_init__(self) -> None:
        if not isinstance(self.kwargs, Mapping):
            raise ConfigError(f"kwargs must be a mapping of names to values, got {self.kwargs!r}")
        check_seeds(self.seeds)
        if self.seeding not in SEEDING:
            raise ConfigError(f"seeding must be one of {', '.join(SEEDING)}, got {self.seeding!r}")
        episode = self.seeding == "episode"
        taken = sorted({*_OURS, *(["num_threads"] if episode else [])} & set(self.kwargs))
        if taken:
            raise ConfigError(f"kwargs: {', '.join(taken)} follow from width and states; drop them")
        levels = {name: value for name, value in self.kwargs.items() if name in _LEVELS}
        if episode and levels:
            raise ConfigError(
                f"kwargs: {', '.join(sorted(levels))}: every state is a level; choose levels by "
                f"the state set, e.g. state_set.size=200, or set seeding=slot"
            )
        for name, value in levels.items():
            if type(value) is not int or not 0 <= value < _LARGEST:
                raise ConfigError(f"kwargs.{name} must be an integer from 0, got {value!r}")

    @property
    def environment(self) -> Environment:
        """How its interpreter is made; see ``rollout.api.HasEnvironment``."""
        return Environment(NAME, _REQUIREMENTS, "3.12", modules=(NAME,))

    @property
    def spec(self) -> BridgeSpec:
        """Returns what is known before launch; asks EnvPool, once per process, without a game.

        Raises:
            UnknownNameError: there is no such id.
            ConfigError: EnvPool is missing, or the game does not accept the ``kwargs``.
            SpaceError: its spaces cannot be stored in columns.
        """
        seen = _seen(self.id, json.dumps(dict(self.kwargs), sort_keys=True))
        observation, action = _spaces(self.id, seen)
        episode = self.seeding == "episode"
        doc = "with which the game is made" if episode else "all starts: they cannot be chosen"
        return BridgeSpec(
            name=self.id,
            version=f"1/{NAME} {seen['version']}",
            observation_space=observation.columns,
            action_space=action.columns,
            state_space=seed_space(self.seeds if episode else 1, doc),
            signals={REWARD: REWARD_SPEC, **_signals(seen)},
            max_width=MAX_WIDTH,
            default_width=16,
            reproducible=episode,
            uses_seed=not episode,
            process="subprocess",
            deadlines=Deadlines(start_s=120.0, reset_s=300.0, step_s=30.0),
            resources=Resources(memory_mb=1000),
            original_observation_space=observation.original,
            original_action_space=action.original,
        )

    def launch(
        self, workdir: Path, ports: Sequence[int], *, width: int, timeout_s: float
    ) -> Instance:
        """Makes the slots, whose games begin at their reset; see ``rollout.api.Bridge``.

        A process of its own works in ``workdir`` from here on: ViZDoom writes into the working
        directory.

        Raises:
            GameStartError: EnvPool is missing in this interpreter.
        """
        del ports, timeout_s  # the host has a deadline of its own
        self.spec.require_width(width)
        if importlib.util.find_spec(NAME) is None:
            raise GameStartError(
                f"EnvPool cannot be imported here; say `gamut env make {NAME}`, and leave "
                f"host.isolation alone"
            )
        seen = _seen(self.id, json.dumps(dict(self.kwargs), sort_keys=True))
        levels, columns = set(seen["config"]) >= _LEVELS, _signals(seen)
        facts = _Facts({name: np.zeros(width, spec.dtype) for name, spec in columns.items()})
        kwargs = {name: _absolute(name, value) for name, value in self.kwargs.items()}
        if probing.supervised:
            os.chdir(workdir)
        bridge = replace(self, kwargs=kwargs)
        spaces = _spaces(self.id, seen)
        return EnvpoolInstance(bridge, *spaces, facts=facts, width=width, levels=levels)


class EnvpoolInstance(GymnasiumInstance):
    """Pools of EnvPool: one for all slots, or one for each; see ``EnvpoolBridge``.

    Args:
        bridge: the options.
        observation: the observation space of one game.
        action: likewise.
        facts: the signals from EnvPool's info.
        width: number of slots.
        levels: whether the game has levels.
    """

    def __init__(
        self,
        bridge: EnvpoolBridge,
        observation: FlatSpace,
        action: FlatSpace,
        *,
        facts: _Facts,
        width: int,
        levels: bool,
    ) -> None:
        super().__init__(
            bridge.id, [], observation, action, facts=facts, check_bounds=False, width=width
        )
        self._bridge, self._levels = bridge, levels
        self._batch = bridge.seeding == "slot"
        self._pools: list[Any] = [None] * (1 if self._batch else width)

    def close(self) -> None:
        """Ends every game. Idempotent; never raises."""
        super().close()
        self._pools = [None] * len(self._pools)

    def _beginning(self, start: Start) -> dict[str, Any]:
        return {**super()._beginning(start), "noise": start.seed}

    def _begin(
        self,
        rows: Sequence[int],
        begins: Sequence[dict[str, Any]],
        deadline: float,
        timeout_s: float,
    ) -> None:
        if not rows:
            return
        try:
            if not self._batch:
                # Making a game takes up to a second, of which the most is outside of Python.
                with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
                    made = list(threads.map(self._made, [begin[SEED] for begin in begins]))
                for row, pool in zip(rows, made, strict=True):
                    self._pools[row] = pool
                    pool.async_reset()
                for row in rows:
                    self._write_rows(self._pools[row].recv(reset=True), [row])
            else:
                pool = self._pools[0]
                if pool is None:
                    pool = self._made(begins[0]["noise"] % (_LARGEST - MAX_WIDTH))
                    self._pools[0] = pool
                    pool.reset()  # EnvPool waits forever after a first reset of some slots
                self._write_rows(pool.reset(np.array(rows, np.int32)), rows)
        except Exception as error:
            raise self._failed("reset", error) from error
        self._reward[rows] = 0.0

    def _made(self, seed: int) -> Any:
        import envpool  # noqa: PLC0415 - in the interpreter of the game only

        bridge = self._bridge
        options = {**bridge.kwargs, "env_type": "gymnasium"}
        if self._batch:
            return envpool.make(bridge.id, num_envs=self._width, seed=seed, **options)
        if self._levels:
            options |= {"start_level": seed, "num_levels": 1}
        return envpool.make(bridge.id, num_envs=1, num_threads=1, env_seed=[seed], **options)

    def _play(self, actions: Columns, live: Sequence[int]) -> bool:
        values = self._reader.read_batch(actions, live)
        parts = (
            [(self._pools[0], list(live))]
            if self._batch
            else [(self._pools[row], [row]) for row in live]
        )
        try:
            for pool, rows in parts:
                chosen = _rows(values, rows)
                pool.send(chosen, np.array(rows if self._batch else [0], np.int32))
            ends = [self._receive(pool, rows) for pool, rows in parts]
        except Exception as error:
            raise self._failed("step", error) from error
        return any(ends)

    def _receive(self, pool: Any, rows: Sequence[int]) -> bool:
        shown, reward, over, cut, info = pool.recv()
        at = self._write_rows((shown, info), rows)
        many, frame = len(rows), self._frame
        self._reward[at] = rows_of(reward, "reward", many)
        over = rows_of(over, "terminated", many)
        cut = rows_of(cut, "truncated", many)
        frame.game_over[at], frame.game_truncated[at] = over, cut
        return bool(over.any() or cut.any())

    def _write_rows(self, answer: tuple[Any, Any], rows: Sequence[int]) -> Any:
        """Writes what is shown and told; returns the slots of the rows, in EnvPool's order."""
        shown, info = answer
        at: Any = info["env_id"] if self._batch else list(rows)
        self._shown.write_rows(shown, at)
        if self._facts is not None:
            self._facts(info, at)
        return at

    def _failed(self, phase: str, error: Exception) -> GameCrashed:
        raise_signal(error)
        kind = "" if isinstance(error, GameCrashed) else f"{type(error).__name__}: "
        return GameCrashed(f"{self._name}: {phase} in EnvPool failed: {kind}{error}")


class _Facts:
    """The numbers in EnvPool's info, as signals."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns

    def write(self, info: Any, row: Any, /) -> None:
        """Copies the numbers of some games into their rows."""
        for name, column in self.columns.items():
            column[row] = info[name.removeprefix(_TAKEN)]


def _signals(seen: Mapping[str, Any]) -> dict[str, ColumnSpec]:
    return {
        _TAKEN + name if name == REWARD else name: ColumnSpec(dtype, doc="from EnvPool's info")
        for name, dtype in seen["info"].items()
    }


def _absolute(name: str, value: Any) -> Any:
    """Returns a path to a file that is in the working directory as one that is valid elsewhere."""
    if not name.endswith("_path") or not isinstance(value, str):
        return value
    path = Path(value)
    return str(path.absolute()) if path.exists() else value


def _rows(values: Any, rows: Sequence[int]) -> Any:
    if isinstance(values, Mapping):
        return {key: _rows(part, rows) for key, part in values.items()}
    return values[rows]


def _spaces(id_: str, seen: Mapping[str, Any]) -> tuple[FlatSpace, FlatSpace]:
    try:
        observation, action = space_of(seen["observation"]), space_of(seen["action"])
    except ValueError as error:
        raise SpaceError(f"{id_} has the space {error}, which cannot be stored") from error
    return flatten_space(observation), flatten_space(action, ACTION)


@functools.cache
def _seen(id_: str, kwargs: str) -> dict[str, Any]:
    """Returns what ``envpool_spaces.describe`` says, here or in EnvPool's own interpreter."""
    here = importlib.util.find_spec(NAME) is not None
    seen = describe(id_, json.loads(kwargs)) if here else _asked(id_, kwargs)
    if "unknown" in seen:
        kind, name = seen["unknown"]
        raise UnknownNameError(kind, name, seen["valid"])
    if "error" in seen:
        raise ConfigError(f"{id_} cannot be made with kwargs {kwargs}: {seen['error']}")
    if int(seen["config"].get("max_num_players", 1)) > 1:
        raise ConfigError(f"{id_} has several players in a game; choose one with a single player")
    return seen


def _asked(id_: str, kwargs: str) -> dict[str, Any]:
    python = environment_folder(NAME) / "bin" / "python"
    advice = f"make it with `gamut env make {NAME}`"
    if not python.is_file():
        raise ConfigError(f"EnvPool plays in an interpreter of its own, {python}; {advice}")
    script = Path(__file__).with_name("envpool_spaces.py")
    try:
        done = subprocess.run(
            [python, "-P", script, id_, kwargs],
            capture_output=True,
            text=True,
            timeout=_DESCRIBE_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", "") or error).strip().splitlines()[-1:]
        raise ConfigError(
            f"EnvPool in {python} does not tell its spaces: {''.join(said)}; {advice}"
        ) from error
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen
