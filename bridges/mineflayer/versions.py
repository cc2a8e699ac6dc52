"""The versions of Minecraft that a bridge can play."""

from __future__ import annotations

import re

from bridges.mineflayer.names import VERSION
from rollout.errors import ConfigError

_REMOTE = re.compile(r"1\.([1-9]\d*)(?:\.([1-9]\d*))?", re.ASCII)
_LAST_PATCH = dict(enumerate((9, 4, 2, 2, 2, 2, 4, 2, 5, 1, 2, 4, 6, 11), start=8))
"""The last release of each minor version that Mineflayer supports, 1.8.9 to 1.21.11."""
_OLDEST, _NEWEST = min(_LAST_PATCH), max(_LAST_PATCH)


def check_version(mode: str, version: str) -> None:
    """Checks the version of a bridge.

    Args:
        mode: ``embedded`` or ``remote``.
        version: e.g. ``1.16.5``.

    Raises:
        ConfigError: that mode does not have it.
    """
    if mode == "embedded":
        if version != VERSION:
            raise ConfigError(
                f"version: embedded worlds are of {VERSION}, got {version!r}; leave the "
                f"key out, or join a server with mode=remote"
            )
        return
    match = _REMOTE.fullmatch(version)
    minor, patch = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
    if patch > _LAST_PATCH.get(minor, -1):
        near = f"1.{minor} to 1.{minor}.{_LAST_PATCH[minor]}" if minor in _LAST_PATCH else ""
        raise ConfigError(
            f"version: expected {near or f'one of 1.{_OLDEST} to 1.{_NEWEST}'}, e.g. "
            f"{VERSION}, got {version!r}"
        )
