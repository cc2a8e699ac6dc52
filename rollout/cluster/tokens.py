"""Ray's token authentication, decided before Ray decides.

Left alone, Ray turns tokens on or off by how it is started and by which files lie in the user's
home folder, so two halves of one cluster may disagree; they then wait for each other for twenty
seconds. Here the mode is always said.
"""

from __future__ import annotations

import importlib
import os
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from rollout.errors import ConfigError, nearest
from rollout.files import read_document

Mode: TypeAlias = Literal["token", "disabled"]

# Environment variables: the mode, the token itself (which games inherit, so a file is the better
# place), and the file that holds it.
MODE = "RAY_AUTH_MODE"
TOKEN = "RAY_AUTH_TOKEN"  # noqa: S105 - the name of a variable, not a token
TOKEN_PATH = "RAY_AUTH_TOKEN_PATH"  # noqa: S105

_MODES: tuple[Mode, ...] = get_args(Mode)
# What this process has put into its environment itself. It is no wish of the user's, so the next
# session may decide otherwise.
_ours: dict[str, str] = {}


@dataclass(frozen=True)
class Token:
    """A token, and the variable or file that it comes from."""

    value: str
    source: str

    def __repr__(self) -> str:
        return f"Token(source={self.source!r})"  # tokens belong in no log


def _given(name: str) -> str:
    value = os.environ.get(name, "")
    return "" if value == _ours.get(name) else value


def given_mode() -> Mode | None:
    """Returns the mode that the user's environment asks for; None where it asks for none.

    Raises:
        ConfigError: it asks for one that Ray does not have.
    """
    value = _given(MODE).lower()
    if not value:
        return None
    if value in _MODES:
        return value
    close = nearest(value, _MODES) or list(_MODES)
    raise ConfigError(
        f"{MODE}={value}: expected {' or '.join(_MODES)}; set {close[0]}, or unset it"
    )


def find_token() -> Token | None:
    """Returns the token that Ray would use, in Ray's own order; None if there is none.

    Raises:
        ConfigError: ``RAY_AUTH_TOKEN_PATH`` names a file that cannot be read, or is empty; Ray
            would end the process for it.
    """
    value = _given(TOKEN).strip()
    if value:
        return Token(value, TOKEN)
    path = _given(TOKEN_PATH)
    file = Path(path).expanduser() if path else Path.home() / ".ray" / "auth_token"
    try:
        value = read_document(file).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        if not path:
            return None
        reason = getattr(error, "strerror", None) or "it is no text"
        raise ConfigError(
            f"{TOKEN_PATH}={path} cannot be read: {reason}; copy the cluster's token there, or "
            f"unset it"
        ) from error
    if path and not value:
        raise ConfigError(f"{TOKEN_PATH}={path} is empty; copy the cluster's token there")
    return Token(value, path or str(file)) if value else None


def write_own_token(folder: Path) -> Path:
    """Returns a new file with a new token in a folder.

    Only this user can read it. Ray would have written one into the home folder, for all to read,
    and left it there to change how later clusters start.
    """
    path = folder / "token"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:  # noqa: PTH123
        file.write(secrets.token_hex(32))
    return path


def set_mode(mode: Mode, token_path: Path | None = None) -> None:
    """Says the mode, to Ray in this process and to every process that is started from here.

    ``token_path`` is the file with the cluster's token, None where Ray finds the right one itself.
    """
    said: dict[str, str] = {MODE: mode}
    if token_path is not None:
        said[TOKEN_PATH] = str(token_path)
    elif _given(TOKEN_PATH) != os.environ.get(TOKEN_PATH, ""):
        del os.environ[TOKEN_PATH]  # of a cluster of our own, before this one
    changed = {k: v for k, v in said.items() if os.environ.get(k) != v}
    os.environ.update(changed)
    _ours.update(changed)
    if "ray" in sys.modules:
        _tell_ray()


def _tell_ray() -> None:
    """Has Ray look again: it reads the mode when it is imported, and a token when it needs one."""
    raylet: Any = importlib.import_module("ray._raylet")  # compiled, without types
    raylet.Config.initialize("")
    raylet.AuthenticationTokenLoader.instance().reset_cache()
