"""Requests to an endpoint of OpenAI's chat API, with retries and an adaptive number at once."""

from __future__ import annotations

import contextlib
import email.utils
import math
import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import urllib3

from rollout.errors import BudgetExhausted, ConfigError, PolicyUnavailable
from rollout.models.connection import Connection
from rollout.models.responses import code_of, error_text, failure_of, response_of
from rollout.models.sections import Endpoint

_AGAIN = frozenset({408, 409, 425, 429})
_REFUSED_IN_A_ROW = 3
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
_BEGIN = 20  # requests at once before anything is known of the server
_COOLDOWN_S = 15.0  # one burst of status 429 lowers the number once
_SHOWN = 500  # characters of a server's error


class Limiter:
    """How many requests run at once: as many as the server takes.

    It begins with 20, doubles after each round without status 429 until the first one, then
    loses a fifth with each burst of them and gains a twentieth with each round without.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.limit = float(min(_BEGIN, most))
        self.running = 0
        self._good = 0
        self._met = False
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
        """Gives the place back; ``good`` if the server answered."""
        with self._free:
            self.running -= 1
            if good:
                self._good += 1
                if self._good >= self.limit:
                    self._good = 0
                    self.limit = min(self._most, self.limit * (1.05 if self._met else 2.0))
            self._free.notify_all()

    def limited(self, pause_s: float) -> None:
        """The server refused because of too many requests, for ``pause_s`` seconds if it said."""
        with self._free:
            now = time.monotonic()
            self._met, self._good = True, 0
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
        waited_s: before that, for a place and for earlier tries.
        errors: what earlier tries failed with.
    """

    data: Mapping[str, Any]
    seconds: float
    waited_s: float
    errors: tuple[str, ...]


class Client:
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
                raise self._late(errors or ["too many requests are waiting"]) from None
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
                said = problem if status == 200 else error_text(data.get("error") or "")
                said = _redirected(status, headers) or (said if data else "")
                errors.append(self._told(status, said, content))
                if status != 200 and status not in _AGAIN and status < 500:
                    raise self._refusal(status, errors[-1])
                pause_s = _retry_after(headers)
                if status == 429 or code_of(data) == 429:
                    # Other calls wait no longer than one lasts: a server may say a year.
                    self.limiter.limited(min(max(pause_s, 0.0), self._endpoint.deadline_s))
            except (urllib3.exceptions.HTTPError, OSError) as error:
                errors.append(self._connection.cleaned(f"{type(error).__name__}: {error}"))
            finally:
                self.limiter.release(good=good)
            if pause_s < 0:
                pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** (len(errors) - 1))
                pause_s *= random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, no secret
            if time.monotonic() + pause_s >= deadline:
                raise self._late(errors)
            threading.Event().wait(pause_s)

    def _told(self, status: int, said: str, content: bytes) -> str:
        said = said or content[: 4 * _SHOWN].decode(errors="replace") or "(nothing)"
        told = f"status {status}: {' '.join(said[: 4 * _SHOWN].split())[:_SHOWN]}"
        return self._connection.cleaned(told)  # headers, too, may repeat a key

    def _refusal(self, status: int, told: str) -> Exception:
        what = f"{self._endpoint.url} refuses the request: {told}"
        if not self._answered and (status < 400 or status in (400, 401, 403, 404, 413, 422)):
            return ConfigError(f"endpoint: {what}")
        self._refused += 1
        kind = BudgetExhausted if self._refused >= _REFUSED_IN_A_ROW else PolicyUnavailable
        return kind(what)

    def _late(self, errors: list[str]) -> PolicyUnavailable:
        return PolicyUnavailable(
            f"{self._endpoint.url} did not answer within {self._endpoint.deadline_s:g} s; the last "
            f"of {len(errors)} errors: {errors[-1]}"
        )


def _redirected(status: int, headers: Mapping[str, str]) -> str:
    """Where a server sends a request; empty if it does not. A key must not go elsewhere unasked."""
    place = headers.get("Location", "")
    if not 300 <= status < 400 or not place:
        return ""
    return f"it redirects to {place[:_SHOWN]}; set endpoint.url to the address that answers itself"


def _retry_after(headers: Mapping[str, str]) -> float:
    """Seconds of a header ``Retry-After``, which holds a number or a date; -1 without one."""
    value = headers.get("Retry-After", "")
    with contextlib.suppress(ValueError):
        return max(0.0, float(value)) if math.isfinite(float(value)) else -1.0
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return -1.0
