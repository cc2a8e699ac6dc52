"""An endpoint of OpenAI's chat API on the loopback interface, in front of a model of a run.

Code of others asks the model of the run through it: all that it needs is the base URL, which
contains the key of an episode. Its calls are recorded with the step in which they are made, priced,
limited and found again in a resumed run, as those of Gamut's own policies are.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, TypeAlias

from rollout.api import Call
from rollout.errors import BudgetExhausted, GamutError, PluginError, located
from rollout.models.client import ModelClient, Request
from rollout.models.foreign import RefusedError, completion_of, events_of, request_of
from rollout.models.local import LocalModel

Model: TypeAlias = ModelClient | LocalModel

_HOST = "127.0.0.1"
_IDLE_S = 60.0  # for which a connection may send nothing
_LARGEST_BODY = 32 << 20  # bytes
_POLL_S = 0.1


def new_key() -> str:
    """Returns a random key for an episode, which no other program can guess."""
    return secrets.token_urlsafe(24)


class StepCalls:
    """The calls that an agent makes in one step of an episode; thread-safe.

    Args:
        identity: identifies the step: the seed of the episode and the number of the step.
        fields: fields of requests that do not have them: temperature and max_tokens.
        left: calls that the episode has left; None for any number.
        known: fields of the records, such as the digest of the observation.

    Attributes:
        failure: why the model could not be asked, such as a limit of the run; None if it could.
        refused: why a call was refused by a limit of the episode; empty if none was.
    """

    def __init__(
        self,
        identity: Sequence[Any],
        fields: Mapping[str, Any],
        left: int | None = None,
        known: Mapping[str, Any] | None = None,
    ) -> None:
        self.identity, self.fields, self.refused = tuple(identity), fields, ""
        self.failure: GamutError | None = None
        self._left, self._known = left, dict(known or {})
        self._made: dict[int, Call] = {}
        self._equal: Counter[str] = Counter()
        self._begun = self._running = 0
        self._open, self._changed = True, threading.Condition()

    def ask(self, model: Model, request: Request) -> Call:
        """Makes a call and records it.

        Raises:
            RefusedError: the step has ended, or the episode has used its calls.
            GamutError: the model cannot be asked.
        """
        number, equal = self._begin(json.dumps([request.fields, request.messages], sort_keys=True))
        request = replace(request, identity=[*self.identity, equal])
        made: Call | None = None
        failure: GamutError | None = None
        try:
            made = model.ask(request)
            made = replace(made, number=number, **self._known)
        except GamutError as error:
            failure = error
            raise
        except Exception as error:
            failure = PluginError(
                f"the model raised {located(type(error).__name__, str(error), error)}"
            )
            raise failure from error
        finally:
            with self._changed:
                self._running -= 1
                if made is not None:
                    self._made[number] = made
                self.failure = self.failure or failure
                self._changed.notify_all()
        return made

    def _begin(self, wanted: str) -> tuple[int, int]:
        """Begins a call; returns its number in the step, and how many equal ones were before."""
        with self._changed:
            if not self._open:
                raise _closed()
            if self.failure is not None:
                raise self.failure
            if self._left is not None and self._begun >= self._left:
                self.refused = "the episode has used its calls (limits.episode_calls)"
                raise RefusedError(429, "limit_reached", self.refused)
            self._begun, self._running = self._begun + 1, self._running + 1
            self._equal[wanted] += 1
            return self._begun - 1, self._equal[wanted] - 1

    def close(self, timeout_s: float | None) -> list[Call]:
        """Refuses further calls; returns those that were made, in the order they began in.

        Args:
            timeout_s: longest wait for calls in flight; None for any, which end by the deadline of
                the endpoint.
        """
        with self._changed:
            self._open = False
            self._changed.wait_for(lambda: not self._running, timeout_s)
            return [self._made[number] for number in sorted(self._made)]


def _closed() -> RefusedError:
    return RefusedError(
        401,
        "no_step",
        "no step of an episode with this key is in progress; calls are answered from the call of "
        "the agent's function until it returns, at the base URL of its context",
    )


class Gateway:
    """The endpoint, in threads of this process; thread-safe.

    It answers ``POST chat/completions`` and ``GET models`` below ``base_url(key)``. A request for a
    stream gets the whole answer as one event, since an answer is recorded before it is used.

    Args:
        model: the model that answers, whatever the name in a request.
        name: its name.
    """

    def __init__(self, model: Model, name: str) -> None:
        self._model, self.name = model, name
        self._steps: dict[str, StepCalls] = {}
        self._server = _Server(self)
        thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_S,), name="gateway", daemon=True
        )
        thread.start()

    def base_url(self, key: str) -> str:
        """Returns the base URL for an episode."""
        return f"http://{_HOST}:{self._server.server_address[1]}/{key}/v1"

    @contextmanager
    def step(self, key: str, calls: StepCalls) -> Iterator[None]:
        """Answers the calls with a key while the step is in progress."""
        self._steps[key] = calls
        try:
            yield
        finally:
            del self._steps[key]

    def require(self, key: str) -> StepCalls:
        """Returns the step that is in progress for a key.

        Raises:
            RefusedError: there is none.
        """
        calls = self._steps.get(key)
        if calls is None:
            raise _closed()
        return calls

    def complete(self, key: str, body: bytes) -> tuple[str, bytes]:
        """Answers a request; returns the type and the content of the response.

        Raises:
            RefusedError: it is refused; its status, code and message are for the client.
        """
        calls = self.require(key)
        local = self._model if isinstance(self._model, LocalModel) else None
        request, stream = request_of(body, calls.fields, local=local is not None)
        if local is not None and request.images and not local.transformer.takes_images:
            raise RefusedError(400, "invalid_request", f"{self.name} takes no pictures")
        try:
            call = calls.ask(self._model, request)
        except BudgetExhausted as error:
            limit = type(error) is BudgetExhausted
            code = "limit_reached" if limit else "model_unavailable"
            raise RefusedError(429 if limit else 503, code, str(error)) from error
        except GamutError as error:
            raise RefusedError(503, "model_unavailable", str(error)) from error
        completion = completion_of(call, self.name)
        if stream is None:
            return "application/json", json.dumps(completion).encode()
        return "text/event-stream", events_of(completion, stream)

    def models(self, key: str) -> bytes:
        """Returns the list of models: the one that answers."""
        self.require(key)
        model = {"id": self.name, "object": "model", "created": 0, "owned_by": "gamut"}
        return json.dumps({"object": "list", "data": [model]}).encode()

    def close(self) -> None:
        """Ends the server; calls in flight are still made."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 512

    def __init__(self, gateway: Gateway) -> None:
        super().__init__((_HOST, 0), _Handler)
        self.gateway = gateway

    def handle_error(self, *_: object) -> None:
        """Logs nothing: the client has closed its connection."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout: ClassVar[float | None] = _IDLE_S

    def do_GET(self) -> None:
        self._reply(None)

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _LARGEST_BODY:
            self.close_connection = True  # the body is not read
            text = f"expected a body of at most {_LARGEST_BODY:,} bytes with its length"
            self._refuse(RefusedError(413, "too_large", text))
            return
        self._reply(self.rfile.read(int(length)))

    def _reply(self, body: bytes | None) -> None:
        assert isinstance(self.server, _Server)
        gateway = self.server.gateway
        parts = self.path.partition("?")[0].strip("/").split("/")
        if parts[0] == "v1":  # the key is that of the API
            parts.insert(0, self.headers.get("Authorization", "").removeprefix("Bearer "))
        key, place = parts[0], "/".join(parts[1:])
        try:
            if body is not None and place == "v1/chat/completions":
                self._send(200, *gateway.complete(key, body))
            elif body is None and place in ("v1/models", f"v1/models/{gateway.name}"):
                self._send(200, "application/json", gateway.models(key))
            else:
                text = "expected POST v1/chat/completions or GET v1/models below the base URL"
                raise RefusedError(404, "unknown_place", text)
        except RefusedError as error:
            self._refuse(error)
        except RecursionError:
            self._refuse(RefusedError(400, "invalid_request", "it is nested too deeply"))

    def _refuse(self, error: RefusedError) -> None:
        data = {"message": error.message, "type": "gamut", "param": None, "code": error.code}
        body = json.dumps({"error": data}).encode()
        # OpenAI's clients try again after such statuses unless they are told not to.
        self._send(error.status, "application/json", body, {"x-should-retry": "false"})

    def _send(
        self, status: int, kind: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        known = {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
        }
        for name, value in {**known, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Logs nothing."""
