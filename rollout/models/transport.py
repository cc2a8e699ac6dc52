"""HTTP requests to a chat API: URL, headers, proxy, deadlines, retries, an adaptive concurrency."""

from __future__ import annotations

import contextlib
import email.utils
import importlib.util
import io
import math
import os
import random
import re
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPResponse
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import urllib3

from rollout.errors import BudgetExhausted, ConfigError, PolicyUnavailable
from rollout.models.chat_api import code_of, error_text, failure_of, response_of
from rollout.models.sections import REFERENCE, Endpoint

_PATH = "/chat/completions"
_LARGEST_REPLY = 32 << 20  # bytes
_PIECE = 1 << 16  # bytes that are sent at once
_CONNECT_S = 10.0
_SHORTEST_SECRET = 8  # characters
_TOKEN = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)


def check_endpoint(endpoint: Endpoint) -> None:
    """Checks the prerequisites of requests: the URL, the keys, a supported proxy.

    Raises:
        ConfigError: something is wrong or missing; the message names it.
    """
    Connection(endpoint)


class Connection:
    """Sends requests to one endpoint; thread-safe.

    Args:
        endpoint: the endpoint.

    Attributes:
        secrets: keys and passwords, removed from everything that is shown.

    Raises:
        ConfigError: see ``check_endpoint``.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.secrets: list[str] = []
        self._headers = self._headers_of(endpoint)
        self._now = threading.local()
        url = chat_url(endpoint.url)
        proxy = _proxy_for(url)
        manager = self._manager(proxy, {"maxsize": endpoint.calls, "retries": False})
        # The pool of the one host, since a manager looks for it at each request.
        self._pool = manager.connection_from_url(url)
        self._pool.ConnectionCls = _bounded(self._pool.ConnectionCls, self._left)
        # A proxy for HTTP gets the whole URL.
        whole = proxy.startswith("http") and url.startswith("http:")
        self._target = url if whole else urllib3.util.parse_url(url).request_uri

    def post(self, body: bytes, until: float) -> tuple[int, Mapping[str, str], bytes]:
        """Returns status, headers and content of the response to a request.

        Args:
            body: the request.
            until: when all of the response must be there, monotonic seconds.

        Raises:
            OSError: it was not, or the connection failed.
            urllib3.exceptions.HTTPError: likewise.
        """
        self._now.until = until
        left = self._left()
        response = self._pool.urlopen(
            "POST",
            self._target,
            body,
            self._headers,
            timeout=urllib3.Timeout(connect=min(left, _CONNECT_S), read=left),
            redirect=False,
            assert_same_host=False,
            preload_content=False,
        )
        try:
            content = response.read(_LARGEST_REPLY + 1)
            if len(content) > _LARGEST_REPLY:
                response.close()
                return 500, {}, b"a response of more than 32 MiB"
            for secret in self._long_secrets:  # which a server may repeat, even in an answer
                content = content.replace(secret.encode(), b"***")
            return response.status, response.headers, content
        finally:
            response.release_conn()

    def cleaned(self, text: str) -> str:
        """Returns a text without the secrets."""
        for secret in self._long_secrets:
            text = text.replace(secret, "***")
        return text

    @property
    def _long_secrets(self) -> list[str]:
        """The secrets except short ones, such as "none" for a server without keys: words."""
        return [secret for secret in self.secrets if len(secret) >= _SHORTEST_SECRET]

    def _left(self) -> float:
        """Returns the seconds left to the request of this thread; TimeoutError if none are."""
        left: float = getattr(self._now, "until", math.inf) - time.monotonic()
        if left <= 0:
            raise TimeoutError("there was no complete response in time")
        return min(left, threading.TIMEOUT_MAX)

    def _headers_of(self, endpoint: Endpoint) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if endpoint.key_env:
            key = self._secret("key_env", endpoint.key_env, endpoint.url)
            headers["Authorization"] = f"Bearer {key}"
        for name, value in endpoint.headers.items():
            headers[name] = value
            if found := REFERENCE.fullmatch(value):
                secret = self._secret(f"headers.{name}", found[2], endpoint.url)
                headers[name] = f"{found[1] or ''}{secret}"
            if not _TOKEN.fullmatch(name) or not (value.isascii() and value.isprintable()):
                raise ConfigError(
                    f"endpoint.headers.{name}: expected a name and a value of a header in ASCII"
                )
        return headers

    def _secret(self, key: str, variable: str, url: str) -> str:
        """Returns the value of an environment variable for a header."""
        secret = os.environ.get(variable, "").strip()
        if not secret:
            raise ConfigError(
                f"endpoint.{key}: the environment variable {variable} is not set; "
                f"export the key of {url} in it (where Ray is started, on a cluster)"
            )
        if not (secret.isascii() and secret.isprintable()):
            raise ConfigError(
                f"endpoint.{key}: expected the key of {url} in the environment variable "
                f"{variable}, got a value with characters that no header can hold"
            )
        self.secrets.append(secret)
        return secret

    def _manager(self, proxy: str, options: dict[str, Any]) -> urllib3.PoolManager:
        if not proxy:
            return urllib3.PoolManager(**options)
        try:
            parts = urlsplit(proxy)
            shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
            if not parts.hostname or (parts.port or 1) < 1:
                raise ValueError
        except ValueError:
            parts, shown = urlsplit(""), "that is set"
        password = unquote(parts.password or "")
        self.secrets += [each for each in {password, parts.password or ""} if each]
        if parts.scheme in ("http", "https"):
            if parts.username is not None:
                user = f"{unquote(parts.username)}:{password}"
                options["proxy_headers"] = urllib3.make_headers(proxy_basic_auth=user)
            return urllib3.ProxyManager(shown, **options)
        if not parts.scheme.startswith("socks"):
            raise ConfigError(
                f"the proxy {shown} in the environment cannot be used: expected http://HOST:PORT, "
                f"https://HOST:PORT or socks5://HOST:PORT in http_proxy, https_proxy or all_proxy"
            )
        if importlib.util.find_spec("socks") is None:
            raise ConfigError(
                f"the proxy {shown} in the environment needs PySocks, which is not installed: pip "
                f"install PySocks, or name the host of the endpoint in no_proxy"
            )
        from urllib3.contrib.socks import SOCKSProxyManager  # noqa: PLC0415 - needs PySocks

        return SOCKSProxyManager(proxy, **options)


def chat_url(url: str) -> str:
    """Returns the URL of chats from the base URL of an API, which may have a query.

    Raises:
        ConfigError: it is no URL of a server.
    """
    try:
        parts = urlsplit(url)
        right = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        parts, right = urlsplit(""), ""
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise ConfigError(
            "endpoint.url: expected a URL without user and password, which would be written to "
            "files; export what the header is to be (Basic ...) in an environment variable, and "
            "name it: endpoint.headers={Authorization: $NAME}"
        )
    if not right:
        raise ConfigError(
            f"endpoint.url={url!r}: expected the base URL of a chat API, such as "
            f"http://127.0.0.1:8000/v1"
        )
    path = parts.path.rstrip("/").removesuffix(_PATH) + _PATH
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def _proxy_for(url: str) -> str:
    """Returns the proxy of the environment for a URL; empty for none."""
    parts, proxies = urlsplit(url), urllib.request.getproxies()
    if urllib.request.proxy_bypass(parts.netloc):
        return ""
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


def _bounded(kind: Any, left: Callable[[], float]) -> Any:
    """Returns a class of connections whose requests end in time.

    A timeout of a socket is for one read; a server that sends a byte now and then outlives it.

    Args:
        kind: the class for connections to the server.
        left: seconds that the request of this thread has; raises TimeoutError.
    """

    class Response(HTTPResponse):
        def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
            super().__init__(sock, *args, **options)
            self.fp.close()
            self.fp = io.BufferedReader(_Reader(sock, left))

    class Bounded(kind):  # type: ignore[misc] # which class it is depends on URL and proxy
        response_class = Response

        def send(self, data: Any) -> None:
            """Sends bytes in pieces, each of which must be taken in time."""
            if self.sock is None:
                self.connect()
            for begin in range(0, len(data), _PIECE):
                self.sock.settimeout(left())
                super().send(data[begin : begin + _PIECE])

    return Bounded


class _Reader(io.RawIOBase):
    """Reads from a socket; each read waits no longer than ``left`` says."""

    def __init__(self, sock: socket.socket, left: Callable[[], float]) -> None:
        self._sock, self._left = sock, left
        self._file = sock.makefile("rb", buffering=0)  # keeps the socket open

    def readable(self) -> bool:
        """Returns True."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Reads what there is, at most as much as fits."""
        self._sock.settimeout(self._left())
        return self._file.readinto(buffer)

    def close(self) -> None:
        """Closes its hold on the socket."""
        self._file.close()
        super().close()


_AGAIN = frozenset({408, 409, 425, 429})
_REFUSED_IN_A_ROW = 3
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_BEGIN = 20  # requests at once before anything is known of the server
_COOLDOWN_S = 15.0  # one burst of status 429 lowers the number once
_SHOWN = 500  # characters of a server's error


class Limiter:
    """Adapts the number of concurrent requests to the server.

    It begins with 20, doubles after each round without status 429 until the first one, then
    loses a fifth with each burst of them and gains a twentieth with each round without.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.limit = float(min(_BEGIN, most))
        self.running = 0
        self._good = 0
        self._was_limited = False
        self._lowered = self._pause_until = 0.0
        self._free = threading.Condition()

    def acquire(self, deadline: float) -> None:
        """Waits for a place until ``deadline``, monotonic seconds; raises TimeoutError."""
        with self._free:
            while True:
                now = time.monotonic()
                if self.running < int(self.limit) and now >= self._pause_until:
                    self.running += 1
                    return
                if now >= deadline:
                    raise TimeoutError
                until = self._pause_until if now < self._pause_until else deadline
                self._free.wait(min(until, deadline) - now)

    def release(self, *, good: bool) -> None:
        """Ends a request; ``good`` if the server answered."""
        with self._free:
            self.running -= 1
            if good:
                self._good += 1
                if self._good >= self.limit:
                    self._good = 0
                    self.limit = min(self._most, self.limit * (1.05 if self._was_limited else 2.0))
            self._free.notify_all()

    def on_rate_limit(self, pause_s: float) -> None:
        """Lowers the limit after status 429, and pauses for ``pause_s`` seconds."""
        with self._free:
            now = time.monotonic()
            self._was_limited, self._good = True, 0
            self._pause_until = max(self._pause_until, now + pause_s)
            if now - self._lowered > _COOLDOWN_S:
                self._lowered = now
                self.limit = max(1.0, self.limit * 0.8)


@dataclass(frozen=True)
class Response:
    """A response of a server.

    Attributes:
        data: its JSON.
        seconds: from the request to the response, of the last try.
        waited_s: seconds before that, in the queue and for earlier tries.
        errors: errors of earlier tries.
    """

    data: Mapping[str, Any]
    seconds: float
    waited_s: float
    errors: tuple[str, ...]


class HttpClient:
    """Sends requests to one endpoint; thread-safe.

    Args:
        endpoint: the endpoint.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint, self._connection = endpoint, Connection(endpoint)
        self.limiter = Limiter(endpoint.calls)
        self._answered = False
        self._refused = 0

    def post(self, body: bytes) -> Response:
        """Returns the response to a request; tries again until the deadline of the endpoint.

        Raises:
            ConfigError: the server refuses the very first request.
            PolicyUnavailable: it did not answer in time, or refuses this request.
            BudgetExhausted: it has refused several requests in a row.
        """
        began = time.monotonic()
        deadline, errors = began + self._endpoint.deadline_s, list[str]()
        while True:
            try:
                self.limiter.acquire(deadline)
            except TimeoutError:
                raise self._deadline_error(errors or ["too many requests are waiting"]) from None
            sent, good, pause_s = time.monotonic(), False, -1.0
            try:
                until = min(sent + self._endpoint.timeout_s, deadline)
                status, headers, content = self._connection.post(body, until)
                data = response_of(content) or {}
                problem = failure_of(data)
                good = status == 200 and not problem
                if good:
                    self._answered, self._refused = True, 0
                    return Response(data, time.monotonic() - sent, sent - began, tuple(errors))
                text = problem if status == 200 else error_text(data.get("error") or "")
                text = _redirect_error(status, headers) or (text if data else "")
                errors.append(self._error_text(status, text, content))
                if status != 200 and status not in _AGAIN and status < 500:
                    raise self._refusal_error(status, errors[-1])
                pause_s = _retry_after(headers)
                if status == 429 or code_of(data) == 429:
                    # Other calls wait no longer than one lasts: a server may say a year.
                    self.limiter.on_rate_limit(min(max(pause_s, 0.0), self._endpoint.deadline_s))
            except (urllib3.exceptions.HTTPError, OSError) as error:
                # An attempt that the deadline cut says less than the errors before it.
                if not errors or time.monotonic() < deadline:
                    errors.append(self._connection.cleaned(f"{type(error).__name__}: {error}"))
            finally:
                self.limiter.release(good=good)
            if pause_s < 0:
                pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** (len(errors) - 1))
                pause_s *= random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, no secret
            if time.monotonic() + pause_s >= deadline:
                raise self._deadline_error(errors)
            threading.Event().wait(pause_s)

    def _error_text(self, status: int, text: str, content: bytes) -> str:
        text = text or content[: 4 * _SHOWN].decode(errors="replace") or "(nothing)"
        shown = f"status {status}: {' '.join(text[: 4 * _SHOWN].split())[:_SHOWN]}"
        return self._connection.cleaned(shown)  # headers, too, may repeat a key

    def _refusal_error(self, status: int, shown: str) -> Exception:
        what = f"{self._endpoint.url} refuses the request: {shown}"
        if not self._answered and (status < 400 or status in (400, 401, 403, 404, 413, 422)):
            return ConfigError(f"endpoint: {what}")
        self._refused += 1
        kind = BudgetExhausted if self._refused >= _REFUSED_IN_A_ROW else PolicyUnavailable
        return kind(what)

    def _deadline_error(self, errors: list[str]) -> PolicyUnavailable:
        return PolicyUnavailable(
            f"{self._endpoint.url} did not answer within {self._endpoint.deadline_s:g} s; the last "
            f"of {len(errors)} errors: {errors[-1]}"
        )


def _redirect_error(status: int, headers: Mapping[str, str]) -> str:
    """Returns the error of a redirect, which is not followed: a key must not go elsewhere."""
    place = headers.get("Location", "")
    if not 300 <= status < 400 or not place:
        return ""
    return f"it redirects to {place[:_SHOWN]}; set endpoint.url to the address that answers itself"


def _retry_after(headers: Mapping[str, str]) -> float:
    """Returns the seconds of a header ``Retry-After``, a number or a date; -1 without one."""
    value = headers.get("Retry-After", "")
    with contextlib.suppress(ValueError):
        return max(0.0, float(value)) if math.isfinite(float(value)) else -1.0
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return -1.0
