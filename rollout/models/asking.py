"""Asks a model: what was answered before is found, everything else is paid within the limits."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rollout.api import Call, Usage
from rollout.errors import ConfigError, PolicyUnavailable
from rollout.models.client import Client
from rollout.models.providers import most_tokens, sent_fields
from rollout.models.replies import Replies
from rollout.models.responses import read_response, without_thoughts
from rollout.models.sections import Endpoint, RunLimits
from rollout.models.spending import Budget, billed, charged, price_of
from rollout.models.wire import body_of, estimate

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
        identity: what tells equal requests apart: the episode, the step, the number of the try.
        think: whether ``<think>`` is a part of the answer that was asked for, and not reasoning.
    """

    fields: Mapping[str, Any]
    messages: Sequence[Mapping[str, Any]]
    images: Mapping[str, bytes]
    kind: str
    identity: Sequence[Any]
    think: bool = False


class Asker:
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
        self._client = Client(endpoint)
        self._replies, self._replay = Replies(replies), replay
        self._price = price_of(model, prices)
        self._budget = Budget(limits, self._replies.usage)
        self._cut = 0  # answers in a row

    @property
    def spent(self) -> Usage:
        """What all sessions of the run have spent."""
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
            self._require_same(self._replies.refused.get(self.model, ""))
            reply = self._pay(digest, request)
        if not request.think:
            answer, thoughts = without_thoughts(reply.answer)
            reply = replace(reply, answer=answer, reasoning=reply.reasoning or thoughts)
        return replace(
            reply,
            request=digest,
            earlier=earlier,
            asked=self.model,
            messages=list(request.messages),
        )

    def _pay(self, digest: str, request: Request) -> Call:
        """Makes a call and keeps its reply."""
        fields = {"model": self.model, **request.fields}
        if self.endpoint.logprobs:
            fields["logprobs"] = True
        fields = sent_fields(self.endpoint, fields)
        tokens, most = estimate(request.messages), most_tokens(fields, request.fields["max_tokens"])
        body = body_of(fields, request.messages, request.images, request.kind)
        usd = self._price.of(tokens, 0, most) if self._price else 0.0
        most_spent = Usage(1, 0, tokens, most, usd, unpriced=self._price is None)
        with self._budget.call(most_spent) as paid:
            started = time.time()
            response = self._client.post(body)
            reply = replace(
                billed(read_response(response.data), response.data.get("usage"), self._price),
                started=started,
                seconds=round(response.seconds, 4),
                waited_s=round(response.waited_s, 4),
                errors=list(response.errors),
                asked=self.model,
            )
            if reply.usd is None or reply.input_tokens is None:
                reply = replace(reply, at_most={"tokens": tokens + most, "usd": usd})
            paid.append(charged(reply))
            if self._mixed(reply.reported):
                self._replies.refuse(digest, reply)
                self._require_same(reply.reported)
            self._replies.add(digest, reply)
        self._watch(reply, most)
        return reply

    def _mixed(self, reported: str) -> bool:
        """Whether another model answered in earlier sessions of the run."""
        known = self._replies.reported.get(self.model)
        return bool(known and reported and reported not in known)

    def _require_same(self, reported: str) -> None:
        if self._mixed(reported):
            known = ", ".join(sorted(self._replies.reported[self.model]))
            raise ConfigError(
                f"model: {self.model} was answered by {known} before, and now by {reported}; a run "
                f"must not mix models: choose another output, or another folder of replies. If "
                f"{known} answers again, remove refused.jsonl in the folder of replies, which has "
                f"what {reported} answered, and say --resume"
            )

    def _watch(self, reply: Call, most: int) -> None:
        """Warns once of a model that is always cut off, as one that reasons may be."""
        self._cut = self._cut + 1 if reply.finish == "length" else 0
        if self._cut == _CUT_IN_A_ROW:
            log.warning(
                "%d answers of %s in a row were cut off at %d tokens (code cut); hidden reasoning "
                "counts: raise sampling.max_tokens, or lower the effort in endpoint.extra, e.g. "
                "reasoning_effort: low (docs/endpoints.md)",
                *(self._cut, self.model, most),
            )
