"""A pool of games behind EnvPool's interface: ``send``, ``recv``, ``async_reset``, ``step``.

::

    import rollout.interop.envpool as envpool

    envs = envpool.make("atari/pong", env_type="gymnasium", num_envs=8, batch_size=4)
    envs.async_reset()
    while True:
        obs, reward, terminated, truncated, info = envs.recv()
        envs.send(policy(obs), info["env_id"])

Each game runs in an instance of its own, and ``recv`` returns the ``batch_size`` games that replied
first. A script that imports ``envpool`` itself runs unchanged as
``python -m rollout.interop.envpool SCRIPT ARGUMENTS``.

As in EnvPool the call after the end of an episode ignores the action and resets the game, with
reward 0. If a game hangs or dies, its episode ends as truncated with ``info["lost"]``, and its next
call resets its replacement.
"""

from __future__ import annotations

import atexit
import copy
import importlib
import runpy
import sys
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np

from rollout.api import (
    Array,
    Bridge,
    Columns,
    Details,
    Frame,
    Start,
    StateSet,
    Task,
    allocate,
    check_columns,
    details_for_policies,
)
from rollout.api.fragment import End
from rollout.config import HostConfig, StateSetConfig, make_config
from rollout.errors import ConfigError, OutOfTurnError, UnknownNameError
from rollout.host.instances import Event
from rollout.host.pool import Pool
from rollout.host.processes import owned_workdir
from rollout.host.referee import NOT_FINITE, Referee
from rollout.host.supervision import exhausted
from rollout.interop.games import bridge_of
from rollout.vector_env import Draws, Order, bare, end_games, named_columns

_TYPES = ("gymnasium", "gym")
_LIVES = "lives"


class EnvPool:
    """``num_envs`` games, of which ``recv`` returns the ``batch_size`` first that are ready.

    ``info`` has, for each row of a batch: ``env_id``; ``elapsed_step`` of the episode; ``reward``
    as the evaluator gave it; ``terminated``, whether the whole episode ended, for whatever reason;
    ``lives``, 0 in games without this signal; every other signal of the game under its name;
    ``lost`` and ``reason`` where a game failed, ``dead`` where it could not be replaced; ``state``
    and ``seed`` of the episode; and ``details`` if the game has observations without a fixed shape.

    Args:
        bridge: recipe of the game.
        task: the task.
        num_envs: number of games.
        batch_size: rows that ``recv`` returns; if None, all, in the order in which they were sent.
        states: the states from which episodes start, see ``rollout.vector_env.Draws``.
        order: how they are drawn.
        seed: seed of the draws.
        env_type: ``gymnasium``, or ``gym`` for spaces of the old package, and for its interface
            of four values if its version is below 0.26.
        episodic_life: whether a lost life is shown as an end of an episode; the game goes on.
        reward_clip: whether rewards are -1, 0 or 1, by their sign.
        host: options of hosting.

    Raises:
        ConfigError: an option is invalid, or ``gym`` is not installed.
    """

    def __init__(
        self,
        bridge: Bridge,
        task: Task,
        *,
        num_envs: int = 1,
        batch_size: int | None = None,
        states: StateSet | None = None,
        order: Order = "random",
        seed: int = 0,
        env_type: str = "gymnasium",
        episodic_life: bool = False,
        reward_clip: bool = False,
        host: HostConfig | None = None,
    ) -> None:
        size = batch_size or num_envs
        if not 1 <= size <= num_envs:
            raise ConfigError(f"batch_size: expected 1 to num_envs={num_envs}, got {batch_size}")
        if env_type not in _TYPES:
            raise UnknownNameError("env_type", env_type, _TYPES)
        spec = bridge.spec
        task.check(spec)
        module, self._old = _spaces_of(env_type)
        self.observation_space = _converted(module, bare(spec.observation_space))
        self.action_space = _converted(module, bare(spec.action_space))
        self.config = {"task": task.name, "num_envs": num_envs, "batch_size": size, "seed": seed}
        self.config |= {"episodic_life": episodic_life, "reward_clip": reward_clip}
        self.config["max_episode_steps"] = task.limits.steps
        self.spec = SimpleNamespace(
            id=f"{spec.name}/{task.name}",
            config=SimpleNamespace(**self.config),
            observation_space=self.observation_space,
            action_space=self.action_space,
        )
        self.all_env_ids = np.arange(num_envs, dtype=np.int32)
        self.is_async = size != num_envs
        self._size, self._life, self._clip = size, episodic_life, reward_clip
        self._draws = Draws(task, states, order)
        streams = np.random.SeedSequence(seed).spawn(num_envs)
        self._slots = [
            _Slot(Referee(task, 1), np.random.default_rng(stream), number)
            for number, stream in enumerate(streams)
        ]
        self._shown = allocate(spec.observation_space, num_envs)
        self._signals: Columns = {
            key: np.zeros((num_envs, *c.shape), c.dtype) for key, c in spec.signals.items()
        }
        self._asked: dict[int, None] = {}  # games of which a row will be returned, oldest first
        self._ready: deque[int] = deque()
        workdir = owned_workdir("gamut-envpool-")
        # A failed game is reported to the caller once, and does not come back.
        host = (host or HostConfig()).model_copy(update={"quarantine_s": None})
        self._pool = Pool(bridge, workdir, num_envs, 1, host)
        self._ending = weakref.finalize(self, end_games, self._pool, workdir)
        self._ending.atexit = False
        atexit.register(self._ending)  # see rollout.vector_env.RemoteVectorEnv
        self._pool.launch()
        self._launching = set(range(num_envs))

    def __len__(self) -> int:
        """Returns the number of games."""
        return len(self._slots)

    def async_reset(self) -> None:
        """Begins an episode in every game; ``recv`` returns their first observations.

        Raises:
            OutOfTurnError: a game has not replied yet.
        """
        self._ask(self.all_env_ids, None)

    def reset(self, env_id: Sequence[int] | Array | None = None) -> Any:
        """Begins an episode in some games, or all; returns what ``recv`` does after a reset.

        Raises:
            OutOfTurnError: a game has not replied yet.
        """
        self._ask(self.all_env_ids if env_id is None else env_id, None)
        return self.recv(reset=True)

    def step(self, action: Any, env_id: Sequence[int] | Array | None = None) -> Any:
        """Plays an action in some games, or all, and returns what ``recv`` does."""
        self.send(action, env_id)
        return self.recv()

    def send(self, action: Any, env_id: Sequence[int] | Array | None = None) -> None:
        """Sends an action to some games, or all; a row of each will be received.

        Args:
            action: a row for each game; with several columns a dict of them.
            env_id: numbers of the games; those in the dict if None.

        Raises:
            OutOfTurnError: a game has not replied yet.
            SpaceError: an action is outside of its space.
        """
        if isinstance(action, dict):
            action = {k: v for k, v in action.items() if k != "players.env_id"}
            given = action.pop("env_id", None)
            env_id = given if env_id is None else env_id
        ids = self.all_env_ids if env_id is None else env_id
        columns = named_columns(self._pool.spec.action_space, action)
        check_columns(self._pool.spec.action_space, columns, (len(ids),))
        self._ask(ids, columns)

    def recv(self, reset: bool = False) -> Any:
        """Waits for the next batch and returns it.

        There are fewer rows if fewer are awaited.

        Args:
            reset: whether only the observations are wanted, with ``info`` except in the old
                interface.

        Returns:
            Observations, rewards, terminated, truncated and info; in the old interface
            observations, rewards, done and info.

        Raises:
            OutOfTurnError: nothing was sent.
            BudgetExhausted: every game is dead and none may be replaced.
        """
        if not self._asked:
            raise OutOfTurnError("recv: no game has been sent anything; call send or async_reset")
        size = min(self._size, len(self._asked))
        while len(self._ready) < size:
            for event in self._pool.recv():
                self._handle(event)
        if all(slot.dead for slot in self._slots):
            raise exhausted(f"{len(self)} games", self._pool.host, self._slots[-1].reason)
        ids = [self._ready.popleft() for _ in range(size)]
        if not self.is_async:
            ids = [number for number in self._asked if number in set(ids)]
        for number in ids:
            del self._asked[number]
        return self._batch(np.array(ids, np.int32), reset)

    def close(self) -> None:
        """Ends every game. Idempotent."""
        atexit.unregister(self._ending)
        self._ending()

    def _ask(self, env_id: Sequence[int] | Array, actions: Columns | None) -> None:
        """Steps some games; resets those that are due, and all without actions."""
        ids = [int(number) for number in np.ravel(np.asarray(env_id))]
        for number in ids:
            if not 0 <= number < len(self):
                raise ConfigError(f"env_id: expected 0 to {len(self) - 1}, got {number}")
            if number in self._asked or ids.count(number) > 1:
                raise OutOfTurnError(f"game {number} has not replied yet; call recv first")
        for row, number in enumerate(ids):
            slot = self._slots[number]
            self._asked[number] = None
            if slot.dead:
                self._ready.append(number)
            elif slot.due or actions is None:
                self._reset(number, slot)
            else:
                slot.actions = {key: array[row : row + 1] for key, array in actions.items()}
                self._pool.send(number, slot.actions)

    def _reset(self, number: int, slot: _Slot) -> None:
        if slot.referee.active[0]:
            slot.referee.finish(0, "truncated", 0)  # cut by the caller: not a result
        slot.start = self._draws.start(slot.rng, slot.episode)
        slot.episode += len(self)
        if number not in self._launching:
            self._pool.reset(number, [0], [slot.start])

    def _handle(self, event: Event) -> None:
        number, slot = event.instance, self._slots[event.instance]
        if event.kind == "launched":
            self._launching.discard(number)
            if slot.start is not None:
                self._pool.reset(number, [0], [slot.start])
            return
        if event.kind == "failed":
            if event.replaced:
                self._launching.add(number)
            if event.replaced and slot.start is not None:
                return  # it is reset as soon as its replacement is launched
            slot.lose(event.reason, dead=not event.replaced)
        else:
            self._show(number, slot, event.frame)
            if event.kind == "step":
                slot.judge(event.frame, self._lives(number))
                if slot.due:
                    self._pool.played(number, 1)
            else:
                slot.begin(event.frame, self._lives(number))
        if number in self._asked:  # others may fail while they are launched
            self._ready.append(number)

    def _show(self, number: int, slot: _Slot, frame: Frame | None) -> None:
        assert frame is not None
        for key, array in self._shown.items():
            array[number] = frame.observations[key][0]
        for key, array in self._signals.items():
            array[number] = frame.signals[key][0]
        slot.details = None if frame.details is None else details_for_policies(frame.details[0])

    def _lives(self, number: int) -> int:
        lives = self._signals.get(_LIVES)
        return 0 if lives is None or lives.ndim > 1 else int(lives[number])

    def _batch(self, ids: Array, reset: bool) -> Any:
        slots = [self._slots[number] for number in ids]
        shown = bare({key: array[ids] for key, array in self._shown.items()})
        if reset and self._old:
            return shown
        info = self._info(ids, slots)
        if reset:
            return shown, info
        rewards = np.sign(info["reward"]) if self._clip else info["reward"].copy()
        cut = np.array([slot.truncated for slot in slots])
        over = np.array([slot.terminated or (self._life and slot.life_lost) for slot in slots])
        if self._old:
            return shown, rewards, over | cut, info | {"TimeLimit.truncated": cut}
        return shown, rewards, over, cut, info

    def _info(self, ids: Array, slots: list[_Slot]) -> dict[str, Any]:
        info: dict[str, Any] = {key: array[ids] for key, array in self._signals.items()}
        info |= {"env_id": ids, "players": {"env_id": ids}}
        info["lives"] = np.array([slot.lives for slot in slots], np.int32)
        info["reward"] = np.array([slot.reward for slot in slots], np.float64)
        info["terminated"] = np.array([slot.terminated or slot.truncated for slot in slots])
        info["elapsed_step"] = np.array([slot.steps for slot in slots], np.int32)
        info["lost"] = np.array([slot.lost for slot in slots])
        info["dead"] = np.array([slot.dead for slot in slots])
        info["reason"] = np.array([slot.reason for slot in slots], object)
        info["state"] = np.array([slot.state for slot in slots], object)
        info["seed"] = np.array([slot.seed for slot in slots], np.int64)
        if any(slot.details is not None for slot in slots):
            info["details"] = np.array([*(slot.details for slot in slots), None], object)[:-1]
        return info


class _Slot:
    """A game and its last row; see ``EnvPool`` for what the row means.

    Args:
        referee: judges its episodes.
        rng: draws their starts.
        episode: number of its next episode.
    """

    def __init__(self, referee: Referee, rng: np.random.Generator, episode: int) -> None:
        self.referee, self.rng, self.episode = referee, rng, episode
        self.due = True  # whether the next call resets it
        self.start: Start | None = None  # of a reset that is awaited
        self.actions: Columns = {}  # of a step that is awaited
        self.details: Details | None = None
        self.reward, self.terminated, self.truncated = 0.0, False, False
        self.life_lost, self.lives, self.steps = False, 0, 0
        self.state, self.seed = "", 0
        self.lost, self.dead, self.reason = False, False, ""

    def begin(self, frame: Frame | None, lives: int) -> None:
        """Begins the episode of ``start`` with a first frame."""
        assert frame is not None
        assert self.start is not None
        self.referee.reset([0], [self.start], frame)
        self.state, self.seed = str(self.start.state.index), self.start.seed
        self.start, self.due, self.lives, self.steps = None, False, lives, 0
        self.reward, self.lost, self.reason = 0.0, False, ""
        self.terminated = self.truncated = self.life_lost = False

    def judge(self, frame: Frame | None, lives: int) -> None:
        """Judges the step of ``actions``."""
        assert frame is not None
        ruling = self.referee.judge(self.actions, frame)
        if ruling.broken:
            self.lose(NOT_FINITE, dead=False)
            return
        self.steps = int(self.referee.steps[0])
        self.reward = float(ruling.verdict.reward[0])
        self.terminated, self.truncated = bool(ruling.terminated[0]), bool(ruling.truncated[0])
        self.life_lost, self.lives = lives < self.lives, lives
        if ruling.ended:
            end: End = "terminated" if self.terminated else "truncated"
            self.referee.finish(0, end, int(ruling.verdict.outcome[0]))
            self.due = True

    def lose(self, reason: str, *, dead: bool) -> None:
        """Ends the episode, if there is one, without a result."""
        if self.referee.active[0]:
            self.referee.finish(0, "lost", 0)
        self.due, self.start = True, None
        self.reward, self.terminated, self.truncated, self.life_lost = 0.0, False, True, False
        self.lost, self.dead, self.reason = True, dead, reason


def make(
    task_id: str,
    env_type: str = "gymnasium",
    *,
    bridge: Mapping[str, Any] | None = None,
    state_set: Mapping[str, Any] | None = None,
    host: Mapping[str, Any] | None = None,
    **options: Any,
) -> EnvPool:
    """Returns a pool by the names of a bridge and a task.

    Args:
        task_id: ``BRIDGE/TASK``, or ``BRIDGE`` for the game's own reward.
        env_type: see ``EnvPool``.
        bridge: options of the bridge.
        state_set: the states to start from, as the key ``state_set`` of a configuration; every
            training state if None.
        host: as the key ``host``.
        options: arguments of ``EnvPool``.

    Raises:
        InputError: there is no such bridge or task, or an option is invalid.
    """
    name, _, task_name = task_id.partition("/")
    recipe, task = bridge_of({"name": name, **(bridge or {})}, task_name)
    states = None
    if state_set is not None:
        states = make_config(StateSetConfig, state_set).take(task.state_space)
    hosting = None if host is None else make_config(HostConfig, host)
    return EnvPool(recipe, task, env_type=env_type, states=states, host=hosting, **options)


def make_gymnasium(task_id: str, **options: Any) -> EnvPool:
    """Returns ``make(task_id, "gymnasium", ...)``."""
    return make(task_id, "gymnasium", **options)


def make_gym(task_id: str, **options: Any) -> EnvPool:
    """Returns ``make(task_id, "gym", ...)``."""
    return make(task_id, "gym", **options)


def _spaces_of(env_type: str) -> tuple[Any, bool]:
    """Returns the module of spaces, and whether the interface is the old one of four values."""
    if env_type == "gymnasium":
        return gymnasium.spaces, False
    try:
        gym = importlib.import_module("gym")
    except ImportError as error:
        raise ConfigError(
            'env_type="gym" needs the package gym; install it, or use env_type="gymnasium"'
        ) from error
    return gym.spaces, tuple(map(int, gym.__version__.split(".")[:2])) < (0, 26)


def _converted(to: Any, space: Any) -> Any:
    """Returns a flat space, or a mapping of them, as the same space of another module."""
    if to is gymnasium.spaces:
        return copy.deepcopy(space)  # seeding or sampling it must not affect others
    if isinstance(space, Mapping):
        return to.Dict({key: _converted(to, leaf) for key, leaf in space.items()})
    if isinstance(space, gymnasium.spaces.Discrete):
        return to.Discrete(int(space.n))
    if isinstance(space, gymnasium.spaces.MultiDiscrete):
        return to.MultiDiscrete(space.nvec)
    if isinstance(space, gymnasium.spaces.MultiBinary):
        return to.MultiBinary(space.n)
    if isinstance(space, gymnasium.spaces.Box):
        return to.Box(space.low, space.high, space.shape, space.low.dtype.type)
    raise ConfigError(f'env_type="gym" has no {space}; use env_type="gymnasium"')


def main(arguments: Sequence[str]) -> None:
    """Runs a script in which ``import envpool`` gives this module."""
    if not arguments:
        raise SystemExit("usage: python -m rollout.interop.envpool SCRIPT [ARGUMENTS]")
    sys.modules["envpool"] = importlib.import_module("rollout.interop.envpool")
    sys.argv = list(arguments)
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
