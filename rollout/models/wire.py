"""Messages and responses in the form of OpenAI's chat API."""

from __future__ import annotations

import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any

from rollout.models.responses import parsed

_TOKENS_PER_PICTURE = 1600  # an upper estimate, for limits
_CHARACTERS_PER_TOKEN = 2  # a lower one


def json_object(text: str) -> dict[str, Any]:
    """Returns the JSON object that a text is; a fence of Markdown around it is allowed.

    Raises:
        ValueError: it is something else.
    """
    try:
        data = parsed(_unfenced(text).encode())
    except ValueError as error:
        raise ValueError(f"expected one JSON object: {error}") from error
    if not isinstance(data, dict):
        raise ValueError(f"expected one JSON object, got {type(data).__name__}")
    return data


def _unfenced(text: str) -> str:
    """The text between fences of Markdown; without them as it is."""
    inner = text.strip()
    if inner[:3] != "```" or inner[-3:] != "```":
        return text
    kind, _, rest = inner[3:-3].partition("\n")
    body, newline, after = rest.rpartition("\n")
    fenced = newline and not after.strip() and kind.rstrip() in ("", "json")
    return body if fenced else text


def brief(value: object) -> str:
    """Returns what a model gave in place of something else, for messages; at most 80 characters."""
    try:
        text = repr(value)
    except RecursionError:
        return "something that is nested too deeply"
    return text if len(text) <= 80 else f"{text[:77]}..."


def estimate(messages: Sequence[Mapping[str, Any]]) -> int:
    """Returns an upper estimate of the tokens of messages."""
    tokens = 0
    for message in messages:
        content = message["content"]
        parts = [{"text": content}] if isinstance(content, str) else content
        for part in parts:
            pictures = part.get("type") == "image"
            text = len(part.get("text", ""))
            tokens += _TOKENS_PER_PICTURE if pictures else text // _CHARACTERS_PER_TOKEN + 8
    return tokens


def body_of(
    fields: Mapping[str, Any],
    messages: Sequence[Mapping[str, Any]],
    images: Mapping[str, bytes],
    kind: str,
) -> bytes:
    """Returns the body of a request, with the files of the pictures that messages name.

    Base64 needs no escapes in JSON, so pictures are put between parts that are JSON already:
    they are most of a body, and are copied once.
    """
    pieces: list[bytes] = []

    def opened(mapping: Mapping[str, Any], key: str) -> None:
        """An object of JSON up to the list ``key``, its last entry."""
        others = {name: value for name, value in mapping.items() if name != key}
        pieces.append(json.dumps({**others, key: []}).encode()[:-2])

    opened(fields, "messages")
    for number, message in enumerate(messages):
        pieces.append(b", " if number else b"")
        content = message["content"]
        if isinstance(content, str):
            pieces.append(json.dumps(message).encode())
            continue
        opened(message, "content")
        for place, part in enumerate(content):
            pieces.append(b", " if place else b"")
            if part["type"] != "image":
                pieces.append(json.dumps(part).encode())
                continue
            url = f'{{"type": "image_url", "image_url": {{"url": "data:{kind};base64,'
            data = binascii.b2a_base64(images[part["digest"]], newline=False)
            pieces += (url.encode(), data, b'"}}')
        pieces.append(b"]}")
    pieces.append(b"]}")
    return b"".join(pieces)
