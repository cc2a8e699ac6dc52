"""Makes Gymnasium games: registers ids, checks their options, reads their spaces."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import inspect
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium import spaces
from gymnasium.envs.registration import load_env_creator
from gymnasium.wrappers import FrameStackObservation

from bridges.gymnasium.instance import SEED, Game, close_games
from bridges.gymnasium.masks import Source
from bridges.gymnasium.vector import why_not
from rollout.api import ACTION, ColumnSpec, Factor, FlatSpace, StateSpace, flatten_space, probing
from rollout.errors import (
    ConfigError,
    GameStartError,
    GamutError,
    UnknownNameError,
    located,
    missing_extra,
    raise_signal,
)

TASKS = Path(__file__).parent / "tasks"

MAX_SEEDS = 2**31
"""Seeds below this are valid for every generator a game may use, including NumPy's legacy one."""

REGISTERED_BY = {"ALE/": "ale_py", "MiniGrid-": "minigrid", "BabyAI-": "minigrid"}
EXTRAS = {"ale_py": "atari", "crafter": "crafter", "minigrid": "minigrid"}
"""Modules that register the ids with these prefixes when they are imported."""

NO_VECTOR = "the options are those of single games"

REWARD_SPEC = ColumnSpec("float32", doc="the game's own reward of the step; 0 at the reset")


@dataclass(frozen=True)
class Probe:
    """Properties of a Gymnasium game that are known only after making it once.

    Attributes:
        observation: its observation space, flattened.
        action: its action space, flattened.
        fps: game steps per second that its metadata names, or None.
        reproducible: whether its registration says that seeds reproduce.
        actions: the names of its actions, if it has ``get_action_meanings`` (as Atari) or an
            enumeration ``actions`` (as MiniGrid).
        stacked: whether the observation is that of ``FrameStackObservation``.
        no_vector: why a vector environment cannot be played in its place; empty if it can.
    """

    observation: FlatSpace
    action: FlatSpace
    fps: float | None
    reproducible: bool
    actions: tuple[str, ...] = ()
    stacked: bool = False
    no_vector: str = NO_VECTOR


def check_at_least(name: str, value: object, least: float) -> None:
    """Raises ConfigError unless an option is a number >= ``least`` (an integer if that is one)."""
    kinds = int if isinstance(least, int) else int | float
    if isinstance(value, bool) or not isinstance(value, kinds) or value < least:
        kind = "an integer" if isinstance(least, int) else "a number"
        raise ConfigError(f"{name} must be {kind} from {least}, got {value!r}")


def check_seeds(seeds: object) -> None:
    """Raises ConfigError unless ``seeds`` is a valid size of the state space."""
    check_at_least("seeds", seeds, 1)
    if isinstance(seeds, int) and seeds > MAX_SEEDS:
        raise ConfigError(f"seeds must be at most 2**31 = {MAX_SEEDS}, got {seeds}")


def seed_space(
    seeds: int, doc: str, factors: Mapping[str, Sequence[str | int]] | None = None
) -> StateSpace:
    """Returns the state space of a game that is determined by a seed, and by further factors.

    Args:
        seeds: number of values of the factor ``seed``.
        doc: what it decides.
        factors: values of the further factors, by name.
    """
    others = [
        Factor(name, tuple(values), doc=f"what reset gets as options[{name!r}]")
        for name, values in (factors or {}).items()
    ]
    return StateSpace((*others, Factor(SEED, range(seeds), doc=doc)))


def import_modules(modules: Sequence[str], option: str) -> None:
    """Imports modules that register games.

    Raises:
        ConfigError: a module cannot be imported.
    """
    for module in modules:
        try:
            importlib.import_module(module)
        except (Exception, SystemExit) as error:  # a module may raise anything
            if module in EXTRAS and isinstance(error, ImportError):
                raise missing_extra(option, EXTRAS[module]) from error
            raise ConfigError(
                f"{option}: expected a module that can be imported, got {module!r}: "
                f"{located(type(error).__name__, str(error), error)}; "
                f"install the package that has it, or correct the name"
            ) from error


def find(id_: str, imports: Sequence[str]) -> gymnasium.envs.registration.EnvSpec:
    """Returns the registration of an id, after importing the modules that register it.

    Args:
        id_: e.g. ``"CartPole-v1"``, or ``"module:id"``.
        imports: further modules to import first.

    Raises:
        ConfigError: a module cannot be imported.
        UnknownNameError: no game has that id; the message names the nearest one.
    """
    module, _, name = id_.rpartition(":")
    needed = [m for prefix, m in REGISTERED_BY.items() if name.startswith(prefix)]
    import_modules(needed, f"id {id_!r}")
    import_modules([module] if module else [], f"id {id_!r}")
    import_modules(imports, "imports")
    spec = gymnasium.registry.get(name)
    if spec is None:
        for empty in filter(_is_folder, (module, *imports)):
            raise ConfigError(
                f"id {id_!r}: the module {empty!r} is a folder without __init__.py, "
                f"{next(iter(sys.modules[empty].__path__))}, which hides an installed package of "
                f"that name; work in another folder, or install the package with "
                f'package-dir = {{"" = "."}} under [tool.setuptools] in its pyproject.toml'
            )
        advice = f"If a module of yours registers it, name the module: id=MODULE:{name}."
        raise UnknownNameError(
            "Gymnasium id", name, gymnasium.registry, "" if module or imports else advice
        )
    return spec


def _is_folder(module: str) -> bool:
    """Returns whether a module is imported and is no file of Python."""
    found = sys.modules.get(module)
    return getattr(found, "__file__", "") is None and hasattr(found, "__path__")


def make(
    spec: gymnasium.envs.registration.EnvSpec, kwargs: Mapping[str, Any]
) -> gymnasium.Env[Any, Any]:
    """Returns a new game.

    Gymnasium's own checker is disabled: it costs more than most games' steps, and
    ``ObservationColumns`` checks the same.

    Raises:
        ConfigError: the game does not accept these keyword arguments, or a package is missing.
    """
    try:
        env = gymnasium.make(spec, disable_env_checker=True, **kwargs)
    except TypeError as error:
        raise ConfigError(
            f"{spec.id} could not be made with kwargs {dict(kwargs)}: {error}. "
            f"It takes: {', '.join(arguments(spec)) or 'nothing'}"
        ) from error
    except (gymnasium.error.Error, ImportError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"{spec.id} could not be made with kwargs {dict(kwargs)}: {error}"
        ) from error
    if any(kind.__module__ == "minigrid.minigrid_env" for kind in type(env.unwrapped).__mro__):
        from bridges.gymnasium.minigrid import quicken  # noqa: PLC0415 - an extra

        quicken(env)
    return env


def arguments(spec: gymnasium.envs.registration.EnvSpec) -> list[str]:
    """Returns the names of the keyword arguments that a game's constructor accepts."""
    point = spec.entry_point
    creator = load_env_creator(point) if isinstance(point, str) else point
    if creator is None:
        return []
    named = inspect.signature(creator).parameters.values()
    return [p.name for p in named if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def version_of(spec: gymnasium.envs.registration.EnvSpec) -> str:
    """Returns the versions of this bridge and of the packages that define the game."""
    names = ["gymnasium"]
    names += [m for prefix, m in REGISTERED_BY.items() if spec.id.startswith(prefix)]
    point = spec.entry_point
    module = point if isinstance(point, str) else getattr(point, "__module__", "")
    top = module.partition(":")[0].partition(".")[0]
    if top not in names:
        names.append(top)
    found = []
    for name in names:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue  # a game defined in a script has no package
    return "1/" + ", ".join(found)


_PROBES: dict[str, Probe] = {}


def probe(
    key: str,
    spec: gymnasium.envs.registration.EnvSpec,
    build: Callable[[], gymnasium.Env[Any, Any]],
    kwargs: Mapping[str, Any] | None = None,
    masks: Source = "none",
) -> Probe:
    """Returns the properties of one made game; cached per process under ``key``.

    Args:
        key: a text that is the same only for equal games.
        spec: registration of the id.
        build: makes the game.
        kwargs: keyword arguments of its vector environment; None if it must not be played.
        masks: where the vector environment has the masks of actions.

    Raises:
        ConfigError: it cannot be made with these options.
        GameStartError: it failed while it was made.
        SpaceError: its spaces cannot be stored in columns.
    """
    if key not in _PROBES:
        if not probing.supervised:
            with contextlib.suppress(probing.NotImportable):
                _PROBES[key] = probing.probe_in_subprocess(
                    spec.id, _made, spec, build, kwargs, masks
                )
                return _PROBES[key]
        # Registered by the main script, or the game has a process of its own already.
        games = _made(spec, build, kwargs, masks)
        _PROBES[key] = next(games)
        next(games, None)
    return _PROBES[key]


def _made(
    spec: gymnasium.envs.registration.EnvSpec,
    build: Callable[[], gymnasium.Env[Any, Any]],
    kwargs: Mapping[str, Any] | None,
    masks: Source,
) -> Iterator[Probe]:
    """Makes a game, yields its properties, and closes it."""
    try:
        env: Any = build()
    except GamutError:
        raise
    except (Exception, SystemExit) as error:
        raise_signal(error)
        raise GameStartError(
            f"{spec.id} did not come up: {located(type(error).__name__, str(error), error)}"
        ) from error
    try:
        fps = env.metadata.get("render_fps")
        observation = flatten_space(env.observation_space)
        action = flatten_space(env.action_space, ACTION, text_columns=True)
        yield Probe(
            observation,
            action,
            float(fps) if fps else None,
            not spec.nondeterministic,
            _action_names(env.unwrapped),
            _is_stacked(env),
            NO_VECTOR if kwargs is None else why_not(spec, kwargs, env, observation, action, masks),
        )
    finally:
        close_games([env])


def _is_stacked(env: Any) -> bool:
    shown = env.observation_space
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, FrameStackObservation):
            return isinstance(shown, spaces.Box) and env.observation_space == shown
        env = env.env
    return False


def _action_names(game: Any) -> tuple[str, ...]:
    if hasattr(game, "get_action_meanings"):
        return tuple(game.get_action_meanings())
    actions = getattr(game, "actions", None)
    if isinstance(actions, type) and issubclass(actions, IntEnum):
        names = {int(action): action.name for action in actions}
        return tuple(names.get(number, "") for number in range(len(names)))
    return ()


def launch_games(
    name: str, build: Callable[[], Game], *, width: int, max_width: int, timeout_s: float
) -> list[Game]:
    """Returns ``width`` new games.

    Raises:
        ConfigError: the width is out of range.
        GameStartError: a game did not start, or not all of them did in time; none is left open.
    """
    if not 1 <= width <= max_width:
        raise ConfigError(f"{name}: width must be 1 to {max_width}, got {width}")
    deadline = time.monotonic() + timeout_s
    games: list[Game] = []
    try:
        for _ in range(width):
            if games and time.monotonic() > deadline:
                raise GameStartError(
                    f"{name}: {len(games)} of {width} games came up within {timeout_s} s; "
                    f"give them more time, or the instance fewer slots"
                )
            games.append(build())
    except BaseException as error:
        close_games(games)
        if isinstance(error, GamutError):
            raise
        raise_signal(error)
        raise GameStartError(f"{name} did not come up: {type(error).__name__}: {error}") from error
    return games
