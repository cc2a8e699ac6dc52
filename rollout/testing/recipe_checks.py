"""Checks of a bridge that need no running game."""

from __future__ import annotations

import dataclasses
import pickle  # a bridge is pickled when it is sent to its actor; nothing is stored

import numpy as np
from gymnasium import spaces

from rollout.api import BridgeSpec, is_fixed
from rollout.errors import ContractError, StateError
from rollout.testing.report import require
from rollout.testing.trial import Trial, children


def spec_known(trial: Trial) -> str:
    """The spec is complete, its spaces are flat, and reading it launches nothing."""
    before = children()
    spec = trial.bridge.spec
    started = children() - before
    require(not started, f"asking for the spec started {[p.pid for p in started]}")
    require(spec.name and spec.version, f"expected name and version, got {spec.name!r}, "
            f"{spec.version!r}")  # fmt: skip
    for role in ("observation_space", "action_space"):
        _check_flat(spec, role)
    for name, column in spec.signals.items():
        require(name, "a signal has an empty name")
        try:
            np.dtype(column.dtype)
        except TypeError as error:
            raise ContractError(f"signal {name!r}: {error}") from error
    require(spec.width_step >= 1, f"width_step: expected at least 1, got {spec.width_step}")
    require(
        spec.max_width >= spec.width_step and not spec.max_width % spec.width_step,
        f"max_width: expected a multiple of {spec.width_step}, got {spec.max_width}",
    )
    require(spec.ports >= 0, f"ports: expected 0 or more, got {spec.ports}")
    require(
        spec.process in ("in_process", "subprocess"),
        f"process: expected 'in_process' or 'subprocess', got {spec.process!r}",
    )
    return (
        f"{spec.name} {spec.version}, width to {spec.max_width}, "
        f"{spec.state_space.size} states, {spec.process}"
    )


def _check_flat(spec: BridgeSpec, role: str) -> None:
    space = getattr(spec, role)
    leaves = space.spaces
    require(leaves, f"{role}: expected at least one column, got {space}")
    for key, leaf in leaves.items():
        require(key, f"{role} has a column with an empty name")
        require(
            is_fixed(leaf) or isinstance(leaf, spaces.Text),
            f"{role}[{key!r}]: expected a leaf of fixed shape or text, got {leaf}; use "
            f"rollout.api.flatten_space, and put the rest into details",
        )


def pickles(trial: Trial) -> str:
    """The bridge is a frozen dataclass that is equal after pickling."""
    bridge = trial.bridge
    require(dataclasses.is_dataclass(bridge), f"{type(bridge).__name__} is not a dataclass")
    frozen = type(bridge).__dataclass_params__.frozen  # type: ignore[attr-defined]
    require(frozen, f"{type(bridge).__name__} is not frozen: write @dataclass(frozen=True)")
    data = pickle.dumps(bridge)
    again = pickle.loads(data)  # noqa: S301 - pickled above
    require(again == bridge, f"a pickled copy differs: {bridge} became {again}")
    before, after = trial.spec, again.spec
    for role in ("observation_space", "action_space"):
        require(getattr(before, role) == getattr(after, role), f"{role} of a pickled copy differs")
    require(before.state_space.digest == after.state_space.digest, "the state space differs")
    return f"{len(data)} bytes"


def deadlines(trial: Trial) -> str:
    """Every timeout is a positive, finite number of seconds."""
    limits = dataclasses.asdict(trial.spec.deadlines)
    for name, seconds in limits.items():
        require(0 < seconds < np.inf, f"deadlines.{name}: expected more than 0, got {seconds}")
    return ", ".join(f"{name.removesuffix('_s')} {s:g} s" for name, s in limits.items())


def refuses_states(trial: Trial) -> str:
    """The state space refuses states that do not exist, before they reach the game."""
    space = trial.spec.state_space
    for index in (-1, space.size):
        try:
            space.state(index)
        except StateError:
            continue
        raise ContractError(f"state {index} of a space of {space.size} was accepted")
    for index in (0, space.size - 1):
        state = space.state(index)
        require(space.index(state.values) == index, f"state {index} comes back as another index")
    return f"-1 and {space.size} refused"
