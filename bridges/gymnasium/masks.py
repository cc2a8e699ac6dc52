"""Masks of legal actions in games of Gymnasium, as observations ``mask/NAME``.

Games have three habits: a ``Dict`` observation with the key ``action_mask`` (PettingZoo),
``info["action_mask"]`` (Gymnasium's Taxi), and a method ``action_masks()`` (sb3-contrib). The
wrappers here move any of them to the observations of ``rollout.api.masks``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import create_empty_array

from rollout.api import ACTION, MASK, OBSERVATION, Columns, FlatSpace, flatten_space
from rollout.api.masks import MaskReader, mask_spaces
from rollout.errors import ConfigError, SpaceError

log = logging.getLogger(__name__)

Source: TypeAlias = Literal["auto", "observation", "method", "info", "none"]
SOURCES: tuple[Source, ...] = ("auto", "observation", "method", "info", "none")
KEY = "action_mask"
"""Key of the mask in an observation or an info."""
METHOD = "action_masks"

_warned: set[str] = set()


def source_of(env: Any, observed: spaces.Space[Any], wanted: Source) -> Source:
    """Returns where the mask of a game is; ``none`` if it has none.

    Args:
        env: the game, or a vector environment.
        observed: the observation space of one game.
        wanted: what the options of the bridge say.

    Raises:
        ConfigError: the mask is not where the options say.
    """
    shown = isinstance(observed, spaces.Dict) and KEY in observed.spaces
    called = _method_of(env) is not None
    if wanted == "auto":
        return "observation" if shown else "method" if called else "none"
    if (wanted == "observation" and not shown) or (wanted == "method" and not called):
        what = f"no observation {KEY!r}" if wanted == "observation" else f"no method {METHOD}()"
        raise ConfigError(
            f"masks={wanted}: the game has {what}; its observation space is {observed}; set it to "
            f"{' or '.join(each for each in SOURCES if each != wanted)}"
        )
    return wanted


def _method_of(env: Any) -> Any:
    if isinstance(env, gymnasium.Env):
        found = env.get_wrapper_attr(METHOD) if env.has_wrapper_attr(METHOD) else None
    else:
        found = getattr(env, METHOD, None)
    return found if callable(found) else None


def warn_of_info(name: str, info: Any, columns: Mapping[str, Any]) -> None:
    """Warns, once per game, of a mask in an info that no policy gets."""
    if not isinstance(info, Mapping) or KEY not in info or name in _warned:
        return
    if not any(key.startswith(MASK) for key in columns):
        _warned.add(name)
        log.warning(
            "%s: info[%r] looks like a mask of legal actions, and policies do not get it; set "
            "bridge.masks=info, or bridge.masks=none if it is none",
            *(name, KEY),
        )


class _Masks:
    """Adds masks to the observations of a game, or of a batch of games.

    Attributes:
        space: observation space of one game, with masks.
    """

    def __init__(
        self, env: Any, observed: spaces.Space[Any], acted: spaces.Space[Any], source: Source
    ) -> None:
        self._source, self._method = source, _method_of(env)
        action: FlatSpace = flatten_space(acted, ACTION, text_columns=True)
        self._reader, self._observed = MaskReader(action), observed
        found = mask_spaces(action.columns)
        if not found:
            raise ConfigError(
                f"masks={source}: {acted} has no action that a mask can restrict (Discrete, "
                f"MultiDiscrete or MultiBinary); set it to none"
            )
        parts = self._named(getattr(observed, "spaces", observed))
        if source == "observation":
            self._check(parts.pop(KEY))
        self.space = spaces.Dict({**parts, **{MASK + key: space for key, space in found.items()}})

    def _check(self, shown: spaces.Space[Any]) -> None:
        try:
            self._reader.read(create_empty_array(shown, n=1, fn=np.zeros), (1,))
        except SpaceError as error:
            raise SpaceError(
                f"the observation {KEY!r}, {shown}: {error}; correct the game, or set "
                f"bridge.masks=none if it is no mask"
            ) from error

    def _named(self, value: Any) -> dict[str, Any]:
        """Returns the parts of an observation by name."""
        if isinstance(self._observed, spaces.Dict):
            return {str(key): value[key] for key in self._observed.spaces}
        if isinstance(self._observed, spaces.Tuple):
            return {str(number): part for number, part in enumerate(value)}
        return {OBSERVATION: value}

    def join(
        self, shown: Any, info: Any, idle: Sequence[int] | None = None, lead: tuple[int, ...] = ()
    ) -> dict[str, Any]:
        """Returns observations with masks.

        Args:
            shown: the observations.
            info: the info that came with them.
            idle: rows of a batch that need no mask, since their episodes are over; for a single
                game not None if its episode is over.
            lead: the axis of a batch.

        Raises:
            SpaceError: there is no mask, or it has another shape.
        """
        parts = self._named(shown)
        masks = self._found(parts, info, idle, lead)
        return {**parts, **{MASK + key: column for key, column in masks.items()}}

    def _found(
        self, parts: dict[str, Any], info: Any, idle: Sequence[int] | None, lead: tuple[int, ...]
    ) -> Columns:
        over = idle is not None and (not lead or len(idle) == lead[0])
        none = {key: np.zeros((*lead, n), np.int8) for key, n in self._reader.sizes.items()}
        if self._source == "observation":
            return self._reader.read(parts.pop(KEY), lead)
        if over:
            return none
        if self._source == "method":
            found = self._reader.read(self._method(), lead)
        elif KEY in info:
            found = self._given(info[KEY], lead)
        else:
            has = ", ".join(map(str, info)) or "nothing"
            raise SpaceError(f"masks=info: the info has no {KEY!r}; it has {has}")
        given = info.get(f"_{KEY}") if self._source == "info" and lead else None
        missing = [] if given is None else np.flatnonzero(~np.asarray(given, bool)).tolist()
        if without := sorted({*missing} - {*(idle or ())}):
            raise SpaceError(f"masks=info: the info of row {without[0]} has no {KEY!r}")
        for column in found.values():
            column[list(idle or ())] = 0  # as for a single game
        return found

    def _given(self, value: Any, lead: tuple[int, ...]) -> Columns:
        """Returns the masks of an info; tuples of a batch are an array of objects."""
        if not lead or not isinstance(value, np.ndarray) or value.dtype != object:
            return self._reader.read(value, lead)
        rows = [self._reader.read(each) for each in value]  # rows without one are not restricted
        return {key: np.stack([row[key] for row in rows]) for key in self._reader.sizes}


def with_masks(env: Any, wanted: Source) -> Any:
    """Returns a game, or a vector environment, whose observations have the masks of its actions.

    The same if it has none.

    Raises:
        ConfigError: the mask is not where the options say.
        SpaceError: it has another shape than the actions.
    """
    if wanted == "none":
        return env
    many = isinstance(env, VectorEnv)
    observed = env.single_observation_space if many else env.observation_space
    source = source_of(env, observed, wanted)
    if source == "none":
        return env
    return MaskedVector(env, source) if many else MaskedGame(env, source)


class MaskedGame(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A game whose observations have masks."""

    def __init__(self, env: Any, source: Source) -> None:
        super().__init__(env)
        self._masks = _Masks(env, env.observation_space, env.action_space, source)
        self.observation_space = self._masks.space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Returns the first observation and its info."""
        shown, info = self.env.reset(seed=seed, options=options)
        return self._masks.join(shown, info), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Returns observation, reward, terminated, truncated and info."""
        shown, reward, over, cut, info = self.env.step(action)
        return self._masks.join(shown, info, () if over else None), reward, over, cut, info


class MaskedVector(VectorWrapper):
    """A vector environment whose observations have masks."""

    def __init__(self, env: VectorEnv[Any, Any, Any], source: Source) -> None:
        super().__init__(env)
        self._masks = _Masks(env, env.single_observation_space, env.single_action_space, source)
        self.single_observation_space = self._masks.space

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Returns observations and infos; only rows that are reset need masks."""
        begun = (options or {}).get("reset_mask")  # the environment may remove it
        shown, info = self.env.reset(seed=seed, options=options)
        idle = [] if begun is None else np.flatnonzero(~begun).tolist()
        return self._masks.join(shown, info, idle, (self.num_envs,)), info

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Returns observations, rewards, terminated, truncated and infos."""
        shown, reward, over, cut, info = self.env.step(actions)
        idle = np.flatnonzero(over).tolist()
        return self._masks.join(shown, info, idle, (self.num_envs,)), reward, over, cut, info
