"""The conformance suite of bridges, which every game must pass before it is used in runs."""

from __future__ import annotations

import dataclasses
import pickle  # a bridge is pickled when it is sent to its actor; nothing is stored
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import numpy as np
from gymnasium import spaces

from rollout.api import Bridge, BridgeSpec, is_fixed
from rollout.errors import ContractError, InputError, StateError, UnknownNameError
from rollout.testing import game_checks
from rollout.testing.report import CheckFunction, Report, Skipped, Suite, must_raise, require
from rollout.testing.trial import Trial, children


def check_bridge(
    bridge: Bridge,
    *,
    steps: int = 100,
    width: int | None = None,
    seed: int = 0,
    timeout_s: float = 120.0,
    only: Sequence[str] = (),
) -> Report:
    """Returns the report of the suite; call ``raise_if_failed`` or ``table`` on it.

    The game runs as the bridge launches it, possibly in this process: to check a game that may
    crash its process, pass a bridge whose instances run in their own processes.

    Args:
        bridge: the bridge.
        steps: length of each trajectory; a real-time game needs few.
        width: slots of an instance; about 4 if None. If only one world fits (one slot, or
            ``spec.width_step``), effects of slots on other worlds are not checked.
        seed: seed of starts and actions.
        timeout_s: timeout of each check, in seconds.
        only: names of the checks to run, besides those of spec and launch; all if empty.

    Raises:
        InputError: ``steps`` or ``width`` is invalid.
        UnknownNameError: ``only`` names a check that does not exist.
    """
    every = [*BEFORE_LAUNCH, *LAUNCHED]
    for name in only:
        if name not in every:
            raise UnknownNameError("check", name, every)
    chosen = {*(only or every), "spec before launch", "launch"}
    suite = Suite(f"bridge {type(bridge).__name__}", timeout_s)
    trial = Trial(bridge, steps, width or 1, seed)
    try:
        for name, check in BEFORE_LAUNCH.items():
            if name in chosen:
                suite.check(name, partial(check, trial))
        if suite.checks[0].result != "passed":
            return suite.report()  # without a spec nothing else can be checked
        if steps < 2:
            raise InputError(f"expected steps >= 2, got {steps}")
        trial.width = trial.fitting(4) if width is None else width
        trial.spec.require_width(trial.width)
        launched = True
        for name, check in LAUNCHED.items():
            if name in chosen:
                passed = _check(suite, trial, name, partial(check if launched else _no_game, trial))
                launched &= passed or name != "launch"
        return suite.report()
    finally:
        suite.report()
        trial.end()


def _check(suite: Suite, trial: Trial, name: str, check: CheckFunction) -> bool:
    """Makes a check and returns whether it did not fail; a game that fails one is not reused."""
    if suite.check(name, check) != "failed":
        return True
    instance = trial.take_shared()
    if instance is not None and not suite.checks[-1].seen.startswith("did not come back"):
        with suppress(Exception):
            suite.call(instance.close)
    return False


def _no_game(trial: Trial) -> str:
    raise Skipped("the game does not launch")


def _spec_known(trial: Trial) -> str:
    """The spec is complete, its spaces are flat, and reading it launches nothing."""
    before = children()
    spec = trial.bridge.spec
    started = children() - before
    require(not started, f"asking for the spec started {[p.pid for p in started]}")
    named = spec.name and spec.version
    require(named, f"expected name and version, got {spec.name!r}, {spec.version!r}")
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
    require(
        1 <= spec.default_width <= spec.max_width,
        f"default_width: expected 1 to {spec.max_width}, got {spec.default_width}",
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


def _pickles(trial: Trial) -> str:
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


def _deadlines(trial: Trial) -> str:
    """Every timeout is a positive, finite number of seconds."""
    limits = dataclasses.asdict(trial.spec.deadlines)
    for name, seconds in limits.items():
        require(0 < seconds < np.inf, f"deadlines.{name}: expected more than 0, got {seconds}")
    return ", ".join(f"{name.removesuffix('_s')} {s:g} s" for name, s in limits.items())


def _refuses_states(trial: Trial) -> str:
    """The state space refuses states that do not exist, before they reach the game."""
    space = trial.spec.state_space
    for index in (-1, space.size):
        must_raise(
            StateError, partial(space.state, index), f"state {index} of a space of {space.size}"
        )
    for index in (0, space.size - 1):
        state = space.state(index)
        require(space.index(state.values) == index, f"state {index} comes back as another index")
    return f"-1 and {space.size} refused"


BEFORE_LAUNCH = {
    "spec before launch": _spec_known,
    "pickles": _pickles,
    "deadlines": _deadlines,
    "refuses unknown states": _refuses_states,
}
LAUNCHED = {
    "launch": game_checks.launches,
    "impossible widths are refused": game_checks.refuses_widths,
    "step before reset is refused": game_checks.step_before_reset,
    "slots never reset are left alone": game_checks.never_reset,
    "reset frame": game_checks.reset_frame,
    "step frame": game_checks.step_frame,
    "actions are left as they are": game_checks.actions_untouched,
    "every action is accepted": game_checks.every_action,
    "random agent plays": game_checks.random_agent,
    "stacks of frames": game_checks.stacks,
    "over slots are left alone": game_checks.over_slots,
    "same start, same frames": game_checks.reproduces,
    "seed": game_checks.seed,
    "history does not matter": game_checks.history,
    "replay gives the same": game_checks.replay,
    "reset leaves other slots alone": game_checks.reset_alone,
    "width does not matter": game_checks.width,
    "instances do not disturb": game_checks.side_by_side,
    "snapshots are exact": game_checks.snapshots,
    "close": game_checks.close,
    "close leaves nothing": game_checks.leaves_nothing,
}
