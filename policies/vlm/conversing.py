"""Conversations with a model: generators of requests, which are answered together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from rollout.api import Call
from rollout.models.client import ModelClient, Request
from rollout.models.local import LocalModel
from rollout.models.sections import Sampling

Model: TypeAlias = ModelClient | LocalModel
_T = TypeVar("_T")


def run_in_step(
    conversations: Sequence[Generator[Request, Call, _T]],
    answer: Callable[[list[Request]], Sequence[Call]],
) -> list[_T]:
    """Runs conversations in step: one call answers the next requests of all.

    Returns:
        the return value of each conversation.
    """
    found: dict[int, _T] = {}
    replies: dict[int, Any] = dict.fromkeys(range(len(conversations)))
    while replies:
        requests: dict[int, Request] = {}
        for number, reply in replies.items():
            try:
                requests[number] = conversations[number].send(reply)
            except StopIteration as end:
                found[number] = end.value
        answers = answer(list(requests.values())) if requests else ()
        replies = dict(zip(requests, answers, strict=True))
    return [found[number] for number in range(len(conversations))]


class Conversations:
    """Runs conversations with a model; thread-safe."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._threads: ThreadPoolExecutor | None = None

    def run(self, conversations: Sequence[Generator[Request, Call, _T]]) -> list[_T]:
        """Returns what each conversation returns: batched for a local model, else concurrent."""
        if isinstance(self._model, LocalModel):
            return run_in_step(conversations, self._model.answer)
        ask = self._model.ask
        if len(conversations) == 1:
            return run_in_step(conversations, lambda requests: [ask(requests[0])])
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._model.calls, "vlm")
        alone = self._threads.map(
            lambda t: run_in_step([t], lambda r: [ask(r[0])])[0], conversations
        )
        return list(alone)


def sampling_fields(sampling: Sampling, identity: Sequence[Any], explore: bool) -> dict[str, Any]:
    """Returns the fields of a request that control sampling.

    Args:
        sampling: the options.
        identity: of the request, for its seed.
        explore: whether to sample; the most probable answer if not.
    """
    temperature = sampling.temperature if explore else 0.0
    fields: dict[str, Any] = {"temperature": temperature, "max_tokens": sampling.max_tokens}
    if sampling.seed:
        digest = hashlib.blake2b(json.dumps(list(identity)).encode(), digest_size=4).digest()
        fields["seed"] = int.from_bytes(digest, "big") >> 1
    return fields


def with_verdict(
    call: Call, code: str, problem: str, fields: Mapping[str, str], action: str | None = None
) -> Call:
    """Returns the call with the result of parsing its answer."""
    usable = code == "ok"
    return replace(call, code=code, usable=usable, action=action, fields=fields, problem=problem)
