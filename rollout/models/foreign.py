"""Requests that code of others makes by OpenAI's chat API, and responses as it expects them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from rollout.api import Call
from rollout.models.chat_api import parsed, shorten
from rollout.models.client import Request
from rollout.models.local import decoded
from rollout.models.observations import picture_digest

_OURS = ("model", "messages", "stream", "stream_options", "n")  # are not passed on
_LOCAL = ("temperature", "max_tokens", "user", "seed", "metadata", "store")
_DATA = "data:"


class RefusedError(Exception):
    """A request that is refused.

    Attributes:
        status: of HTTP.
        code: short name of the reason, for programs.
        message: what was expected, and what came.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def _wrong(message: str) -> RefusedError:
    return RefusedError(400, "invalid_request", message)


def request_of(
    body: bytes, defaults: Mapping[str, Any], *, local: bool = False
) -> tuple[Request, Mapping[str, Any] | None]:
    """Returns a request as Gamut's models take it, and the options of the stream it asks for.

    The options are None for a request that asks for no stream.

    Args:
        body: JSON of a chat completion.
        defaults: fields for requests that lack them, among them ``max_tokens``.
        local: whether a model of this process answers, which takes text and pictures only.

    Raises:
        RefusedError: it is no such request.
    """
    try:
        data = parsed(body)
    except ValueError as error:
        raise _wrong(f"expected JSON: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("messages"), list):
        raise _wrong("expected a JSON object with a list of messages")
    if data.get("n") not in (None, 1):
        raise _wrong(f"expected n=1, got {shorten(data['n'])}; ask several times")
    fields = {k: v for k, v in data.items() if k not in _OURS and v is not None}
    most = fields.pop("max_completion_tokens", None)
    fields = {**defaults, **fields, **({} if most is None else {"max_tokens": most})}
    for name, kind in (("max_tokens", int), ("temperature", int | float)):
        value = fields.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, kind) or not 0 <= value < math.inf:
            raise _wrong(f"expected a number for {name}, got {shorten(value)}")
    strange = sorted(fields.keys() - {*_LOCAL})
    if local and strange:
        raise _wrong(f"a local model takes temperature and max_tokens, not {', '.join(strange)}")
    images: dict[str, bytes] = {}
    kinds: set[str] = set()
    messages = [_message(each, images, kinds, local=local) for each in data["messages"]]
    if len(kinds) > 1:
        raise _wrong(f"expected pictures of one type, got {', '.join(sorted(kinds))}")
    options = data.get("stream_options")
    stream = (options if isinstance(options, dict) else {}) if data.get("stream") else None
    return Request(fields, messages, images, next(iter(kinds), ""), ()), stream


def _message(
    message: Any, images: dict[str, bytes], kinds: set[str], *, local: bool
) -> dict[str, Any]:
    """Returns a message in which pictures are digests; adds their files and types."""
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise _wrong(f"expected a message with a role, got {shorten(message)}")
    content = message.get("content")
    if content is None:
        return {**message, "content": ""}  # a call of a tool
    if isinstance(content, str):
        return message
    if not isinstance(content, list):
        raise _wrong(f"expected a text or a list of parts as content, got {shorten(content)}")
    parts = [_part(part, images, kinds, local=local) for part in content]
    return {**message, "content": parts}


def _part(part: Any, images: dict[str, bytes], kinds: set[str], *, local: bool) -> dict[str, Any]:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text" and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    if kind != "image_url":
        if local or kind in (None, "text", "image"):
            raise _wrong(f"expected a part of type text or image_url, got {shorten(part)}")
        if not isinstance(part.get("text", ""), str):
            raise _wrong(f"expected a text in a part, got {shorten(part)}")
        return dict(part)  # such as a sound: the model's server knows
    url = part.get("image_url")
    url = url.get("url") if isinstance(url, dict) else url
    if not isinstance(url, str):
        raise _wrong(f"expected a URL in image_url, got {shorten(url)}")
    if not url.startswith(_DATA):
        if local:
            raise _wrong("a local model takes pictures as data: URLs only")
        return dict(part)
    head, _, code = url.removeprefix(_DATA).partition(",")
    mime, _, encoding = head.partition(";")
    try:
        file = base64.b64decode(code, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _wrong(f"expected a picture in base64: {error}") from error
    if local and file and decoded(file).ndim != 3:
        raise _wrong("expected the file of a picture, such as PNG or JPEG")
    if not file or encoding != "base64" or not mime.startswith("image/") or not mime.isascii():
        raise _wrong(f"expected data:image/...;base64,..., got {shorten(head)}")
    kinds.add(mime)
    digest = picture_digest(file)
    images[digest] = file
    return {"type": "image", "digest": digest}


def completion_of(call: Call, model: str) -> dict[str, Any]:
    """Returns a call as the response of a chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": call.answer}
    if call.reasoning:
        message["reasoning_content"] = call.reasoning
    finish = call.finish or "stop"
    if call.tools:
        message["content"] = call.answer or None
        message["tool_calls"] = [
            {
                "id": _tool_id(call, number),
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            for number, (name, arguments) in enumerate(call.tools)
        ]
        finish = "tool_calls" if finish == "stop" else finish
    given, answered = call.input_tokens or 0, call.output_tokens or 0
    return {
        "id": f"chatcmpl-{(call.request or '')[:24] or 'local'}",
        "object": "chat.completion",
        "created": int(call.started),
        "model": call.reported or model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": {
            "prompt_tokens": given,
            "completion_tokens": answered,
            "total_tokens": given + answered,
        },
    }


def _tool_id(call: Call, number: int) -> str:
    """Returns nine letters and digits, which all servers accept, the same in a resumed run."""
    return hashlib.sha256(f"{call.request} {number}".encode()).hexdigest()[:9]


def events_of(completion: Mapping[str, Any], options: Mapping[str, Any]) -> bytes:
    """Returns a response as the events of a stream: the whole answer at once."""
    [choice] = completion["choices"]
    delta = dict(choice["message"])
    if "tool_calls" in delta:
        delta["tool_calls"] = [{"index": n, **t} for n, t in enumerate(delta["tool_calls"])]
    common = {k: completion[k] for k in ("id", "created", "model")}
    common["object"] = "chat.completion.chunk"
    ended = {"index": 0, "delta": delta, "finish_reason": choice["finish_reason"]}
    events: list[Mapping[str, Any]] = [{**common, "choices": [ended]}]
    if options.get("include_usage"):
        events.append({**common, "choices": [], "usage": completion["usage"]})
    lines = [json.dumps(event) for event in events]
    return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()
