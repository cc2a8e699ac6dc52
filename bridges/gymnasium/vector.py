"""Vector environments of Gymnasium ids, as instances whose slots have seeds of their own.

An id may have a ``vector_entry_point``, which steps all its games in a few calls. It is played
instead of single games if each slot can begin the episode of any seed, and if these are the
episodes of the single game: ``why_not`` plays both side by side. So nothing but the speed depends
on which one is played.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv
from gymnasium.envs.registration import EnvSpec, load_env_creator
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode, VectorEnv

from bridges.gymnasium.columns import WrongRows, rows_of
from bridges.gymnasium.instance import SEED, GymnasiumInstance, close_games
from bridges.gymnasium.masks import Source, warn_of_info, with_masks
from rollout.api import MASK, Columns, FlatSpace, Frame, Instance, Start, State, sample
from rollout.api.masks import draw_legal
from rollout.errors import ConfigError, GameCrashed, GamutError, raise_signal

FEWEST = 16
"""Slots of an instance from which on a vector environment is faster: the calls of NumPy in one step
of CartPole take as long as about so many steps of single games."""

_TRIAL_WIDTH, _TRIAL_STEPS, _CUT = 3, 64, 5
_TRIAL_S = 60.0

Seat = Callable[[Any, Sequence[int], Sequence[int]], Any]
"""Begins the episodes of seeds in some rows of a vector environment; returns a batch of
observations, in which these rows are the first observations."""


class VectorInstance(GymnasiumInstance):
    """A vector environment, stepped as a whole; see ``GymnasiumInstance``.

    Args:
        name: the id.
        env: the environment, which belongs to the instance.
        observation: the observation space of one game.
        action: likewise.
        width: number of slots it was made with.
        limit: steps after which its registration truncates an episode; None for none.
        check_bounds: as for single games.

    Raises:
        ConfigError: it has another width; it is closed.
    """

    def __init__(
        self,
        name: str,
        env: VectorEnv[Any, Any, Any],
        observation: FlatSpace,
        action: FlatSpace,
        *,
        width: int,
        limit: int | None,
        check_bounds: bool = True,
    ) -> None:
        super().__init__(name, [env], observation, action, check_bounds=check_bounds, width=width)
        self._env, self._limit = env, limit
        self._seat = _seat_of(env) or _seat_masked
        self._ended = np.zeros(width, np.bool_)  # episodes of the environment, not yet reset
        try:
            if env.num_envs != width:
                raise WrongRows(f"it has num_envs = {env.num_envs}")
            shown, info = env.reset(seed=0)
            self._shown.write_batch(shown, None)
            warn_of_info(name, info, self._shown.columns)
        except WrongRows as error:
            self.close()
            raise ConfigError(
                f"{name}: its vector environment {type(env).__name__} was made with {width} games "
                f"and returns another number of them ({error}); correct it, or register the id "
                f"without vector_entry_point"
            ) from error
        for column in self._shown.columns.values():
            column[...] = 0

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
            shown = self._seat(self._env, rows, [begin[SEED] for begin in begins])
            self._shown.write_batch(shown, rows)
        except Exception as error:
            raise self._failed("reset", error) from error
        self._reward[rows] = 0.0
        self._ended[rows] = False

    def _play(self, actions: Columns, live: Sequence[int]) -> bool:
        values = self._reader.read_batch(actions, live)
        width, frame = self._width, self._frame
        rows: Any = slice(None) if len(live) == width else live
        try:
            if self._ended.any():  # idle slots: without a reset, some environments refuse to step
                again = np.flatnonzero(self._ended).tolist()
                self._seat(self._env, again, [0] * len(again))
            shown, reward, over, cut, _ = self._env.step(values)
            self._shown.write_batch(shown, None if len(live) == width else live)
            # A sum with zero is never -0.0, which CartPole's batch has and its single game has not.
            self._reward[rows] = (rows_of(reward, "reward", width) + 0.0)[rows]
            over = rows_of(over, "terminated", width).astype(np.bool_)
            cut = rows_of(cut, "truncated", width).astype(np.bool_)
        except Exception as error:
            raise self._failed("step", error) from error
        np.logical_or(over, cut, self._ended)
        if self._limit is not None:
            cut |= self._tick >= self._limit - 1  # the tick of this step follows
        frame.game_over[rows], frame.game_truncated[rows] = over[rows], cut[rows]
        return bool((over | cut)[rows].any())

    def _failed(self, phase: str, error: Exception) -> GameCrashed:
        if isinstance(error, GameCrashed):
            return type(error)(f"{self._name}: {phase} of its vector environment: {error}")
        text = f"{phase} of its vector environment failed: {type(error).__name__}: {error}"
        return GameCrashed(f"{self._name}: {text}")


def limit_of(spec: EnvSpec, kwargs: Mapping[str, Any]) -> int | None:
    """Returns the steps after which ``gymnasium.make`` truncates an episode; None for none."""
    limit = kwargs.get("max_episode_steps", spec.max_episode_steps)
    return None if limit is None or limit < 0 else int(limit)


def make_vector(
    spec: EnvSpec, kwargs: Mapping[str, Any], width: int, masks: Source = "none"
) -> VectorEnv[Any, Any, Any]:
    """Returns a new vector environment of ``width`` games, without autoreset if it can do so.

    ``masks`` says where they have the masks of their actions.

    Raises:
        Exception: of any kind; its constructor is not ours.
    """
    point: Any = spec.vector_entry_point
    accepts = inspect.signature(load_env_creator(point) if isinstance(point, str) else point)
    options = dict(kwargs)
    if "autoreset_mode" in accepts.parameters:
        options.setdefault("autoreset_mode", AutoresetMode.DISABLED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of metadata without a mode: then it is not used
        made: VectorEnv[Any, Any, Any] = gymnasium.make_vec(
            spec, num_envs=width, vectorization_mode="vector_entry_point", **options
        )
    return with_masks(made, masks)  # type: ignore[no-any-return] # or a wrapper of it


def why_not(
    spec: EnvSpec,
    kwargs: Mapping[str, Any],
    env: Any,
    observation: FlatSpace,
    action: FlatSpace,
    masks: Source,
) -> str:
    """Returns why the vector environment of an id is not played; empty if it is.

    Args:
        spec: the registration of the id.
        kwargs: keyword arguments of the game.
        env: the single game.
        observation: its observation space.
        action: likewise.
        masks: where the game has the masks of its actions.

    Raises:
        ConfigError: the vector environment has another width than it was made with.
    """
    if spec.vector_entry_point is None:
        return "it has none"
    if observation.loose or any(leaf.dtype == object for leaf in action.columns.values()):
        return "its spaces have parts without a fixed shape"
    try:
        vector = make_vector(spec, kwargs, _TRIAL_WIDTH, masks)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a constructor may raise anything
        raise_signal(error)
        return f"it cannot be made: {type(error).__name__}: {error}"
    try:
        return _compare(spec, kwargs, env, vector, observation, action)
    finally:
        close_games([vector])


def _compare(
    spec: EnvSpec,
    kwargs: Mapping[str, Any],
    env: Any,
    vector: VectorEnv[Any, Any, Any],
    observation: FlatSpace,
    action: FlatSpace,
) -> str:
    spaces = vector.single_observation_space, vector.single_action_space
    if spaces != (env.observation_space, env.action_space):
        return "its spaces are not those of the single game"
    if _seat_of(vector) is None:
        return "its autoreset cannot be disabled, and so no slot can begin at a chosen time"
    many = VectorInstance(
        spec.id,
        *(vector, observation, action),
        width=_TRIAL_WIDTH,
        limit=limit_of(spec, kwargs),
        check_bounds=False,
    )
    one = GymnasiumInstance(spec.id, [env], observation, action, check_bounds=False)
    seeds = range(_TRIAL_WIDTH)
    try:
        alone = [frames for seed in seeds for frames in _play(one, action, [seed])]
        if alone != _play(many, action, seeds):
            return "its episodes are not those of the single game"
    except WrongRows as error:
        raise ConfigError(
            f"{error}; correct it, or register the id without vector_entry_point"
        ) from error
    except GamutError as error:
        return f"it fails: {error}"
    return ""


def _play(instance: Instance, action: FlatSpace, seeds: Sequence[int]) -> list[list[bytes]]:
    """Returns the frames of slots that play episodes of seeds and actions of their own."""
    generators = [np.random.default_rng(seed) for seed in seeds]
    shown: list[list[bytes]] = [[] for _ in seeds]
    latest: dict[int, Frame] = {}  # by slot
    again = list(range(len(seeds)))
    for step in range(_TRIAL_STEPS):
        if again:
            begun = [seeds[slot] + 1000 * step for slot in again]
            starts = [Start(State(seed, {SEED: seed}), seed=0) for seed in begun]
            first = instance.reset(again, starts, timeout_s=_TRIAL_S)
            latest |= {slot: first.take([number]) for number, slot in enumerate(again)}
            for slot in again:
                shown[slot].append(_bytes(latest[slot]))
        chosen = [_drawn(action, latest[n], generator) for n, generator in enumerate(generators)]
        actions = {key: np.concatenate([each[key] for each in chosen]) for key in chosen[0]}
        frame = instance.step(actions, timeout_s=_TRIAL_S)
        latest = {slot: frame.take([slot]) for slot in range(len(seeds))}
        for slot, own in latest.items():
            shown[slot].append(_bytes(own))
        over = frame.game_over | frame.game_truncated
        # Some episodes are cut while others play on, as the host may do.
        again = [n for n, seed in enumerate(seeds) if over[n] or step == _CUT + seed]
    return shown


def _drawn(action: FlatSpace, frame: Frame, generator: np.random.Generator) -> Columns:
    """Returns a random action that the masks of a frame allow; games may refuse others."""
    found = sample(action.columns, 1, generator)
    for key in found:
        if (mask := frame.observations.get(MASK + key)) is not None:
            found[key] = draw_legal(action.columns[key], mask, generator)
    return found


def _bytes(frame: Frame) -> bytes:
    columns = (*frame.observations.values(), *frame.signals.values())
    ends = (frame.game_over, frame.game_truncated, frame.tick)
    return b"".join(column.tobytes() for column in (*columns, *ends))


def _seat_of(env: VectorEnv[Any, Any, Any]) -> Seat | None:
    if type(env) is CartPoleVectorEnv:
        return _seat_cartpole
    disabled = env.metadata.get("autoreset_mode") is AutoresetMode.DISABLED
    return _seat_masked if disabled else None


def _seat_masked(env: Any, rows: Sequence[int], seeds: Sequence[int]) -> Any:
    """As ``SyncVectorEnv`` does without autoreset."""
    mask, every = np.zeros(env.num_envs, np.bool_), [0] * env.num_envs
    mask[rows] = True
    for row, seed in zip(rows, seeds, strict=True):
        every[row] = seed
    return env.reset(seed=every, options={"reset_mask": mask})[0]


def _seat_cartpole(env: Any, rows: Sequence[int], seeds: Sequence[int]) -> Any:
    """As ``CartPoleEnv.reset``: the batch has one generator, so its states are written here."""
    for row, seed in zip(rows, seeds, strict=True):
        env.state[:, row] = np_random(seed)[0].uniform(env.low, env.high, 4)
    env.steps[rows] = 0
    env.prev_done[rows] = False
    return env.state.T.astype(np.float32)
