"""Addresses of clusters and Ray's token authentication, checked quickly before Ray is asked.

Ray itself waits twenty seconds both for a cluster that cannot be reached and for one that rejects
the token, and its error does not distinguish the two. Ray also turns tokens on or off by how it is
started and by which files lie in the user's home folder, so two parts of one cluster may disagree.
Here the mode is always set.
"""

from __future__ import annotations

import http.client
import importlib
import ipaddress
import os
import secrets
import socket
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

import psutil  # type: ignore[import-untyped]

from rollout.errors import ConfigError, nearest
from rollout.files import parse_json, read_document

Mode: TypeAlias = Literal["token", "disabled"]

# Environment variables: the mode, the token itself (which games inherit, so a file is the better
# place), and the file that holds it.
MODE = "RAY_AUTH_MODE"
TOKEN = "RAY_AUTH_TOKEN"  # noqa: S105 - the name of a variable, not a token
TOKEN_PATH = "RAY_AUTH_TOKEN_PATH"  # noqa: S105

_MODES: tuple[Mode, ...] = get_args(Mode)
# What this process itself has set in its environment, which is not a setting of the user's.
_ours: dict[str, str] = {}
DASHBOARD_PORT = 8265  # unless `ray start --dashboard-port` says otherwise
GCS_PORT = 6379  # of the head, unless `ray start --port` says otherwise
API_SERVER = "RAY_API_SERVER_ADDRESS"  # variable: URL of the dashboard
ADDRESS = "RAY_ADDRESS"  # variable: address of the head, or URL of the dashboard

_ANSWER_S = 3.0  # timeout of one request: a running head replies in milliseconds
_TLS = "RAY_USE_TLS"
_ALIVE = "/ray.rpc.NodeInfoGcsService/CheckAlive"  # takes an empty message, changes nothing
_GET_TOKEN = (
    f"the head has it in ~/.ray/auth_token, or where its own {TOKEN_PATH} points; copy it to a "
    f"file that only you can read, and set {TOKEN_PATH}"
)


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


def configured_mode() -> Mode | None:
    """Returns the mode that the user's environment sets; None if it sets none.

    Raises:
        ConfigError: Ray does not have the mode.
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
    """Sets the mode, for Ray in this process and for every process that is started from here.

    Args:
        mode: the mode.
        token_path: the file with the cluster's token; None if Ray finds the right one itself.
    """
    settings: dict[str, str] = {MODE: mode}
    if token_path is not None:
        settings[TOKEN_PATH] = str(token_path)
    elif _given(TOKEN_PATH) != os.environ.get(TOKEN_PATH, ""):
        del os.environ[TOKEN_PATH]  # of a cluster of our own, before this one
    changed = {k: v for k, v in settings.items() if os.environ.get(k) != v}
    os.environ.update(changed)
    _ours.update(changed)
    if "ray" in sys.modules:
        _update_ray()


def _update_ray() -> None:
    """Makes Ray read the mode, read at import, and the token again."""
    raylet: Any = importlib.import_module("ray._raylet")  # compiled, without types
    raylet.Config.initialize("")
    raylet.AuthenticationTokenLoader.instance().reset_cache()


@dataclass(frozen=True)
class Dashboard:
    """A dashboard that replied, and the token that it accepts; None if it requires none."""

    url: str
    ray_version: str
    token: Token | None


def require_cluster(address: str, *, key: str = "ray.address") -> Mode:
    """Returns the authentication mode of a running cluster, which has accepted our token.

    Args:
        address: of the head, ``HOST:PORT``; ``ray://HOST:PORT`` and clusters with TLS are only
            contacted, and their mode is derived from whether there is a token.
        key: name of the address in messages.

    Raises:
        ConfigError: there is no reply within seconds, it is not a head, or it refuses access.
    """
    named = f"{key}={address}"
    if address.startswith(("http://", "https://")):
        raise ConfigError(
            f"{named} is the address of a dashboard, which takes jobs: send one by "
            f"gamut submit --address {address}; {key} takes that of the head, HOST:{GCS_PORT}"
        )
    client = address.startswith("ray://")
    host, port, path = _split(address.removeprefix("ray://"))
    if not host or not port or path:
        raise ConfigError(f"{named}: expected HOST:PORT, e.g. 10.0.0.1:{GCS_PORT}")
    _require_listener(host, port, named)
    mode, token = configured_mode(), find_token()
    if mode == "token" and token is None:
        raise ConfigError(f"{MODE}=token, and there is no token: {_GET_TOKEN}")
    if client or os.environ.get(_TLS) == "1":
        return mode or ("token" if token is not None else "disabled")
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    refused = _check_head(target, None, named)
    if refused is None:
        if mode == "token":
            raise ConfigError(
                f"{named} requires no token, but {MODE}=token: both sides must agree; set "
                f"{MODE}=disabled, or start the cluster with {MODE}=token"
            )
        return "disabled"
    if mode == "disabled":
        raise ConfigError(f"{named} asks for a token, and {MODE}=disabled: set {MODE}=token")
    if token is None:
        raise ConfigError(f"{named} asks for a token, and there is none: {_GET_TOKEN}")
    if _check_head(target, token, named) is not None:
        raise ConfigError(f"{named} refuses the token from {token.source}: {_GET_TOKEN}")
    return "token"


def _split(address: str) -> tuple[str | None, int | None, str]:
    """Returns host, port and path of an address; no host if it is invalid."""
    try:
        parts = urlsplit(f"//{address}")
        return parts.hostname, parts.port, parts.path
    except ValueError:
        return None, None, ""


def _require_listener(host: str, port: int, named: str) -> None:
    try:
        socket.create_connection((host, port), timeout=_ANSWER_S).close()
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(
            f"{named}: no cluster answers there ({reason}); check that it runs and that a firewall "
            f"lets you through, or leave ray.address empty to start one here"
        ) from error


def _check_head(target: str, token: Token | None, named: str) -> str | None:
    """Returns None if a head grants access, else the kind of refusal.

    Raises:
        ConfigError: the server there is not a head.
    """
    # A third of a second, only for those who join a cluster; it brings no types.
    import grpc  # type: ignore[import-untyped] # noqa: PLC0415

    metadata = [("authorization", f"Bearer {token.value}")] if token is not None else []
    # Ray connects to the head directly and ignores proxies in the environment; so does this.
    with grpc.insecure_channel(target, options=[("grpc.enable_http_proxy", 0)]) as channel:
        ask = channel.unary_unary(_ALIVE)
        try:
            ask(b"", timeout=_ANSWER_S, metadata=metadata)
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.UNAUTHENTICATED:
                return str(error.details())
            raise ConfigError(
                f"{named}: what answers there is no head of a Ray cluster "
                f"({error.code().name.lower()}); expected the HOST:PORT that `ray start --head` "
                f"printed, usually port {GCS_PORT}"
            ) from error
    return None


def dashboard_url(given: str | None) -> str:
    """Returns the URL of a dashboard.

    Args:
        given: a URL, ``HOST`` or ``HOST:PORT``; None for that of ``RAY_API_SERVER_ADDRESS``, of
            ``RAY_ADDRESS``, or of this machine, the first there is.

    Raises:
        ConfigError: it is none of these.
    """
    name, text = "--address", given
    for variable in (API_SERVER, ADDRESS):
        if not text:
            name, text = variable, os.environ.get(variable)
    text = (text or "").strip()
    if text in {"", "auto", "local"}:
        return f"http://127.0.0.1:{DASHBOARD_PORT}"
    # RAY_ADDRESS is the head's, as for programs on the cluster: its dashboard is on the same host.
    head = name == ADDRESS and "://" not in text
    scheme, _, rest = text.rpartition("://")
    host, port, path = _split(rest)
    if not host or scheme not in {"", "http", "https"}:
        raise ConfigError(
            f"{name}={text}: expected the URL of the dashboard, e.g. http://HOST:{DASHBOARD_PORT}"
        )
    if head or (port is None and scheme != "https"):
        port = DASHBOARD_PORT
    host = f"[{host}]" if ":" in host else host
    return f"{scheme or 'http'}://{host}" + (f":{port}" if port else "") + path.rstrip("/")


def require_dashboard(url: str) -> Dashboard:
    """Returns the dashboard at a URL, which has accepted our token if it asks for one.

    Raises:
        ConfigError: there is no reply within seconds, it is not a dashboard, or it refuses access.
    """
    token: Token | None = None
    status, version = _request_version(url, None)
    if status in {401, 403}:
        if configured_mode() == "disabled":
            raise ConfigError(f"{url} asks for a token, and {MODE}=disabled: set {MODE}=token")
        token = find_token()
        if token is None:
            raise ConfigError(f"{url} asks for a token, and there is none: {_GET_TOKEN}")
        status, version = _request_version(url, token)
        if status in {401, 403}:
            raise ConfigError(f"{url} refuses the token from {token.source}: {_GET_TOKEN}")
    if version is None:
        said = f"status {status}" if status else "it does not speak HTTP"
        raise ConfigError(
            f"{url}: what answers there is no dashboard of Ray ({said}); expected the URL that "
            f"`ray start --head` printed, usually http://HOST:{DASHBOARD_PORT}"
        )
    return Dashboard(url, version, token)


def _request_version(url: str, token: Token | None) -> tuple[int, str | None]:
    """Returns the status of a dashboard, 0 if the reply is not HTTP, and its version of Ray."""
    headers = {"Authorization": f"Bearer {token.value}"} if token is not None else {}
    request = urllib.request.Request(f"{url}/api/version", headers=headers)  # noqa: S310 - http(s)
    try:
        with urllib.request.urlopen(request, timeout=_ANSWER_S) as reply:  # noqa: S310
            status, body = reply.status, reply.read(10_000)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code, None
    except http.client.HTTPException:
        return 0, None  # it speaks something else
    except (OSError, ValueError) as error:
        cause: Any = getattr(error, "reason", error)
        reason = getattr(cause, "strerror", None) or str(cause)
        raise ConfigError(
            f"{url}: no dashboard answers there ({reason}); check that the cluster runs with "
            f"--include-dashboard=true and that the address can be reached from here, by "
            f"--dashboard-host or through `ssh -L`"
        ) from error
    try:
        version = parse_json(body)["ray_version"]
    except (ValueError, LookupError, TypeError):
        version = None
    return status, version if status == 200 and isinstance(version, str) else None


def is_this_machine(url: str) -> bool:
    """Returns whether the host of a URL is this machine; a tunnel cannot be told from it."""
    host = urlsplit(url).hostname or ""
    try:
        there = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    here = {a.address for each in psutil.net_if_addrs().values() for a in each}
    return any(ipaddress.ip_address(a).is_loopback or a in here for a in there)
