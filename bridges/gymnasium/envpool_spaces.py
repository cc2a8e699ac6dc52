"""Describes an EnvPool id as JSON; run as a script in an interpreter that has EnvPool."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

_INFO, _PLAYERS = "info:", "players."
_NO_FACTS = {"env_id", "elapsed_step"}  # the slot and the tick


def describe(id_: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the properties of an id, JSON-able.

    Returns:
        ``version``, ``observation``, ``action``, ``info``, the types of the numbers in it, and
        ``config``, the options with their values; else ``error``, why it cannot be made, or
        ``unknown``, the kind and the name of what does not exist, and ``valid``, the names of what
        does.
    """
    import envpool  # noqa: PLC0415 - this module is imported where it is missing, too

    if id_ not in (ids := envpool.list_all_envs()):
        return {"unknown": ["EnvPool id", id_], "valid": list(ids)}
    try:
        spec = envpool.make_spec(id_, **kwargs)
        return {
            "version": importlib.metadata.version("envpool"),
            "observation": _plain(spec.gymnasium_observation_space),
            "action": _plain(spec.gymnasium_action_space),
            "info": _numbers(spec),
            "config": {key: str(value) for key, value in spec.config._asdict().items()},
        }
    except Exception as error:  # noqa: BLE001 - assertions and errors of bindings
        return _refused(id_, kwargs, error)


def _refused(id_: str, kwargs: Mapping[str, Any], error: Exception) -> dict[str, Any]:
    """Returns which option is wrong, where that can be said; else the error."""
    import envpool  # noqa: PLC0415 - as above

    seen = {"error": f"{type(error).__name__}: {error}"}
    try:
        defaults = envpool.make_spec(id_).config._asdict()
    except Exception:  # noqa: BLE001 - a game that cannot be made without options
        return seen
    for name, value in kwargs.items():
        if name not in defaults:
            return {"unknown": [f"option of {id_}", name], "valid": list(defaults)}
        kind = type(defaults[name])
        if type(value) is not kind and not (kind is float and type(value) is int):
            wrong = f"{name} must be of type {kind.__name__}, as {defaults[name]!r}; got {value!r}"
            return {"error": wrong}
    return seen


def _numbers(spec: Any) -> dict[str, str]:
    """Returns the types of the numbers in the info of a game with one player, by name."""
    told = {
        key.removeprefix(_INFO): np.dtype(each.dtype).name
        for key, each in spec.state_array_spec.items()
        if key.startswith(_INFO) and list(each.shape) in ([], [-1])
    }
    return {
        name: dtype
        for name, dtype in told.items()
        if name not in _NO_FACTS and not name.startswith(_PLAYERS)
    }


def _plain(space: Any) -> Any:
    if isinstance(space, spaces.Dict):
        return {"parts": {key: _plain(part) for key, part in space.spaces.items()}}
    if isinstance(space, spaces.Discrete):
        return {"n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.Box):
        low, high = (_few(bound) for bound in (space.low, space.high))
        return {"low": low, "high": high, "shape": space.shape, "dtype": str(space.dtype)}
    return {"unsupported": str(space)}


def _few(bound: Any) -> Any:
    """Returns a bound as one number if it is the same everywhere."""
    return bound.flat[0].item() if np.all(bound == bound.flat[0]) else bound.tolist()


def space_of(plain: Mapping[str, Any]) -> spaces.Space[Any]:
    """Returns the space that was described.

    Raises:
        ValueError: it is of another kind.
    """
    if "parts" in plain:
        return spaces.Dict({key: space_of(part) for key, part in plain["parts"].items()})
    if "n" in plain:
        return spaces.Discrete(plain["n"], start=plain["start"])
    if "unsupported" in plain:
        raise ValueError(plain["unsupported"])
    dtype = np.dtype(plain["dtype"])
    low, high = (
        np.broadcast_to(np.array(plain[k], dtype), plain["shape"]) for k in ("low", "high")
    )
    return spaces.Box(low, high, dtype=dtype.type)


if __name__ == "__main__":
    json.dump(describe(sys.argv[1], json.loads(sys.argv[2])), sys.stdout)
