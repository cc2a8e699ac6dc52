"""Any Gymnasium game as a bridge."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import AddRenderObservation

from bridges.gymnasium.instance import REWARD, SEED, GymnasiumInstance
from bridges.gymnasium.making import (
    REWARD_SPEC,
    TASKS,
    Probe,
    check_seeds,
    find,
    launch_games,
    make,
    probe,
    seed_space,
    version_of,
)
from bridges.gymnasium.masks import SOURCES, Source, with_masks
from bridges.gymnasium.vector import FEWEST, VectorInstance, limit_of, make_vector
from rollout.api import (
    ACTION,
    OBSERVATION,
    BridgeSpec,
    Columns,
    ColumnSpec,
    Instance,
    NamedCode,
    Resources,
    option,
)
from rollout.errors import ConfigError, GameStartError, raise_signal

log = logging.getLogger(__name__)

RENDER = "render"
"""Key of the rendered picture that the option ``render`` adds to the observations."""

MAX_WIDTH = 4096


@dataclass(frozen=True)
class GymnasiumBridge:
    """Hosts a game of Gymnasium's registry, with any observation and action space.

    The state is the seed that ``reset(seed=...)`` gets, and a value of each of ``factors``, which
    it gets as ``options``; nothing else is seeded. A space that is
    a leaf becomes the column ``observation`` or ``action``; nested ones are flattened, text and
    sequences travel in ``Frame.details``. The signal ``reward`` is the game's own reward.

    Gymnasium tells a game's spaces only once it is made, so ``spec`` makes one game, reads them
    and closes it, once per process and in a new process with a deadline; the game is never reset
    or stepped for it (only with ``render``, whose picture has no other way to tell its size).
    """

    id: str = option(
        "CartPole-v1", "Gymnasium id, e.g. CartPole-v1; module:id imports module first"
    )
    kwargs: Mapping[str, Any] = option(dict, "keyword arguments for gymnasium.make")
    seeds: int = option(2**31, "number of states: the seeds 0 to seeds - 1", unit="seeds")
    factors: Mapping[str, Sequence[str | int]] = option(
        dict,
        "further factors of the state: values that reset gets in its options, by name, e.g. "
        "{kind: [goto, open]}",
    )
    imports: Sequence[str] = option((), "modules to import so that the id is registered")
    info_signals: Sequence[str] = option(
        (),
        "numbers in a step's info that become signals; nested keys are joined with slashes; "
        "NaN in steps without them",
    )
    masks: Source = option(
        "auto",
        "where the game has the mask of its legal actions: in the observation action_mask, in the "
        "method action_masks(), in info[action_mask]; auto takes the first two where there are any",
        choices=SOURCES,
    )
    render: bool = option(False, "whether to observe the rendered image, as column render")
    check_bounds: bool = option(
        True, "whether an observation outside its space counts as a crash; if not, only NaN does"
    )

    def __post_init__(self) -> None:
        if not self.id.rpartition(":")[2]:
            raise ConfigError(f"id must be a Gymnasium id such as 'CartPole-v1', got {self.id!r}")
        if not isinstance(self.kwargs, Mapping):
            raise ConfigError(f"kwargs must be a mapping of names to values, got {self.kwargs!r}")
        check_seeds(self.seeds)
        self._check_factors()
        for name in ("imports", "info_signals"):
            value = getattr(self, name)
            if isinstance(value, str) or not all(isinstance(v, str) and v for v in value):
                raise ConfigError(f"{name} must be a list of names, got {value!r}")
            object.__setattr__(self, name, tuple(value))
        if REWARD in self.info_signals:
            raise ConfigError("info_signals: 'reward' is already the game's own reward; drop it")
        if self.render and "render_mode" in self.kwargs:
            raise ConfigError("render: true sets kwargs.render_mode itself; drop one of the two")

    def _check_factors(self) -> None:
        whole = isinstance(self.factors, Mapping)
        for name, values in self.factors.items() if whole else [("", None)]:
            if name in {"", SEED} or isinstance(values, str) or not isinstance(values, Sequence):
                raise ConfigError(
                    f"factors must be lists of values by names other than {SEED!r}, e.g. "
                    f"{{kind: [goto, open]}}, got {self.factors!r}"
                )

    def code(self) -> Sequence[NamedCode]:
        """Returns the modules that its options name; see ``rollout.api.NamesCode``."""
        module, _, _ = self.id.rpartition(":")
        named = [NamedCode("id", module)] if module else []
        return [*named, *(NamedCode("imports", each) for each in self.imports)]

    @property
    def spec(self) -> BridgeSpec:
        """Returns what is known before launch; makes one game, once per process.

        Raises:
            UnknownNameError: there is no such id.
            ConfigError: the game does not accept the ``kwargs``, or a module is missing.
            SpaceError: its spaces cannot be stored in columns.
        """
        seen = self._probe()
        registered = find(self.id, self.imports)
        facts = {name: ColumnSpec("float64", doc="from the info") for name in self.info_signals}
        return BridgeSpec(
            name=registered.id,
            version=version_of(registered),
            observation_space=seen.observation.columns,
            action_space=seen.action.columns,
            state_space=seed_space(self.seeds, "what reset(seed=...) gets", self.factors),
            signals={REWARD: REWARD_SPEC, **facts},
            max_width=MAX_WIDTH,
            default_width=32,
            reproducible=seen.reproducible,
            uses_seed=False,
            process="in_process",
            ticks_per_second=seen.fps,
            resources=Resources(memory_mb=300),
            tasks=TASKS,
            stacks={OBSERVATION: 0} if seen.stacked else {},
            original_observation_space=seen.observation.original,
            original_action_space=seen.action.original,
            action_labels=self._labels(seen),
        )

    @staticmethod
    def _labels(seen: Probe) -> dict[str, tuple[str, ...]]:
        leaf = seen.action.columns.spaces.get(ACTION)
        known = isinstance(leaf, spaces.Discrete) and leaf.n == len(seen.actions)
        return {ACTION: seen.actions} if known else {}

    def launch(
        self,
        workdir: Path,
        ports: Sequence[int],
        *,
        width: int,
        timeout_s: float,
    ) -> Instance:
        """Makes ``width`` games in this process; see ``rollout.api.Bridge``.

        A vector environment of many slots, if it plays the same episodes: see ``vector.why_not``.
        """
        seen = self._probe()
        if FEWEST <= width <= MAX_WIDTH:
            if not seen.no_vector:
                return self._launch_vector(seen, width)
            log.info("%s plays in a loop, not as a vector environment: %s", self.id, seen.no_vector)
        games = launch_games(
            self.id, self._build(), width=width, max_width=MAX_WIDTH, timeout_s=timeout_s
        )
        return GymnasiumInstance(
            self.id,
            games,
            seen.observation,
            seen.action,
            facts=_InfoFacts(self.info_signals, width) if self.info_signals else None,
            check_bounds=self.check_bounds,
            options=tuple(self.factors),
        )

    def _launch_vector(self, seen: Probe, width: int) -> Instance:
        registered = find(self.id, self.imports)
        try:
            env = make_vector(registered, self.kwargs, width, self.masks)
        except (Exception, SystemExit) as error:
            raise_signal(error)
            raise GameStartError(
                f"{self.id}: its vector environment of {width} games did not come up: "
                f"{type(error).__name__}: {error}"
            ) from error
        return VectorInstance(
            self.id,
            env,
            seen.observation,
            seen.action,
            width=width,
            limit=limit_of(registered, self.kwargs),
            check_bounds=self.check_bounds,
        )

    def _build(self) -> functools.partial[gymnasium.Env[Any, Any]]:
        registered = find(self.id, self.imports)
        made = _make_rendered if self.render else make
        return functools.partial(_make_masked, made, registered, dict(self.kwargs), self.masks)

    def _probe(self) -> Probe:
        key = f"{self.id} {sorted(self.kwargs.items())} {self.imports} {self.render} {self.masks}"
        single = self.render or self.factors or self.info_signals
        kwargs = None if single else dict(self.kwargs)
        registered = find(self.id, self.imports)
        return probe(f"{key} {not single}", registered, self._build(), kwargs, self.masks)


def _make_masked(
    made: Callable[..., gymnasium.Env[Any, Any]],
    registered: gymnasium.envs.registration.EnvSpec,
    kwargs: Mapping[str, Any],
    masks: Source,
) -> gymnasium.Env[Any, Any]:
    env: Any = made(registered, kwargs)
    try:
        return with_masks(env, masks)  # type: ignore[no-any-return] # or a wrapper of it
    except BaseException:
        env.close()
        raise


def _make_rendered(
    registered: gymnasium.envs.registration.EnvSpec, kwargs: Mapping[str, Any]
) -> gymnasium.Env[Any, Any]:
    env: Any = make(registered, {**kwargs, "render_mode": "rgb_array"})
    if "rgb_array" not in env.metadata.get("render_modes", ()):
        env.close()
        raise ConfigError(f"render: {registered.id} draws no pictures; set it to false")
    env = AddRenderObservation(env, render_only=False, render_key=RENDER, obs_key=OBSERVATION)
    return cast(gymnasium.Env[Any, Any], env)


class _InfoFacts:
    """The numbers in a game's info, as signals."""

    def __init__(self, names: Sequence[str], width: int) -> None:
        self.columns: Columns = {name: np.full(width, np.nan) for name in names}
        self._paths = [(self.columns[name], name.split("/")) for name in names]

    def write(self, info: Any, row: int, /) -> None:
        """Copies the declared numbers of one info; NaN where it has none."""
        for column, path in self._paths:
            value = info
            for part in path:
                value = value.get(part) if isinstance(value, Mapping) else None
            column[row] = np.nan if value is None else value
