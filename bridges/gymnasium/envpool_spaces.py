"""Describes an EnvPool id as JSON; run as a script in an interpreter that has EnvPool."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces


def describe(id_: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the properties of an id, JSON-able.

    Returns:
        ``version``, ``observation``, ``action`` and ``config``, the options with their values; else
        ``unknown``, a list of all ids, or ``error``, why it cannot have these options.
    """
    import envpool  # noqa: PLC0415 - this module is imported where it is missing, too

    if id_ not in (ids := envpool.list_all_envs()):
        return {"unknown": list(ids)}
    try:
        spec = envpool.make_spec(id_, **kwargs)
    except Exception as error:  # noqa: BLE001 - assertions and errors of bindings
        known = ", ".join(sorted(envpool.make_spec(id_).config._fields))
        return {"error": f"{type(error).__name__}: {error}; its options: {known}"}
    return {
        "version": importlib.metadata.version("envpool"),
        "observation": _plain(spec.gymnasium_observation_space),
        "action": _plain(spec.gymnasium_action_space),
        "config": {key: str(value) for key, value in spec.config._asdict().items()},
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
