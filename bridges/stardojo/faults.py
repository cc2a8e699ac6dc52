"""How a server of the protocol differs from a healthy mod: a strict YAML file of switches."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollout.errors import ConfigError, UnknownNameError
from rollout.yaml12 import load_yaml


@dataclass(frozen=True)
class Faults:
    """Switches of the server; a share is of the messages (of the moves, of the observations).

    Attributes:
        seed: of the draws for the shares.
        viewport: width and height of the screenshot, in pixels.
        screenshot: whether there is one; without, the field is null.
        speed: how much faster than the game its clock runs.
        progression: whether observations have ``Progression``, as the evaluators need.
        vectors_as_objects: whether positions that the mod writes as text are objects.
        broken_shops: whether an open shop that sells tools breaks observations, as in the mod.
        load_s: seconds of the game that a load takes; what comes before its end waits.
        load_loses: whether what comes before the end of a load is lost, as with the mod.
        delayed: share of replies that come ``delay_s`` seconds of the game late.
        delay_s: see ``delayed``.
        held: share of actions that begin ``hold_s`` seconds of the game late, client or not.
        hold_s: see ``held``.
        silent: share of messages after which the connection closes without a byte, unheard.
        dropped: share of replies during which the connection closes, after half of the bytes.
        lost: share of moves that are never answered.
        stale: share of screenshots that are the one before.
        black: share of screenshots without a picture.
        chunk: bytes of a reply that are sent at once; 0 for all.
        crash_on: number of the message that ends the game; 0 for none.
        crashes: share of messages that end the game.
        crash_on_bad_integer: whether a wrong number for an asynchronous command ends the game.
        port_in_use: whether the game runs without a listener, as when its port is taken.
    """

    seed: int = 0
    viewport: tuple[int, int] = (1280, 720)
    screenshot: bool = True
    speed: float = 1.0
    progression: bool = False
    vectors_as_objects: bool = False
    broken_shops: bool = True
    load_s: float = 2.0
    load_loses: bool = False
    delayed: float = 0.0
    delay_s: float = 1.0
    held: float = 0.0
    hold_s: float = 6.0
    silent: float = 0.0
    dropped: float = 0.0
    lost: float = 0.0
    stale: float = 0.0
    black: float = 0.0
    chunk: int = 0
    crash_on: int = 0
    crashes: float = 0.0
    crash_on_bad_integer: bool = False
    port_in_use: bool = False


def read(path: Path) -> Faults:
    """Returns the switches of a file.

    Raises:
        ConfigError: it cannot be read, or a value has another type or lies outside its range.
        UnknownNameError: there is no such switch.
    """
    return parse(load_yaml(path) or {}, str(path))


def parse(data: Any, place: str) -> Faults:
    """Returns the switches of a mapping; errors as of ``read``, with ``place`` in front."""
    if not isinstance(data, dict):
        raise ConfigError(f"{place}: expected a mapping of switches, got {data!r}")
    defaults = {each.name: each.default for each in dataclasses.fields(Faults)}
    values: dict[str, Any] = {}
    for name, value in data.items():
        if name not in defaults:
            raise UnknownNameError(f"switch in {place},", str(name), defaults)
        values[name] = _checked(f"{place}: {name}", value, defaults[name])
    return Faults(**values)


def _checked(place: str, value: Any, default: Any) -> Any:
    if isinstance(default, tuple):
        sizes = isinstance(value, list) and len(value) == len(default)
        if not sizes or not all(type(each) is int and 16 <= each <= 4096 for each in value):
            raise ConfigError(f"{place}: expected width and height in pixels, got {value!r}")
        return tuple(value)
    if isinstance(default, float) and type(value) is int:
        value = float(value)
    if type(value) is not type(default) or (not isinstance(value, bool) and value < 0):
        raise ConfigError(f"{place}: expected a value such as {default!r}, got {value!r}")
    return value
