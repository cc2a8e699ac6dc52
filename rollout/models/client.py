"""A client of one model: known replies are reused, new calls are paid within the limits of the run.

Every reply is appended to a file in the folder of the run before it is used. A run that is resumed
finds the replies of the episodes that it plays again, since an episode that begins with the same
seed sends the same requests.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import os
import re
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field

from rollout.api import NO_USAGE, Call, Usage
from rollout.errors import ConfigError, DiskFullError, PolicyUnavailable, is_disk_full
from rollout.files import open_file, read_lines, remote
from rollout.models.chat_api import (
    estimated_tokens,
    parsed,
    read_response,
    request_body,
    split_reasoning,
)
from rollout.models.sections import Endpoint, OptionGroup, RunLimits
from rollout.models.spending import Budget, price_of, usage_for_limits, with_usage
from rollout.models.transport import HttpClient
from rollout.yaml12 import load_yaml

_FILE = Path(__file__).with_name("providers.yaml")
_LIMITS = ("max_completion_tokens", "max_tokens", "max_output_tokens")


class Provider(OptionGroup):
    """An entry of ``providers.yaml``, which explains the keys."""

    hosts: list[str]
    models: str = ""
    fields_: dict[str, str | None] = Field(default_factory=dict, alias="fields")
    set_: dict[str, Any] = Field(default_factory=dict, alias="set")

    def fits(self, host: str, model: str) -> bool:
        """Returns whether the entry applies to a model at a host."""
        there = any(host == each or host.endswith(f".{each}") for each in self.hosts)
        return there and re.match(self.models, model.rpartition("/")[2]) is not None


def sent_fields(endpoint: Endpoint, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a request as they are sent to an endpoint.

    Args:
        endpoint: where they are sent; its ``extra`` counts before what is known of providers.
        fields: the fields, among them ``model``.
    """
    sent = dict(fields)
    host = urlsplit(endpoint.url).hostname or ""
    for provider in _providers():
        if not provider.fits(host, str(fields["model"])):
            continue
        for name, other in provider.fields_.items():
            value = sent.pop(name, None)
            if other is not None and value is not None:
                sent[other] = value
        sent |= provider.set_
    sent |= endpoint.extra
    return {name: value for name, value in sent.items() if value is not None}


def output_limit(sent: Mapping[str, Any], default: int) -> int:
    """Returns the maximum number of output tokens set by the sent fields."""
    found = [sent[name] for name in _LIMITS if isinstance(sent.get(name), int)]
    return max(found, default=default)


@functools.cache
def _providers() -> list[Provider]:
    return [Provider(**each) for each in load_yaml(_FILE, ours=True)]


_REFUSED = "refused.jsonl"


class ReplyStore:
    """Stores replies by the digest of their request; thread-safe and safe among processes.

    Args:
        folder: where they are; None keeps none.

    Attributes:
        usage: usage of the replies of the folder, for limits.
        reported: by the name that was asked for, the models that earlier sessions say answered.
        refused: by the name that was asked for, another model that answered later; what it
            answered is in ``refused.jsonl`` of the folder and is never used.

    Raises:
        ConfigError: the folder cannot be read, or is a URL.
    """

    def __init__(self, folder: Path | None) -> None:
        self.usage = NO_USAGE
        self.reported: dict[str, set[str]] = {}
        self.refused: dict[str, str] = {}
        self._folder, self._file = folder, -1
        self._lock = threading.Lock()
        self._places: dict[str, tuple[int, int, int]] = {}  # file, offset and length, by digest
        self._handles: list[int] = []
        self._end = 0
        if folder is None:
            return
        if said := remote(str(folder)):
            raise ConfigError(f"replies: {said}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for path in sorted(folder.glob("*.jsonl")):
                self._read(path)
        except OSError as error:
            raise ConfigError(f"the replies in {folder} cannot be read: {error}") from error

    def __len__(self) -> int:
        return len(self._places)

    def _read(self, path: Path) -> None:
        with open_file(path) as file:
            self._handles.append(os.dup(file.fileno()))
        offset = 0
        for line in read_lines(path):
            if not line.endswith(b"\n"):
                return  # a crash cut it
            begin, offset = offset, offset + len(line)
            with contextlib.suppress(
                ValueError, LookupError, TypeError, AttributeError
            ):  # a damaged line is no reply
                data = parsed(line)
                reply = Call.from_json(data["reply"])
                if _is_failure(reply):
                    continue  # another call is made
                self.usage += usage_for_limits(reply)
                if path.name == _REFUSED:
                    self.refused[reply.asked] = reply.reported
                    continue
                self._places[data["request"]] = (len(self._handles) - 1, begin, len(line))
                if reply.asked and reply.reported:
                    self.reported.setdefault(reply.asked, set()).add(reply.reported)

    def get(self, request: str) -> Call | None:
        """Returns the reply to a request that has this digest, or None."""
        with self._lock:
            place = self._places.get(request)
            if place is None:
                return None
            number, offset, length = place
            return Call.from_json(parsed(os.pread(self._handles[number], length, offset))["reply"])

    def refuse(self, request: str, reply: Call) -> None:
        """Stores a reply of another model than in earlier sessions; it is never used.

        Raises:
            OSError: it cannot be written.
        """
        self.refused[reply.asked] = reply.reported
        if self._folder is not None:
            with self._lock, (self._folder / _REFUSED).open("ab", buffering=0) as file:
                file.write(_line(request, reply))

    def add(self, request: str, reply: Call) -> None:
        """Adds a reply; once it returns, the reply survives the death of the process.

        Raises:
            DiskFullError: the disk is full.
            OSError: it cannot be written.
        """
        if self._folder is None:
            return
        data = _line(request, reply)
        with self._lock:
            try:
                if self._file < 0:
                    self._begin(self._folder)
                if os.write(self._file, data) < len(data):
                    os.ftruncate(self._file, self._end)
                    raise DiskFullError("a reply could not be written completely")
            except OSError as error:
                if is_disk_full(error):
                    raise DiskFullError(f"replies of models: {error}") from error
                raise
            self._places[request] = (len(self._handles) - 1, self._end, len(data))
            self._end += len(data)

    def _begin(self, folder: Path) -> None:
        path = folder / f"{os.getpid()}-{time.time_ns()}.jsonl"
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        self._handles.append(self._file)


def _is_failure(reply: Call) -> bool:
    """True for a failure of the server that an earlier version stored as an empty answer."""
    answered = reply.answer or reply.reasoning or reply.tools or reply.output_tokens
    return not answered and reply.finish in ("", "error")


def _line(request: str, reply: Call) -> bytes:
    data = {"request": request, "reply": reply.as_json()}
    return (json.dumps(data, ensure_ascii=True) + "\n").encode()


log = logging.getLogger(__name__)

_CUT_IN_A_ROW = 10


@dataclass(frozen=True)
class Request:
    """A request to a model.

    Attributes:
        fields: its fields beside the messages.
        messages: the messages, in which pictures are digests.
        images: files of the pictures, by digest.
        kind: MIME type of the pictures.
        identity: distinguishes equal requests: the episode, the step, the number of the try.
        think: whether ``<think>`` is a requested part of the answer instead of reasoning.
    """

    fields: Mapping[str, Any]
    messages: Sequence[Mapping[str, Any]]
    images: Mapping[str, bytes]
    kind: str
    identity: Sequence[Any]
    think: bool = False


class ModelClient:
    """Asks one model at one endpoint; thread-safe.

    Attributes:
        calls: most requests at once.

    Args:
        endpoint: where the model is.
        model: its name.
        limits: limits of the run.
        prices: file of the prices; empty for Gamut's.
        replies: folder of the replies; None to keep none.
        replay: use replies of the folder only.

    Raises:
        ConfigError: the key is not set, or a file cannot be read.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        limits: RunLimits,
        prices: str,
        replies: Path | None,
        replay: bool = False,
    ) -> None:
        self.endpoint, self.model, self.calls = endpoint, model, endpoint.calls
        self._client = HttpClient(endpoint)
        self._replies, self._replay = ReplyStore(replies), replay
        self._price = price_of(model, prices)
        self._budget = Budget(limits, self._replies.usage)
        self._cut = 0  # answers in a row

    @property
    def spent(self) -> Usage:
        """Usage of all sessions of the run."""
        return self._budget.spent

    def figures(self) -> dict[str, float]:
        """Returns the requests in flight, and the figures of ``Budget``, for metrics."""
        return {"models/in_flight": self._client.limiter.running, **self._budget.figures()}

    def ask(self, request: Request) -> Call:
        """Returns a call with its request and its reply.

        Raises:
            ConfigError: the server refuses the first request of the run, or another model answers
                than in earlier sessions.
            PolicyUnavailable: it does not answer in time, or there is no reply to replay.
            BudgetExhausted: a limit of the run is reached.
        """
        # Not as providers want them, which may change: the digest finds earlier sessions' replies.
        fields = {"model": self.model, **request.fields, **self.endpoint.extra}
        if self.endpoint.logprobs:
            fields["logprobs"] = True
        identity = json.dumps([fields, request.messages, request.identity], sort_keys=True)
        digest = hashlib.sha256(identity.encode()).hexdigest()
        reply = self._replies.get(digest)
        earlier = reply is not None
        if reply is None:
            if self._replay:
                raise PolicyUnavailable(
                    f"replay: there is no reply to the request {digest[:16]} "
                    f"({request.identity}); the prompt, the model or the game is another one"
                )
            self._check_same_model(self._replies.refused.get(self.model, ""))
            reply = self._pay(digest, request)
        if not request.think:
            answer, reasoning = split_reasoning(reply.answer)
            reply = replace(reply, answer=answer, reasoning=reply.reasoning or reasoning)
        return replace(
            reply,
            request=digest,
            earlier=earlier,
            asked=self.model,
            messages=list(request.messages),
        )

    def _pay(self, digest: str, request: Request) -> Call:
        """Makes a call and stores its reply."""
        fields = {"model": self.model, **request.fields}
        if self.endpoint.logprobs:
            fields["logprobs"] = True
        fields = sent_fields(self.endpoint, fields)
        tokens, most = (
            estimated_tokens(request.messages),
            output_limit(fields, request.fields["max_tokens"]),
        )
        body = request_body(fields, request.messages, request.images, request.kind)
        usd = self._price.of(tokens, 0, most) if self._price else 0.0
        most_spent = Usage(1, 0, tokens, most, usd, unpriced=self._price is None)
        with self._budget.call(most_spent) as paid:
            started = time.time()
            response = self._client.post(body)
            reply = replace(
                with_usage(read_response(response.data), response.data.get("usage"), self._price),
                started=started,
                seconds=round(response.seconds, 4),
                waited_s=round(response.waited_s, 4),
                errors=list(response.errors),
                asked=self.model,
            )
            if reply.usd is None or reply.input_tokens is None:
                reply = replace(reply, at_most={"tokens": tokens + most, "usd": usd})
            paid.append(usage_for_limits(reply))
            if self._is_other_model(reply.reported):
                self._replies.refuse(digest, reply)
                self._check_same_model(reply.reported)
            self._replies.add(digest, reply)
        self._warn_if_always_cut(reply, most)
        return reply

    def _is_other_model(self, reported: str) -> bool:
        """True if another model answered in earlier sessions of the run."""
        known = self._replies.reported.get(self.model)
        return bool(known and reported and reported not in known)

    def _check_same_model(self, reported: str) -> None:
        if self._is_other_model(reported):
            known = ", ".join(sorted(self._replies.reported[self.model]))
            raise ConfigError(
                f"model: {self.model} was answered by {known} before, and now by {reported}; a run "
                f"must not mix models: choose another output, or another folder of replies. If "
                f"{known} answers again, remove refused.jsonl in the folder of replies, which has "
                f"what {reported} answered, and say --resume"
            )

    def _warn_if_always_cut(self, reply: Call, most: int) -> None:
        """Warns once if many answers in a row were cut off, as with hidden reasoning."""
        self._cut = self._cut + 1 if reply.finish == "length" else 0
        if self._cut == _CUT_IN_A_ROW:
            log.warning(
                "%d answers of %s in a row were cut off at %d tokens (code cut); hidden reasoning "
                "counts: raise sampling.max_tokens, or lower the effort in endpoint.extra, e.g. "
                "reasoning_effort: low (docs/endpoints.md)",
                *(self._cut, self.model, most),
            )
